"""Who descends from whom. Standard library only: the supervisor of every command carries this."""

import os
import subprocess
from collections.abc import Callable
from contextlib import suppress


def descendants(ancestor: int) -> set[int]:
    """Return every process below one, itself not included; a dead one that nobody reaped is among them."""
    children = _finder()
    found: set[int] = set()
    waiting = [ancestor]
    while waiting:
        below = [pid for pid in children(waiting.pop()) if pid not in found]
        waiting += below
        found.update(below)
    return found


def _finder() -> Callable[[int], list[int]]:
    """Return how children are found here: told by the kernel where it does, else from all processes."""
    me = os.getpid()
    if os.access(f"/proc/{me}/task/{me}/children", os.R_OK):
        return _told
    by_parent: dict[int, list[int]] = {}
    for pid, parent in _parents().items():
        by_parent.setdefault(parent, []).append(pid)
    return lambda pid: by_parent.get(pid, [])


def _told(pid: int) -> list[int]:
    found: list[int] = []
    with suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            # SAFETY: process and thread numbers from /proc itself.
            with suppress(OSError), open(f"/proc/{pid}/task/{task}/children", "rb") as file:
                found += [int(child) for child in file.read().split()]
    return found


def _parents() -> dict[int, int]:
    if not os.access("/proc/self/stat", os.R_OK):
        return _parents_by_ps()
    found: dict[int, int] = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        with suppress(OSError, ValueError):
            # SAFETY: a process number from /proc itself.
            with open(f"/proc/{name}/stat", "rb") as file:
                # The second field is a name in brackets, which may hold anything; the parent comes second
                # after it.
                fields = file.read().rpartition(b")")[2].split()
            found[int(name)] = int(fields[1])
    return found


def _parents_by_ps() -> dict[int, int]:
    # SAFETY: a fixed command without any input.
    said = subprocess.run(["/bin/ps", "-axo", "pid=,ppid="], capture_output=True, check=False).stdout
    numbers = [int(word) for word in said.split()]
    return dict(zip(numbers[::2], numbers[1::2], strict=True))
