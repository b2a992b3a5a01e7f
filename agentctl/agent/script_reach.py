"""What a caller may call: the model what its stage offers, a script tool what its permissions leave it."""

from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias

from agentctl.protocol.tool_names import SCRIPT_FUNCTIONS, SCRIPT_ONLY_TOOLS
from agentctl.records import dataclass
from agentctl.tools.registry import ToolRegistry

Permission: TypeAlias = Literal["allow", "deny", "inherit"]
"""`allow`: in every stage; `inherit`: see `script_reach`; `deny`: never. The rules judge each call too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """The tools a caller may name."""

    registry: ToolRegistry
    offered: tuple[str, ...]
    refusal: Callable[[str], str]
    """Why a name that is not offered is refused."""
    caller: str = ""
    """The script tool that calls; empty for the model."""


def script_reach(
    host: ToolRegistry,
    permissions: Mapping[str, Permission],
    offered: tuple[str, ...],
    *,
    written_here: bool,
) -> Reach:
    """Return what a script tool may call in a stage that offers `offered` to the model. Pure.

    `inherit` leaves a script `read_file`, `write_file` and `shell` where the stage offers them, and what no
    stage can offer, the network and the environment, if somebody trusted the script before the run.
    """

    def may(name: str) -> bool:
        match permissions.get(name, "inherit"):
            case "deny":
                return False
            case "allow":
                return True
            case "inherit":
                return not written_here if name in SCRIPT_ONLY_TOOLS else name in offered

    def refusal(name: str) -> str:
        if permissions.get(name, "inherit") == "deny":
            return f"Script tools may not use {name} here ([tool_script_permissions] {name} = deny)."
        if name in SCRIPT_ONLY_TOOLS:
            return (
                f"A script tool that was written during the run may not use {name} "
                f'unless [tool_script_permissions] has {name} = "allow".'
            )
        return (
            f"This stage does not offer {name}, so its script tools have none either "
            f'unless [tool_script_permissions] has {name} = "allow".'
        )

    names = tuple(name for name in SCRIPT_FUNCTIONS if host.find(name) is not None and may(name))
    return Reach(registry=host, offered=names, refusal=refusal)
