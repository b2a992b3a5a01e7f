"""Files of the user's that agentctl changes: under a lock, whole or not at all."""

import contextlib
import fcntl
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from agentctl.errors import StateConflict, UsageError, file_fault

LOCK_TIMEOUT_S = 10.0
"""Seconds to wait for another process that is changing the same file."""

_POLL_S = 0.02


@contextlib.contextmanager
def locked(file: Path, *, timeout_s: float = LOCK_TIMEOUT_S) -> Iterator[None]:
    """Hold the lock of `file`, making its folder where needed. May block for `timeout_s` seconds.

    The lock is on a file beside it, since `file` itself is replaced by each change.

    Raises:
        StateConflict: another process has held the lock all the time.
        UsageError: the folder can't be written.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(
            file.with_name(f".{file.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
        )
    except OSError as error:
        raise UsageError(f"{str(file)!r} can't be changed: {file_fault(error)}.") from None
    try:
        _acquire(descriptor, file, timeout_s)
        yield
    finally:
        os.close(descriptor)  # lets go of the lock


def replace_file(file: Path, text: str) -> None:
    """Make `text` the content of `file`. Atomic and durable: a crash leaves the old content or the new.

    A link stays a link; a file keeps its mode, a new one can be read by its owner alone.

    Raises:
        UsageError: it can't be written; the old content is intact.
    """
    target = file.resolve()
    try:
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o600
        descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".new")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as written:
                written.write(text)
                written.flush()
                os.fchmod(written.fileno(), mode)
                os.fsync(written.fileno())
            Path(name).replace(target)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
        _sync_folder(target.parent)
    except OSError as error:
        raise UsageError(f"{str(file)!r} can't be written: {file_fault(error)}.") from None


def _acquire(descriptor: int, file: Path, timeout_s: float) -> None:
    end = time.monotonic() + timeout_s
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= end:
                raise StateConflict(
                    f"{str(file)!r} is being changed by another process; try again."
                ) from None
            time.sleep(_POLL_S)
        else:
            return


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
