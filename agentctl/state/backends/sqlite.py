"""Shared state in an SQLite file: many runs in one file, each in a space of its own, shared by processes."""

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import anyio
import anyio.to_thread
from anyio.lowlevel import RunVar

from agentctl.state.shared_backend import (
    Entry,
    EntryInfo,
    StoreUnreadable,
    Write,
    Written,
    info_after,
    plan_write,
)

Result = TypeVar("Result")

_TABLES = """
CREATE TABLE IF NOT EXISTS entries (
    space TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, bytes INTEGER NOT NULL,
    version INTEGER NOT NULL, stash INTEGER NOT NULL, writer TEXT NOT NULL, at TEXT NOT NULL,
    PRIMARY KEY (space, key)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS spaces (space TEXT PRIMARY KEY, version INTEGER NOT NULL) WITHOUT ROWID;
"""
_INFO = "key, bytes, version, stash, writer, at"


class _File:
    """One open file of an event loop, however many runs keep their state in it: a run costs no descriptor."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._limiter = anyio.CapacityLimiter(1)
        self._users: set[SqliteBackend] = set()

    @classmethod
    def of(cls, path: Path, user: "SqliteBackend") -> "_File":
        """Return the loop's file at `path`, with one user more."""
        files = _open_files()
        file = files.setdefault(path, cls(path))
        file._users.add(user)  # noqa: SLF001 - its own class
        return file

    async def leave(self, user: "SqliteBackend") -> None:
        """Take a user away; close the file after the last one."""
        self._users.discard(user)
        if self._users:
            return
        _open_files().pop(self._path, None)
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self._close, limiter=self._limiter)

    async def run(self, query: Callable[[sqlite3.Connection], Result]) -> Result:
        """Run a query alone: none of another run comes between its statements."""

        def run() -> Result:
            try:
                return query(self._open())
            except (sqlite3.Error, OSError) as error:
                raise StoreUnreadable(f"shared state in {str(self._path)!r}: {error}") from error

        # Shielded: a write that was begun is told about, not left to guess.
        with anyio.CancelScope(shield=True):
            result = await anyio.to_thread.run_sync(run, limiter=self._limiter)
        return result  # noqa: RET504 - mypy takes a scope for one that may swallow what is raised

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not self._path.exists():
                self._path.touch(mode=0o600)
            db = sqlite3.connect(self._path, timeout=30.0, isolation_level=None, check_same_thread=False)
            try:
                db.execute("PRAGMA journal_mode = WAL")
                db.execute("PRAGMA synchronous = FULL")
                db.executescript(_TABLES)
            except BaseException:
                db.close()
                raise
            self._connection = db
        return self._connection


_FILES: RunVar[dict[Path, _File]] = RunVar("agentctl_shared_state_files")


def _open_files() -> dict[Path, _File]:
    try:
        return _FILES.get()
    except LookupError:
        files: dict[Path, _File] = {}
        _FILES.set(files)
        return files


class SqliteBackend:
    """Implements `SharedStateBackend`. A write is on the disk when it returns."""

    def __init__(self, path: Path, space: str) -> None:
        self._path = path
        self._space = space
        self._file: _File | None = None

    async def get(self, key: str) -> Entry | None:
        """Return an entry, or None when it is absent."""

        def query(db: sqlite3.Connection) -> Entry | None:
            row = db.execute(
                f"SELECT value, {_INFO} FROM entries WHERE space = ? AND key = ?",  # noqa: S608 - constants
                (self._space, key),
            ).fetchone()
            return None if row is None else Entry(value=row[0], info=_info(row[1:]))

        return await self._run(query)

    async def write(self, write: Write) -> Written:
        """Store a value, recycling stashes where needed."""
        return await self._run(lambda db: self._in_transaction(db, lambda: self._write(db, write)))

    async def remove(self, key: str) -> bool:
        """Delete an entry; True if it was there."""

        def query(db: sqlite3.Connection) -> bool:
            cursor = db.execute("DELETE FROM entries WHERE space = ? AND key = ?", (self._space, key))
            return cursor.rowcount > 0

        return await self._run(query)

    async def entries(self) -> tuple[EntryInfo, ...]:
        """Return all entries of the space without their values."""
        return await self._run(self._infos)

    async def aclose(self) -> None:
        """Let go of the file, which is closed with its last user. Idempotent."""
        file, self._file = self._file, None
        if file is not None:
            await file.leave(self)

    def _infos(self, db: sqlite3.Connection) -> tuple[EntryInfo, ...]:
        rows = db.execute(
            f"SELECT {_INFO} FROM entries WHERE space = ?",  # noqa: S608 - a constant
            (self._space,),
        ).fetchall()
        return tuple(_info(row) for row in rows)

    def _write(self, db: sqlite3.Connection, write: Write) -> Written:
        evicted = plan_write(self._infos(db), write)
        value = write.value
        if write.how == "append":
            row = db.execute(
                "SELECT value FROM entries WHERE space = ? AND key = ?", (self._space, write.key)
            ).fetchone()
            value = (row[0] if row else "") + value
        db.executemany(
            "DELETE FROM entries WHERE space = ? AND key = ?", [(self._space, key) for key in evicted]
        )
        (version,) = db.execute(
            "INSERT INTO spaces (space, version) VALUES (?, 1)"
            " ON CONFLICT (space) DO UPDATE SET version = version + 1 RETURNING version",
            (self._space,),
        ).fetchone()
        info = info_after(write, value, version)
        db.execute(
            "INSERT OR REPLACE INTO entries (space, key, value, bytes, version, stash, writer, at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                self._space,
                info.key,
                value,
                info.value_bytes,
                info.version,
                info.stash,
                json.dumps(dict(info.writer)),
                info.at,
            ),
        )
        return Written(info=info, evicted=evicted)

    def _in_transaction(self, db: sqlite3.Connection, work: Callable[[], Result]) -> Result:
        db.execute("BEGIN IMMEDIATE")
        try:
            result = work()
        except BaseException:
            db.execute("ROLLBACK")
            raise
        db.execute("COMMIT")
        return result

    async def _run(self, query: Callable[[sqlite3.Connection], Result]) -> Result:
        if self._file is None:
            self._file = _File.of(self._path, self)
        return await self._file.run(query)


def _info(row: tuple[str, int, int, int, str, str]) -> EntryInfo:
    key, value_bytes, version, stash, writer, at = row
    return EntryInfo(
        key=key,
        value_bytes=value_bytes,
        version=version,
        stash=bool(stash),
        writer=json.loads(writer),
        at=at,
    )
