"""The writing half of the SQLite journal: jobs that run inside one transaction, on one thread at a time."""

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from agentctl.errors import AgentctlError, RunFailed, StateConflict
from agentctl.journal.body import Damaged, decode_body, digest_of, encode_body, first_link, link, to_json
from agentctl.journal.group import Waiting
from agentctl.journal.listing import info_after
from agentctl.journal.owners import Owner
from agentctl.journal.rows import info_from_text, info_to_text, text_of
from agentctl.journal.schema import translate
from agentctl.journal.store import Appended, RunInfo, Snapshot
from agentctl.protocol.codec import encode
from agentctl.protocol.commands import Commit, OutgoingMessage
from agentctl.protocol.values import JsonValue


@dataclass(slots=True)
class _Head:
    """Where a run stands; kept only while its thread's lease is held, since nobody else appends then."""

    key: int
    thread_id: str
    state_thread: str
    sequence: int
    link: bytes
    at: int
    info: RunInfo
    changed: bool = False
    info_changed: bool = False


class Writer:
    """Owns the writing connection. Every method but `write` is a job, called inside a batch."""

    def __init__(
        self, connection: sqlite3.Connection, *, path: Path, owner: Owner, now: Callable[[], int]
    ) -> None:
        self._db = connection
        self._path = path
        self._owner = owner
        self._now = now
        self._heads: dict[str, dict[str, _Head]] = {}
        self._changed: list[_Head] = []

    def write(self, batch: Sequence[Waiting]) -> None:
        """Run a batch of jobs in one transaction, and flush once.

        A job that raises an AgentctlError has written nothing, and does not touch the others.
        """
        try:
            self._db.execute("BEGIN IMMEDIATE")
            for waiting in batch:
                try:
                    waiting.job()
                except AgentctlError as error:
                    waiting.error = error
            self._store_heads()
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            self._undo()
            for waiting in batch:
                waiting.error = translate(error, self._path)
        except BaseException:
            self._undo()
            for waiting in batch:
                waiting.error = waiting.error or RunFailed("A commit written at the same time was a bug.")
            raise

    def append(self, commit: Commit, token: int) -> Appended:
        """Write a commit at the end of its run."""
        self._check_lease(commit.thread_id, token)
        fresh = [message for message in commit.outgoing if self._is_new(message)]
        head = self._heads.get(commit.thread_id, {}).get(commit.run_id) or self._head(commit)
        if (head.thread_id, head.state_thread) != (
            commit.thread_id,
            commit.state_thread or commit.thread_id,
        ):
            raise ValueError(f"run {commit.run_id} belongs to thread {head.thread_id}")
        body, commands = encode_body(commit)
        at = max(self._now(), head.at)
        sequence = head.sequence + 1
        chained = link(head.link, sequence, body, commands)
        cursor = self._db.execute(
            "INSERT INTO commits (run, sequence, at, body, commands, link) VALUES (?, ?, ?, ?, ?, ?)",
            (head.key, sequence, at, body, commands, chained),
        )
        head.sequence, head.link, head.at = sequence, chained, at
        if not head.changed:
            head.changed = True
            self._changed.append(head)
        for message in fresh:
            self._put(message, commit.run_id, at)
        for message_id in commit.received:
            self._db.execute("DELETE FROM inbox WHERE message_id = ?", (message_id,))
        info = info_after(head.info, commit.events)
        if info is not head.info:
            head.info, head.info_changed = info, True
        mail = self._db.execute("SELECT 1 FROM inbox WHERE target = ? LIMIT 1", (commit.run_id,)).fetchone()
        return Appended(
            sequence=sequence, at=text_of(at), position=cursor.lastrowid or 0, mail_waits=mail is not None
        )

    def acquire(self, thread_id: str) -> int:
        """Take a thread's lease; return its token."""
        row = self._db.execute("SELECT token, owner FROM leases WHERE thread_id = ?", (thread_id,)).fetchone()
        token, owner = row or (0, "")
        if owner and self._owner.is_alive(owner):
            raise StateConflict(
                f"Thread {thread_id!r} is being written by process {self._owner.pid_of(owner)}.",
                hint="Wait until its run ends, talk to it with `agentctl msg`, or start a new thread.",
            )
        self._heads.pop(thread_id, None)
        self._db.execute(
            "INSERT OR REPLACE INTO leases (thread_id, token, owner) VALUES (?, ?, ?)",
            (thread_id, token + 1, self._owner.name),
        )
        return int(token) + 1

    def release(self, thread_id: str, token: int) -> None:
        """Give a lease back, if it is still that one."""
        self._heads.pop(thread_id, None)
        self._db.execute("UPDATE leases SET owner = '' WHERE thread_id = ? AND token = ?", (thread_id, token))

    def post(self, message: OutgoingMessage, sender: str) -> bool:
        """Put a message into an inbox; True when it is new."""
        if not self._is_new(message):
            return False
        self._put(message, sender, self._now())
        return True

    def withdraw(self, message_id: str) -> bool:
        """Take a waiting message back."""
        gone = self._db.execute("DELETE FROM inbox WHERE message_id = ?", (message_id,)).rowcount > 0
        if gone:
            self._db.execute("DELETE FROM posted WHERE message_id = ?", (message_id,))
        return gone

    def save_snapshot(self, snapshot: Snapshot) -> None:
        """Store a snapshot with its digest."""
        self._db.execute(
            "INSERT OR REPLACE INTO snapshots (owner, name, upto, digest, body) VALUES (?, ?, ?, ?, ?)",
            (
                snapshot.owner,
                snapshot.name,
                snapshot.upto,
                digest_of(snapshot.body),
                to_json(snapshot.body),
            ),
        )

    def remove_run(self, run_id: str) -> bool:
        """Delete a run and its sub-agents' runs, all or none."""
        self._store_heads()  # of this batch: not after the run's line is gone
        family = self._family(run_id)
        for _, member, thread_id in family:
            lease = self._db.execute("SELECT owner FROM leases WHERE thread_id = ?", (thread_id,)).fetchone()
            if lease and lease[0] and self._owner.is_alive(lease[0]):
                raise StateConflict(
                    f"Run {member!r} is at work in process {self._owner.pid_of(lease[0])}.",
                    hint=f"agentctl cancel {member}",
                )
        states = {
            state
            for key, _, _ in family
            for (state,) in self._db.execute("SELECT state_thread FROM runs WHERE key = ?", (key,))
        }
        for key, member, thread_id in family:
            self._heads.pop(thread_id, None)
            self._empty_run(member, key)
        for state_thread in states:
            self._sweep(state_thread)
        return bool(family)

    def _family(self, run_id: str) -> list[tuple[int, str, str]]:
        """Return (key, run, thread) of a run and of all below it."""
        rows = self._db.execute(
            "WITH RECURSIVE family(key, run_id, thread_id) AS ("
            " SELECT key, run_id, thread_id FROM runs WHERE run_id = ? AND removed = 0"
            " UNION SELECT r.key, r.run_id, r.thread_id FROM runs r JOIN family f"
            " ON r.parent_run = f.run_id AND r.removed = 0)"
            " SELECT key, run_id, thread_id FROM family",
            (run_id,),
        ).fetchall()
        return [(int(key), str(member), str(thread_id)) for key, member, thread_id in rows]

    def _empty_run(self, run_id: str, key: int) -> None:
        # What it did to the cells stays; everything else of it goes.
        self._db.execute("DELETE FROM commits WHERE run = ? AND commands = ''", (key,))
        self._db.execute("UPDATE commits SET body = '{\"events\":[]}' WHERE run = ?", (key,))
        self._db.execute("UPDATE runs SET removed = 1, info = '{}' WHERE key = ?", (key,))
        self._db.execute("DELETE FROM snapshots WHERE owner = ?", (run_id,))
        self._db.execute("DELETE FROM inbox WHERE target = ?", (run_id,))

    def _sweep(self, state_thread: str) -> None:
        left = self._db.execute(
            "SELECT count(*) FROM runs WHERE state_thread = ? AND removed = 0", (state_thread,)
        ).fetchone()[0]
        if left:
            return
        self._db.execute(
            "DELETE FROM commits WHERE run IN (SELECT key FROM runs WHERE state_thread = ?)",
            (state_thread,),
        )
        self._db.execute("DELETE FROM snapshots WHERE owner = ?", (state_thread,))
        self._db.execute("DELETE FROM inbox WHERE target = ?", (state_thread,))
        self._db.execute("DELETE FROM runs WHERE state_thread = ?", (state_thread,))

    def _check_lease(self, thread_id: str, token: int) -> None:
        row = self._db.execute("SELECT token, owner FROM leases WHERE thread_id = ?", (thread_id,)).fetchone()
        if row is None or row != (token, self._owner.name):
            raise StateConflict(
                f"This process may not write to thread {thread_id!r}: it does not hold its lease.",
                hint=f"agentctl runs list shows who is at work on {thread_id}.",
            )

    def _is_new(self, message: OutgoingMessage) -> bool:
        row = self._db.execute(
            "SELECT digest FROM posted WHERE message_id = ?", (message.message_id,)
        ).fetchone()
        if row is not None and row[0] != _digest(message):
            raise StateConflict(
                f"Message id {message.message_id!r} was used before for another message.",
                hint="Give the message a new id.",
            )
        return row is None

    def _put(self, message: OutgoingMessage, sender: str, at: int) -> None:
        self._db.execute(
            "INSERT INTO inbox (message_id, target, sender, at, body) VALUES (?, ?, ?, ?, ?)",
            (message.message_id, message.target, sender, at, to_json(message.body)),
        )
        self._db.execute(
            "INSERT INTO posted (message_id, digest) VALUES (?, ?)", (message.message_id, _digest(message))
        )

    def _head(self, commit: Commit) -> _Head:
        row = self._db.execute(
            "SELECT key, thread_id, state_thread, sequence, head, updated, info FROM runs WHERE run_id = ?",
            (commit.run_id,),
        ).fetchone()
        if row is None:
            head = self._new_run(commit)
        else:
            key, thread_id, state_thread, sequence, last, at, text = row
            info = info_from_text(text, RunInfo(run_id=commit.run_id, thread_id=commit.thread_id))
            known = _Head(key, thread_id, state_thread, sequence, last, at, info)
            head = self._mend_tail(commit.run_id, known)
        self._heads.setdefault(commit.thread_id, {})[commit.run_id] = head
        return head

    def _new_run(self, commit: Commit) -> _Head:
        now = self._now()
        state_thread = commit.state_thread or commit.thread_id
        start = first_link(commit.run_id)
        cursor = self._db.execute(
            "INSERT INTO runs (run_id, thread_id, state_thread, started, updated, sequence, head, info)"
            " VALUES (?, ?, ?, ?, ?, 0, ?, '{}')",
            (commit.run_id, commit.thread_id, state_thread, now, now, start),
        )
        info = RunInfo(run_id=commit.run_id, thread_id=commit.thread_id)
        return _Head(cursor.lastrowid or 0, commit.thread_id, state_thread, 0, start, now, info)

    def _mend_tail(self, run_id: str, head: _Head) -> _Head:
        """Drop a damaged last record, which `read` has told about, so that the chain goes on before it."""
        rows = self._db.execute(
            "SELECT sequence, body, commands, link, at FROM commits WHERE run = ?"
            " ORDER BY sequence DESC LIMIT 2",
            (head.key,),
        ).fetchall()
        if not rows:
            return replace(head, sequence=0, link=first_link(run_id))
        sequence, body, commands, stored, at = rows[0]
        before = rows[1][3] if len(rows) > 1 else first_link(run_id)
        try:
            decode_body(body, commands)
        except Damaged:
            self._db.execute("DELETE FROM commits WHERE run = ? AND sequence = ?", (head.key, sequence))
            return replace(head, sequence=sequence - 1, link=before)
        return replace(head, sequence=sequence, link=stored, at=at)

    def _store_heads(self) -> None:
        for head in self._changed:
            self._db.execute(
                "UPDATE runs SET sequence = ?, head = ?, updated = ? WHERE key = ?",
                (head.sequence, head.link, head.at, head.key),
            )
            if head.info_changed:
                self._db.execute(
                    "UPDATE runs SET info = ?, parent_run = ? WHERE key = ?",
                    (info_to_text(head.info), head.info.parent_run, head.key),
                )
            head.changed = head.info_changed = False
        self._changed.clear()

    def _undo(self) -> None:
        # What the cache knows may belong to the batch that is given up.
        self._heads.clear()
        self._changed.clear()
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")


def _digest(message: OutgoingMessage) -> str:
    content: list[JsonValue] = [message.target, encode(message.body)]
    return digest_of(content)
