"""What a process asks of the Linux kernel about itself: Landlock, seccomp, capabilities, and small things.

Standard library only, and nothing is imported after a process is confined. On other systems only
`control_process` and `punch_hole` are called, and do nothing.

Source: Linux, Documentation/userspace-api/landlock.rst and include/uapi/linux/landlock.h
"""

import ctypes
import errno
import os
import stat
import struct
import sys

from agentctl.executor.supervisor_wire import Confinement

_LINUX = sys.platform == "linux"
_LIBC = ctypes.CDLL(None, use_errno=True)

_PR_SET_SECCOMP = 22
_PR_CAPBSET_DROP = 24
_PR_SET_NO_NEW_PRIVS = 38
_SECCOMP_MODE_FILTER = 2
_LAST_CAPABILITY = 63
_KEPT_CAPABILITIES = (0, 1, 3, 4)
"""CHOWN, DAC_OVERRIDE, FOWNER, FSETID: root works on others' files, where Landlock leaves them writable."""

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_RULE_PATH_BENEATH = 1
_GET_VERSION = 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_CHAR, _MAKE_BLOCK = 1 << 6, 1 << 11
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_ALL_FILES = (1 << 16) - 1
_ON_A_FILE = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_WRITE = _ALL_FILES & ~(_MAKE_CHAR | _MAKE_BLOCK | _IOCTL_DEV)
_ALL_NETWORK = 0b11
_ALL_SCOPES = 0b11
LANDLOCK_ABI_NEEDED = 6
"""The first one that keeps signals and abstract sockets in."""


def control_process(option: int, value: int) -> bool:
    """Call `prctl`; return whether it took effect."""
    return _LINUX and int(_LIBC.prctl(option, ctypes.c_ulong(value), 0, 0, 0)) == 0


def punch_hole(held: int, start: int, length: int) -> bool:
    """Give back a part of a file's disk space, its size unchanged; return whether the file system can."""
    if not _LINUX:
        return False
    keep_size_and_punch = 3
    result = _LIBC.fallocate(held, keep_size_and_punch, ctypes.c_long(start), ctypes.c_long(length))
    return int(result) == 0


def landlock_abi() -> int:
    """Return the version of Landlock this kernel has switched on, or 0."""
    if not _LINUX:
        return 0
    version = _LIBC.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint(_GET_VERSION))
    return max(0, int(version))


def confine(confinement: Confinement) -> None:
    """Hold this process and all it starts to what is listed; can't be undone.

    Raises:
        OSError: the kernel refused; the process must not go on.
    """
    _drop_capabilities()
    _check(_LIBC.prctl(_PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), 0, 0, 0))
    _restrict_files(confinement)
    _filter_calls(bytes.fromhex(confinement["filter_hex"]))


def _restrict_files(confinement: Confinement) -> None:
    network = 0 if confinement["network"] else _ALL_NETWORK
    attributes = struct.pack("=QQQ", _ALL_FILES, network, _ALL_SCOPES)
    ruleset = _check(
        _LIBC.syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint(0))
    )
    for path in confinement["readable"]:
        _allow(ruleset, path, _READ)
    for path in confinement["listable"]:
        _allow(ruleset, path, _READ_DIR)
    for path in confinement["writable"]:
        _allow(ruleset, path, _WRITE | (_IOCTL_DEV if path.startswith("/dev/") else 0))
    _check(_LIBC.syscall(_RESTRICT_SELF, ruleset, ctypes.c_uint(0)))
    os.close(ruleset)


def _allow(ruleset: int, path: str, access: int) -> None:
    try:
        # SAFETY: named by the sandbox policy; opened as a place only, neither read nor written.
        held = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        # What is not there can't be reached either.
        return
    if not stat.S_ISDIR(os.fstat(held).st_mode):
        access &= _ON_A_FILE
    rule = struct.pack("=Qi", access, held)
    _check(_LIBC.syscall(_ADD_RULE, ruleset, _RULE_PATH_BENEATH, rule, ctypes.c_uint(0)))
    os.close(held)


def _filter_calls(program: bytes) -> None:
    instructions = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(instructions))
    _check(_LIBC.prctl(_PR_SET_SECCOMP, ctypes.c_ulong(_SECCOMP_MODE_FILTER), header, 0, 0))


def _drop_capabilities() -> None:
    """Leave root with what work on files takes; the bounding set holds for everything it starts."""
    for capability in range(_LAST_CAPABILITY + 1):
        if capability not in _KEPT_CAPABILITIES:
            _LIBC.prctl(_PR_CAPBSET_DROP, ctypes.c_ulong(capability), 0, 0, 0)


def _check(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno() or errno.EPERM
        raise OSError(number, os.strerror(number))
    return result
