"""Snapshots: written only when replay agrees, used only while they hold, and never needed."""

from dataclasses import replace
from pathlib import Path

import pytest

from agentctl.agent.agent_state import LiveState
from agentctl.agent.snapshot import RunSnapshot
from agentctl.journal.sqlite import open_journal
from agentctl.journal.states import cells_at, load_cells, save_cells, verify_cells
from agentctl.journal.store import Journal, Snapshot
from agentctl.protocol.commands import Command, FoldValue, Merge
from agentctl.protocol.events import ContextCompacted, MessageAdded, StepSettled
from agentctl.protocol.messages import AssistantMessage, TextPart, Usage, user_text
from agentctl.run import recorder as recorder_module
from agentctl.run.recorder import RunRecorder
from agentctl.run.resume import read_snapshot, replay_whole
from agentctl.run.snapshots import NAME, save_run, saved_run, verify_run
from agentctl.state.cells import Cells
from tests.journal.commits import commit, set_cell, started

pytestmark = pytest.mark.anyio


def more(value: int) -> Command:
    return Command(
        scope="run", key="total", action=FoldValue(value=value, fold="sum"), merge=Merge.FOLD, run_id="r-1"
    )


async def filled(journal: Journal) -> Cells:
    await journal.acquire("t-1")
    cells = Cells()
    for number in range(5):
        commands = (set_cell("k", {"n": number}), more(number))
        await journal.append(commit("r-1", commands=commands))
        cells = cells.after(commands)
    return cells


async def test_cells_come_from_the_snapshot_and_what_followed(journal: Journal) -> None:
    cells = await filled(journal)
    assert (await load_cells(journal, "t-1")).replayed == 5

    assert await save_cells(journal, "t-1", cells)
    await journal.append(commit("r-1", commands=(more(100),)))
    loaded = await load_cells(journal, "t-1")

    assert loaded.replayed == 1
    assert loaded.cells == cells.after((more(100),))
    assert await verify_cells(journal, "t-1") == ""
    assert await cells_at(journal, "t-1", loaded.position - 1) == cells


async def test_a_snapshot_that_replay_does_not_give_is_not_written(journal: Journal) -> None:
    cells = await filled(journal)

    assert not await save_cells(journal, "t-1", cells.after((more(1),)))
    assert await journal.snapshot("t-1", "cells") is None


async def test_a_snapshot_that_lies_is_found_by_verify(journal: Journal) -> None:
    cells = await filled(journal)
    position = (await load_cells(journal, "t-1")).position
    lie = cells.after((more(1),)).dump()
    await journal.save_snapshot(Snapshot(owner="t-1", name="cells", upto=position, body=lie))

    assert "not what its journal replays to" in await verify_cells(journal, "t-1")
    await journal.save_snapshot(Snapshot(owner="t-1", name="cells", upto=position, body={"no": "cells"}))
    assert "cannot be read" in await verify_cells(journal, "t-1")
    assert (await load_cells(journal, "t-1")).cells == cells


def reply(number: int) -> MessageAdded:
    message = AssistantMessage(parts=(TextPart(text=f"reply {number}"),), usage=Usage(input_tokens=5))
    return MessageAdded(message=message, step=number, spent={"steps": float(number)})


async def long_run(journal: Journal, steps: int) -> RunRecorder:
    await journal.acquire("t-1")
    recorder = RunRecorder(
        journal=journal, run_id="r-1", thread_id="t-1", agent="a", live=LiveState(thread_id="t-1")
    )
    await recorder.commit(started("r-1", "t-1"), MessageAdded(message=user_text("go", source="task")))
    for number in range(1, steps):
        settled = StepSettled(step=number, usage=Usage(), spent={"steps": float(number)})
        await recorder.commit(reply(number), settled, commands=(more(1),))
        if number == steps // 2:
            await recorder.commit(
                ContextCompacted(
                    how="summary", kept_from=number - 3, tokens_before=9, tokens_after=1, summary="so far"
                )
            )
    return recorder


async def test_a_long_run_opens_from_its_snapshot_as_it_would_from_its_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder_module, "EVERY", 20)
    journal = await open_journal(tmp_path / "journal.db")
    recorder = await long_run(journal, 50)

    saved = await saved_run(journal, "r-1", until=None)
    opened = await read_snapshot(journal, "r-1")

    assert saved is not None
    assert saved[1] == 40
    window = opened.messages[opened.window_from :]
    assert window == recorder.snapshot.messages[recorder.snapshot.window_from :]
    assert len(opened.messages) == len(recorder.snapshot.messages)
    assert replace(opened, messages=[]) == replace(recorder.snapshot, messages=[])
    assert (await load_cells(journal, "t-1")).cells == recorder.live.cells  # type: ignore[union-attr]
    assert (await read_snapshot(journal, "r-1", until=10)).step == 9
    await journal.aclose()


async def test_a_snapshot_of_another_version_is_passed_over(journal: Journal) -> None:
    recorder = await long_run(journal, 5)
    body = {"written_by": "another version", "step": 99}
    await journal.save_snapshot(Snapshot(owner="r-1", name=NAME, upto=3, body=body))

    assert await saved_run(journal, "r-1", until=None) is None
    assert (await read_snapshot(journal, "r-1")).step == recorder.snapshot.step
    assert RunSnapshot().step == 0


async def test_a_snapshot_of_a_run_that_lies_is_found_by_verify(journal: Journal) -> None:
    recorder = await long_run(journal, 5)
    assert await save_run(journal, "r-1", recorder.snapshot, 6, replay_whole)
    assert await verify_run(journal, "r-1", replay_whole) == ""

    stored = await journal.snapshot("r-1", NAME)
    assert stored is not None
    assert isinstance(stored.body, dict)
    await journal.save_snapshot(replace(stored, body={**stored.body, "step": 99}))

    assert "not what its journal replays to" in await verify_run(journal, "r-1", replay_whole)
    assert not await save_run(journal, "r-1", replace(recorder.snapshot, step=99), 6, replay_whole)
