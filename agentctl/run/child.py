"""One sub-agent as its parent keeps it: how it was started, how it stands, what is reported of it."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import field
from typing import Literal, Protocol

import anyio

from agentctl.errors import ExitCode
from agentctl.protocol.children import ChildEnded, ChildRefused, ChildStarted
from agentctl.protocol.events import RunEnded, RunSuspended
from agentctl.protocol.messages import AssistantMessage
from agentctl.records import dataclass
from agentctl.run.recorder import RunRecorder
from agentctl.tools.child_reports import ChildReport


class ChildRun(Protocol):
    """A sub-agent's run, ready to go."""

    @property
    def recorder(self) -> RunRecorder:
        """Where its facts are."""

    async def go(self) -> RunEnded | RunSuspended:
        """Begin it or go on with it, to its end; committed. Cancelling it leaves it to be resumed."""

    async def end(self, ended: RunEnded) -> None:
        """Commit the end of a run that is not at work, and of all below it. Idempotent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildSeed:
    """What a sub-agent's run is made from."""

    started: ChildStarted
    resumed: bool = False
    """Its parent's journal has it, and its own may: it goes on from there."""


OpenChild = Callable[[ChildSeed], Awaitable[ChildRun]]
"""Builds a sub-agent's run and writes nothing; ToolError when the agent is not there or not allowed to be."""


@dataclass(slots=True, kw_only=True)
class Child:
    """A sub-agent."""

    started: ChildStarted
    run: ChildRun | None = None
    """None for one that had ended before this process began."""
    ended: ChildEnded | None = None
    suspended: RunSuspended | None = None
    killed: bool = False
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    done: anyio.Event = field(default_factory=anyio.Event)
    """Nothing of it is at work: it ended, or it stands still."""

    @property
    def stands_still(self) -> bool:
        """Whether it waits for a person, or for the tree to be resumed."""
        return self.ended is None and self.done.is_set()

    def report(self) -> ChildReport:
        """Return what is known of it."""
        started, ended, run = self.started, self.ended, self.run
        standing: Literal["waiting", "running"] = "waiting" if self.stands_still else "running"
        finish = run.recorder.snapshot.ended if run else None
        return ChildReport(
            child=started.child_run,
            name=started.name,
            agent=started.agent,
            outcome=ended.outcome if ended else standing,
            answer=ended.answer if ended else last_words(run),
            output=ended.output if ended else finish.output if finish else None,
            reason=ended.reason if ended else self.suspended.reason if self.suspended else "",
            steps=run.recorder.snapshot.step if run else ended.steps if ended else 0,
            scope=started.scope,
        )

    def ending(self, end: RunEnded | RunSuspended | None) -> ChildEnded | None:
        """Return what the parent's journal says of its end; None while a resume goes on with it."""
        said = last_words(self.run)
        steps = self.run.recorder.snapshot.step if self.run else 0
        match end:
            case RunEnded(outcome=outcome, answer=answer, reason=reason, output=output):
                return ChildEnded(
                    child_run=self.started.child_run,
                    outcome=outcome,
                    answer=answer or said,
                    reason=reason,
                    output=output,
                    steps=steps,
                    refused=self._refused(),
                )
            case RunSuspended(above=above) if above:
                return None  # the tree's limit, not its own: it goes on when that was raised
            case RunSuspended(exit_code=code, limit=limit, reason=reason) if code != ExitCode.WAITING:
                return ChildEnded(
                    child_run=self.started.child_run,
                    outcome="limited" if limit else "failed",
                    answer=said,
                    reason=reason,
                    steps=steps,
                    refused=self._refused(),
                )
            case _:
                return None

    def _refused(self) -> tuple[ChildRefused, ...]:
        asks = self.run.recorder.snapshot.refused_asks if self.run else ()
        return tuple(
            ChildRefused(
                call_id=ask.call_id,
                tool=ask.tool,
                preview=ask.preview,
                reason=ask.reason,
                flags=ask.flags,
                instead=ask.instead,
            )
            for ask in asks
        )


def last_words(run: ChildRun | None) -> str:
    """Return the last thing that a run's model said, so that work that was cut short is not lost."""
    for message in reversed(run.recorder.snapshot.messages if run else ()):
        if isinstance(message, AssistantMessage) and message.text:
            return message.text
    return ""


async def all_done(children: Sequence[Child]) -> None:
    """Wait until none of them is at work."""
    for child in children:
        await child.done.wait()


async def one_ended(children: Sequence[Child]) -> None:
    """Wait until one of them has ended, or none is at work."""
    while not any(child.ended for child in children):
        at_work = [child for child in children if not child.done.is_set()]
        if not at_work:
            return
        await _one_done(at_work)


async def _one_done(children: Sequence[Child]) -> None:
    async with anyio.create_task_group() as group:

        async def wait_for(child: Child) -> None:
            await child.done.wait()
            group.cancel_scope.cancel()

        for child in children:
            group.start_soon(wait_for, child)
