"""What commands wrote: the workdir before and after, for write budgets.

A file made or replaced counts its size, a file changed in place its growth, one that was only renamed or
linked nothing, and each one counts as a file.
The state before is the last one known, and of what changed since only that counts which changed after the
command began: so one walk a command is enough, and none where the kernel counted no write and no directory
changed.
"""

import os
import stat
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from agentctl.executor.api import WorkdirChange, WorkdirState
from agentctl.executor.paths import shown_name
from agentctl.records import dataclass

MAX_FILES = 1_000_000
_NAMED = 100
_WALK_INSTEAD = 2000
"""To look at so many files one by one costs as much as a walk."""
_MAY_BE_DIRTY_NS = 600_000_000_000
_CLOCK_STEP_NS = 20_000_000
"""File times advance in steps of the kernel's tick; so much earlier than now can a change look."""
_OWN_CLOCK = frozenset({"ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "zfs", "overlay", "tmpfs"})
_COUNTED_WRITES = frozenset({"ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs"})

FileKey = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class RootState:
    """What stood under one root; see `WorkdirState`."""

    files: dict[bytes, FileKey]
    directories: dict[bytes, int]
    recent: tuple[bytes, ...]
    complete: bool
    taken_ns: int


def take_state(root: Path, left_out: Iterable[Path], checkpoint: Callable[[], None]) -> RootState:
    """Return the files and directories under a root as they stand, without what is under `left_out`.

    Links are not followed. Blocks.
    """
    passed_over = {os.fsencode(place) for place in left_out}
    files: dict[bytes, FileKey] = {}
    recent: list[bytes] = []
    directories: dict[bytes, int] = {}
    taken = now_ns()
    waiting = [os.fsencode(root)]
    while waiting and len(files) <= MAX_FILES:
        checkpoint()
        place = waiting.pop()
        try:
            directories[place] = os.lstat(place).st_mtime_ns
            # SAFETY: only names and sizes are read; nothing is opened but directories under the root.
            with os.scandir(place) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        if entry.path not in passed_over:
                            waiting.append(entry.path)
                        continue
                    key = files[entry.path] = _key(entry.stat(follow_symlinks=False))
                    if key[3] > taken - _MAY_BE_DIRTY_NS:
                        recent.append(entry.path)
        except OSError:
            # It went away meanwhile, or may not be read, and then not by a command either.
            continue
    return RootState(
        files=files,
        directories=directories,
        recent=tuple(recent),
        complete=not waiting,
        taken_ns=taken,
    )


def compare(before: WorkdirState, after: WorkdirState, own: Mapping[bytes, FileKey]) -> WorkdirChange:
    """Return what changed after `before.taken_ns`; what agentctl itself wrote (`own`) is left out. Pure."""
    since = before.taken_ns - _CLOCK_STEP_NS
    counted = 0
    changed: list[bytes] = []
    stood = _Stood(before.files)
    for path, key in after.files.items():
        old = before.files.get(path)
        if key == old or key[3] < since or own.get(path) == key:
            continue
        changed.append(path)
        inode, size = key[:2]
        if old is not None and old[0] == inode:
            counted += max(0, size - old[1])
        elif key[2] > before.taken_ns or key[:3] not in stood:
            counted += size
    if after.complete and before.complete:
        gone = before.files.keys() - after.files.keys()
        changed += [path for path in gone if _changed_directory(path.rpartition(b"/")[0], after, since)]
    return WorkdirChange(
        counted_bytes=counted,
        files=len(changed),
        paths=tuple(shown_name(path) for path in sorted(changed)[:_NAMED]),
    )


class _Stood:
    """The contents that stood somewhere before: inode, size and time of content, by which a move is told.

    The inode alone would not do: a disk gives a freed one to the next file that is made.
    """

    def __init__(self, files: Mapping[bytes, FileKey]) -> None:
        self._files = files
        self._known: set[tuple[int, ...]] | None = None

    def __contains__(self, content: tuple[int, ...]) -> bool:
        if self._known is None:
            self._known = {key[:3] for key in self._files.values()}
        return content in self._known


def any_change_seen(before: WorkdirState, own: Mapping[bytes, FileKey]) -> bool:
    """Tell whether a name came or went, or a file changed that changed shortly before. Blocks.

    With no write counted by the kernel, these are all the changes there can be: it counts a write when that
    makes a page of a file dirty, and only files that were written lately have dirty pages already.
    """
    if len(before.recent) > _WALK_INSTEAD:
        return True
    lately = {path: before.files.get(path) for path in before.recent}
    if any(_now(path) != key for path, key in {**lately, **own}.items() if key is not None):
        return True
    since = before.taken_ns - _CLOCK_STEP_NS
    for place, known in before.directories.items():
        try:
            found = os.lstat(place).st_mtime_ns
        except OSError:
            return True
        if found != known and found >= since:
            return True
    return False


def _changed_directory(place: bytes, after: WorkdirState, since: int) -> bool:
    return after.directories.get(place, since) >= since


def _now(path: bytes) -> FileKey | None:
    try:
        return _key(os.lstat(path))
    except OSError:
        return None


def _key(status: os.stat_result) -> FileKey:
    size = status.st_size if stat.S_ISREG(status.st_mode) else 0
    return status.st_ino, size, status.st_mtime_ns, status.st_ctime_ns


def now_ns() -> int:
    """Return the time by the clock that file times are taken from."""
    clock = getattr(time, "CLOCK_REALTIME_COARSE", time.CLOCK_REALTIME)
    return time.clock_gettime_ns(clock)


class DiskFacts:
    """What is known of the file systems that directories are on. Thread-safe."""

    def __init__(self) -> None:
        self._kinds: dict[int, str] = {}

    def clock_is_ours(self, place: Path) -> bool:
        """Tell whether files there get this machine's time."""
        return self._kind(place) in _OWN_CLOCK

    def counts_writes(self, place: Path) -> bool:
        """Tell whether the kernel counts a process's writes there."""
        return self._kind(place) in _COUNTED_WRITES

    def _kind(self, place: Path) -> str:
        try:
            device = os.stat(place).st_dev
        except OSError:
            return ""
        if device not in self._kinds:
            self._kinds[device] = _kind_of_device(device)
        return self._kinds[device]


def _kind_of_device(device: int) -> str:
    wanted = f"{os.major(device)}:{os.minor(device)}"
    try:
        # SAFETY: a fixed name.
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                before, _, after = line.partition(" - ")
                if before.split()[2] == wanted:
                    return after.split()[0]
    except OSError:
        return ""
    return ""


def free_bytes(path: Path) -> int:
    """Return what an ordinary user may still write where a path is, or would be. Blocks."""
    place = path
    while True:
        try:
            found = os.statvfs(place)
        except OSError:
            # Not there, under a file, or a name that no disk takes: the write itself will say so.
            if place == place.parent:
                raise
            place = place.parent
        else:
            return found.f_bavail * found.f_frsize
