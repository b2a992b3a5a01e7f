"""Shared state as files: one for each key, in a folder that the store owns alone.

A file begins with one line of JSON that says whose it is; the value follows. Writes go to a new file that
takes the old one's place, so a reader sees the old value or the new one. A link in the folder is refused.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import anyio
import anyio.to_thread

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

_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")
_LONGEST_NAME = 200
_LOCK = "lock"


def file_name(key: str) -> str:
    """Return the file name of a stored key. Pure; two keys never share one, whatever the disk folds.

    `k` and the key with all but plain ASCII as `%` and two digits, capitals as well, so that a disk that
    takes no notice of case keeps `A` and `a` apart; `h` and a hash where that would be too long.
    """
    name = "k" + "".join(
        chr(byte) if byte in _PLAIN and not chr(byte).isupper() else f"%{byte:02x}"
        for byte in key.encode("utf-8")
    )
    if len(name) <= _LONGEST_NAME:
        return name
    return "h" + hashlib.sha256(key.encode("utf-8")).hexdigest()


class FileBackend:
    """Implements `SharedStateBackend`, for the processes of one machine."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[str, tuple[tuple[int, int, int], EntryInfo]] = {}
        self._limiter = anyio.CapacityLimiter(1)

    async def get(self, key: str) -> Entry | None:
        """Return an entry, or None when it is absent."""
        return await self._run(lambda: self._get(key))

    async def write(self, write: Write) -> Written:
        """Store a value, recycling stashes where needed."""
        return await self._run(lambda: self._write(write))

    async def remove(self, key: str) -> bool:
        """Delete an entry; True if it was there."""
        return await self._run(lambda: self._remove(key))

    async def entries(self) -> tuple[EntryInfo, ...]:
        """Return all entries without their values."""
        return await self._run(self._infos)

    async def aclose(self) -> None:
        """Do nothing: no file stays open."""

    def _get(self, key: str) -> Entry | None:
        try:
            header, value = _read(self._folder / file_name(key))
        except FileNotFoundError:
            return None
        return Entry(value=value, info=_info(header))

    def _write(self, write: Write) -> Written:
        with self._locked():
            infos = self._infos()
            evicted = plan_write(infos, write)
            before = self._get(write.key)
            value = before.value + write.value if before and write.how == "append" else write.value
            version = max([self._last_version(), *(info.version for info in infos)]) + 1
            info = info_after(write, value, version)
            # The new value first: a crash between leaves too much, never too little.
            _replace(self._folder / file_name(write.key), info, value)
            _replace_text(self._folder / "version", str(version))
            for key in evicted:
                (self._folder / file_name(key)).unlink(missing_ok=True)
            return Written(info=info, evicted=evicted)

    def _remove(self, key: str) -> bool:
        if not self._folder.is_dir():
            return False
        with self._locked():
            path = self._folder / file_name(key)
            found = path.exists()
            path.unlink(missing_ok=True)
            return found

    def _infos(self) -> tuple[EntryInfo, ...]:
        known: dict[str, tuple[tuple[int, int, int], EntryInfo]] = {}
        try:
            listing = os.scandir(self._folder)
        except FileNotFoundError:
            return ()
        with listing:
            for item in listing:
                if item.name[0] not in "kh":
                    continue
                stat = item.stat(follow_symlinks=False)
                mark = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
                before = self._known.get(item.name)
                if before is not None and before[0] == mark:
                    known[item.name] = before
                    continue
                with contextlib.suppress(FileNotFoundError):  # recycled by another process meanwhile
                    known[item.name] = (mark, _info(_read_header(Path(item.path))))
        self._known = known
        return tuple(info for _, info in known.values())

    def _last_version(self) -> int:
        try:
            return int((self._folder / "version").read_text(encoding="ascii"))
        except FileNotFoundError:
            return 0

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (self._folder / _LOCK).open("a", encoding="ascii") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    async def _run(self, work: Callable[[], Result]) -> Result:
        def run() -> Result:
            try:
                return work()
            except (OSError, ValueError) as error:
                raise StoreUnreadable(f"shared state in {str(self._folder)!r}: {error}") from error

        # Shielded: a write that was begun is told about, not left to guess.
        with anyio.CancelScope(shield=True):
            result = await anyio.to_thread.run_sync(run, limiter=self._limiter)
        return result  # noqa: RET504 - mypy takes a scope for one that may swallow what is raised


def _open(path: Path) -> int:
    # SAFETY: the name is an encoded key without separators, in our own folder; a link there is refused.
    return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)


def _read(path: Path) -> tuple[str, str]:
    with os.fdopen(_open(path), "r", encoding="utf-8", newline="") as file:
        header, _, value = file.read().partition("\n")
    return header, value


def _read_header(path: Path) -> str:
    with os.fdopen(_open(path), "r", encoding="utf-8", newline="") as file:
        return file.readline()


def _replace(path: Path, info: EntryInfo, value: str) -> None:
    header = {
        "key": info.key,
        "bytes": info.value_bytes,
        "version": info.version,
        "stash": info.stash,
        "writer": dict(info.writer),
        "at": info.at,
    }
    _replace_text(path, f"{json.dumps(header)}\n{value}")


def _replace_text(path: Path, text: str) -> None:
    descriptor, temporary = tempfile.mkstemp(prefix="new-", dir=path.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _info(header: str) -> EntryInfo:
    fields = json.loads(header)
    return EntryInfo(
        key=str(fields["key"]),
        value_bytes=int(fields["bytes"]),
        version=int(fields["version"]),
        stash=bool(fields["stash"]),
        writer={str(name): str(value) for name, value in fields["writer"].items()},
        at=str(fields["at"]),
    )
