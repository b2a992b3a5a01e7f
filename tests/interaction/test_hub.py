from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

import anyio
import pytest

from agentctl.clock import SystemClock
from agentctl.interaction.hub import AlreadyWaiting, Hub, WrongKind
from agentctl.protocol.questions import (
    Answer,
    ApprovalAnswer,
    ApprovalQuestion,
    PersonAnswer,
    PersonQuestion,
    Question,
)
from tests.terminal.samples import approval, person

pytestmark = pytest.mark.anyio


class HandClock:
    """Time that moves when a test says so."""

    def __init__(self) -> None:
        self.passed = 0.0
        self._moved = anyio.Event()

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    def monotonic(self) -> float:
        return self.passed

    async def sleep(self, seconds: float) -> None:
        end = self.passed + seconds
        while self.passed < end:
            await self._moved.wait()

    def move(self, seconds: float) -> None:
        self.passed += seconds
        self._moved.set()
        self._moved = anyio.Event()


@dataclass(slots=True)
class Told:
    """A watcher that remembers, and answers with `reply` when there is one."""

    asked: list[str] = field(default_factory=list)
    settled: list[tuple[str, bool]] = field(default_factory=list)
    reply: Callable[[Question], object] = field(default=lambda _question: None)

    def on_asked(self, question: Question) -> None:
        self.asked.append(question.question_id)
        self.reply(question)

    def on_settled(self, question: Question, answer: Answer | None) -> None:
        self.settled.append((question.question_id, answer is not None))


async def ask(hub: Hub, question: Question, answers: dict[str, Answer]) -> None:
    answers[question.question_id] = await hub.ask(question)


async def until_waiting(hub: Hub, count: int) -> None:
    with anyio.fail_after(5):
        while len(hub.waiting()) != count:
            await anyio.lowlevel.checkpoint()


async def test_the_first_answer_wins_and_later_ones_change_nothing() -> None:
    hub, answers = Hub(SystemClock()), dict[str, Answer]()
    async with anyio.create_task_group() as group:
        group.start_soon(ask, hub, approval(), answers)
        await until_waiting(hub, 1)

        first = hub.answer("q-1", ApprovalAnswer(choice="no"))
        second = hub.answer("q-1", ApprovalAnswer(choice="always"))

    assert (first, second) == (True, False)
    assert answers == {"q-1": ApprovalAnswer(choice="no")}
    assert hub.answer("q-1", ApprovalAnswer(choice="once")) is False


async def test_ten_agents_that_ask_at_once_get_each_their_own_answer() -> None:
    hub, answers = Hub(SystemClock()), dict[str, Answer]()
    async with anyio.create_task_group() as group:
        for number in range(10):
            question = approval(f"q-{number}", agent=f"agent-{number}")
            group.start_soon(ask, hub, question, answers)
        await until_waiting(hub, 10)

        for number in reversed(range(10)):
            hub.answer(f"q-{number}", ApprovalAnswer(choice="no", reason=f"for {number}"))

    assert answers == {
        f"q-{number}": ApprovalAnswer(choice="no", reason=f"for {number}") for number in range(10)
    }


@pytest.mark.parametrize(
    ("question", "expected"),
    [(approval(), "no"), (person("text"), "deadline")],
    ids=["approval", "question"],
)
async def test_a_deadline_is_a_no_or_no_answer(
    question: ApprovalQuestion | PersonQuestion, expected: str
) -> None:
    clock = HandClock()
    hub, answers = Hub(clock), dict[str, Answer]()
    async with anyio.create_task_group() as group:
        group.start_soon(ask, hub, question, answers)
        await until_waiting(hub, 1)
        await anyio.wait_all_tasks_blocked()

        clock.move(3600)

    answer = answers[question.question_id]
    assert answer.by == "deadline"
    assert (answer.choice if isinstance(answer, ApprovalAnswer) else answer.no_answer) == expected


async def test_an_answer_at_the_last_moment_beats_the_deadline() -> None:
    clock = HandClock()
    hub, answers = Hub(clock), dict[str, Answer]()
    async with anyio.create_task_group() as group:
        group.start_soon(ask, hub, approval(), answers)
        await until_waiting(hub, 1)
        await anyio.wait_all_tasks_blocked()

        hub.answer("q-1", ApprovalAnswer(choice="once"))
        clock.move(3600)

    assert answers["q-1"] == ApprovalAnswer(choice="once")


async def test_without_a_deadline_a_question_waits() -> None:
    clock, answers = HandClock(), dict[str, Answer]()
    hub = Hub(clock)
    question = ApprovalQuestion(
        **{name: getattr(approval(), name) for name in ApprovalQuestion.__slots__} | {"deadline_s": 0.0}
    )
    async with anyio.create_task_group() as group:
        group.start_soon(ask, hub, question, answers)
        await until_waiting(hub, 1)
        clock.move(10**9)
        await anyio.wait_all_tasks_blocked()

        assert hub.waiting() == (question,)
        hub.answer("q-1", ApprovalAnswer(choice="once"))

    assert answers["q-1"] == ApprovalAnswer(choice="once")


async def test_a_cancelled_asker_leaves_nothing_behind() -> None:
    hub, told = Hub(SystemClock()), Told()
    hub.watch(told)
    async with anyio.create_task_group() as group:
        group.start_soon(hub.ask, approval())
        await until_waiting(hub, 1)
        group.cancel_scope.cancel()

    assert hub.waiting() == ()
    assert told.settled == [("q-1", False)]
    assert hub.answer("q-1", ApprovalAnswer(choice="once")) is False


async def test_a_watcher_hears_of_what_waits_already_and_can_stop() -> None:
    hub, late, gone = Hub(SystemClock()), Told(), Told()
    async with anyio.create_task_group() as group:
        group.start_soon(hub.ask, approval("q-1"))
        await until_waiting(hub, 1)
        hub.watch(late)
        hub.watch(gone)()
        group.start_soon(hub.ask, approval("q-2"))
        await until_waiting(hub, 2)
        for question_id in ("q-1", "q-2"):
            hub.answer(question_id, ApprovalAnswer(choice="no"))

    assert late.asked == ["q-1", "q-2"]
    assert sorted(late.settled) == [("q-1", True), ("q-2", True)]
    assert (gone.asked, gone.settled) == (["q-1"], [])


async def test_a_watcher_may_answer_at_once() -> None:
    hub = Hub(SystemClock())
    hub.watch(Told(reply=lambda one: hub.answer(one.question_id, ApprovalAnswer(choice="no"))))

    with anyio.fail_after(5):
        assert await hub.ask(approval()) == ApprovalAnswer(choice="no")


async def test_mistakes_of_callers_are_errors() -> None:
    hub = Hub(SystemClock())
    async with anyio.create_task_group() as group:
        group.start_soon(hub.ask, approval())
        await until_waiting(hub, 1)

        with pytest.raises(AlreadyWaiting):
            await hub.ask(approval())
        with pytest.raises(WrongKind):
            hub.answer("q-1", PersonAnswer(text="yes"))

        group.cancel_scope.cancel()
