"""A write that is killed at any moment leaves the old file or the new one, never a mix.

Each write runs in a child. First it is traced for the system calls it makes; then it is run again and again
and killed with SIGKILL at each of them in turn (`strace -e inject=…:signal=KILL:when=N`), or, without strace,
at random moments.
"""

import os
import random
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
OLD = b"old line\n" * 40_000
NEW = "new line\n" * 60_000
PROGRAM = """
import os, sys
from pathlib import Path
from agentctl.executor import replace
from agentctl.executor.api import Edit, Roots, WriteMode
from agentctl.executor.paths import RootPins, resolve
from agentctl.executor.writes import Writer, plan_edit, plan_write
kind, workdir = sys.argv[1], Path(sys.argv[2])
if kind.endswith("-named"):
    replace._NAMELESS = 0
path = resolve("f", Roots(workdir=workdir, temp=workdir / "t"), RootPins())
if kind.startswith("edit"):
    planned = plan_edit(path, (Edit(old="old line\\n" * 40_000, new="new line\\n" * 60_000),))
elif kind.startswith("append"):
    planned = plan_write(path, "new line\\n" * 60_000, WriteMode.APPEND)
else:
    planned = plan_write(path, "new line\\n" * 60_000, WriteMode.REPLACE)
os.getpriority(os.PRIO_PROCESS, 0)  # the mark that the trace is read from
Writer().apply(planned, lambda: None)
"""
KINDS = ("make", "make-named", "replace", "replace-named", "edit", "append", "linked")
EVERY = (
    "openat,mkdirat,write,fsync,fchmod,fchown,linkat,renameat,renameat2,rename,unlinkat,unlink,close,fstat"
)
EVERY += (
    ",newfstatat,fsetxattr,flistxattr,fgetxattr,pread64,lseek,readlink,statx,ftruncate,fdatasync,link,open"
)


def wanted(kind: str) -> tuple[set[bytes | None], bytes]:
    old = None if kind.startswith("make") else OLD
    new = OLD + NEW.encode() if kind.startswith("append") else NEW.encode()
    return {old, new}, new


def fresh(place: Path, kind: str) -> None:
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    if not kind.startswith("make"):
        (place / "f").write_bytes(OLD)
        (place / "f").chmod(0o750)
    if kind == "linked":
        (place / "d").mkdir()
        os.link(place / "f", place / "d" / "g")


def check(place: Path, kind: str) -> None:
    allowed, _ = wanted(kind)
    file = place / "f"
    content = file.read_bytes() if file.exists() else None
    assert content in allowed, f"a mix of {len(content or b'')} bytes"
    if content is not None and not kind.startswith("make"):
        assert file.stat().st_mode & 0o777 == 0o750
    if kind == "linked":
        assert (place / "d" / "g").read_bytes() in allowed
    left = {path.name for path in place.iterdir()} - {"f", "d"}
    assert all(name.startswith(".agentctl-") and name.endswith(".tmp") for name in left)


def command(place: Path, kind: str) -> list[str]:
    return [sys.executable, "-c", PROGRAM, kind, str(place)]


def environment() -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": ":".join([str(REPOSITORY), *sys.path]),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def calls_after_the_mark(place: Path, kind: str, log: Path) -> list[tuple[str, int]]:
    """The system calls of one write, each with its number among the calls of its name since the start."""
    fresh(place, kind)
    subprocess.run(
        ["strace", "-f", "-o", str(log), "-e", f"trace={EVERY},getpriority", *command(place, kind)],
        check=True,
        env=environment(),
    )
    counts: dict[str, int] = {}
    found: list[tuple[str, int]] = []
    marked = False
    for line in log.read_text("utf-8", "replace").splitlines():
        name = re.match(r"\d+\s+(\w+)\(", line)
        if name is None:
            continue
        if name[1] == "getpriority":
            marked = True
            continue
        counts[name[1]] = counts.get(name[1], 0) + 1
        if marked:
            found.append((name[1], counts[name[1]]))
    assert (place / "f").read_bytes() == wanted(kind)[1]
    return found


def kill_at(place: Path, kind: str, name: str, number: int) -> int:
    fresh(place, kind)
    inject = f"inject={name}:signal=KILL:when={number}"
    done = subprocess.run(
        ["strace", "-f", "-o", "/dev/null", "-e", f"trace={name}", "-e", inject, *command(place, kind)],
        check=False,
        env=environment(),
        capture_output=True,
    )
    return done.returncode


def strace_works() -> bool:
    if shutil.which("strace") is None:
        return False
    return (
        subprocess.run(["strace", "-o", "/dev/null", "true"], check=False, capture_output=True).returncode
        == 0
    )


def boundaries(place: Path, kind: str, pick: Callable[[list[tuple[str, int]]], list[tuple[str, int]]]) -> int:
    if not strace_works():
        pytest.skip("strace is not here or may not trace; the random moments are tried instead")
    calls = calls_after_the_mark(place, kind, place.parent / "log")
    assert len(calls) > 8
    chosen = pick(calls)
    for name, number in chosen:
        kill_at(place, kind, name, number)
        check(place, kind)
    return len(chosen)


@pytest.mark.parametrize("kind", KINDS)
def test_killed_at_the_calls_that_change_something(tmp_path: Path, kind: str) -> None:
    changing = {"write", "fsync", "linkat", "renameat", "renameat2", "rename", "unlinkat", "unlink", "link"}

    def pick(calls: list[tuple[str, int]]) -> list[tuple[str, int]]:
        few = [call for call in calls if call[0] in changing]
        return few[:2] + few[-6:]

    assert boundaries(tmp_path / "w", kind, pick) >= 4


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", KINDS)
def test_killed_at_every_call(tmp_path: Path, kind: str) -> None:
    boundaries(tmp_path / "w", kind, lambda calls: calls)


def killed_at_random(place: Path, kind: str, times: int) -> None:
    generator = random.Random(kind)  # noqa: S311 - moments, not secrets
    fresh(place, kind)
    began = monotonic()
    subprocess.run(command(place, kind), check=True, env=environment())
    whole = monotonic() - began
    for _ in range(times):
        fresh(place, kind)
        with subprocess.Popen(command(place, kind), env=environment()) as process:
            try:
                process.wait(generator.uniform(whole * 0.5, whole * 1.1))
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
        check(place, kind)


@pytest.mark.parametrize("kind", ["make", "replace"])
def test_killed_at_random_moments(tmp_path: Path, kind: str) -> None:
    killed_at_random(tmp_path / "w", kind, 6)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", KINDS)
def test_killed_at_many_random_moments(tmp_path: Path, kind: str) -> None:
    killed_at_random(tmp_path / "w", kind, 72)
