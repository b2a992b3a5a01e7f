"""Commands known to be harmless: programs with the options and operands under which they only look."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from agentctl.errors import Position
from agentctl.protocol.effects import RunProgram


@dataclass(frozen=True, slots=True, kw_only=True)
class SafeEntry:
    """One line of the list as it is shown: what it covers and which file put it there."""

    text: str
    """`git status`, `terraform fmt *`, or a tool's name."""
    position: Position
    by: str
    """`shipped`, `user` or `blueprint`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SafeList:
    """What needs no prompt although a rule says ask. Never lifts a deny or a held ask."""

    entries: tuple[SafeEntry, ...] = ()
    tools: Mapping[str, SafeEntry] = field(default_factory=dict)

    def covers(self, command: RunProgram) -> str:
        """Return the entry under which `command` is harmless, or empty. Pure and total."""
        del command
        return ""

    def covers_tool(self, tool: str) -> str:
        """Return the entry that covers a tool as a whole, or empty."""
        entry = self.tools.get(tool)
        return entry.text if entry is not None else ""


NO_SAFE_LIST = SafeList()
"""`[safe_commands] defaults = false` and nothing else."""
