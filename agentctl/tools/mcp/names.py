"""Names of servers' tools: `server__tool`, of characters and a length that any model service takes. Pure."""

import re
from collections.abc import Iterable

from agentctl.records import dataclass
from agentctl.tools.mcp.server import RemoteTool

LONGEST = 64
_REFUSED = re.compile(r"[^A-Za-z0-9_-]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """The tools of one server under their names, and those left out because a name was taken."""

    tools: tuple[tuple[str, RemoteTool], ...]
    left_out: tuple[tuple[str, RemoteTool], ...]
    """With the name they would have had."""


def tool_name(server: str, tool: str) -> str:
    """Return the name under which a server's tool is offered. Equal for some tools that differ. Total."""
    return f"{server}__{_REFUSED.sub('_', tool) or '_'}"[:LONGEST]


def named(server: str, tools: Iterable[RemoteTool], taken: Iterable[str] = ()) -> Named:
    """Return the tools under names of their own; of two that would share one, the first has it.

    A number behind the name would make it mean another tool when the server lists them in another order, and
    with it every rule and grant that names it.
    """
    known = set(taken)
    kept: list[tuple[str, RemoteTool]] = []
    left_out: list[tuple[str, RemoteTool]] = []
    for tool in tools:
        name = tool_name(server, tool.name)
        (left_out if name in known else kept).append((name, tool))
        known.add(name)
    return Named(tools=tuple(kept), left_out=tuple(left_out))


def may_select(pattern: str, server: str) -> bool:
    """Tell whether a name or glob of `available_tools` could mean a tool of a server."""
    literal = re.split(r"[*?\[]", pattern, maxsplit=1)[0]
    prefix = f"{server}__"
    if literal == pattern:
        return pattern.startswith(prefix)
    return prefix.startswith(literal) or literal.startswith(prefix)
