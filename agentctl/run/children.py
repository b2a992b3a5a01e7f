"""The sub-agents of one run: started, watched, spoken to, ended with it; found again by a resume."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import field
from typing import Protocol

import anyio
from anyio.abc import TaskGroup

from agentctl.agent.asking_tool import PersonAbsent
from agentctl.agent.context import Suspend
from agentctl.errors import ToolError
from agentctl.ids import new_run_id, new_thread_id
from agentctl.policy.budgets import Budgets, Reservation
from agentctl.protocol.events import ChildEnded, ChildStarted, RunEnded, RunOutcome, RunSuspended
from agentctl.protocol.messages import AssistantMessage
from agentctl.records import dataclass
from agentctl.run.recorder import RunRecorder
from agentctl.tools.subagents import ChildReport, SpawnRequest


class ChildRun(Protocol):
    """A sub-agent's run, ready to go."""

    @property
    def recorder(self) -> RunRecorder:
        """Where its facts are."""

    async def go(self) -> RunEnded | RunSuspended:
        """Run to the end; committed. Cancelling it ends it, and all below it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildSeed:
    """What a sub-agent's run is made from."""

    run_id: str
    thread_id: str
    name: str
    request: SpawnRequest
    resumed: bool = False
    """It has a journal already, and goes on from there."""


OpenChild = Callable[[ChildSeed], Awaitable[ChildRun]]
"""Builds a sub-agent's run; raises ToolError when the agent is not there or not allowed to be."""


@dataclass(slots=True, kw_only=True)
class _Child:
    seed: ChildSeed
    started: ChildStarted
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    done: anyio.Event = field(default_factory=anyio.Event)
    run: ChildRun | None = None
    ended: ChildEnded | None = None
    killed: bool = False
    suspended: RunSuspended | None = None


@dataclass(slots=True, kw_only=True)
class Children:
    """All sub-agents of one run. Implements the Spawner of `tools/subagents.py`."""

    recorder: RunRecorder
    budgets: Budgets
    open_child: OpenChild | None
    known: tuple[tuple[str, str], ...] = ()
    _group: TaskGroup | None = None
    _children: dict[str, _Child] = field(default_factory=dict)

    @asynccontextmanager
    async def living(self) -> AsyncIterator[None]:
        """Give sub-agents a place to live; when it is left, those that still run are ended."""
        async with anyio.create_task_group() as group:
            self._group = group
            await self._find_again(group)
            try:
                yield
            finally:
                group.cancel_scope.cancel()

    def agents(self) -> tuple[tuple[str, str], ...]:
        """Return the agents that may be started, with their descriptions."""
        return self.known

    async def start(self, requests: tuple[SpawnRequest, ...], *, max_workers: int) -> tuple[str, ...]:
        """Start all of them, at most `max_workers` at a time, or none; return their ids in order."""
        found = [self._of_call(request) for request in requests]
        fresh = [request for request, child in zip(requests, found, strict=True) if child is None]
        reservation = self._reserve(len(fresh))
        slots = anyio.Semaphore(max(1, max_workers))
        ids = []
        for request, child in zip(requests, found, strict=True):
            ids.append((child or await self._begin(request, slots)).seed.run_id)
        if reservation is not None:
            self.budgets.settle_spawn(reservation)
        return tuple(ids)

    def report(self, child: str) -> ChildReport:
        """Return what is known of a sub-agent, by id or name."""
        return _report(self._find(child))

    def reports(self) -> tuple[ChildReport, ...]:
        """Return what is known of all, in the order they were started."""
        return tuple(_report(child) for child in self._children.values())

    def running(self) -> bool:
        """Tell whether any of them still runs."""
        return any(not child.done.is_set() for child in self._children.values())

    async def wait(
        self, children: tuple[str, ...], *, any_of: bool, timeout_s: float
    ) -> tuple[ChildReport, ...]:
        """Wait until all have ended, or one of them with `any_of`, or the time is up."""
        waited = [self._find(child) for child in children]
        with anyio.move_on_after(timeout_s or None):
            await _first(waited) if any_of else await _all(waited)
        for child in waited:
            if child.suspended is not None and child.suspended.exit_code == _WAITING:
                raise PersonAbsent(
                    Suspend(question_id="", reason=f"{child.seed.name}: {child.suspended.reason}")
                )
        return tuple(_report(child) for child in waited)

    async def send(self, child: str, text: str) -> None:
        """Put a message into a running sub-agent's inbox."""
        found = self._find(child)
        if found.done.is_set():
            raise ToolError(f"{found.seed.name} has ended ({_report(found).outcome}); nobody reads it.")
        await self.recorder.send(found.seed.run_id, text, source=f"agent:{self.recorder.agent}")

    async def kill(self, child: str) -> ChildReport:
        """End a sub-agent and all below it; idempotent."""
        found = self._find(child)
        if not found.done.is_set():
            found.killed = True
            found.scope.cancel()
            await found.done.wait()
        return _report(found)

    def _reserve(self, count: int) -> Reservation | None:
        if not count:
            return None
        answer = self.budgets.reserve_spawn(count)
        if isinstance(answer, Reservation):
            return answer
        raise ToolError(answer.message)

    async def _begin(self, request: SpawnRequest, slots: anyio.Semaphore) -> _Child:
        same = sum(child.seed.request.agent == request.agent for child in self._children.values())
        name = f"{request.agent}-{same + 1}" if same else request.agent
        seed = ChildSeed(run_id=new_run_id(), thread_id=new_thread_id(), name=name, request=request)
        run = await self._open(seed)
        started = ChildStarted(
            child_run=seed.run_id,
            child_thread=seed.thread_id,
            agent=request.agent,
            call_id=request.call_id,
            task=request.task,
            scope=request.scope or name,
            name=name,
            item=request.item,
            inputs=request.inputs,
            read=request.read,
            output_schema=request.output_schema or {},
        )
        await self.recorder.commit(started)
        child = _Child(seed=seed, started=started, run=run)
        self._children[seed.run_id] = child
        self._launch(child, slots)
        return child

    async def _open(self, seed: ChildSeed) -> ChildRun:
        if self.open_child is None:
            raise ToolError("sub-agents cannot be started here")
        return await self.open_child(seed)

    def _launch(self, child: _Child, slots: anyio.Semaphore | None) -> None:
        if self._group is None:
            raise ToolError("sub-agents cannot be started here")
        self._group.start_soon(self._live, child, slots)

    async def _live(self, child: _Child, slots: anyio.Semaphore | None) -> None:
        """Run a child to its end and say so in this run's journal, however it ends."""
        run = child.run
        if run is None:
            raise AssertionError("a child is launched with its run")
        end: RunEnded | RunSuspended | None = None
        try:
            with child.scope:
                if slots is None:
                    end = await run.go()
                else:
                    async with slots:
                        end = await run.go()
        finally:
            with anyio.CancelScope(shield=True):
                await self._bury(child, run, end)
            child.done.set()

    async def _bury(self, child: _Child, run: ChildRun, end: RunEnded | RunSuspended | None) -> None:
        if isinstance(end, RunSuspended):
            child.suspended = end
        if end is None and child.killed:
            reason = "ended by its parent"
            end = RunEnded(outcome="cancelled", exit_code=1, reason=reason)
            await run.recorder.commit(end)
        ended = _ending(child, end, _last_words(run.recorder))
        if ended is None:
            return  # it stands still, and goes on when the tree does
        child.ended = ended
        await self.recorder.commit(ended)

    async def _find_again(self, group: TaskGroup) -> None:
        """Take up the sub-agents that the journal knows; those that had not ended go on."""
        del group
        snapshot = self.recorder.snapshot
        for started in snapshot.children.values():
            request = SpawnRequest(
                agent=started.agent,
                task=started.task,
                call_id=started.call_id,
                item=started.item,
                inputs=started.inputs,
                scope=started.scope,
                read=started.read,
                output_schema=started.output_schema or None,
            )
            seed = ChildSeed(
                run_id=started.child_run,
                thread_id=started.child_thread,
                name=started.name or started.agent,
                request=request,
                resumed=True,
            )
            child = _Child(seed=seed, started=started, ended=snapshot.children_ended.get(started.child_run))
            self._children[seed.run_id] = child
            if child.ended is not None:
                child.done.set()
                continue
            child.run = await self._open(seed)
            self._launch(child, None)

    def _of_call(self, request: SpawnRequest) -> _Child | None:
        for child in self._children.values():
            if (child.started.call_id, child.started.item) == (request.call_id, request.item):
                return child
        return None

    def _find(self, name: str) -> _Child:
        child = self._children.get(name)
        if child is None:
            child = next((one for one in self._children.values() if one.seed.name == name), None)
        if child is None:
            known = ", ".join(one.seed.name for one in self._children.values()) or "none"
            raise ToolError(f"There is no sub-agent {name!r}. Sub-agents: {known}.")
        return child


_WAITING = 4


def _ending(child: _Child, end: RunEnded | RunSuspended | None, last: str) -> ChildEnded | None:
    """What the parent's journal says of a child's end; None while it is to go on by a resume of the tree."""
    match end:
        case RunEnded(outcome=outcome, answer=answer, reason=reason):
            return ChildEnded(
                child_run=child.seed.run_id, outcome=outcome, answer=answer or last, reason=reason
            )
        case RunSuspended(exit_code=code, limit=limit, reason=reason) if code != _WAITING:
            outcome = "limited" if limit else "failed"
            return ChildEnded(child_run=child.seed.run_id, outcome=outcome, answer=last, reason=reason)
        case _:
            return None


async def _all(children: list[_Child]) -> None:
    for child in children:
        await child.done.wait()


async def _first(children: list[_Child]) -> None:
    if not children or any(child.done.is_set() for child in children):
        return
    async with anyio.create_task_group() as group:

        async def one(child: _Child) -> None:
            await child.done.wait()
            group.cancel_scope.cancel()

        for child in children:
            group.start_soon(one, child)


def _last_words(recorder: RunRecorder) -> str:
    for message in reversed(recorder.snapshot.messages):
        if isinstance(message, AssistantMessage) and message.text:
            return message.text
    return ""


def _report(child: _Child) -> ChildReport:
    ended, run = child.ended, child.run
    outcome: RunOutcome | str = ended.outcome if ended else "running"
    if ended is None and child.suspended is not None:
        outcome = "waiting"
    answer = ended.answer if ended else (_last_words(run.recorder) if run else "")
    finish = run.recorder.snapshot.ended if run else None
    return ChildReport(
        child=child.seed.run_id,
        name=child.seed.name,
        agent=child.seed.request.agent,
        outcome=outcome,  # type: ignore[arg-type]  # one of RunOutcome or "running"
        answer=answer,
        output=finish.output if finish else None,
        reason=ended.reason if ended else "",
        steps=run.recorder.snapshot.step if run else 0,
        scope=child.started.scope,
    )
