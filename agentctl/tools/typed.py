"""A tool made of a spec and one function: the form that every built-in has."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from agentctl.protocol.messages import ToolSpec
from agentctl.protocol.tool_names import TOOL_ALIASES, WAITING_TOOLS
from agentctl.protocol.values import JsonObject
from agentctl.records import dataclass
from agentctl.tools.definition import Prepared, ToolPlace
from agentctl.tools.schema import read_arguments, schema_of

Arguments = TypeVar("Arguments")


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltInTool:
    """A built-in tool. Holds no state of a run; its aliases are those of `protocol/tool_names.py`."""

    spec: ToolSpec
    plan: Callable[[JsonObject, ToolPlace], Awaitable[Prepared]]
    """Says what the call would do. Raises ToolError for what the model can mend."""

    @property
    def aliases(self) -> tuple[str, ...]:
        """Other names that rules and models may use."""
        return tuple(alias for alias, name in TOOL_ALIASES.items() if name == self.spec.name)

    @property
    def waits_for_person(self) -> bool:
        """Not offered when unattended, unless the stage requires it."""
        return self.spec.name in WAITING_TOOLS

    async def prepare(self, arguments: JsonObject, place: ToolPlace) -> Prepared:
        """Say what this call would do; see `Tool.prepare`."""
        return await self.plan(arguments, place)


def typed_tool(
    name: str,
    description: str,
    kind: type[Arguments],
    plan: Callable[[Arguments, ToolPlace], Awaitable[Prepared]],
) -> BuiltInTool:
    """Return a tool whose parameters are the frozen dataclass `kind`."""

    async def read_and_plan(arguments: JsonObject, place: ToolPlace) -> Prepared:
        return await plan(read_arguments(kind, arguments), place)

    spec = ToolSpec(name=name, description=description, parameters=schema_of(kind))
    return BuiltInTool(spec=spec, plan=read_and_plan)
