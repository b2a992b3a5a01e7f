"""The seccomp program of a sandbox: system calls that no file rule or namespace holds. Pure.

It refuses Unix sockets (a socket file on a read-only disk can still be connected to), reading the memory of
other processes, io_uring (which would go round this filter), keyrings, bpf, mounts, new user namespaces,
terminal injection, and every system call of another architecture.

Source: Linux, Documentation/userspace-api/seccomp_filter.rst
"""

import platform
import struct

from agentctl.records import dataclass

_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_IF_SET, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_EPERM, _ENOSYS = 1, 38
_AT_NUMBER, _AT_ARCHITECTURE, _AT_FIRST, _AT_SECOND = 0, 4, 16, 24
_NEW_USER_NAMESPACE = 0x10000000
_X32 = 0x40000000
_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK = 1, 2, 10, 16
_TERMINAL_INJECTION = (0x5412, 0x541C)
# Calls since Linux 5.1 have one number everywhere: io_uring, mounts by descriptor, pidfd_getfd.
_EVERYWHERE = (425, 426, 427, 428, 429, 430, 431, 432, 433, 438, 442)
_CLONE3 = 435


@dataclass(frozen=True, slots=True, kw_only=True)
class _Architecture:
    audit: int
    denied: tuple[int, ...]
    socket: int
    ioctl: int
    clone: int
    unshare: int


_ARCHITECTURES = {
    "x86_64": _Architecture(
        audit=0xC000003E,
        denied=(
            101, 310, 311,  # ptrace, process_vm_readv, process_vm_writev
            248, 249, 250,  # add_key, request_key, keyctl
            298, 321, 323,  # perf_event_open, bpf, userfaultfd
            165, 166, 155, 308, 304,  # mount, umount2, pivot_root, setns, open_by_handle_at
            175, 313, 176, 246, 320,  # init_module, finit_module, delete_module, kexec_load, kexec_file_load
            167, 168, 169, 163, 179, 153, 103,  # swapon, swapoff, reboot, acct, quotactl, vhangup, syslog
        ),
        socket=41, ioctl=16, clone=56, unshare=272,
    ),
    "aarch64": _Architecture(
        audit=0xC00000B7,
        denied=(
            117, 270, 271, 217, 218, 219, 241, 280, 282, 40, 39, 41, 268, 265, 105, 273, 106, 104, 294,
            224, 225, 142, 89, 60, 58, 116,
        ),
        socket=198, ioctl=29, clone=220, unshare=97,
    ),
}  # fmt: skip


def call_filter(*, internet: bool, unix_sockets: bool) -> bytes | None:
    """Return the program for this machine, or None where its architecture is not known.

    `internet` allows TCP and UDP sockets; inside a network namespace of its own that is harmless.
    """
    machine = _ARCHITECTURES.get(platform.machine())
    if machine is None:
        return None
    domains = [_AF_NETLINK]
    domains += [_AF_INET, _AF_INET6] if internet else []
    domains += [_AF_UNIX] if unix_sockets else []
    program = [
        *_unless(_AT_ARCHITECTURE, machine.audit, _EPERM),
        _step(_LOAD, _AT_NUMBER),
        _step(_JUMP_AT_LEAST, _X32, 0, 1),
        _refuse(_EPERM),
    ]
    for number in (*machine.denied, *_EVERYWHERE):
        program += [_step(_JUMP_EQUAL, number, 0, 1), _refuse(_EPERM)]
    # Its flags lie in memory that a filter can't read; told that it does not exist, programs use clone.
    program += [_step(_JUMP_EQUAL, _CLONE3, 0, 1), _refuse(_ENOSYS)]
    for number in (machine.clone, machine.unshare):
        program += _on_call(number, [*_if_flag(_AT_FIRST, _NEW_USER_NAMESPACE)])
    program += _on_call(machine.ioctl, _if_one_of(_AT_SECOND, _TERMINAL_INJECTION))
    program += _on_call(machine.socket, _unless_one_of(_AT_FIRST, domains))
    program.append(_step(_RETURN, _ALLOW))
    return b"".join(program)


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _refuse(number: int) -> bytes:
    return _step(_RETURN, _ERRNO | number)


def _unless(offset: int, value: int, error: int) -> list[bytes]:
    return [_step(_LOAD, offset), _step(_JUMP_EQUAL, value, 1, 0), _refuse(error)]


def _on_call(number: int, body: list[bytes]) -> list[bytes]:
    """Run a body for one call; it loads an argument, so the call's number is loaded again after it."""
    return [_step(_JUMP_EQUAL, number, 0, len(body) + 1), *body, _step(_LOAD, _AT_NUMBER)]


def _if_flag(offset: int, flag: int) -> list[bytes]:
    return [_step(_LOAD, offset), _step(_JUMP_IF_SET, flag, 0, 1), _refuse(_EPERM)]


def _if_one_of(offset: int, values: tuple[int, ...]) -> list[bytes]:
    body = [_step(_LOAD, offset)]
    for value in values:
        body += [_step(_JUMP_EQUAL, value, 0, 1), _refuse(_EPERM)]
    return body


def _unless_one_of(offset: int, values: list[int]) -> list[bytes]:
    body = [_step(_LOAD, offset)]
    body += [_step(_JUMP_EQUAL, value, len(values) - at, 0) for at, value in enumerate(values)]
    return [*body, _refuse(_EPERM)]
