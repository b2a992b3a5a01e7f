"""Any number of agents ask at once; each question is answered once, and the first answer wins."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import anyio

from agentctl.clock import Clock
from agentctl.interaction.unattended import after_deadline
from agentctl.protocol.questions import Answer, ApprovalAnswer, ApprovalQuestion, Question


class HubWatcher(Protocol):
    """Is told what waits. Calls never block and must not raise."""

    def on_asked(self, question: Question) -> None:
        """A question waits now."""

    def on_settled(self, question: Question, answer: Answer | None) -> None:
        """A question waits no more; `answer` is None when the asker was cancelled."""


class AlreadyWaiting(ValueError):
    """A question id was asked a second time while the first still waits: a mistake of the caller."""


class WrongKind(ValueError):
    """An approval got a person's answer or the reverse: a mistake of the caller."""


@dataclass(slots=True, kw_only=True)
class _Waiting:
    question: Question
    settled: anyio.Event = field(default_factory=anyio.Event)
    answer: Answer | None = None


class Hub:
    """Where questions wait for answers from a terminal, another terminal or a connected client.

    One hub serves the whole tree of agents of a run. Belongs to one event loop; not thread-safe.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: dict[str, _Waiting] = {}
        self._watchers: list[HubWatcher] = []

    async def ask(self, question: Question) -> Answer:
        """Return the first answer to `question`, or what its deadline means.

        Waits at most `question.deadline_s` by the hub's clock; 0 waits for ever. Safe to cancel: the
        question is then withdrawn and a later answer to it is lost without a trace.

        Raises:
            AlreadyWaiting: a question of this id waits.
        """
        if question.question_id in self._waiting:
            raise AlreadyWaiting(question.question_id)
        entry = _Waiting(question=question)
        self._waiting[question.question_id] = entry
        for watcher in tuple(self._watchers):
            watcher.on_asked(question)
        try:
            await self._settle(entry)
        finally:
            self._waiting.pop(question.question_id, None)
            for watcher in tuple(self._watchers):
                watcher.on_settled(question, entry.answer)
        return entry.answer or after_deadline(question)

    async def _settle(self, entry: _Waiting) -> None:
        if not entry.question.deadline_s:
            await entry.settled.wait()
            return
        async with anyio.create_task_group() as group:
            group.start_soon(self._expire, entry)
            await entry.settled.wait()
            group.cancel_scope.cancel()

    async def _expire(self, entry: _Waiting) -> None:
        await self._clock.sleep(entry.question.deadline_s)
        self.answer(entry.question.question_id, after_deadline(entry.question))

    def answer(self, question_id: str, answer: Answer) -> bool:
        """Give `answer`; return whether it was the first one to a question that waits.

        An answer that comes too late, or to a question nobody asks, changes nothing.

        Raises:
            WrongKind: an approval question was answered with words, or the reverse.
        """
        entry = self._waiting.get(question_id)
        if entry is None or entry.answer is not None:
            return False
        if isinstance(entry.question, ApprovalQuestion) != isinstance(answer, ApprovalAnswer):
            raise WrongKind(question_id)
        entry.answer = answer
        entry.settled.set()
        return True

    def waiting(self) -> tuple[Question, ...]:
        """Return the questions that wait and have no answer yet, in the order they were asked."""
        return tuple(entry.question for entry in self._waiting.values() if entry.answer is None)

    def watch(self, watcher: HubWatcher) -> Callable[[], None]:
        """Tell `watcher` of every question from now on, those that wait already first; return how to stop."""
        self._watchers.append(watcher)
        for question in self.waiting():
            watcher.on_asked(question)

        def stop() -> None:
            self._watchers = [one for one in self._watchers if one is not watcher]

        return stop
