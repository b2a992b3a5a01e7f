"""The state of a run from a command of its own: its cells, its keys, and a commit a person makes."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from agentctl.agent.state_plan import key_of
from agentctl.blueprint.load import parse_blueprint
from agentctl.blueprint.model import Blueprint
from agentctl.cli.reading import find
from agentctl.errors import ExitCode, UsageError
from agentctl.journal.states import load_cells
from agentctl.journal.store import Journal, Record, RunInfo
from agentctl.protocol.commands import Command
from agentctl.protocol.events import Event, Noted, RunStarted
from agentctl.records import dataclass
from agentctl.state.cells import Cells
from agentctl.state.commit import Origin, assemble
from agentctl.state.keys import KeyTable

ABSENT = int(ExitCode.FAILED)
"""What a command exits with when what was asked for is not there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """A run, and the cells of its thread as they are now."""

    info: RunInfo
    started: RunStarted
    cells: Cells

    @property
    def state_thread(self) -> str:
        """The thread whose cells the run uses."""
        return self.info.state_thread or self.info.thread_id

    def blueprint(self) -> Blueprint:
        """Return the blueprint as the run began with it.

        Raises:
            InvalidInput: today's agentctl does not take it any more.
        """
        return parse_blueprint(
            self.started.blueprint_source.encode(),
            path=Path(self.started.blueprint_path),
            found_by=self.started.found_by,
        )

    def keys(self) -> KeyTable:
        """Return the run's state keys, without the code of folds that are functions."""
        return KeyTable(key_of(table) for table in self.blueprint().state_keys)


async def read_run_state(journal: Journal, name: str) -> RunState:
    """Return the state of the run that `name` means.

    Raises:
        UsageError: there is no such run, or it has no beginning.
        StateConflict: the journal is damaged.
    """
    begun = await read_beginning(journal, name)
    return replace(begun, cells=(await load_cells(journal, begun.state_thread)).cells)


async def read_beginning(journal: Journal, name: str) -> RunState:
    """Return what a run's first record says of it, without cells: whatever else of the run is damaged.

    Raises:
        UsageError: there is no such run, or it has no beginning.
    """
    info = await find(journal, name)
    first = await journal.read(info.run_id, limit=1)
    started = next((event for event in _events(first) if isinstance(event, RunStarted)), None)
    if started is None:
        raise UsageError(f"The run {info.run_id} has no beginning in the journal.", hint="agentctl runs list")
    return RunState(info=info, started=started, cells=Cells())


async def commit_by_person(
    journal: Journal, state: RunState, commands: Sequence[Command], *, keys: KeyTable, words: str
) -> Cells:
    """Commit a person's change to a run's state; return the cells after it.

    Raises:
        StateConflict: a process is at work on the thread, or the change does not fit a key.
    """
    leases = [await journal.acquire(state.info.thread_id)]
    try:
        if state.state_thread != state.info.thread_id:
            leases.append(await journal.acquire(state.state_thread))
        loaded = await load_cells(journal, state.state_thread)
        own = state.state_thread == state.info.thread_id
        origin = Origin(
            run_id=state.info.run_id,
            thread_id=state.info.thread_id,
            state_thread="" if own else state.state_thread,
        )
        noted = Noted(level="info", text=words, source="person")
        assembled = assemble(origin, (noted,), commands, keys=keys, cells=loaded.cells)
        await journal.append(assembled.commit)
        return assembled.cells
    finally:
        for lease in leases:
            await lease.release()


def absent(what: str) -> int:
    """Say that something is not there; return the exit code for it."""
    sys.stderr.write(f"{what}\n")
    return ABSENT


def _events(records: Sequence[Record]) -> list[Event]:
    return [event for record in records for event in record.events]
