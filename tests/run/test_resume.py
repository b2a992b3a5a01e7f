"""What a resume restores, row by row of docs/runs.md; ids are of ../shared/cases/resume.jsonl."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentctl.agent.snapshot import RunSnapshot
from agentctl.blueprint.load import parse_blueprint
from agentctl.errors import UsageError
from agentctl.protocol.commands import Commit
from agentctl.protocol.events import (
    CallStarted,
    GrantGiven,
    LaunchFlags,
    MessageAdded,
    QuestionAsked,
    RunEnded,
    RunSuspended,
    StageEntered,
)
from agentctl.protocol.messages import AssistantMessage, Message, ToolMessage, UserMessage
from agentctl.protocol.questions import Answer, ApprovalAnswer, PersonAnswer, PersonQuestion, Question
from agentctl.run.resume import brought_up_to_date, read_snapshot, thread_messages
from agentctl.run.runner import RunEnd
from agentctl.testing.memory_journal import MemoryJournal, ProcessKilled
from agentctl.testing.play import Stage, Turn, open_stage

pytestmark = pytest.mark.anyio

BLUEPRINT = """
[agent]
name = "kept"
[model]
use = ["scripted:"]
[tool_permissions]
shell = "ask"
[workspace]
initial = { files = [] }
[[state_keys]]
name = "count"
merge = "fold"
fold = "sum"
default = 0
[[state_effects]]
tool = "write_file"
ops = [{ op = "add", path = "/files/-", value = "{input.path}" }]
[[hooks]]
name = "look-first"
builtin = "read_before_write"
[stages.plan]
prompt = "Plan."
max_revisits = 2
available_tools = ["shell", "write_file", "read_file", "edit_file", "state_*"]
state = { write = ["count"] }
[stages.plan.transitions.build]
[stages.plan.transitions.done]
[stages.build]
prompt = "Build."
available_tools = ["shell", "write_file", "read_file"]
[stages.build.transitions.plan]
[stages.done]
prompt = "Done."
"""


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"tool": tool, "arguments": arguments}


def step(*calls: dict[str, Any]) -> dict[str, Any]:
    return {"tool_calls": list(calls)}


def text(words: str) -> dict[str, Any]:
    return {"text": words}


class Person:
    """Answers approvals for the run, and choices with an option; remembers what was asked."""

    def __init__(self, option: str = "") -> None:
        self.option = option
        self.asked: list[Question] = []

    def __call__(self, question: Question) -> Answer:
        self.asked.append(question)
        return (
            PersonAnswer(option=self.option)
            if isinstance(question, PersonQuestion)
            else ApprovalAnswer(choice="run")
        )


@asynccontextmanager
async def staged(
    tmp_path: Path,
    *,
    person: Person | None = None,
    kill_after: Callable[[Commit], bool] | None = None,
    limits: str = "",
) -> AsyncIterator[Stage]:
    path, workdir = tmp_path / "kept.toml", tmp_path / "work"
    path.write_text(BLUEPRINT + (f"[limits]\n{limits}\n" if limits else ""), encoding="utf-8")
    workdir.mkdir(exist_ok=True)
    journal = MemoryJournal(kill_after=kill_after)
    allow = ["write_file", "edit_file"]
    async with open_stage(path, workdir=workdir, answers=person, allow=allow, journal=journal) as stage:
        yield stage


def commits(*kinds: type) -> Callable[[Commit], bool]:
    return lambda commit: any(isinstance(event, kinds) for event in commit.events)


def starts(tool: str) -> Callable[[Commit], bool]:
    return lambda commit: any(
        isinstance(event, CallStarted) and event.tool == tool for event in commit.events
    )


def _has_reply(commit: Commit) -> bool:
    return any(
        isinstance(event, MessageAdded) and isinstance(event.message, AssistantMessage)
        for event in commit.events
    )


async def killed(stage: Stage, replies: Sequence[dict[str, Any]]) -> tuple[Stage, str]:
    """Begin a run whose process is killed, and return the next process and the run."""
    try:
        await stage.begin(Turn(text="go", replies=replies))
    except BaseException as error:
        if not _was_killed(error):
            raise
    journal = stage.journal
    assert isinstance(journal, MemoryJournal)
    again = replace(stage, journal=journal.reopened(), published=[])
    (info,) = await again.journal.runs()
    return again, info.run_id


def _was_killed(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return any(_was_killed(one) for one in error.exceptions)
    return isinstance(error, ProcessKilled)


async def stopped(stage: Stage, replies: Sequence[dict[str, Any]]) -> tuple[Stage, str]:
    """Begin a run that a limit stops, and return the stage without the limit and the run."""
    run_id, end = await stage.begin(Turn(text="go", replies=replies))
    assert isinstance(end, RunSuspended), end
    return with_limit(stage, 0), run_id


def with_limit(stage: Stage, steps: int) -> Stage:
    source = stage.blueprint.source
    text = BLUEPRINT + (f"[limits]\nsteps = {steps}\n" if steps else "")
    return replace(
        stage, blueprint=parse_blueprint(text.encode(), path=source.path, found_by=source.found_by)
    )


async def resumed(stage: Stage, run_id: str, replies: Sequence[dict[str, Any]]) -> RunSnapshot:
    end: RunEnd = await stage.resume(run_id, replies)
    assert isinstance(end, RunEnded), end
    return await read_snapshot(stage.journal, run_id)


def results(messages: Sequence[Message]) -> list[tuple[str, str]]:
    return [
        (message.result.outcome, message.result.text)
        for message in messages
        if isinstance(message, ToolMessage)
    ]


def assert_services_take(messages: Sequence[Message]) -> None:
    """Each call has exactly one result, before anything else is said."""
    waiting: list[str] = []
    for message in messages:
        match message:
            case ToolMessage(result=result):
                assert result.call_id in waiting, f"a result without a call: {result}"
                waiting.remove(result.call_id)
            case AssistantMessage() | UserMessage():
                assert not waiting, f"calls without a result: {waiting}"
                if isinstance(message, AssistantMessage):
                    waiting = [call.call_id for call in message.tool_calls]
    assert not waiting


async def test_the_thread_is_what_it_was(tmp_path: Path) -> None:
    replies = [step(call("read_file", path="no.txt")), text("a"), text("b"), text("c")]
    replies[1] = step(call("transition", to="done"))
    async with staged(tmp_path, limits="steps = 1") as first:
        stage, run_id = await stopped(first, replies)
        before = (await read_snapshot(stage.journal, run_id)).messages
        after = (await resumed(stage, run_id, replies[:3])).messages

    assert list(after[: len(before)]) == list(before)
    assert_services_take(after)


async def test_the_stage_and_its_visits_are_kept(tmp_path: Path) -> None:
    replies = [
        step(call("transition", to="build")),
        step(call("transition", to="plan")),
        step(call("transition", to="build")),
        text("built"),
        step(call("transition", to="done")),
        text("done"),
    ]
    replies[1] = text("built")
    replies[3] = text("built")
    async with staged(tmp_path, limits="steps = 3") as first:
        stage, run_id = await stopped(first, replies)
        snapshot = await read_snapshot(stage.journal, run_id)
        assert (snapshot.stage, snapshot.visits) == ("build", {"plan": 2, "build": 2})
        after = await resumed(stage, run_id, replies)
        entered = [one.event.stage for one in stage.published if isinstance(one.event, StageEntered)]

    assert after.visits == {"plan": 3, "build": 2, "done": 1}
    assert entered == ["plan", "build", "plan", "build", "plan", "done"]


async def test_what_was_spent_counts_on(tmp_path: Path) -> None:
    replies = [step(call("read_file", path=f"{number}.txt")) for number in range(6)]
    async with staged(tmp_path, limits="steps = 2") as first:
        stage, run_id = await stopped(first, replies)
        spent = dict((await read_snapshot(stage.journal, run_id)).spent)
        end = await with_limit(stage, 3).resume(run_id, replies)
        after = await read_snapshot(stage.journal, run_id)

    assert spent["steps"] == 2
    assert isinstance(end, RunSuspended)
    assert after.spent["steps"] == 3
    assert after.usage.input_tokens > 0


async def test_a_grant_for_the_run_is_not_asked_for_again(tmp_path: Path) -> None:  # RE-010
    replies = [step(call("shell", command="sh -c 'echo 2'")) for _ in range(3)]
    replies += [step(call("transition", to="done")), text("done")]
    person = Person()
    async with staged(tmp_path, person=person, kill_after=commits(GrantGiven)) as first:
        stage, run_id = await killed(first, replies)
        after = await resumed(stage, run_id, replies)

    assert [question.tool for question in person.asked] == ["shell"]  # type: ignore[union-attr]
    assert [outcome for outcome, _ in results(after.messages)] == ["ok"] * 4


async def test_state_and_what_hooks_wrote_down_are_kept(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "seen.txt").write_text("old\n", encoding="utf-8")
    replies = [
        step(call("read_file", path="seen.txt"), call("state_set", key="count", value=2)),
        step(call("edit_file", path="seen.txt", old="old", new="new")),
        step(call("state_set", key="count", value=3), call("state_get", key="count")),
        step(call("state_get", key="count"), call("write_file", path="new.txt", content="x")),
        step(call("transition", to="done")),
        text("done"),
    ]
    async with staged(tmp_path, limits="steps = 1") as first:
        stage, run_id = await stopped(first, replies)
        after = await resumed(stage, run_id, replies)

    read, _, edited, *_, total, written, _ = results(after.messages)
    assert read[0] == "ok"
    assert edited[0] == "ok", edited  # the hook still knows that the file was read
    assert total == ("ok", "5")
    assert written[0] == "ok"


async def test_a_question_that_waits_is_asked_again_and_no_call_was_made(tmp_path: Path) -> None:
    replies = [
        step(call("shell", command="sh -c 'echo 2'")),
        step(call("transition", to="done")),
        text("done"),
    ]
    person = Person()
    async with staged(tmp_path, person=person, kill_after=commits(QuestionAsked)) as first:
        stage, run_id = await killed(first, replies)
        assert len((await read_snapshot(stage.journal, run_id)).questions) == 1
        after = await resumed(stage, run_id, replies)

    assert results(after.messages)[0] == ("ok", "2")


async def test_a_call_that_only_looked_is_made_again(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.txt").write_text("a\n", encoding="utf-8")
    replies = [step(call("read_file", path="a.txt")), step(call("transition", to="done")), text("done")]
    async with staged(tmp_path, kill_after=starts("read_file")) as first:
        stage, run_id = await killed(first, replies)
        after = await resumed(stage, run_id, replies)

    assert [outcome for outcome, _ in results(after.messages)] == ["ok", "ok"]


@pytest.mark.parametrize(
    ("option", "told"),
    [
        ("", "It may have happened, wholly, partly or not at all"),
        ("it happened", "A person looked: it happened"),
        ("it did not happen", "A person looked: it did not happen"),
        ("I can't tell", "It may have happened"),
    ],
)
async def test_a_call_in_doubt_is_not_made_again_and_a_person_is_asked(
    tmp_path: Path, option: str, told: str
) -> None:
    writing = step(call("write_file", path="a.txt", content="a"))
    replies = [writing, step(call("transition", to="done")), text("done")]
    person = Person(option) if option else None
    async with staged(tmp_path, person=person, kill_after=starts("write_file")) as first:
        stage, run_id = await killed(first, replies)
        after = await resumed(stage, run_id, replies)

    (outcome, words), _ = results(after.messages)
    assert outcome == "in_doubt"
    assert told in words
    assert not (tmp_path / "work" / "a.txt").exists()
    assert after.questions == {}
    if person is not None:
        (question,) = person.asked
        assert isinstance(question, PersonQuestion)
        assert "write_file" in question.prompt


@pytest.mark.parametrize(
    ("option", "second"),
    [("", "denied"), ("it happened", "denied"), ("I can't tell", "denied"), ("it did not happen", "ok")],
)
async def test_a_call_that_may_have_happened_counts_by_its_rule(
    tmp_path: Path, option: str, second: str
) -> None:
    both = [call("write_file", path="b.txt", content="b"), call("write_file", path="a.txt", content="a")]
    replies = [step(both[1]), step(both[0]), step(call("transition", to="done")), text("done")]
    person = Person(option) if option else None
    only_once = 'calls = { "write_file" = 1 }'
    async with staged(tmp_path, person=person, kill_after=starts("write_file"), limits=only_once) as first:
        stage, run_id = await killed(first, replies)
        after = await resumed(stage, run_id, replies)

    assert [outcome for outcome, _ in results(after.messages)] == ["in_doubt", second, "ok"]
    assert (tmp_path / "work" / "b.txt").exists() is (second == "ok")
    assert after.spent["calls:write_file"] == 1


@pytest.mark.parametrize(
    ("kill_after", "outcome", "told"),
    [
        (_has_reply, "failed", "Not run: agentctl was stopped before"),
        (starts("write_file"), "in_doubt", "It may have happened"),
    ],
)
async def test_re_001_002_004_another_run_of_the_thread_finds_every_call_answered(
    tmp_path: Path, kill_after: Callable[[Commit], bool], outcome: str, told: str
) -> None:
    writing = step(call("write_file", path="a.txt", content="a"))
    async with staged(tmp_path, kill_after=kill_after) as first:
        stage, run_id = await killed(first, [writing])
        (info,) = await stage.journal.runs()
        for words in ("and now?", "and then?"):
            turn = Turn(text=words, replies=[step(call("transition", to="done")), text("done")])
            _, end = await stage.begin(turn, info.thread_id)
            assert isinstance(end, RunEnded)
            messages = await thread_messages(stage.journal, info.thread_id)
            assert_services_take(messages)
        with pytest.raises(UsageError, match="its conversation went on in the run"):
            await stage.resume(run_id, [text("never")])

    (found, words), *_ = results(messages)
    assert (found, told in words) == (outcome, True)
    assert not (tmp_path / "work" / "a.txt").exists()


async def test_re_006_a_call_of_a_reply_that_was_cut_is_never_run(tmp_path: Path) -> None:
    cut = {**step(call("write_file", path="a.txt", content="a")), "stop": "length"}
    replies = [cut, step(call("transition", to="done")), text("done")]
    async with staged(tmp_path, kill_after=_has_reply) as first:
        stage, run_id = await killed(first, replies)
        after = await resumed(stage, run_id, replies)

    (outcome, words), _ = results(after.messages)
    assert outcome == "failed"
    assert words.startswith("Not run")
    assert_services_take(after.messages)


async def test_what_was_said_at_the_launch_holds_as_it_is_said_now(tmp_path: Path) -> None:  # RE-009
    writing = step(call("write_file", path="a.txt", content="a"))
    replies = [step(call("read_file", path="x")), writing, step(call("transition", to="done")), text("done")]
    async with staged(tmp_path, limits="steps = 1") as first:
        stage, run_id = await stopped(first, replies)
        denying = replace(stage, flags=LaunchFlags(deny=("write_file",)))
        after = await resumed(denying, run_id, replies)

    assert [outcome for outcome, _ in results(after.messages)] == ["failed", "denied", "ok"]


async def test_what_another_process_did_between_reading_and_taking_the_thread_is_seen(tmp_path: Path) -> None:
    replies = [step(call("read_file", path="x")), step(call("transition", to="done")), text("done")]
    async with staged(tmp_path, limits="steps = 1") as first:
        stage, run_id = await stopped(first, replies)
        stale = await read_snapshot(stage.journal, run_id)
        assert await brought_up_to_date(stage.journal, run_id, stale) is stale
        await resumed(stage, run_id, replies)

        with pytest.raises(UsageError, match="has ended"):
            await brought_up_to_date(stage.journal, run_id, stale)
