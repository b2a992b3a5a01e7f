"""What makes a directory the same one: device, number and birth, since numbers are given out again."""

import ctypes
import os
import struct
import sys
from pathlib import Path

_STATX_BTIME = 0x800
_AT_FDCWD = -100
_BUFFER = 256
_LIBC = ctypes.CDLL(None)
# struct statx: mask, block size, attributes, links, uid, gid, mode, number, size, blocks, attribute mask, and
# the times as seconds and nanoseconds: access, birth, change, modification.
_BORN = struct.Struct("=qI")
_MASK_AT, _BORN_AT = 0, 80

Identity = tuple[int, int, int]
"""Device, number, and birth in nanoseconds, or 0 where the file system does not know it."""


def identity(place: Path) -> Identity | None:
    """Return what a path leads to, links followed, or None when nothing is there. May block."""
    try:
        found = os.stat(place)
    except OSError:
        return None
    return found.st_dev, found.st_ino, _born(place, found)


def _born(place: Path, found: os.stat_result) -> int:
    if sys.platform == "darwin":
        return int(found.st_birthtime * 1_000_000_000)
    if sys.platform != "linux":
        return 0
    buffer = ctypes.create_string_buffer(_BUFFER)
    if _LIBC.statx(_AT_FDCWD, os.fsencode(place), 0, ctypes.c_uint(_STATX_BTIME), buffer) != 0:
        return 0
    (mask,) = struct.unpack_from("=I", buffer, _MASK_AT)
    if not mask & _STATX_BTIME:
        return 0
    seconds, nanoseconds = _BORN.unpack_from(buffer, _BORN_AT)
    return int(seconds) * 1_000_000_000 + int(nanoseconds)
