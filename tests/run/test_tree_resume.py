"""A tree of agents whose process is killed at any commit ends as the undisturbed one, as a whole."""

import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import anyio
import pytest

from agentctl.protocol.events import LaunchFlags, MessageAdded, RunEnded, RunStarted, RunSuspended
from agentctl.protocol.messages import ToolMessage
from agentctl.run.resume import read_snapshot
from agentctl.testing.memory_journal import MemoryJournal, ProcessKilled
from agentctl.testing.play import Stage, Turn, open_stage
from tests.run.families import ALLOW, call, family, results_of, says, spawn

pytestmark = pytest.mark.anyio


def note(name: str) -> dict[str, Any]:
    return call("write_file", path=f"{name}.txt", content=name)


def tree(on_failure: str = "continue") -> list[dict[str, Any]]:
    """A lead, three workers of which two run at a time, and two agents below one of them."""
    fan = call("fan_out", agent="digger", items=["x", "y", "z"], max_workers=2, on_failure=on_failure)
    return [
        *says("family", fan, note("lead"), "done"),
        *says("digger", note("x"), [spawn("low one"), spawn("low two")], "x is done", when="x"),
        *says("digger", note("low-one"), "one is done", when="low one"),
        *says("digger", note("low-two"), "two is done", when="low two"),
        *says("digger", note("y"), "y is done", when="y"),
        *says("digger", note("z"), "z is done", when="z"),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Final:
    """What must be the same however often the process was killed."""

    answer: str
    files: dict[str, str]
    steps: float
    subagents: float
    report: str
    open_runs: int
    in_doubt: bool


async def final(stage: Stage, run_id: str, end: object, workdir: Path) -> Final:
    assert isinstance(end, RunEnded), end
    spent = (await read_snapshot(stage.journal, run_id)).spent
    infos = await stage.journal.runs()
    return Final(
        answer=end.answer,
        files={path.name: path.read_text(encoding="utf-8") for path in sorted(workdir.iterdir())},
        steps=spent["steps"],
        subagents=spent["subagents"],
        report=(await results_of(stage, "family"))[0].text,
        open_runs=sum(not info.outcome for info in infos),
        in_doubt=await _in_doubt(stage),
    )


async def _in_doubt(stage: Stage) -> bool:
    doubtful = [
        event
        for info in await stage.journal.runs()
        for record in await stage.journal.read(info.run_id)
        for event in record.events
        if isinstance(event, MessageAdded)
        and isinstance(event.message, ToolMessage)
        and event.message.result.outcome == "in_doubt"
    ]
    return doubtful != []


@asynccontextmanager
async def staged(tmp_path: Path, workdir: Path, journal: MemoryJournal) -> AsyncIterator[Stage]:
    path = tmp_path / "family.toml"
    path.write_text(family(), encoding="utf-8")
    workdir.mkdir()
    async with open_stage(path, workdir=workdir, allow=ALLOW, journal=journal) as stage:
        yield stage


async def killed_and_resumed(
    stage: Stage, replies: list[dict[str, Any]], workdir: Path
) -> tuple[Stage, str, object] | None:
    """Begin a run that is killed on the way, and go on with it in a new process."""
    journal = stage.journal
    assert isinstance(journal, MemoryJournal)
    try:
        with anyio.fail_after(30):
            await stage.begin(Turn(text="go", replies=replies))
    except BaseException as error:
        if not _was_killed(error):
            raise
    await stage.executor.aclose()
    again = stage.after_restart(journal.reopened())
    roots = [info for info in await again.journal.runs() if not info.parent_run]
    if not roots or not any(
        isinstance(event, RunStarted)
        for record in await again.journal.read(roots[0].run_id)
        for event in record.events
    ):
        return None
    if roots[0].outcome:
        return again, roots[0].run_id, (await read_snapshot(again.journal, roots[0].run_id)).ended
    with anyio.fail_after(30):
        return again, roots[0].run_id, await again.resume(roots[0].run_id, replies)


def _was_killed(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return any(_was_killed(one) for one in error.exceptions)
    return isinstance(error, ProcessKilled)


async def _compare(tmp_path: Path, points: int | None, seed: int) -> None:
    plain = MemoryJournal()
    async with staged(tmp_path, tmp_path / "plain", plain) as stage:
        run_id, end = await stage.begin(Turn(text="go", replies=tree()))
        expected = await final(stage, run_id, end, tmp_path / "plain")
    assert expected.answer == "done"
    assert expected.open_runs == 0
    all_points = [(number, how) for number in range(1, plain.appends + 1) for how in ("before", "after")]
    chosen = all_points if points is None else random.Random(seed).sample(all_points, points)  # noqa: S311
    for number, how in chosen:
        await _killed_at(tmp_path, number, how, expected)


async def _killed_at(tmp_path: Path, number: int, how: Any, expected: Final) -> None:
    workdir = tmp_path / f"{number}-{how}"
    async with staged(tmp_path, workdir, MemoryJournal(kill_at=(number, how))) as stage:
        came = await killed_and_resumed(stage, tree(), workdir)
        if came is None:
            return
        again, run_id, end = came
        found = await final(again, run_id, end, workdir)
        await again.executor.aclose()
    place = f"killed {how} append {number}"
    if found.in_doubt:
        assert found.answer == expected.answer, place
        assert found.open_runs == 0, place
        assert found.files.items() <= expected.files.items(), place
    else:
        assert found == expected, place


async def test_a_tree_killed_at_some_commits_ends_as_the_undisturbed_one(tmp_path: Path) -> None:
    seed = time.time_ns() % 1_000_000
    print(f"seed {seed}")  # noqa: T201 - shown when it fails
    await _compare(tmp_path, 12, seed)


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_a_tree_killed_at_every_commit_ends_as_the_undisturbed_one(tmp_path: Path) -> None:
    await _compare(tmp_path, None, 0)


@pytest.mark.parametrize("kill_at", [9, 14, 20])
async def test_a_resumed_fan_out_keeps_its_number_of_workers(tmp_path: Path, kill_at: int) -> None:
    busy = "mkdir lock || echo overlap >> overlap.txt; sleep 0.05; rmdir lock"
    items = ["a", "b", "c", "d"]
    replies = [
        *says("family", call("fan_out", agent="digger", items=items, max_workers=1), "done"),
        *says("digger", call("shell", command=busy), "dug", times=len(items)),
    ]
    workdir = tmp_path / "work"
    async with staged(tmp_path, workdir, MemoryJournal(kill_at=(kill_at, "after"))) as stage:
        came = await killed_and_resumed(replace(stage, flags=LaunchFlags(yolo=True)), replies, workdir)
        assert came is not None
        again, _, end = came
        await again.executor.aclose()

    assert isinstance(end, RunEnded)
    assert end.answer == "done"
    overlaps = (workdir / "overlap.txt").read_text().count("o") if (workdir / "overlap.txt").exists() else 0
    assert overlaps <= 1  # the lock of the command that was killed may be left


@pytest.mark.parametrize("how", ["before", "after"])
async def test_fail_all_still_ends_the_others_after_a_resume(
    tmp_path: Path, how: Literal["before", "after"]
) -> None:
    fan = call("fan_out", agent="digger", items=["bad", "slow"], on_failure="fail_all")
    replies = [
        *says("family", fan, "done"),
        {"agent": "digger", "when": "bad", "pause_s": 0.2, "refusal": "I will not."},
        {"agent": "digger", "when": "slow", "pause_s": 0.0, "tool_calls": [call("read_file", path="x")]},
        {"agent": "digger", "when": "slow", "pause_s": 600, "text": "late"},
    ]
    workdir = tmp_path / "work"
    async with staged(tmp_path, workdir, MemoryJournal(kill_at=(8, how))) as stage:
        came = await killed_and_resumed(stage, replies, workdir)
        assert came is not None
        again, _, end = came
        (report,) = await results_of(again, "family")
        await again.executor.aclose()

    assert isinstance(end, RunEnded)
    assert report.outcome == "failed"
    assert "I will not." in report.text
    assert "cancelled: ended by its parent" in report.text


async def test_a_resumed_tree_counts_what_its_children_spent(tmp_path: Path) -> None:
    """The parent settles its step when its children have ended: their journals know more than its own."""
    replies = [
        *says("family", spawn(), "done"),
        *says("digger", *[call("read_file", path=f"{n}") for n in range(6)], "dug"),
    ]
    workdir = tmp_path / "work"
    async with staged(tmp_path, workdir, MemoryJournal(kill_at=(30, "before"))) as stage:
        limits = replace(stage.blueprint.limits, steps=9)
        limited = replace(stage, blueprint=replace(stage.blueprint, limits=limits))
        came = await killed_and_resumed(limited, replies, workdir)
        assert came is not None
        again, run_id, end = came
        spent = (await read_snapshot(again.journal, run_id)).spent
        await again.executor.aclose()

    assert isinstance(end, RunEnded), end
    assert spent["steps"] == 9


FAN_STAGE = """
[agent]
name = "family"
[model]
use = ["scripted:"]
[stages.split]
prompt = "Name the items."
mode = "fan_out"
[stages.split.fan_out]
worker = "digger"
[stages.split.transitions.judge]
hint = "all are done"
[stages.digger]
prompt = "Dig."
allow_as_worker = true
[stages.judge]
prompt = "Judge."
[stages.judge.transitions.split]
hint = "more is to be done"
[stages.judge.transitions.report]
hint = "enough"
[stages.report]
prompt = "Report."
"""


async def test_a_stage_that_its_last_call_ended_is_not_begun_again_by_a_resume(tmp_path: Path) -> None:
    """A model is asked once for what it said already, wherever the process died."""
    replies: list[dict[str, Any]] = [
        {"stage": "split", "tool_calls": [call("submit_output", items=["a", "b"])]},
        {"agent": "digger", "text": "gold", "times": 2},
        {"stage": "judge", "tool_calls": [call("transition", to="report")]},
        {"stage": "report", "text": "reported"},
    ]
    path = tmp_path / "fan.toml"
    path.write_text(FAN_STAGE, encoding="utf-8")
    for number in range(1, 40):
        workdir = tmp_path / str(number)
        workdir.mkdir()
        journal = MemoryJournal(kill_at=(number, "after"))
        async with open_stage(path, workdir=workdir, allow=ALLOW, journal=journal) as stage:
            came = await killed_and_resumed(stage, replies, workdir)
            if came is None:
                continue
            again, _, end = came
            await again.executor.aclose()
            assert isinstance(end, RunEnded), (number, end)
            assert end.answer == "reported", (number, end)
        if journal.appends < number:
            break


async def test_a_tree_at_its_limit_goes_on_as_a_whole_when_it_is_raised(tmp_path: Path) -> None:
    replies = [
        *says("family", spawn("top"), "done"),
        *says("digger", spawn("low"), "top is done", when="top"),
        *says("digger", *[call("read_file", path=f"{n}") for n in range(6)], "low is done", when="low"),
    ]
    async with staged(tmp_path, tmp_path / "work", MemoryJournal()) as stage:
        limits = replace(stage.blueprint.limits, steps=5)
        limited = replace(stage, blueprint=replace(stage.blueprint, limits=limits))
        run_id, stopped = await limited.begin(Turn(text="go", replies=replies))
        end = await stage.resume(run_id, replies)
        outcomes = [info.outcome for info in await stage.journal.runs()]

    assert isinstance(stopped, RunSuspended)
    assert (stopped.exit_code, stopped.limit, stopped.above) == (6, "limits.steps", 0)
    assert isinstance(end, RunEnded)
    assert end.answer == "done"
    assert outcomes == ["finished", "finished", "finished"]
