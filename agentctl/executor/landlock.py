"""A sandbox of Landlock and seccomp, for Linux where bubblewrap can't start.

Landlock only grants. What is hidden is left out by granting its neighbours one by one; git's own files inside
a writable workdir can't be held, and are compared and put back after the command.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from agentctl.executor.confine import LANDLOCK_ABI_NEEDED, landlock_abi
from agentctl.executor.sandbox_places import Places
from agentctl.executor.supervisor_wire import Confinement

# Not /dev/pts: there a command could write on a person's own terminal, and read what is typed at it.
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")
_MOST_NEIGHBOURS = 20_000


def landlock_available() -> bool:
    """Tell whether this kernel's Landlock keeps in all that it has to."""
    return landlock_abi() >= LANDLOCK_ABI_NEEDED


def landlock_confinement(places: Places, *, network: bool, program: bytes) -> Confinement:
    """Return what a command's own process sets on itself. Looks at the file system; blocks."""
    left_out = (*places.hidden, *places.emptied, Path("/dev"))
    readable: list[str] = []
    listable: list[str] = []
    if places.everything:
        _grant_around(Path("/"), left_out, readable, listable)
    for place in (*places.readable, *places.writable):
        _grant_around(place, places.hidden, readable, listable)
    writable: list[str] = []
    for place in places.writable:
        _grant_around(place, places.hidden, writable, listable)
    return Confinement(
        readable=readable,
        listable=listable,
        writable=[*writable, *_DEVICES],
        network=network,
        filter_hex=program.hex(),
    )


def _grant_around(place: Path, left_out: Sequence[Path], granted: list[str], listable: list[str]) -> None:
    """Grant a place, or all in it but what is left out. Links are passed over: they'd grant their target."""
    if place in left_out:
        return
    if not any(hidden.is_relative_to(place) for hidden in left_out):
        granted.append(str(place))
        return
    listable.append(str(place))
    try:
        with os.scandir(place) as entries:
            inner = [Path(entry.path) for entry in entries if not entry.is_symlink()]
    except OSError:
        return
    for child in inner[:_MOST_NEIGHBOURS]:
        _grant_around(child, left_out, granted, listable)
