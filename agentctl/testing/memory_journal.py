"""A journal in memory with the rules of the one on disk, and a way to die at any commit."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

from agentctl.clock import Clock, SystemClock
from agentctl.errors import StateConflict, UsageError
from agentctl.journal.body import decode_body, digest_of, encode_body, first_link, from_json, link, to_json
from agentctl.journal.listing import info_after
from agentctl.journal.rows import microseconds_of, text_of
from agentctl.journal.store import (
    Appended,
    Fault,
    InboxMessage,
    Record,
    RunInfo,
    Snapshot,
    ThreadInfo,
)
from agentctl.protocol.codec import encode
from agentctl.protocol.commands import Commit, OutgoingMessage


class ProcessKilled(BaseException):
    """Stands for the death of the process: nothing of ours may catch it."""


@dataclass(slots=True)
class _Row:
    position: int
    run_id: str
    thread_id: str
    state_thread: str
    sequence: int
    at: int
    body: str
    commands: str
    link: bytes


@dataclass(slots=True)
class _Tables:
    rows: list[_Row] = field(default_factory=list)
    infos: dict[str, RunInfo] = field(default_factory=dict)
    leases: dict[str, tuple[int, object]] = field(default_factory=dict)
    inbox: list[InboxMessage] = field(default_factory=list)
    posted: dict[str, str] = field(default_factory=dict)
    snapshots: dict[tuple[str, str], tuple[int, str]] = field(default_factory=dict)
    next_position: int = 1


class MemoryLease:
    """The right to write to a thread of a memory journal."""

    def __init__(self, journal: "MemoryJournal", thread_id: str, token: int) -> None:
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
        """Let another journal write to the thread. Idempotent."""
        self._journal.let_go(self._thread_id, self._token)


class MemoryJournal:
    """Implements `Journal`. What is stored is encoded and decoded as on disk.

    `kill_at` is the number of the append, counted from 1 in this journal, at which `ProcessKilled` is raised:
    `before` the commit is durable, or `after`, when the caller does not learn that it is. From then on it
    takes nothing more, whatever is cleaned up. `kill_after` does the same after the first commit it is true
    for. `reopened()` is what a new process finds.
    """

    def __init__(
        self,
        *,
        clock: Clock | None = None,
        kill_at: tuple[int, Literal["before", "after"]] | None = None,
        kill_after: Callable[[Commit], bool] | None = None,
    ) -> None:
        self._clock = clock or SystemClock()
        self._kill_at = kill_at
        self._kill_after = kill_after
        self._tables = _Tables()
        self._me = object()
        self._dead = False
        self.appends = 0
        """Appends tried through this object."""

    def reopened(self, *, kill_at: tuple[int, Literal["before", "after"]] | None = None) -> "MemoryJournal":
        """Return the same journal as a new process opens it; the old one has lost its leases."""
        journal = MemoryJournal(clock=self._clock, kill_at=kill_at)
        journal._tables = self._tables
        self._tables.leases = {thread: (token, None) for thread, (token, _) in self._tables.leases.items()}
        return journal

    async def append(self, commit: Commit) -> Appended:
        """Make `commit` durable; see `Journal`."""
        if self._dead:
            raise ProcessKilled
        self.appends += 1
        if self._kill_at == (self.appends, "before"):
            self._dead = True
            raise ProcessKilled
        appended = self._append(commit)
        told = self._kill_after is not None and self._kill_after(commit)
        if told or self._kill_at == (self.appends, "after"):
            self._dead = True
            raise ProcessKilled
        return appended

    def _append(self, commit: Commit) -> Appended:
        tables = self._tables
        if tables.leases.get(commit.thread_id, (0, None))[1] is not self._me:
            raise StateConflict(
                f"This process may not write to thread {commit.thread_id!r}: it does not hold its lease."
            )
        fresh = [message for message in commit.outgoing if self._is_new(message)]
        body, commands = encode_body(commit)
        at = microseconds_of(self._clock.now())
        info = tables.infos.get(commit.run_id) or RunInfo(
            run_id=commit.run_id,
            thread_id=commit.thread_id,
            started=text_of(at),
            state_thread=commit.state_thread or commit.thread_id,
        )
        last = next((row for row in reversed(tables.rows) if row.run_id == commit.run_id), None)
        before = last.link if last else first_link(commit.run_id)
        row = _Row(
            position=tables.next_position,
            run_id=commit.run_id,
            thread_id=info.thread_id,
            state_thread=info.state_thread,
            sequence=info.sequence + 1,
            at=at,
            body=body,
            commands=commands,
            link=link(before, info.sequence + 1, body, commands),
        )
        tables.next_position += 1
        tables.rows.append(row)
        for message in fresh:
            self._put(message, commit.run_id)
        tables.inbox = [one for one in tables.inbox if one.message_id not in commit.received]
        tables.infos[commit.run_id] = replace(
            info_after(info, commit.events), sequence=row.sequence, updated=text_of(at)
        )
        return Appended(
            sequence=row.sequence,
            at=text_of(at),
            position=row.position,
            mail_waits=any(message.target == commit.run_id for message in tables.inbox),
        )

    async def read(
        self, run_id: str, *, after: int = 0, limit: int | None = None, events_only: bool = False
    ) -> tuple[Record, ...]:
        """Return the run's records with a sequence above `after`, in order."""
        del events_only
        rows = [row for row in self._tables.rows if row.run_id == run_id and row.sequence > after]
        if run_id not in self._tables.infos:
            return ()
        return tuple(self._record(row) for row in rows[:limit])

    async def read_state(
        self, thread_id: str, *, after: int = 0, upto: int | None = None
    ) -> tuple[Record, ...]:
        """Return the records that changed cells of the thread, by position."""
        return tuple(
            replace(self._record(row), events=(), outgoing=(), received=())
            for row in self._tables.rows
            if row.commands and row.position > after and row.state_thread == thread_id
            if upto is None or row.position <= upto
        )

    async def run(self, run_id: str) -> RunInfo | None:
        """Return what is known of a run."""
        info = self._tables.infos.get(run_id)
        return None if info is None else self._live(info)

    async def runs(
        self, *, thread_id: str = "", parent_run: str = "", limit: int | None = None
    ) -> tuple[RunInfo, ...]:
        """Return runs, oldest first; with `limit`, the latest so many."""
        found = [
            self._live(info)
            for info in self._tables.infos.values()
            if (not thread_id or info.thread_id == thread_id)
            and (not parent_run or info.parent_run == parent_run)
        ]
        return tuple(found if limit is None else found[max(0, len(found) - limit) :])

    async def find_run(self, name: str) -> RunInfo:
        """Return the run that `name` means: its id, a unique prefix of it, or `last`."""
        infos = [self._live(info) for info in self._tables.infos.values()]
        if name == "last":
            found = [info for info in infos if not info.parent_run][-1:]
        else:
            found = [info for info in infos if info.run_id == name] or [
                info for info in infos if info.run_id.startswith(name)
            ]
        if len(found) != 1:
            raise UsageError(f"{name!r} is {len(found)} runs.", hint="agentctl runs list")
        return found[0]

    async def threads(self) -> tuple[ThreadInfo, ...]:
        """Return all threads, the one that changed last at the end."""
        found: dict[str, list[RunInfo]] = {}
        for info in self._tables.infos.values():
            found.setdefault(info.thread_id, []).append(info)
        threads = [
            ThreadInfo(
                thread_id=thread_id,
                runs=tuple(info.run_id for info in infos),
                agent=infos[0].agent,
                updated=max(info.updated for info in infos),
            )
            for thread_id, infos in found.items()
        ]
        return tuple(sorted(threads, key=lambda thread: thread.updated))

    async def acquire(self, thread_id: str) -> MemoryLease:
        """Return the lease of a thread."""
        token, owner = self._tables.leases.get(thread_id, (0, None))
        if owner is not None:
            raise StateConflict(f"Thread {thread_id!r} is being written by another journal.")
        self._tables.leases[thread_id] = (token + 1, self._me)
        return MemoryLease(self, thread_id, token + 1)

    def let_go(self, thread_id: str, token: int) -> None:
        """Give a lease back; called by it."""
        if self._tables.leases.get(thread_id) == (token, self._me):
            self._tables.leases[thread_id] = (token, None)

    async def post(self, message: OutgoingMessage, *, sender: str) -> bool:
        """Put a message into the inbox of a run or thread; True when it is new."""
        if not self._is_new(message):
            return False
        self._put(message, sender)
        return True

    async def inbox(self, target: str) -> tuple[InboxMessage, ...]:
        """Return the messages that wait for a run or thread, oldest first."""
        return tuple(message for message in self._tables.inbox if message.target == target)

    async def withdraw(self, message_id: str) -> bool:
        """Take back a message that nobody has taken in yet; True if there was one."""
        kept = [message for message in self._tables.inbox if message.message_id != message_id]
        gone = len(kept) < len(self._tables.inbox)
        self._tables.inbox = kept
        if gone:
            del self._tables.posted[message_id]
        return gone

    async def save_snapshot(self, snapshot: Snapshot) -> None:
        """Store a snapshot over the earlier one of its owner and name."""
        self._tables.snapshots[snapshot.owner, snapshot.name] = (snapshot.upto, to_json(snapshot.body))

    async def snapshot(self, owner: str, name: str) -> Snapshot | None:
        """Return the latest snapshot, or None."""
        found = self._tables.snapshots.get((owner, name))
        if found is None:
            return None
        return Snapshot(owner=owner, name=name, upto=found[0], body=from_json(found[1]))

    async def remove_run(self, run_id: str) -> bool:
        """Delete a run with its sub-agents' runs; True if it was there."""
        info = self._tables.infos.get(run_id)
        if info is None:
            return False
        if self._tables.leases.get(info.thread_id, (0, None))[1] is not None:
            raise StateConflict(f"Run {run_id!r} is at work.", hint=f"agentctl cancel {run_id}")
        for child in [one for one in self._tables.infos.values() if one.parent_run == run_id]:
            await self.remove_run(child.run_id)
        del self._tables.infos[run_id]
        alone = info.state_thread not in {one.state_thread for one in self._tables.infos.values()}
        if alone:
            self._tables.rows = [row for row in self._tables.rows if row.state_thread != info.state_thread]
        self._tables.rows = [row for row in self._tables.rows if row.run_id != run_id or row.commands]
        return True

    async def verify(self, run_id: str) -> tuple[Fault, ...]:
        """Return what is wrong with the run's chain of hashes."""
        before = first_link(run_id)
        faults = []
        for row in [row for row in self._tables.rows if row.run_id == run_id]:
            if link(before, row.sequence, row.body, row.commands) != row.link:
                faults.append(
                    Fault(run_id=run_id, sequence=row.sequence, text="the record is not what was written")
                )
            before = row.link
        return tuple(faults)

    async def aclose(self) -> None:
        """Release leases. Idempotent."""
        self._tables.leases = {
            thread: (token, None if owner is self._me else owner)
            for thread, (token, owner) in self._tables.leases.items()
        }

    def _is_new(self, message: OutgoingMessage) -> bool:
        digest = self._tables.posted.get(message.message_id)
        if digest is not None and digest != _digest(message):
            raise StateConflict(f"Message id {message.message_id!r} was used before for another message.")
        return digest is None

    def _put(self, message: OutgoingMessage, sender: str) -> None:
        self._tables.posted[message.message_id] = _digest(message)
        self._tables.inbox.append(
            InboxMessage(
                message_id=message.message_id,
                target=message.target,
                body=message.body,
                sender=sender,
                at=text_of(microseconds_of(self._clock.now())),
            )
        )

    def _live(self, info: RunInfo) -> RunInfo:
        held = self._tables.leases.get(info.thread_id, (0, None))[1] is not None
        return replace(info, status="interrupted") if info.status == "running" and not held else info

    def _record(self, row: _Row) -> Record:
        content = decode_body(row.body, row.commands)
        return Record(
            run_id=row.run_id,
            thread_id=row.thread_id,
            sequence=row.sequence,
            at=text_of(row.at),
            position=row.position,
            events=content.events,
            commands=content.commands,
            outgoing=content.outgoing,
            received=content.received,
            state_thread=row.state_thread,
        )


def _digest(message: OutgoingMessage) -> str:
    return digest_of([message.target, encode(message.body)])
