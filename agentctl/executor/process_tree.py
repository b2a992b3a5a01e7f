"""Who descends from whom. Standard library only: the supervisor of every command carries this."""

import os
import subprocess
from contextlib import suppress


def parents() -> dict[int, int]:
    """Return the parent of every process that can be seen."""
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


def descendants(ancestor: int) -> set[int]:
    """Return every process below one, itself not included; a dead one that nobody reaped is among them."""
    children: dict[int, list[int]] = {}
    for pid, parent in parents().items():
        children.setdefault(parent, []).append(pid)
    found: set[int] = set()
    waiting = [ancestor]
    while waiting:
        below = children.get(waiting.pop(), [])
        waiting += [pid for pid in below if pid not in found]
        found.update(below)
    return found
