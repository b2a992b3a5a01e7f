"""The servers of one process: each is started once for all agents of a run that want it."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
from anyio.abc import TaskGroup

from agentctl.executor.api import Executor
from agentctl.tools.mcp.line import Line
from agentctl.tools.mcp.opening import OpenSession, load_wire
from agentctl.tools.mcp.server import ServerPlan


@dataclass(slots=True)
class _Entry:
    line: Line
    users: int = 0


@dataclass(slots=True, kw_only=True)
class ServerPool:
    """Starts servers and ends them when their last user has let go. Belongs to one event loop."""

    group: TaskGroup
    executor: Executor
    load: Callable[[], Awaitable[OpenSession]] = load_wire
    _entries: dict[ServerPlan, _Entry] = field(default_factory=dict)

    def take(self, plan: ServerPlan) -> Line:
        """Return the server of a plan, started now if it does not run; returns before it is there."""
        if plan not in self._entries:
            self._entries[plan] = _Entry(self._line(plan))
        self._entries[plan].users += 1
        return self.again(plan)

    def again(self, plan: ServerPlan) -> Line:
        """Return the server of a plan that was taken, started anew if it has ended."""
        entry = self._entries[plan]
        if entry.line.why:
            entry.line = self._line(plan)
        return entry.line

    def _line(self, plan: ServerPlan) -> Line:
        line = Line(plan=plan, executor=self.executor, load=self.load)
        self.group.start_soon(line.serve)
        return line

    async def let_go(self, plans: Iterable[ServerPlan]) -> None:
        """Give servers back; those that nobody else has are ended, all at once. Not cancelled."""
        ending: list[Line] = []
        for plan in plans:
            entry = self._entries.get(plan)
            if entry is None:
                continue
            entry.users -= 1
            if entry.users <= 0:
                del self._entries[plan]
                ending.append(entry.line)
        with anyio.CancelScope(shield=True):
            async with anyio.create_task_group() as group:
                for line in ending:
                    group.start_soon(line.stop)

    async def aclose(self) -> None:
        """End every server. Idempotent; not cancelled."""
        await self.let_go([plan for plan, entry in self._entries.items() for _ in range(entry.users)])


@asynccontextmanager
async def open_pool(executor: Executor) -> AsyncIterator[ServerPool]:
    """Give a pool; whatever still runs at the end is ended."""
    try:
        async with anyio.create_task_group() as group:
            pool = ServerPool(group=group, executor=executor)
            try:
                yield pool
            finally:
                await pool.aclose()
                group.cancel_scope.cancel()
    except BaseExceptionGroup as wrapped:
        if len(wrapped.exceptions) != 1:
            raise
        # A server's life never fails, so this one came from within the `with`: the group is not its story.
        raise wrapped.exceptions[0] from None
