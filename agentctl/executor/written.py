"""Keeps count of what commands wrote, and leaves out what agentctl wrote itself."""

import os
from collections import ChainMap, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import field, replace
from pathlib import Path
from threading import Lock

from agentctl.executor.api import WorkdirChange, WorkdirState
from agentctl.executor.measure import (
    DiskFacts,
    FileKey,
    RootState,
    any_change_seen,
    compare,
    now_ns,
    take_state,
)
from agentctl.executor.prepare import output_directory
from agentctl.records import dataclass

_NOTHING = WorkdirChange(counted_bytes=0, files=0, paths=())
_REMEMBERED_ROOTS = 64
_REMEMBERED_WRITES = 10_000


@dataclass(slots=True)
class _Activity:
    """What is known of the commands of one workdir."""

    running: int = 0
    wrote: int = 0
    """How often something ended that may have written."""
    own: OrderedDict[bytes, FileKey] = field(default_factory=OrderedDict)
    """Files that agentctl wrote, as it left them."""


class WriteLedger:
    """The workdirs of all runs of a process. Thread-safe; methods that walk block, the rest does not."""

    def __init__(self) -> None:
        self._disks = DiskFacts()
        self._states: OrderedDict[Path, RootState] = OrderedDict()
        self._activities: OrderedDict[Path, _Activity] = OrderedDict()
        self._lock = Lock()

    @contextmanager
    def running(self, workdir: Path) -> Iterator[Callable[[int], None]]:
        """Note that a command runs; what is given takes the blocks that the kernel counted for it.

        Without such a word the command counts as one that wrote.
        """
        blocks = [1]
        self.begun(workdir)
        try:
            yield lambda count: blocks.__setitem__(0, count)
        finally:
            self.ended(workdir, wrote=bool(blocks[0]) or not self._disks.counts_writes(workdir))

    def begun(self, workdir: Path) -> None:
        """Note that something began that may write until `ended` is told."""
        with self._lock:
            self._activity(workdir).running += 1

    def ended(self, workdir: Path, *, wrote: bool = True) -> None:
        """Note that it ended."""
        with self._lock:
            activity = self._activity(workdir)
            activity.running -= 1
            activity.wrote += wrote

    def leave_out(self, root: Path, path: Path) -> None:
        """Note a file under a workdir or temp folder as it now stands as agentctl's own."""
        try:
            status = os.lstat(path)
        except OSError:
            return
        key = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        with self._lock:
            own = self._activity(root).own
            own[os.fsencode(path)] = key
            if len(own) > _REMEMBERED_WRITES:
                own.popitem(last=False)

    def measure(self, workdir: Path, temp: Path, checkpoint: Callable[[], None]) -> WorkdirState:
        """Return the state to compare with later; walks only where none is known yet."""
        states = []
        for root in _roots(workdir, temp):
            known = self._states.get(root)
            if known is None or not self._disks.clock_is_ours(root):
                known = self._walk(root, temp, checkpoint)
            states.append(known)
        with self._lock:
            mark = self._activity(workdir).wrote
        return replace(_together(states), taken_ns=now_ns(), quiet_mark=mark)

    def changed_since(
        self, before: WorkdirState, workdir: Path, temp: Path, checkpoint: Callable[[], None]
    ) -> WorkdirChange:
        """Return what commands changed since a state; walks unless it is certain that nothing did."""
        with self._lock:
            activity = self._activity(workdir)
            quiet = activity.running == 0 and activity.wrote == before.quiet_mark
            own = {**activity.own, **self._activity(temp).own}
        if quiet and not any_change_seen(before, own):
            return _NOTHING
        roots = _roots(workdir, temp)
        after = _together([self._walk(root, temp, checkpoint) for root in roots])
        own_clock = all(self._disks.clock_is_ours(root) for root in roots)
        change = compare(before if own_clock else replace(before, taken_ns=0), after, own)
        with self._lock:
            for path in [path for path, key in activity.own.items() if after.files.get(path) != key]:
                del activity.own[path]
        return change

    def _walk(self, root: Path, temp: Path, checkpoint: Callable[[], None]) -> RootState:
        state = take_state(root, (output_directory(temp),), checkpoint)
        with self._lock:
            self._states[root] = state
            self._states.move_to_end(root)
            if len(self._states) > _REMEMBERED_ROOTS:
                self._states.popitem(last=False)
        return state

    def _activity(self, workdir: Path) -> _Activity:
        return self._activities.setdefault(workdir, _Activity())


def _roots(workdir: Path, temp: Path) -> tuple[Path, ...]:
    """Return the places whose files count, each file once."""
    if temp.is_relative_to(workdir):
        return (workdir,)
    return (temp,) if workdir.is_relative_to(temp) else (workdir, temp)


def _together(states: list[RootState]) -> WorkdirState:
    return WorkdirState(
        files=ChainMap(*(state.files for state in states)),
        complete=all(state.complete for state in states),
        directories=ChainMap(*(state.directories for state in states)),
        recent=tuple(path for state in states for path in state.recent),
        taken_ns=min(state.taken_ns for state in states),
    )
