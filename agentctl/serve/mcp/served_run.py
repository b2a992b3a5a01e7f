"""One run that a client started: it goes on beside the client's requests, and stands where it must ask."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import field

import anyio

from agentctl.blueprint.model import Blueprint
from agentctl.errors import AgentctlError, ExitCode
from agentctl.protocol.events import Published, RunEnded, RunSuspended
from agentctl.protocol.questions import Answer, Question
from agentctl.records import dataclass
from agentctl.run.house import House
from agentctl.run.runner import RunEnd, run_or_fail
from agentctl.run.start import Order, begun
from agentctl.settings.settings import Settings

OpenHouse = Callable[[Settings, Blueprint], AbstractAsyncContextManager[House]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """How a run that a client started ended."""

    end: RunEnd
    run_id: str = ""
    thread_id: str = ""


@dataclass(slots=True, kw_only=True)
class ServedRun:
    """A run, its open questions, and its end. Answered by whoever speaks to the client."""

    open_house: OpenHouse
    settings: Settings
    blueprint: Blueprint
    order: Order
    can_ask: bool
    """The client can put questions to a person."""
    watch: Callable[[Published], None] = field(default=lambda _published: None)
    report: RunReport | None = None
    _questions: dict[str, Question] = field(default_factory=dict)
    _house: House | None = None
    _moved: anyio.Event = field(default_factory=anyio.Event)
    _scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    _over: anyio.Event = field(default_factory=anyio.Event)

    async def serve(self) -> None:
        """Run to the end. Errors that a person must act on are the run's end, not the server's."""
        try:
            with self._scope:
                async with self.open_house(self.settings, self.blueprint) as house:
                    self._house = house
                    house.someone_there = lambda: self.can_ask
                    house.watch = self._watch
                    stop = house.hub.watch(self)
                    try:
                        await self._run(house)
                    finally:
                        stop()
        except AgentctlError as error:
            text = f"{error.message} {error.hint}".strip()
            self.report = RunReport(
                end=RunEnded(outcome="failed", exit_code=int(error.exit_code), reason=text)
            )
        finally:
            self._house = None
            self._over.set()
            self._moved.set()

    def _watch(self, published: Published) -> None:
        self.watch(published)  # looked up each time: each request of the client brings its own

    async def _run(self, house: House) -> None:
        async with begun(house, self.blueprint, self.order) as parts:
            recorder = parts.recorder
            try:
                end = await run_or_fail(parts)
            except anyio.get_cancelled_exc_class():
                with anyio.CancelScope(shield=True):
                    reason = "the client took the call back"
                    await recorder.commit(RunSuspended(reason=reason, exit_code=int(ExitCode.WAITING)))
                raise
            self.report = RunReport(end=end, run_id=recorder.run_id, thread_id=recorder.thread_id)

    async def next_questions(self) -> tuple[Question, ...]:
        """Return the questions that wait, or none when the run is over; then `report` says how."""
        while not self._questions and not self._over.is_set():
            self._moved = anyio.Event()
            await self._moved.wait()
        return () if self._over.is_set() else tuple(self._questions.values())

    def answer(self, question_id: str, answer: Answer) -> None:
        """Give an answer; one to a question that does not wait any more changes nothing."""
        self._questions.pop(question_id, None)
        if self._house is not None:
            self._house.hub.answer(question_id, answer)

    async def stop(self) -> None:
        """End it where it stands, to be resumed; return when it has let go of everything."""
        self._scope.cancel()
        with anyio.CancelScope(shield=True):
            await self._over.wait()

    def on_asked(self, question: Question) -> None:
        """Take in a question that waits."""
        self._questions[question.question_id] = question
        self._moved.set()

    def on_settled(self, question: Question, answer: Answer | None) -> None:
        """Forget a question that waits no more."""
        del answer
        self._questions.pop(question.question_id, None)
