"""The sub-agents of one run: started, watched, spoken to, ended with it; found again by a resume."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import field, replace

import anyio
from anyio.abc import TaskGroup

from agentctl.agent.asking_tool import PersonAbsent
from agentctl.agent.context import Suspend
from agentctl.errors import ExitCode, ToolError, UsageError
from agentctl.ids import new_run_id, new_thread_id
from agentctl.policy.budgets import Budgets, Reservation
from agentctl.protocol.children import ChildEnded, ChildStarted
from agentctl.protocol.events import RunEnded, RunSuspended
from agentctl.records import dataclass
from agentctl.run.child import Child, ChildRun, ChildSeed, OpenChild, all_done, one_ended
from agentctl.run.open_files import make_room
from agentctl.run.recorder import RunRecorder
from agentctl.tools.child_reports import ChildReport
from agentctl.tools.subagents import SpawnRequest


@dataclass(slots=True, kw_only=True)
class Children:
    """All sub-agents of one run. Implements the Spawner of `tools/subagents.py`."""

    recorder: RunRecorder
    budgets: Budgets
    open_child: OpenChild | None
    known: tuple[tuple[str, str], ...] = ()
    _group: TaskGroup | None = None
    _children: dict[str, Child] = field(default_factory=dict)
    _by_call: dict[tuple[str, int], Child] = field(default_factory=dict)
    """By the call that started it, and its place among that call's workers."""
    _names: set[str] = field(default_factory=set)
    _numbers: dict[str, int] = field(default_factory=dict)
    """The number that the last of an agent's name was given; a hint where to look for a free one."""
    _slots: dict[str, anyio.Semaphore] = field(default_factory=dict)
    """By call: how many of its workers may be at work at the same time."""

    @asynccontextmanager
    async def living(self) -> AsyncIterator[None]:
        """Give sub-agents a place to live; when it is left, those that are at work stand still."""
        async with anyio.create_task_group() as group:
            self._group = group
            await self._find_again()
            try:
                yield
            finally:
                group.cancel_scope.cancel()

    def agents(self) -> tuple[tuple[str, str], ...]:
        """Return the agents that may be started, with their descriptions."""
        return self.known

    async def start(self, requests: tuple[SpawnRequest, ...], *, max_workers: int) -> tuple[str, ...]:
        """Start all of them, at most `max_workers` at a time, or none; return their ids in order."""
        fresh = [request for request in requests if self._of_call(request) is None]
        if fresh:
            await self._begin(fresh, max_workers)
        found = (self._of_call(request) for request in requests)
        return tuple(child.started.child_run for child in found if child is not None)

    def report(self, child: str) -> ChildReport:
        """Return what is known of a sub-agent, by id or name."""
        return self._find(child).report()

    def reports(self) -> tuple[ChildReport, ...]:
        """Return what is known of all, in the order they were started."""
        return tuple(child.report() for child in self._children.values())

    async def wait(
        self, children: tuple[str, ...], *, any_of: bool, timeout_s: float
    ) -> tuple[ChildReport, ...]:
        """Wait until all have ended, or one of them with `any_of`, or the time is up."""
        waited = [self._find(child) for child in children]
        with anyio.move_on_after(timeout_s or None):
            await (one_ended(waited) if any_of else all_done(waited))
        enough = any_of and any(child.ended for child in waited)
        at_work = any(not child.done.is_set() for child in waited)
        standing = next((child for child in waited if child.stands_still), None)
        if standing is not None and not enough and not at_work:
            raise PersonAbsent(_standing(standing))
        return tuple(child.report() for child in waited)

    async def send(self, child: str, text: str) -> None:
        """Put a message into a running sub-agent's inbox."""
        found = self._find(child)
        if found.ended is not None:
            raise ToolError(f"{found.started.name} has ended ({found.ended.outcome}); nobody reads it.")
        source = f"agent:{self.recorder.agent}"
        await self.recorder.send(found.started.child_run, text, source=source)

    async def kill(self, child: str) -> ChildReport:
        """End a sub-agent and all below it; idempotent."""
        found = self._find(child)
        if found.ended is None and not found.killed:
            found.killed = True
            found.scope.cancel()
            await found.done.wait()
            if found.ended is None:  # it stood still
                await self._bury(found, None)
        return found.report()

    async def end_all(self) -> None:
        """End those that stand still: the run has ended, and no resume will go on with them."""
        with anyio.CancelScope(shield=True):
            for child in self._children.values():
                if child.ended is None:
                    child.ended = await self._put_an_end(child, "its parent has ended")

    async def _begin(self, requests: Sequence[SpawnRequest], max_workers: int) -> None:
        """Start sub-agents, all or none: their one commit comes after all that can be refused."""
        try:
            make_room(min(max_workers, len(requests)))
        except UsageError as error:
            raise ToolError(f"{error.message} Take fewer max_workers.") from error
        reservation = self.budgets.reserve_spawn(len(requests))
        if not isinstance(reservation, Reservation):
            raise ToolError(f"{reservation.message} Work with what you have.")
        made: list[Child] = []
        try:
            for request in requests:
                started = self._started(request, max_workers)
                made.append(Child(started=started))
                self._names.add(started.name)
                made[-1].run = await self._open(ChildSeed(started=started))
            self.budgets.settle_spawn(reservation)
            spent, own = self.budgets.spent(), self.budgets.own()
            made[-1].started = replace(made[-1].started, spent=spent, own=own)
            await self.recorder.commit(*(child.started for child in made))
        finally:
            if reservation.open:
                self._names -= {child.started.name for child in made}
                self.budgets.release(reservation)
        for child in made:
            self._keep(child)
            self._launch(child)

    def _started(self, request: SpawnRequest, max_workers: int) -> ChildStarted:
        number = self._numbers.get(request.agent, 0)
        name = request.agent
        while name in self._names:
            number += 1
            name = f"{request.agent}-{number}" if number > 1 else request.agent
        self._numbers[request.agent] = number
        return ChildStarted(
            child_run=new_run_id(),
            child_thread=new_thread_id(),
            agent=request.agent,
            call_id=request.call_id,
            task=request.task,
            scope=request.scope or name,
            name=name,
            item=request.item,
            inputs=request.inputs,
            read=request.read,
            output_schema=request.output_schema or {},
            stage=self.recorder.snapshot.stage,
            max_workers=max_workers,
        )

    async def _open(self, seed: ChildSeed) -> ChildRun:
        if self.open_child is None:
            raise ToolError("sub-agents cannot be started here")
        return await self.open_child(seed)

    def _launch(self, child: Child) -> None:
        if self._group is None:
            raise ToolError("sub-agents cannot be started here")
        self._group.start_soon(self._live, child)

    async def _live(self, child: Child) -> None:
        """Run a child to its end and say so in this run's journal, however it ends."""
        run = child.run
        if run is None:
            raise AssertionError("a child is launched with its run")
        end: RunEnded | RunSuspended | None = None
        try:
            with child.scope:
                async with self._slot(child.started):
                    end = await run.go()
        finally:
            with anyio.CancelScope(shield=True):
                await self._bury(child, end)
            child.done.set()

    def _slot(self, started: ChildStarted) -> AbstractAsyncContextManager[object]:
        """The workers of one call share its slots, those that a resume found again with those it begins."""
        if not started.max_workers:
            return nullcontext()
        return self._slots.setdefault(started.call_id, anyio.Semaphore(started.max_workers))

    async def _bury(self, child: Child, end: RunEnded | RunSuspended | None) -> None:
        if isinstance(end, RunSuspended):
            child.suspended = end
        ended = child.ending(end)
        if ended is None and child.killed:
            ended = await self._put_an_end(child, "ended by its parent")
        if ended is None:
            return  # it stands still, and goes on when the tree does
        await self.recorder.commit(ended)
        child.ended = ended

    async def _put_an_end(self, child: Child, reason: str) -> ChildEnded | None:
        end = RunEnded(outcome="cancelled", exit_code=int(ExitCode.FAILED), reason=reason)
        if child.run is not None:
            await child.run.end(end)
        return child.ending(end)

    async def _find_again(self) -> None:
        """Take up the sub-agents that the journal knows; those that had not ended go on."""
        snapshot = self.recorder.snapshot
        for started in list(snapshot.children.values()):
            ended = snapshot.children_ended.get(started.child_run)
            child = Child(started=started, ended=ended)
            self._keep(child)
            self._names.add(started.name)
            if ended is None:
                await self._go_on(child)
            else:
                child.done.set()

    async def _go_on(self, child: Child) -> None:
        try:
            child.run = await self._open(ChildSeed(started=child.started, resumed=True))
        except ToolError as error:
            child.ended = ChildEnded(
                child_run=child.started.child_run,
                outcome="failed",
                answer="",
                reason=f"it cannot go on: {error}",
            )
            await self.recorder.commit(child.ended)
            child.done.set()
            return
        self._launch(child)

    def _keep(self, child: Child) -> None:
        self._children[child.started.child_run] = child
        self._by_call[child.started.call_id, child.started.item] = child

    def _of_call(self, request: SpawnRequest) -> Child | None:
        return self._by_call.get((request.call_id, request.item))

    def _find(self, name: str) -> Child:
        child = self._children.get(name)
        if child is None:
            child = next((one for one in self._children.values() if one.started.name == name), None)
        if child is None:
            known = ", ".join(one.started.name for one in self._children.values()) or "none"
            raise ToolError(f"There is no sub-agent {name!r}. Sub-agents: {known}.")
        return child


def _standing(child: Child) -> Suspend:
    """Why a run that waits for `child` stands still with it."""
    why = child.suspended
    if why is None:
        return Suspend(question_id="", reason=f"{child.started.name} stands still")
    above = max(0, why.above - 1)
    return Suspend(question_id="", reason=f"{child.started.name}: {why.reason}", limit=why.limit, above=above)
