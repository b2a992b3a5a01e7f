"""Runs inside a sandbox and tries to get out: one word for each attempt, as JSON. Standard library only."""

import contextlib
import ctypes
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

LIBC = ctypes.CDLL(None, use_errno=True)
MS_REMOUNT, MS_BIND = 32, 4096
CLONE_NEWUSER = 0x10000000
PTRACE_ATTACH = 16


def _call(result: int) -> None:
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _socket(kind: int, family: int, address: object) -> None:
    with socket.socket(family, kind) as held:
        held.settimeout(2)
        held.connect(address)  # type: ignore[arg-type]
        held.send(b"hello")


def _append(path: str) -> None:
    with Path(path).open("a") as file:
        file.write("x")


def _through_symlink(outside: str) -> None:
    Path("way-out").symlink_to(outside)
    _append("way-out/by-symlink")


def _through_hard_link(outside: str) -> None:
    os.link(f"{outside}/secret", "hard")
    _append("hard")


def _read(path: str) -> None:
    if not Path(path).read_bytes():
        raise OSError("empty")


def _move_git_away() -> None:
    Path(".git").rename("old-git")
    Path(".git/hooks").mkdir(parents=True)


def _pool() -> None:
    program = "import multiprocessing as m; p = m.Pool(1); p.map(abs, [1]); p.close(); p.join()"
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, timeout=10)


def _git(*words: str) -> None:
    subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], check=True, capture_output=True
    )


def attempts(known: dict[str, str]) -> dict[str, Callable[[], object]]:
    outside, home, host = known["outside"], known["home"], int(known["pid"])
    return {
        "commit": lambda: _git("commit", "--allow-empty", "-q", "-m", "x"),
        "status": lambda: _git("status"),
        "write in the workdir": lambda: _append("made"),
        "write in the temp folder": lambda: _append(f"{os.environ['TMPDIR']}/made"),
        "write beside the workdir": lambda: _append(f"{outside}/made"),
        "write in /etc": lambda: _append("/etc/agentctl-was-here"),
        "write in the home directory": lambda: _append(f"{home}/.bashrc"),
        "write through a symlink": lambda: _through_symlink(outside),
        "write through a hard link": lambda: _through_hard_link(outside),
        "read an ordinary file outside": lambda: _read(f"{outside}/secret"),
        "read ~/.ssh": lambda: _read(f"{home}/.ssh/id"),
        "read ~/.netrc": lambda: _read(f"{home}/.netrc"),
        "connect by TCP": lambda: _socket(
            socket.SOCK_STREAM, socket.AF_INET, ("127.0.0.1", int(known["tcp"]))
        ),
        "send by UDP": lambda: _socket(socket.SOCK_DGRAM, socket.AF_INET, ("127.0.0.1", int(known["udp"]))),
        "connect to an abstract socket": lambda: _socket(
            socket.SOCK_STREAM, socket.AF_UNIX, f"\0{known['abstract']}"
        ),
        "connect to a socket file": lambda: _socket(socket.SOCK_STREAM, socket.AF_UNIX, known["socket"]),
        "signal a process outside": lambda: os.kill(host, 0),
        "read a process outside": lambda: _read(f"/proc/{host}/environ"),
        "trace a process": lambda: _call(LIBC.ptrace(PTRACE_ATTACH, os.getppid(), None, None)),
        "mount": lambda: _call(LIBC.mount(b"none", b"/mnt", b"tmpfs", 0, None)),
        "remount the root": lambda: _call(LIBC.mount(None, b"/", None, MS_REMOUNT | MS_BIND, None)),
        "take a mask off": lambda: _call(LIBC.umount2(f"{home}/.ssh".encode(), 2)),
        "make a user namespace": lambda: _call(LIBC.unshare(CLONE_NEWUSER)),
        "write a hook": lambda: _append(".git/hooks/pre-commit"),
        "write git's configuration": lambda: _append(".git/config"),
        "put another .git in place": _move_git_away,
        "run python": lambda: subprocess.run(
            [sys.executable, "-c", "print(1)"], check=True, capture_output=True
        ),
        "use a pool of processes": _pool,
    }


def main() -> None:
    known = json.loads(sys.argv[1])
    results: dict[str, str] = {}
    for name, attempt in attempts(known).items():
        if known["only"] and name not in known["only"].split(";"):
            continue
        try:
            attempt()
        except (OSError, subprocess.SubprocessError) as error:
            results[name] = f"no: {type(error).__name__} {error}"
        else:
            results[name] = "yes"
        with contextlib.suppress(OSError):
            os.unlink("way-out")
    print(json.dumps(results))  # noqa: T201 - its answer


if __name__ == "__main__":
    main()
