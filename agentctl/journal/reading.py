"""The reading half of the SQLite journal: plain queries, on one thread at a time. May block."""

import gc
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeAlias

from agentctl.errors import StateConflict, UsageError
from agentctl.journal.body import (
    Damaged,
    decode_body,
    decode_commands,
    digest_of,
    first_link,
    from_json,
    link,
)
from agentctl.journal.owners import Owner
from agentctl.journal.rows import info_from_text, text_of
from agentctl.journal.store import Fault, InboxMessage, Record, RunInfo, Snapshot, ThreadInfo
from agentctl.protocol.events import Noted

_Row: TypeAlias = tuple[int, int, int, str, str]  # position, sequence, at, body, commands
_RUN_COLUMNS = "run_id, thread_id, state_thread, parent_run, started, updated, sequence, info"


_MANY = 2000
_MOST_NAMED = 5


@contextmanager
def collecting_later(count: int) -> Iterator[None]:
    """Put garbage collection off while so many records are decoded; a third of the time goes into it else.

    Nothing that is made here refers back to itself, so there is nothing to collect: what was made goes to the
    oldest generation unlooked at, where the first collection after this would else go through all of it.
    """
    pause = count > _MANY and gc.isenabled()
    if pause:
        gc.disable()
    try:
        yield
    finally:
        if pause:
            gc.freeze()
            gc.unfreeze()
            gc.enable()


class Reader:
    """Owns the reading connection."""

    def __init__(self, connection: sqlite3.Connection, owner: Owner) -> None:
        self._db = connection
        self._owner = owner

    def read(
        self, run_id: str, after: int, limit: int | None, *, events_only: bool = False
    ) -> tuple[Record, ...]:
        """Return a run's records above `after`; with `events_only` the commands of the last one alone."""
        run = self._db.execute(
            "SELECT key, thread_id, state_thread, sequence FROM runs WHERE run_id = ? AND removed = 0",
            (run_id,),
        ).fetchone()
        if run is None:
            return ()
        key, thread_id, state_thread, head = run
        rows = self._db.execute(
            "SELECT position, sequence, at, body, commands FROM commits"
            " WHERE run = ? AND sequence > ? ORDER BY sequence LIMIT ?",
            (key, after, -1 if limit is None else limit),
        ).fetchall()
        records: list[Record] = []
        expected = after
        with collecting_later(len(rows)):
            for row in rows:
                expected += 1
                is_last = row[1] == head
                kept = (*row[:4], "") if events_only and not is_last else row
                record = _record(kept, (run_id, thread_id, state_thread), is_last=is_last)
                if record.sequence != expected:
                    raise _damaged(run_id, expected, "it is missing")
                records.append(record)
        if limit is None and expected < head and (rows or after < head):
            records.append(_torn((run_id, thread_id, state_thread), head, "its last record is missing"))
        return tuple(records)

    def read_state(self, thread_id: str, after: int, upto: int | None = None) -> tuple[Record, ...]:
        """Return the records with commands for a thread's cells, by position; none above `upto`."""
        rows = self._db.execute(
            "SELECT c.position, c.sequence, c.at, c.commands, r.run_id, r.thread_id"
            " FROM runs r JOIN commits c ON c.run = r.key"
            " WHERE r.state_thread = ?1 AND c.commands <> '' AND c.position > ?2"
            " AND (?3 IS NULL OR c.position <= ?3) ORDER BY c.position",
            (thread_id, after, upto),
        ).fetchall()
        records: list[Record] = []
        with collecting_later(len(rows)):
            for number, (position, sequence, at, text, run_id, own_thread) in enumerate(rows, start=1):
                try:
                    commands = decode_commands(text)
                except Damaged as error:
                    if number == len(rows):
                        break  # a torn tail: its run tells about it when it is read
                    raise _damaged(run_id, sequence, str(error)) from error
                records.append(
                    Record(
                        run_id=run_id,
                        thread_id=own_thread,
                        sequence=sequence,
                        at=text_of(at),
                        position=position,
                        events=(),
                        commands=commands,
                        state_thread=thread_id,
                    )
                )
        return tuple(records)

    def run(self, run_id: str) -> RunInfo | None:
        """Return one run's line."""
        row = self._db.execute(
            f"SELECT {_RUN_COLUMNS} FROM runs WHERE run_id = ? AND removed = 0",  # noqa: S608 - a constant
            (run_id,),
        ).fetchone()
        return None if row is None else self._info(row)

    def runs(self, thread_id: str, parent_run: str, limit: int | None) -> tuple[RunInfo, ...]:
        """Return the lines of runs, oldest first."""
        rows = self._db.execute(
            f"SELECT {_RUN_COLUMNS} FROM runs WHERE removed = 0"  # noqa: S608 - a constant
            " AND (?1 = '' OR thread_id = ?1) AND (?2 = '' OR (parent_run = ?2 AND run_id <> ?2))"
            " ORDER BY key DESC LIMIT ?3",
            (thread_id, parent_run, -1 if limit is None else limit),
        ).fetchall()
        return tuple(self._info(row) for row in reversed(rows))

    def find_run(self, name: str) -> RunInfo:
        """Return the run that a person means by `name`."""
        where, value = ("run_id = ?", name)
        if name == "last":
            where, value = ("(parent_run = ? OR parent_run = run_id)", "")
        rows = self._select(where, value, 1)
        if not rows and name not in {"", "last"}:
            rows = self._select("substr(run_id, 1, length(?1)) = ?1", name, _MOST_NAMED + 1)
        if len(rows) == 1:
            return self._info(rows[0])
        if not rows:
            raise UsageError(
                "There are no runs yet." if name == "last" else f"There is no run {name!r}.",
                hint="agentctl run hello  makes one" if name == "last" else "agentctl runs list",
            )
        more = " and more" if len(rows) > _MOST_NAMED else ""
        known = ", ".join(row[0] for row in rows[:_MOST_NAMED]) + more
        raise UsageError(f"{name!r} could be any of {known}.", hint="Type more of the run's id.")

    def threads(self) -> tuple[ThreadInfo, ...]:
        """Return all threads with their runs."""
        found: dict[str, list[RunInfo]] = {}
        for info in self.runs("", "", None):
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

    def inbox(self, target: str) -> tuple[InboxMessage, ...]:
        """Return what waits for a target, oldest first."""
        rows = self._db.execute(
            "SELECT message_id, target, body, sender, at FROM inbox WHERE target = ? ORDER BY number",
            (target,),
        ).fetchall()
        return tuple(
            InboxMessage(
                message_id=message_id, target=to, body=from_json(body), sender=sender, at=text_of(at)
            )
            for message_id, to, body, sender, at in rows
        )

    def snapshot(self, owner: str, name: str) -> Snapshot | None:
        """Return a snapshot whose digest holds."""
        row = self._db.execute(
            "SELECT upto, digest, body FROM snapshots WHERE owner = ? AND name = ?", (owner, name)
        ).fetchone()
        if row is None:
            return None
        try:
            body = from_json(row[2])
        except Damaged:
            return None
        if digest_of(body) != row[1]:
            return None
        return Snapshot(owner=owner, name=name, upto=row[0], body=body)

    def verify(self, run_id: str) -> tuple[Fault, ...]:
        """Return the faults of a run's chain."""
        run = self._db.execute(
            "SELECT key, sequence, head FROM runs WHERE run_id = ? AND removed = 0", (run_id,)
        ).fetchone()
        if run is None:
            return (Fault(run_id=run_id, sequence=0, text="there is no such run"),)
        key, head_sequence, head = run
        faults: list[Fault] = []
        before, expected = first_link(run_id), 0
        for sequence, body, commands, stored in self._db.execute(
            "SELECT sequence, body, commands, link FROM commits WHERE run = ? ORDER BY sequence", (key,)
        ):
            expected += 1
            if sequence != expected:
                faults.append(Fault(run_id=run_id, sequence=expected, text="a record is missing"))
                expected = sequence
            elif link(before, sequence, body, commands) != stored:
                faults.append(
                    Fault(run_id=run_id, sequence=sequence, text="the record is not what was written")
                )
            before = stored
        if (expected, before) != (head_sequence, head):
            faults.append(
                Fault(run_id=run_id, sequence=head_sequence, text="the end is not the end that was written")
            )
        return tuple(faults)

    def _select(self, where: str, value: str, limit: int) -> list[tuple[str, ...]]:
        return self._db.execute(
            f"SELECT {_RUN_COLUMNS} FROM runs WHERE removed = 0 AND {where}"  # noqa: S608 - constants
            " ORDER BY key DESC LIMIT ?2",
            (value, limit),
        ).fetchall()

    def _info(self, row: Sequence[str | int]) -> RunInfo:
        run_id, thread_id, state_thread, parent_run, started, updated, sequence, text = row
        info = info_from_text(str(text), RunInfo(run_id=str(run_id), thread_id=str(thread_id)))
        if info.status == "running" and not self._is_held(str(thread_id)):
            info = replace(info, status="interrupted")
        return replace(
            info,
            state_thread=str(state_thread),
            parent_run=str(parent_run) if parent_run != run_id else "",
            started=text_of(int(started)),
            updated=text_of(int(updated)),
            sequence=int(sequence),
        )

    def _is_held(self, thread_id: str) -> bool:
        row = self._db.execute("SELECT owner FROM leases WHERE thread_id = ?", (thread_id,)).fetchone()
        return row is not None and row[0] != "" and self._owner.is_alive(row[0])


def _record(row: _Row, names: tuple[str, str, str], *, is_last: bool) -> Record:
    position, sequence, at, body, commands = row
    try:
        content = decode_body(body, commands)
    except Damaged as error:
        if is_last:
            return replace(_torn(names, sequence, "its last record is torn"), position=position)
        raise _damaged(names[0], sequence, str(error)) from error
    run_id, thread_id, state_thread = names
    return Record(
        run_id=run_id,
        thread_id=thread_id,
        sequence=sequence,
        at=text_of(at),
        position=position,
        events=content.events,
        commands=content.commands,
        outgoing=content.outgoing,
        received=content.received,
        state_thread=state_thread,
    )


def _torn(names: tuple[str, str, str], sequence: int, what: str) -> Record:
    text = f"run {names[0]}: {what} and was left out; the run goes on from the one before"
    return Record(
        run_id=names[0],
        thread_id=names[1],
        sequence=sequence,
        at="",
        position=0,
        events=(Noted(level="warning", text=text, source="journal"),),
        state_thread=names[2],
    )


def _damaged(run_id: str, sequence: int, why: str) -> StateConflict:
    return StateConflict(
        f"Record {sequence} of run {run_id!r} is damaged: {why}.",
        hint=f"agentctl state verify {run_id} lists all faults; agentctl fork {run_id} --at {sequence - 1}"
        " goes on from before it.",
    )
