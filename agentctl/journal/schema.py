"""The tables of the SQLite journal, their versions, and how a connection is opened."""

import sqlite3
from pathlib import Path

from agentctl.errors import JournalUnwritable, StateConflict

APPLICATION_ID = 0x61677463  # "agtc"

_FIRST = """
CREATE TABLE runs (
    key INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL UNIQUE,
    thread_id TEXT NOT NULL,
    state_thread TEXT NOT NULL,
    parent_run TEXT NOT NULL DEFAULT '',
    started INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    head BLOB NOT NULL,
    info TEXT NOT NULL,
    removed INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX runs_of_thread ON runs (thread_id);
CREATE INDEX runs_of_state ON runs (state_thread);
CREATE INDEX runs_of_parent ON runs (parent_run) WHERE parent_run <> '';
CREATE TABLE commits (
    position INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    at INTEGER NOT NULL,
    body TEXT NOT NULL,
    commands TEXT NOT NULL DEFAULT '',
    link BLOB NOT NULL
);
CREATE UNIQUE INDEX commits_of_run ON commits (run, sequence);
CREATE INDEX commits_of_state ON commits (run, position) WHERE commands <> '';
CREATE TABLE leases (
    thread_id TEXT PRIMARY KEY,
    token INTEGER NOT NULL,
    owner TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE inbox (
    number INTEGER PRIMARY KEY,
    message_id TEXT NOT NULL UNIQUE,
    target TEXT NOT NULL,
    sender TEXT NOT NULL,
    at INTEGER NOT NULL,
    body TEXT NOT NULL
);
CREATE INDEX inbox_of_target ON inbox (target);
CREATE TABLE posted (
    message_id TEXT PRIMARY KEY,
    digest TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE snapshots (
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    upto INTEGER NOT NULL,
    digest TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (owner, name)
) WITHOUT ROWID;
"""

MIGRATIONS: tuple[str, ...] = (_FIRST,)
"""The step to version n stands at index n - 1. Steps are only ever added."""


def connect(path: Path) -> sqlite3.Connection:
    """Return a connection in autocommit, for use from one thread at a time. May block.

    Raises:
        StateConflict: the file is not a database, or a newer version wrote it.
        JournalUnwritable: it cannot be opened or made.
    """
    try:
        connection = sqlite3.connect(path, timeout=30.0, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA journal_mode = WAL")
        # FULL: a commit is on the disk when it returns, also when the power goes.
        connection.execute("PRAGMA synchronous = FULL")
        # Fewer checkpoints than the default: each costs two more flushes, and holds up a commit.
        connection.execute("PRAGMA wal_autocheckpoint = 4000")
        connection.execute("PRAGMA journal_size_limit = 67108864")
    except sqlite3.DatabaseError as error:
        raise translate(error, path) from error
    return connection


def prepare(connection: sqlite3.Connection, path: Path) -> int:
    """Bring the database to today's version; return the version it had. Atomic, idempotent.

    Raises:
        StateConflict: a newer agentctl wrote it, or it belongs to another program.
    """
    try:
        connection.execute("BEGIN IMMEDIATE")
        try:
            found = _check(connection, path)
            for step in MIGRATIONS[found:]:
                for statement in step.split(";"):
                    connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        finally:
            connection.execute("COMMIT")
    except sqlite3.DatabaseError as error:
        raise translate(error, path) from error
    return found


def _check(connection: sqlite3.Connection, path: Path) -> int:
    found = int(connection.execute("PRAGMA user_version").fetchone()[0])
    owner = int(connection.execute("PRAGMA application_id").fetchone()[0])
    tables = int(connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])
    if tables and owner != APPLICATION_ID:
        raise StateConflict(
            f"{str(path)!r} is a database of another program.", hint="Move it away, or set AGENTCTL_HOME."
        )
    if found > len(MIGRATIONS):
        raise StateConflict(
            f"The journal {str(path)!r} was written by a newer agentctl (format {found}, this one knows "
            f"{len(MIGRATIONS)}).",
            hint="Install the newer version again, or set AGENTCTL_HOME to start a journal of its own.",
        )
    return found


def translate(error: sqlite3.Error, path: Path) -> StateConflict | JournalUnwritable:
    """Return what a person can do about a database error."""
    text = str(error)
    if "full" in text:
        return JournalUnwritable(
            f"The disk that holds the journal {str(path)!r} is full; nothing of the last commit was kept.",
            hint="Make room; then `agentctl resume RUN` goes on with what `agentctl runs list` shows.",
        )
    if "malformed" in text or "not a database" in text:
        return StateConflict(
            f"The journal {str(path)!r} is damaged: {text}.",
            hint="Move it away together with its -wal and -shm files; `sqlite3 FILE .recover` may save it.",
        )
    return JournalUnwritable(
        f"The journal {str(path)!r} could not be used: {text}.",
        hint="Check that the folder exists, is yours, and is on a disk of this machine.",
    )
