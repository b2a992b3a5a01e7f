"""The journal on disk: one SQLite file for all runs of a user, in WAL mode, flushed at every commit.

Writing and reading have a connection each, and each is used by one thread at a time.
"""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import anyio
import anyio.to_thread

from agentctl.clock import Clock, SystemClock
from agentctl.errors import RunFailed, StateConflict, file_fault
from agentctl.journal.group import GroupWriter
from agentctl.journal.owners import Owner
from agentctl.journal.reading import Reader
from agentctl.journal.rows import microseconds_of
from agentctl.journal.schema import connect, prepare, translate
from agentctl.journal.store import (
    Appended,
    Fault,
    InboxMessage,
    Record,
    RunInfo,
    Snapshot,
    ThreadInfo,
)
from agentctl.journal.writing import Writer
from agentctl.protocol.commands import Commit, OutgoingMessage

Result = TypeVar("Result")


async def open_journal(path: Path, *, clock: Clock | None = None) -> "SqliteJournal":
    """Return the journal at `path`, made or brought to today's format where needed.

    Raises:
        StateConflict: it is damaged, another program's, or a newer agentctl wrote it.
        RunFailed: the folder cannot be used.
    """
    return await anyio.to_thread.run_sync(_open, path, clock or SystemClock())


def _open(path: Path, clock: Clock) -> "SqliteJournal":
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            # Conversations are private: made before SQLite makes it, which would ask the umask.
            path.touch(mode=0o600)
    except OSError as error:
        raise RunFailed(
            f"The data folder {str(path.parent)!r} cannot be used: {file_fault(error)}.",
            hint="make it yours, or put config and data elsewhere: AGENTCTL_HOME=FOLDER agentctl …",
        ) from error
    connection = connect(path)
    try:
        prepare(connection, path)
    except BaseException:
        connection.close()
        raise
    return SqliteJournal(path, connection, clock)


class SqliteLease:
    """The right to write to a thread through one journal."""

    def __init__(self, journal: "SqliteJournal", thread_id: str, token: int) -> None:
        self._journal = journal
        self._thread_id = thread_id
        self._token = token

    @property
    def thread_id(self) -> str:
        """The thread it is for."""
        return self._thread_id

    @property
    def token(self) -> int:
        """The fencing token."""
        return self._token

    async def release(self) -> None:
        """Let another process write to the thread. Idempotent."""
        await self._journal.release(self._thread_id, self._token)


class SqliteJournal:
    """Implements `Journal`; made by `open_journal`."""

    def __init__(self, path: Path, connection: sqlite3.Connection, clock: Clock) -> None:
        self._path = path
        self._connections = [connection, connect(path)]
        self._owner = Owner(path.with_name(path.name + ".owners"))
        self._writer = Writer(
            connection, path=path, owner=self._owner, now=lambda: microseconds_of(clock.now())
        )
        self._group = GroupWriter(self._writer.write)
        self._reader = Reader(self._connections[1], self._owner)
        self._reading = anyio.CapacityLimiter(1)
        self._tokens: dict[str, int] = {}

    async def append(self, commit: Commit) -> Appended:
        """Make `commit` durable; see `Journal`."""
        token = self._tokens.get(commit.thread_id, 0)
        return await self._group.submit(lambda: self._writer.append(commit, token))

    async def read(
        self, run_id: str, *, after: int = 0, limit: int | None = None, events_only: bool = False
    ) -> tuple[Record, ...]:
        """Return the run's records with a sequence above `after`, in order."""
        return await self._read(lambda: self._reader.read(run_id, after, limit, events_only=events_only))

    async def read_state(
        self, thread_id: str, *, after: int = 0, upto: int | None = None
    ) -> tuple[Record, ...]:
        """Return the records that changed cells of the thread, by position."""
        return await self._read(lambda: self._reader.read_state(thread_id, after, upto))

    async def run(self, run_id: str) -> RunInfo | None:
        """Return what is known of a run."""
        return await self._read(lambda: self._reader.run(run_id))

    async def runs(
        self, *, thread_id: str = "", parent_run: str = "", limit: int | None = None
    ) -> tuple[RunInfo, ...]:
        """Return runs, oldest first; with `limit`, the latest so many."""
        return await self._read(lambda: self._reader.runs(thread_id, parent_run, limit))

    async def find_run(self, name: str) -> RunInfo:
        """Return the run that `name` means: its id, a unique prefix of it, or `last`."""
        return await self._read(lambda: self._reader.find_run(name))

    async def threads(self) -> tuple[ThreadInfo, ...]:
        """Return all threads, the one that changed last at the end."""
        return await self._read(self._reader.threads)

    async def acquire(self, thread_id: str) -> SqliteLease:
        """Return the lease of a thread, taking it over from a process that has died."""
        if thread_id in self._tokens:
            raise StateConflict(
                f"Thread {thread_id!r} is being written by this process already.",
                hint="Wait until its run ends, or start a new thread.",
            )
        token = await self._group.submit(lambda: self._writer.acquire(thread_id))
        self._tokens[thread_id] = token
        return SqliteLease(self, thread_id, token)

    async def release(self, thread_id: str, token: int) -> None:
        """Give a lease back; called by it."""
        if self._tokens.get(thread_id) == token:
            del self._tokens[thread_id]
            await self._group.submit(lambda: self._writer.release(thread_id, token))

    async def post(self, message: OutgoingMessage, *, sender: str) -> bool:
        """Put a message into the inbox of a run or thread; True when it is new."""
        return await self._group.submit(lambda: self._writer.post(message, sender))

    async def inbox(self, target: str) -> tuple[InboxMessage, ...]:
        """Return the messages that wait for a run or thread, oldest first."""
        return await self._read(lambda: self._reader.inbox(target))

    async def withdraw(self, message_id: str) -> bool:
        """Take back a message that nobody has taken in yet; True if there was one."""
        return await self._group.submit(lambda: self._writer.withdraw(message_id))

    async def save_snapshot(self, snapshot: Snapshot) -> None:
        """Store a snapshot over the earlier one of its owner and name."""
        await self._group.submit(lambda: self._writer.save_snapshot(snapshot))

    async def snapshot(self, owner: str, name: str) -> Snapshot | None:
        """Return the latest snapshot, or None when there is none or its digest does not hold."""
        return await self._read(lambda: self._reader.snapshot(owner, name))

    async def remove_run(self, run_id: str) -> bool:
        """Delete a run with its sub-agents' runs; True if it was there."""
        return await self._group.submit(lambda: self._writer.remove_run(run_id))

    async def verify(self, run_id: str) -> tuple[Fault, ...]:
        """Return what is wrong with the run's chain of hashes."""
        return await self._read(lambda: self._reader.verify(run_id))

    async def aclose(self) -> None:
        """Release leases and close. Idempotent."""
        with anyio.CancelScope(shield=True):
            for thread_id, token in list(self._tokens.items()):
                await self.release(thread_id, token)
            await anyio.to_thread.run_sync(self._close, limiter=self._reading)

    def _close(self) -> None:
        self._owner.close()
        while self._connections:
            self._connections.pop().close()

    async def _read(self, query: Callable[[], Result]) -> Result:
        def run() -> Result:
            try:
                return query()
            except sqlite3.Error as error:
                raise translate(error, self._path) from error

        return await anyio.to_thread.run_sync(run, limiter=self._reading)
