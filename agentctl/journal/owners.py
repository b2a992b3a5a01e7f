"""Which process is alive: each holds a lock on a file of its own, which the system lets go of when it dies.

So a lease needs no clock: a process that was killed has lost its leases at once, one that only sleeps keeps
them. Works between processes of one machine.
"""

import fcntl
import json
import os
import secrets
import time
from pathlib import Path

_STALE_AFTER_S = 60.0


class Owner:
    """This process's mark of life."""

    def __init__(self, folder: Path) -> None:
        """Make the mark in `folder`, and sweep away those of processes that died."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _sweep(folder)
        self._folder = folder
        self.name = f"{os.getpid()}-{secrets.token_hex(6)}"
        self._path = folder / f"{self.name}.lock"
        # Not inherited by programs we start (Python's default), else they would keep our leases alive.
        self._file = self._path.open("x", encoding="utf-8")
        fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        json.dump({"pid": os.getpid()}, self._file)
        self._file.flush()

    def is_alive(self, name: str) -> bool:
        """Whether the process of that mark lives."""
        return name == self.name or _is_locked(self._folder / f"{name}.lock")

    def pid_of(self, name: str) -> str:
        """Return the process id of a mark, for messages."""
        return name.partition("-")[0]

    def close(self) -> None:
        """Take the mark away. Idempotent."""
        if not self._file.closed:
            self._path.unlink(missing_ok=True)
            self._file.close()


def _is_locked(path: Path) -> bool:
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return False
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _sweep(folder: Path) -> None:
    for path in folder.glob("*.lock"):
        try:
            # A new mark is made before it is locked: leave young ones alone.
            if time.time() - path.stat().st_mtime > _STALE_AFTER_S and not _is_locked(path):
                path.unlink()
        except FileNotFoundError:
            continue
