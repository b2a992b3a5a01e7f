"""`coder` keeps its work in every kind of state, and a run of it goes on wherever it was killed."""

import random
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agentctl.journal.states import load_cells
from agentctl.protocol.events import MessageAdded, RunEnded, RunStarted
from agentctl.protocol.messages import ToolMessage
from agentctl.testing.memory_journal import MemoryJournal, ProcessKilled
from agentctl.testing.play import Stage, Turn, approve, open_stage, play

pytestmark = pytest.mark.anyio

SHIPPED = Path(__file__).resolve().parents[2] / "blueprints"
ALLOW = ("write_file", "edit_file", "shell")
CHECK = "python3 demo_greeting/test_greeting.py"


def replies() -> list[Any]:
    script = tomllib.loads((SHIPPED / "coder.script.toml").read_text(encoding="utf-8"))
    found: list[Any] = script["replies"]
    return found


@pytest.fixture(scope="module")
def coder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("blueprint") / "coder.toml"
    shipped = (SHIPPED / "coder.toml").read_text(encoding="utf-8")
    path.write_text(f'{shipped}\n[model]\nuse = ["scripted:"]\n', encoding="utf-8")
    return path


async def test_plan_checks_and_changed_files_are_kept_and_shown(coder: Path, tmp_path: Path) -> None:
    played = await play(
        coder, [Turn(text="go", replies=replies())], workdir=tmp_path, answers=approve, allow=ALLOW
    )

    work = played.state()["work"]
    assert work["changed"] == {
        "demo_greeting/greeting.py": "edited",
        "demo_greeting/test_greeting.py": "written",
    }
    assert work["notes"]["plan"].startswith("A greeting and its test")
    assert work["notes"]["checks"] == f"{CHECK}: passed after the comma"


async def test_an_edit_of_a_file_that_was_not_read_is_refused(coder: Path, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n", encoding="utf-8")
    edit = {"tool": "edit_file", "arguments": {"path": "a.py", "old": "1", "new": "2"}}
    before = [one for one in replies() if one["stage"] in ("discover", "plan")]
    after = [one for one in replies() if one["stage"] in ("review", "report")]
    tried = [{"stage": "implement", "tool_calls": [edit]}, {"stage": "implement", "text": "It was refused."}]

    played = await play(
        coder, [Turn(text="go", replies=[*before, *tried, *after])],
        workdir=tmp_path, answers=approve, allow=ALLOW,
    )  # fmt: skip

    refused = next(result for result in played.results if result.tool == "edit_file")
    assert "Read a.py before you edit it." in refused.text
    assert (tmp_path / "a.py").read_text(encoding="utf-8") == "x = 1\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Final:
    answer: str
    cells: Any
    files: dict[str, str]


async def _final(stage: Stage, run_id: str, end: object, workdir: Path) -> tuple[Final, bool]:
    assert isinstance(end, RunEnded), end
    info = await stage.journal.run(run_id)
    assert info is not None
    dumped: Any = (await load_cells(stage.journal, info.thread_id)).cells.dump()
    records = await stage.journal.read(run_id)
    doubtful = any(
        isinstance(event, MessageAdded)
        and isinstance(event.message, ToolMessage)
        and event.message.result.outcome == "in_doubt"
        for record in records
        for event in record.events
    )
    files = {
        path.name: path.read_text(encoding="utf-8") for path in sorted(workdir.glob("demo_greeting/*.py"))
    }
    cells = [{**row, "run_id": ""} for row in dumped]
    return Final(answer=end.answer, cells=cells, files=files), doubtful


async def _killed(coder: Path, workdir: Path, number: int, how: Any) -> tuple[Final, bool] | None:
    journal = MemoryJournal(kill_at=(number, how))
    async with open_stage(coder, workdir=workdir, answers=approve, allow=ALLOW, journal=journal) as stage:
        try:
            await stage.begin(Turn(text="go", replies=replies()))
        except BaseException as error:
            if not _was_killed(error):
                raise
        await stage.executor.aclose()
        again = stage.after_restart(journal.reopened())
        try:
            for info in await again.journal.runs():
                records = await again.journal.read(info.run_id)
                if any(isinstance(event, RunStarted) for record in records for event in record.events):
                    end = await again.resume(info.run_id, replies())
                    return await _final(again, info.run_id, end, workdir)
        finally:
            await again.executor.aclose()
    return None


def _was_killed(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return any(_was_killed(one) for one in error.exceptions)
    return isinstance(error, ProcessKilled)


async def _compare(coder: Path, tmp_path: Path, points: int | None, seed: int) -> None:
    plain = tmp_path / "000-plain"
    plain.mkdir()
    journal = MemoryJournal()
    async with open_stage(coder, workdir=plain, answers=approve, allow=ALLOW, journal=journal) as stage:
        run_id, end = await stage.begin(Turn(text="go", replies=replies()))
        expected, _ = await _final(stage, run_id, end, plain)
    every = [(number, how) for number in range(1, journal.appends) for how in ("before", "after")]
    compared = 0
    chosen = every if points is None else random.Random(seed).sample(every, points)  # noqa: S311
    for number, how in chosen:
        workdir = tmp_path / f"{number}-{how}"
        workdir.mkdir()
        came = await _killed(coder, workdir, number, how)
        if came is None:
            continue
        found, doubtful = came
        assert found.answer == expected.answer, (number, how)
        if not doubtful:
            assert found == expected, (number, how)
            compared += 1
    assert compared > 0


async def test_a_run_killed_at_some_commits_ends_as_the_undisturbed_one(coder: Path, tmp_path: Path) -> None:
    seed = time.time_ns() % 1_000_000
    print("seed", seed)  # noqa: T201 - so that a failure can be had again

    await _compare(coder, tmp_path, 8, seed)


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_a_run_killed_at_every_commit_ends_as_the_undisturbed_one(coder: Path, tmp_path: Path) -> None:
    await _compare(coder, tmp_path, None, 0)
