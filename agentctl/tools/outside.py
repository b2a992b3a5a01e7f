"""Tools that come from outside agentctl and can come and go while a run lasts: tool servers, scripts.

A source belongs to one run. The agent asks it before each step for what there is; what it offers is filtered
by the stage, judged and run like any other tool.
"""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Literal, Protocol

from agentctl.records import dataclass
from agentctl.tools.definition import Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class OutsideTool:
    """A tool from outside."""

    tool: Tool
    connector: str = ""
    """The server whose name in a stage's `available_connectors` offers it; empty when none does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What a person reading the run should know of a source."""

    level: Literal["info", "warning"]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a stage lists."""

    tools: tuple[str, ...]
    """Names or globs."""
    connectors: tuple[str, ...]


class ToolSource(Protocol):
    """Where tools of a run come from. Must not act on the machine for a call that was not judged."""

    def living(self) -> AbstractAsyncContextManager[None]:
        """Begin what the tools need, and end it with the run.

        Entering waits only for what the run cannot do without.

        Raises:
            ToolServerMissing: a required server is not there.
        """

    async def ready(self, wanted: Wanted) -> None:
        """Return when everything a stage wants is there, or is known not to come. Waits in bounded time.

        Called before each step; takes in what changed meanwhile.
        """

    def tools(self) -> tuple[OutsideTool, ...]:
        """Return the tools there are now, in a stable order; each has a name of its own."""

    def why_missing(self, tool: str) -> str:
        """Return why a tool of that name, which was or would be from here, is not there; empty if unknown."""

    def take_notes(self) -> tuple[Note, ...]:
        """Return what happened since the last time, oldest first; each once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """All sources of a run, as one. An earlier one's tool wins over a later one's of the same name."""

    each: tuple[ToolSource, ...] = ()

    @asynccontextmanager
    async def living(self) -> AsyncIterator[None]:
        """Begin them in order, end them in the reverse; see `ToolSource.living`."""
        async with AsyncExitStack() as stack:
            for source in self.each:
                await stack.enter_async_context(source.living())
            yield

    async def ready(self, wanted: Wanted) -> None:
        """Wait for all of them; see `ToolSource.ready`."""
        for source in self.each:
            await source.ready(wanted)

    def tools(self) -> tuple[OutsideTool, ...]:
        """Return the tools of all of them, each name once."""
        found: dict[str, OutsideTool] = {}
        for source in self.each:
            for one in source.tools():
                found.setdefault(one.tool.spec.name, one)
        return tuple(found.values())

    def why_missing(self, tool: str) -> str:
        """Return the first reason that one of them knows."""
        return next((why for source in self.each if (why := source.why_missing(tool))), "")

    def take_notes(self) -> tuple[Note, ...]:
        """Return the notes of all of them."""
        return tuple(note for source in self.each for note in source.take_notes())


NOTHING_FROM_OUTSIDE = Sources()
"""No source at all."""
