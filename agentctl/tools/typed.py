"""A tool made of a dataclass of arguments and one function: the form that every built-in has."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from agentctl.protocol.messages import ToolSpec
from agentctl.protocol.values import JsonObject
from agentctl.tools.definition import Prepared, ToolPlace
from agentctl.tools.schema import read_arguments, schema_of

Arguments = TypeVar("Arguments")


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedTool(Generic[Arguments]):
    """A tool whose parameters are a frozen dataclass. Holds no state of a run."""

    spec: ToolSpec
    kind: type[Arguments]
    plan: Callable[[Arguments, ToolPlace], Awaitable[Prepared]]
    """Says what the call would do. Raises ToolError for what the model can mend."""
    aliases: tuple[str, ...] = ()
    waits_for_person: bool = False

    async def prepare(self, arguments: JsonObject, place: ToolPlace) -> Prepared:
        """Say what this call would do; see `Tool.prepare`."""
        return await self.plan(read_arguments(self.kind, arguments), place)


def spec_of(name: str, description: str, kind: type) -> ToolSpec:
    """Return the spec of a tool whose parameters are the dataclass `kind`."""
    return ToolSpec(name=name, description=description, parameters=schema_of(kind))
