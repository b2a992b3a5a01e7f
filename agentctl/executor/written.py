"""Keeps count of what a run's commands wrote, and leaves out what agentctl wrote itself."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from agentctl.executor.api import WorkdirChange, WorkdirState
from agentctl.executor.machine import Machine
from agentctl.executor.measure import FileKey, any_change_seen, compare, now_ns, take_state
from agentctl.executor.prepare import output_directory

_NOTHING = WorkdirChange(counted_bytes=0, files=0, paths=())


class WriteLedger:
    """One run's view of its workdir's files. Methods that walk block; the rest does not."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._own: dict[bytes, FileKey] = {}
        self._running = 0
        self._wrote = 0

    @contextmanager
    def running(self, place: Path) -> Iterator[Callable[[int], None]]:
        """Note that a command runs; what is given takes the blocks that the kernel counted for it.

        Without such a word the command counts as one that wrote.
        """
        blocks = [1]
        self._running += 1
        try:
            yield lambda count: blocks.__setitem__(0, count)
        finally:
            self._running -= 1
            if blocks[0] or not self._machine.disks.counts_writes(place):
                self._wrote += 1

    def background(self, change: int) -> None:
        """Note that a background process began (1) or ended (-1)."""
        self._running += change
        self._wrote += 1

    def leave_out(self, path: Path) -> None:
        """Note a file as it now stands as agentctl's own."""
        try:
            status = os.lstat(path)
        except OSError:
            return
        key = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        self._own[os.fsencode(path)] = key

    def measure(self, roots: tuple[Path, ...], temp: Path, checkpoint: Callable[[], None]) -> WorkdirState:
        """Return the state to compare with later; walks only where none is known yet."""
        known = self._machine.states.get(roots)
        if known is None or not self._own_clock(roots):
            known = take_state(roots, (output_directory(temp),), checkpoint)
            self._machine.states[roots] = known
        return replace(known, taken_ns=now_ns(), quiet_mark=self._wrote)

    def changed_since(
        self, before: WorkdirState, roots: tuple[Path, ...], temp: Path, checkpoint: Callable[[], None]
    ) -> WorkdirChange:
        """Return what commands changed since a state; walks unless it is certain that nothing did."""
        quiet = self._running == 0 and self._wrote == before.quiet_mark
        if quiet and not any_change_seen(before, self._own):
            return _NOTHING
        after = take_state(roots, (output_directory(temp),), checkpoint)
        self._machine.states[roots] = after
        change = compare(before if self._own_clock(roots) else replace(before, taken_ns=0), after, self._own)
        self._own = {path: key for path, key in self._own.items() if after.files.get(path) == key}
        return change

    def _own_clock(self, roots: tuple[Path, ...]) -> bool:
        return all(self._machine.disks.clock_is_ours(root) for root in roots)
