"""The servers' tools of one run: which servers it wants, what they offer now, and what became of them."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from agentctl.errors import ToolServerMissing
from agentctl.executor.api import Executor
from agentctl.tools.mcp.line import Line
from agentctl.tools.mcp.names import may_select, named, tool_name
from agentctl.tools.mcp.pool import ServerPool
from agentctl.tools.mcp.server import RemoteTool, ServerPlan
from agentctl.tools.mcp.tool import reading_tool, server_tool
from agentctl.tools.outside import Note, OutsideTool, Wanted
from agentctl.tools.registry import schema_of

_LONGEST_SCHEMA = 100_000
_MOST_TRIES = 3
"""How often in a run a far server that went away is reached for again."""


def wants(wanted: Wanted, server: str) -> bool:
    """Tell whether a stage lists a server, or a name or glob that may mean one of its tools. Pure."""
    return server in wanted.connectors or any(may_select(pattern, server) for pattern in wanted.tools)


@dataclass(slots=True, kw_only=True)
class McpTools:
    """The tools of the servers that a run wants; see `ToolSource`."""

    pool: ServerPool
    executor: Executor
    plans: tuple[ServerPlan, ...]
    """Those that any stage wants, and those that are required; names differ."""
    unknown: tuple[str, ...] = ()
    """Servers that a stage lists and nobody names."""
    _lines: dict[str, Line] = field(default_factory=dict)
    _heard: dict[str, int] = field(default_factory=dict)
    """How many notes of each server were taken."""
    _seen: tuple[tuple[int, int], ...] = ()
    _tools: tuple[OutsideTool, ...] = ()
    _notes: list[Note] = field(default_factory=list)
    _told: set[str] = field(default_factory=set)
    _tries: dict[str, int] = field(default_factory=dict)

    @asynccontextmanager
    async def living(self) -> AsyncIterator[None]:
        """Start the servers side by side, wait for the required ones, end them with the run.

        Raises:
            ToolServerMissing: a required server is not there.
        """
        for name in self.unknown:
            text = (
                f"No MCP server is named {name!r}, in your config or in the blueprint; none of it is offered"
            )
            self._notes.append(Note(level="warning", text=text))
        try:
            for plan in self.plans:
                line = self.pool.take(plan)
                self._lines[plan.name], self._heard[plan.name] = line, len(line.notes)
            for line in self._lines.values():
                if line.plan.required:
                    await _demand(line)
            yield
        finally:
            taken, self._lines = [line.plan for line in self._lines.values()], {}
            await self.pool.let_go(taken)

    async def ready(self, wanted: Wanted) -> None:
        """Wait for the servers that a stage wants, and for lists that were asked for anew."""
        for line in [line for line in self._lines.values() if wants(wanted, line.plan.name)]:
            await line.settled()
            await line.refreshed()
            if line.why and line.began and line.plan.url:
                await self._reach_again(line)

    async def _reach_again(self, line: Line) -> None:
        """Reach for a far server that forgot us or was away: unlike a local one that ended, it may be back.

        Each is tried a few times in a run and no more.
        """
        name = line.plan.name
        tries = self._tries.get(name, 0) + 1
        if tries > _MOST_TRIES:
            return
        self._tries[name] = tries
        self._notes += line.notes[self._heard[name] :]
        fresh = self.pool.again(line.plan)
        self._lines[name], self._heard[name] = fresh, 0
        await fresh.settled()

    def tools(self) -> tuple[OutsideTool, ...]:
        """Return what the servers offer now, each under a name of its own."""
        seen = tuple((id(line), line.version) for line in self._lines.values())
        if seen != self._seen:
            self._seen, self._tools = seen, tuple(self._list())
        return self._tools

    def _list(self) -> list[OutsideTool]:
        found: dict[str, OutsideTool] = {}
        for line in self._lines.values():
            server = line.plan.name
            names = named(server, line.offer.tools, found)
            for name, remote in names.tools:
                if fault := fault_of(remote):
                    self._leave_out(f"{line.label}: its tool {remote.name!r} is left out: {fault}.")
                    continue
                tool = server_tool(name, remote, line, self.executor)
                found[name] = OutsideTool(tool=tool, connector=server)
            for name, remote in names.left_out:
                self._leave_out(
                    f"{line.label}: its tool {remote.name!r} is left out: the name {name} means another tool."
                )
            for what in line.offer.readings:
                name = tool_name(server, what)
                if name not in found:
                    found[name] = OutsideTool(tool=reading_tool(what, line, self.executor), connector=server)
        return list(found.values())

    def _leave_out(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            self._notes.append(Note(level="warning", text=text))

    def why_missing(self, tool: str) -> str:
        """Return what became of the server that a tool's name begins with."""
        for line in self._lines.values():
            if line.why and tool.startswith(f"{line.plan.name}__"):
                return f"{line.label} is not there: {line.why}."
        return ""

    def take_notes(self) -> tuple[Note, ...]:
        """Return what happened to the servers since the last time."""
        notes, self._notes = self._notes, []
        for name, line in self._lines.items():
            notes += line.notes[self._heard[name] :]
            self._heard[name] = len(line.notes)
        return tuple(notes)


def fault_of(remote: RemoteTool) -> str:
    """Return why a tool cannot be offered, or empty. One such schema, and services refuse every request."""
    size = len(json.dumps(remote.parameters))
    if size > _LONGEST_SCHEMA:
        return f"its schema has {size:,} characters; at most {_LONGEST_SCHEMA:,} are told to a model"
    made = schema_of(remote.parameters)
    return f"its schema is invalid ({made})" if isinstance(made, str) else ""


async def _demand(line: Line) -> None:
    await line.settled()
    if line.session is not None:
        return
    why = await line.gone()
    raise ToolServerMissing(
        f"{line.label} is required and is not there: {why.rstrip('.')}.",
        hint=f"It is named at {line.plan.position}; `agentctl resume last` goes on once it is there.",
    )
