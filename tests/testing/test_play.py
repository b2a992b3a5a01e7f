"""The public test kit plays blueprints, and a run that is killed anywhere goes on as if nothing had been."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest

from agentctl.errors import ProviderError
from agentctl.journal.states import load_cells
from agentctl.protocol.events import MessageAdded, RunEnded
from agentctl.protocol.messages import AssistantMessage, TextPart, ToolMessage, UserMessage
from agentctl.run.resume import read_snapshot
from agentctl.testing.memory_journal import MemoryJournal, ProcessKilled
from agentctl.testing.play import Stage, Turn, approve, open_stage, play
from tests.journal.commits import commit, note

pytestmark = pytest.mark.anyio

SECRET = "sk-abcdefghijklmnopqrstuvwxyz"
BLUEPRINT = """
[agent]
name = "player"
tool_concurrency = 3
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
name = "redact"
builtin = "redact"
[[machines]]
name = "once"
key = "{path}"
initial = "new"
transitions = [{ on = "write_file", from = ["new"], to = "written", reason = "{path} was written." }]
[[machines]]
name = "pace"
key = "{stage}"
initial = "going"
[[machines.transitions]]
on = "event:before_model"
from = "going"
to = "going"
counters = { calls = { gte = 3 } }
update = { reset = ["calls"] }
emit = { content = "Keep {stage} short.", target = "context" }
[[machines.transitions]]
on = "event:before_model"
from = "going"
to = "going"
update = { increment = ["calls"] }
[[machines.transitions]]
on = "event:after_model"
from = "going"
to = "going"
update = { increment = ["replies"] }
emit = { content = "{counters.replies} replies in {stage}.", target = "context", cooldown = 4 }
[stages.work]
prompt = "Work."
available_tools = [
  "write_file", "read_file", "state_*", "shared_state", "current_time", "shell", "spawn_agent", "wait_agent",
]
state = { write = ["count"] }
[stages.work.transitions.check]
hint = "done"
[stages.check]
prompt = "Check."
available_tools = ["read_file", "state_get"]
state = { read = ["count"] }
[stages.helper]
prompt = "Help."
allow_as_worker = true
available_tools = ["write_file", "read_file"]
"""


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"tool": tool, "arguments": arguments}


def turn(writes: int = 4) -> Turn:
    replies: list[Any] = [
        {"stage": "work", "tool_calls": [
            call("write_file", path=f"f{number}.txt", content=f"text {number} {SECRET}"),
            call("state_set", key="count", value=number),
            call("shared_state", action="set", key=f"k{number}", value="v"),
        ]}
        for number in range(writes)
    ]  # fmt: skip
    replies += [
        {"stage": "work", "tool_calls": [call("read_file", path="f0.txt")]},
        {"stage": "work", "tool_calls": [call("shell", command="sh -c 'echo ran >> effects.log'")]},
        {"stage": "work", "tool_calls": [call("spawn_agent", agent="helper", task="help", wait=True)]},
        {"stage": "helper", "tool_calls": [call("write_file", path="child.txt", content="child")]},
        {"stage": "helper", "text": "helped"},
        {"stage": "work", "text": "worked"},
        {"stage": "check", "tool_calls": [call("state_get", key="count")]},
        {"stage": "check", "text": "checked"},
    ]
    return Turn(text="go", replies=replies)


@pytest.fixture
def blueprint(tmp_path: Path) -> Path:
    path = tmp_path / "player.toml"
    path.write_text(BLUEPRINT, encoding="utf-8")
    return path


@pytest.fixture
def workdir(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


async def test_what_was_played_can_be_asked_about(blueprint: Path, workdir: Path) -> None:
    played = await play(
        blueprint, [turn()], workdir=workdir, answers=approve, allow=["write_file", "spawn_agent"]
    )

    assert played.answer == "checked", played.end
    assert played.state() == {"files": ["f0.txt", "f1.txt", "f2.txt", "f3.txt", "child.txt"]}
    assert [question.tool for question in played.questions] == ["shell"]  # type: ignore[union-attr]
    assert len([done for done in played.calls if done.result.tool == "write_file"]) == 5
    assert played.usage.input_tokens > 0
    read = next(result for result in played.results if result.tool == "read_file")
    assert "[redacted]" in read.text
    assert "sk-" not in str([event for event in played.calls if event.result.tool == "read_file"])


async def test_machines_are_told_of_model_calls_and_speak_between_steps(
    blueprint: Path, workdir: Path
) -> None:
    played = await play(
        blueprint, [turn()], workdir=workdir, answers=approve, allow=["write_file", "spawn_agent"]
    )

    messages = [event.message for event in played.events if isinstance(event, MessageAdded)]
    said = [
        "".join(part.text for part in message.parts if isinstance(part, TextPart))
        for message in messages
        if isinstance(message, UserMessage) and message.source == "harness"
    ]
    assert [text for text in said if "Keep" in text or "replies" in text] == [
        "1 replies in work.",
        "Keep work short.",
        "5 replies in work.",
        "1 replies in helper.",
        "Keep work short.",
        "1 replies in check.",
    ]


async def test_turns_go_on_with_one_conversation(blueprint: Path, workdir: Path) -> None:
    first = Turn(text="one", replies=[{"stage": "work", "text": "a"}, {"stage": "check", "text": "b"}])
    second = Turn(text="two", replies=[{"stage": "work", "text": "c"}, {"stage": "check", "text": "d"}])

    played = await play(blueprint, [first, second], workdir=workdir)

    assert played.answer == "d"
    assert len(played.runs) == 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Final:
    """What must be equal however often the run was killed."""

    answer: str
    cells: Any
    thread: Sequence[Any]
    spent: Any
    files: dict[str, str]
    in_doubt: bool
    """Some call, of a sub-agent too, was killed between its start and its completion."""


async def final(stage: Stage, run_id: str, end: object, workdir: Path) -> Final:
    assert isinstance(end, RunEnded), end
    info = await stage.journal.run(run_id)
    assert info is not None
    loaded = await load_cells(stage.journal, info.thread_id)
    thread: list[Any] = []
    spent = (await read_snapshot(stage.journal, run_id)).spent
    for record in await stage.journal.read(run_id):
        for event in record.events:
            match event:
                case MessageAdded(message=ToolMessage(result=result)) if result.tool != "spawn_agent":
                    thread.append((result.call_id, result.outcome, result.text))
                case MessageAdded(message=UserMessage(source="harness") as said):
                    thread.append(said.parts)
                case MessageAdded(message=AssistantMessage() as reply):
                    thread.append(reply.text)
                case _:
                    continue
    # A resumed run is shown what is known now, so its prompts differ in length; time differs always.
    spent = {name: amount for name, amount in spent.items() if name not in {"wall_time_s", "tokens"}}
    dumped: Any = loaded.cells.dump()
    cells = [{**row, "run_id": ""} for row in dumped if "scratchpad" not in row["key"]]
    files = {path.name: path.read_text(encoding="utf-8") for path in sorted(workdir.iterdir())}
    doubt = [
        event
        for one in await stage.journal.runs()
        for record in await stage.journal.read(one.run_id)
        for event in record.events
        if isinstance(event, MessageAdded)
        and isinstance(event.message, ToolMessage)
        and event.message.result.outcome == "in_doubt"
    ]
    return Final(
        answer=end.answer, cells=cells, thread=thread, spent=spent, files=files, in_doubt=bool(doubt)
    )


async def undisturbed(blueprint: Path, workdir: Path, writes: int) -> tuple[Final, int]:
    async with open_stage(
        blueprint, workdir=workdir, answers=approve, allow=["write_file", "spawn_agent"]
    ) as stage:
        run_id, end = await stage.begin(turn(writes))
        journal = stage.journal
        assert isinstance(journal, MemoryJournal)
        return await final(stage, run_id, end, workdir), journal.appends


async def killed_at(
    blueprint: Path, workdir: Path, number: int, how: Literal["before", "after"], writes: int
) -> Final | None:
    """Kill the run at that append, resume it in a new process, and return what came of it."""
    journal = MemoryJournal(kill_at=(number, how))
    async with open_stage(
        blueprint, workdir=workdir, answers=approve, allow=["write_file", "spawn_agent"], journal=journal
    ) as stage:
        try:
            await stage.begin(turn(writes))
        except BaseException as error:
            if not _was_killed(error):
                raise
        await stage.executor.aclose()
        again = stage.after_restart(journal.reopened())
        runs = [info for info in await again.journal.runs() if not info.parent_run]
        if not runs or not any(
            type(event).__name__ == "RunStarted"
            for record in await again.journal.read(runs[0].run_id)
            for event in record.events
        ):
            return None  # killed before the run was there: nothing happened, nothing to resume
        ended = (await read_snapshot(again.journal, runs[0].run_id)).ended
        end = ended or await again.resume(runs[0].run_id, turn(writes).replies)
        found = await final(again, runs[0].run_id, end, workdir)
        await again.executor.aclose()
        return found


def _was_killed(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return any(_was_killed(one) for one in error.exceptions)
    return isinstance(error, ProcessKilled)


async def _compare(tmp_path: Path, blueprint: Path, step: int, writes: int) -> None:
    plain = tmp_path / "000-p"  # as long as the others: the workdir stands in the prompt
    plain.mkdir()
    expected, appends = await undisturbed(blueprint, plain, writes)
    doubtful = 0
    for number in range(1, appends + 1, step):
        for how in ("before", "after"):
            folder = tmp_path / f"{number:03}-{how[0]}"
            folder.mkdir()
            found = await killed_at(blueprint, folder, number, how, writes)
            if found is None:
                continue
            assert found.files.get("effects.log", "ran\n") == "ran\n", (number, how)
            doubtful += found.in_doubt
            if not found.in_doubt:
                assert found == expected, (number, how)
    # Only calls that write and had started but not ended are in doubt: most points are not like that.
    assert doubtful < appends


async def test_a_run_killed_at_some_commits_ends_as_the_undisturbed_one(
    tmp_path: Path, blueprint: Path
) -> None:
    await _compare(tmp_path, blueprint, step=7, writes=4)


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_a_run_of_thirty_steps_killed_at_every_commit_ends_as_the_undisturbed_one(
    tmp_path: Path, blueprint: Path
) -> None:
    await _compare(tmp_path, blueprint, step=1, writes=22)


async def test_a_dead_journal_takes_nothing_more() -> None:
    journal = MemoryJournal(kill_at=(1, "before"))
    await journal.acquire("t-1")
    for _ in range(2):
        with pytest.raises(ProcessKilled):
            await journal.append(commit("r-1", note("x")))
    again = journal.reopened()
    await again.acquire("t-1")
    await again.append(commit("r-1", note("y")))
    assert len(await again.read("r-1")) == 1


async def test_a_reply_that_nobody_asks_for_is_named(tmp_path: Path) -> None:
    path = tmp_path / "b.toml"
    path.write_text('[agent]\nname = "b"\n[model]\nuse = ["scripted:"]\n[stages.w]\nprompt = "x"\n')
    turn = Turn(text="go", replies=[{"text": "done"}, {"text": "never"}])

    with pytest.raises(ProviderError, match=r"1 unread replies of its script \(replies:2\)"):
        await play(path, [turn], workdir=tmp_path)
