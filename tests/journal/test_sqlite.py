"""What only the journal on disk can show: crashes, damage, other processes, formats."""

import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from agentctl.errors import RunFailed, StateConflict
from agentctl.journal.schema import MIGRATIONS
from agentctl.journal.sqlite import open_journal
from agentctl.journal.store import Snapshot
from agentctl.protocol.events import Noted
from tests.journal.commits import commit, note, started

pytestmark = pytest.mark.anyio

WRITER = """
import sys, anyio
from pathlib import Path
from agentctl.journal.sqlite import open_journal
from agentctl.protocol.commands import Commit
from agentctl.protocol.events import Noted

async def main():
    journal = await open_journal(Path(sys.argv[1]))
    lease = await journal.acquire("t-1")
    number = 0
    while True:
        number += 1
        event = Noted(level="info", text=f"{number} {lease.token}")
        await journal.append(Commit(run_id="r-1", thread_id="t-1", events=(event,)))
        print(number, flush=True)

anyio.run(main)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "journal.db"


def edit(path: Path, sql: str) -> None:
    connection = sqlite3.connect(path)
    connection.execute(sql)
    connection.commit()
    connection.close()


async def test_a_killed_process_loses_nothing_it_was_told_is_durable_and_its_lease_is_free(
    path: Path,
) -> None:
    acknowledged = 0
    for round_number in range(1, 4):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        for _ in range(20):
            acknowledged += bool(process.stdout.readline())
        busy = await open_journal(path)
        with pytest.raises(StateConflict, match=str(process.pid)):
            await busy.acquire("t-1")
        await busy.aclose()
        process.send_signal(signal.SIGKILL)
        rest = process.communicate()[0]
        acknowledged += len(rest.splitlines())

        journal = await open_journal(path)
        lease = await journal.acquire("t-1")
        records = await journal.read("r-1")
        assert len(records) >= acknowledged
        assert [record.sequence for record in records] == list(range(1, len(records) + 1))
        assert await journal.verify("r-1") == ()
        assert lease.token == 2 * round_number
        acknowledged = len(records)
        await journal.aclose()


async def test_a_reader_in_another_journal_object_sees_what_was_committed(path: Path) -> None:
    writer, reader = await open_journal(path), await open_journal(path)
    await writer.acquire("t-1")
    await writer.append(commit("r-1", started("r-1", "t-1")))

    info = await reader.run("r-1")

    assert info is not None
    assert info.status == "running"
    await writer.aclose()
    after = await reader.run("r-1")
    assert after is not None
    assert after.status == "interrupted"
    await reader.aclose()


async def test_an_edited_record_is_found_by_the_chain(path: Path) -> None:
    journal = await open_journal(path)
    await journal.acquire("t-1")
    for text in ("one", "two", "three"):
        await journal.append(commit("r-1", note(text)))
    edit(path, "UPDATE commits SET body = replace(body, 'two', 'TWO')")

    faults = await journal.verify("r-1")

    assert [(fault.sequence, fault.text) for fault in faults] == [(2, "the record is not what was written")]
    edit(path, "DELETE FROM commits WHERE sequence = 3")
    assert [fault.sequence for fault in await journal.verify("r-1")] == [2, 3]
    await journal.aclose()


async def test_a_torn_tail_is_dropped_with_a_notice_and_the_run_goes_on(path: Path) -> None:
    journal = await open_journal(path)
    await journal.acquire("t-1")
    for text in ("one", "two", "three"):
        await journal.append(commit("r-1", note(text)))
    await journal.aclose()
    edit(path, "UPDATE commits SET body = substr(body, 1, 20) WHERE sequence = 3")

    journal = await open_journal(path)
    records = await journal.read("r-1")
    assert [record.events for record in records[:2]] == [(note("one"),), (note("two"),)]
    assert isinstance(records[2].events[0], Noted)
    assert "torn" in records[2].events[0].text

    await journal.acquire("t-1")
    appended = await journal.append(commit("r-1", note("again")))

    assert appended.sequence == 3
    assert [record.events for record in await journal.read("r-1")] == [
        (note("one"),),
        (note("two"),),
        (note("again"),),
    ]
    assert await journal.verify("r-1") == ()
    await journal.aclose()


async def test_a_missing_tail_is_told_and_the_run_goes_on(path: Path) -> None:
    journal = await open_journal(path)
    await journal.acquire("t-1")
    await journal.append(commit("r-1", note("one")))
    await journal.append(commit("r-1", note("two")))
    await journal.aclose()
    edit(path, "DELETE FROM commits WHERE sequence = 2")

    journal = await open_journal(path)
    records = await journal.read("r-1")

    assert len(records) == 2
    assert "missing" in str(records[1].events[0])
    await journal.aclose()


async def test_damage_in_the_middle_is_an_error_that_names_the_record(path: Path) -> None:
    journal = await open_journal(path)
    await journal.acquire("t-1")
    for text in ("one", "two", "three"):
        await journal.append(commit("r-1", note(text)))
    edit(path, "UPDATE commits SET body = 'x' WHERE sequence = 2")

    with pytest.raises(StateConflict, match="Record 2 of run 'r-1'"):
        await journal.read("r-1")
    edit(path, "DELETE FROM commits WHERE sequence = 2")
    with pytest.raises(StateConflict, match="Record 2 of run 'r-1'"):
        await journal.read("r-1")
    await journal.aclose()


async def test_an_event_of_a_later_version_is_skipped_with_a_warning(path: Path) -> None:
    journal = await open_journal(path)
    await journal.acquire("t-1")
    await journal.append(commit("r-1", note("one"), note("two")))
    edit(
        path,
        """UPDATE commits SET body = replace(body, '"Noted","level":"info","text":"one"', '"Later","x":1')""",
    )

    (record,) = await journal.read("r-1")

    assert isinstance(record.events[0], Noted)
    assert record.events[0].level == "warning"
    assert "Later" in record.events[0].text
    assert record.events[1] == note("two")
    await journal.aclose()


async def test_a_newer_format_is_refused_and_left_alone(path: Path) -> None:
    await (await open_journal(path)).aclose()
    edit(path, f"PRAGMA user_version = {len(MIGRATIONS) + 1}")

    with pytest.raises(StateConflict, match="newer agentctl"):
        await open_journal(path)


async def test_a_database_of_another_program_is_refused(path: Path) -> None:
    path.parent.mkdir()
    edit(path, "CREATE TABLE bookmarks (url TEXT)")

    with pytest.raises(StateConflict, match="another program"):
        await open_journal(path)


async def test_a_file_that_is_no_database_is_refused(path: Path) -> None:
    path.parent.mkdir()
    path.write_text("{}" * 1000, encoding="utf-8")

    with pytest.raises(StateConflict, match="damaged"):
        await open_journal(path)


async def test_a_folder_in_the_way_is_an_error_for_a_person(path: Path) -> None:
    path.mkdir(parents=True)

    with pytest.raises(RunFailed, match="could not be used"):
        await open_journal(path)


async def test_the_file_is_for_its_owner_only(path: Path) -> None:
    journal = await open_journal(path)

    assert path.stat().st_mode & 0o077 == 0
    assert path.parent.stat().st_mode & 0o077 == 0
    await journal.aclose()


async def test_a_snapshot_whose_digest_does_not_hold_is_no_snapshot(path: Path) -> None:
    journal = await open_journal(path)
    await journal.save_snapshot(Snapshot(owner="r-1", name="run", upto=1, body={"a": 1}))
    edit(path, "UPDATE snapshots SET body = '{\"a\":2}'")
    assert await journal.snapshot("r-1", "run") is None
    edit(path, "UPDATE snapshots SET body = '{'")
    assert await journal.snapshot("r-1", "run") is None
    await journal.aclose()
