"""A thread's cells out of its journal: from the last snapshot, and what came after it."""

from agentctl.errors import StateConflict
from agentctl.journal.store import Journal, Record, Snapshot
from agentctl.records import dataclass
from agentctl.state.cells import Cells
from agentctl.state.typed import Drifted

NAME = "cells"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedCells:
    """The cells of a thread after its last commit."""

    cells: Cells
    position: int
    """Of the last commit that is in them; 0 when there is none."""
    replayed: int
    """Commits that were read to get there from the snapshot."""


async def load_cells(journal: Journal, thread_id: str) -> LoadedCells:
    """Return the thread's cells; a snapshot that does not hold is passed over and all is replayed.

    Raises:
        StateConflict: a record is damaged, or cannot be replayed.
    """
    start, position = await _from_snapshot(journal, thread_id)
    records = await journal.read_state(thread_id, after=position)
    cells = replayed(start, records)
    last = records[-1].position if records else position
    return LoadedCells(cells=cells, position=last, replayed=len(records))


async def cells_at(journal: Journal, thread_id: str, position: int) -> Cells:
    """Return the thread's cells as they were after the commit at a position of the journal."""
    records = await journal.read_state(thread_id, upto=position)
    return replayed(Cells(), records)


async def save_cells(journal: Journal, thread_id: str, cells: Cells) -> bool:
    """Store a snapshot of `cells`, if replay of the journal gives the same; tell whether it did."""
    loaded = await load_cells(journal, thread_id)
    if loaded.cells != cells:
        return False
    if loaded.replayed:
        snapshot = Snapshot(owner=thread_id, name=NAME, upto=loaded.position, body=cells.dump())
        await journal.save_snapshot(snapshot)
    return True


async def verify_cells(journal: Journal, thread_id: str) -> str:
    """Return how the thread's snapshot differs from a replay of the whole journal, or empty.

    Raises:
        StateConflict: a record is damaged, or cannot be replayed.
    """
    snapshot = await journal.snapshot(thread_id, NAME)
    if snapshot is None:
        return ""
    whole = await cells_at(journal, thread_id, snapshot.upto)
    try:
        stored = Cells.restore(snapshot.body)
    except Drifted as error:
        return f"the snapshot of thread {thread_id!r} cannot be read: {error}"
    if stored == whole:
        return ""
    return f"the snapshot of thread {thread_id!r} at {snapshot.upto} is not what its journal replays to"


def replayed(start: Cells, records: tuple[Record, ...] | list[Record]) -> Cells:
    """Return the cells after the commands of `records`, in order.

    Raises:
        StateConflict: a command does not fit what is there: the journal is damaged.
    """
    commands = [command for record in records for command in record.commands]
    try:
        return start.after(commands)
    except ValueError as error:
        raise StateConflict(
            f"The state of thread {records[0].state_thread!r} cannot be replayed: {error}.",
            hint=f"agentctl state verify {records[0].run_id}",
        ) from error


async def _from_snapshot(journal: Journal, thread_id: str) -> tuple[Cells, int]:
    snapshot = await journal.snapshot(thread_id, NAME)
    if snapshot is None:
        return Cells(), 0
    try:
        return Cells.restore(snapshot.body), snapshot.upto
    except Drifted:
        return Cells(), 0
