"""What the operating system keeps in: every attempt, as root and as an ordinary user."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentctl.executor.api import SandboxKind
from agentctl.executor.sandbox_places import PRIVATE_PLACES

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[1]
ORDINARY = 4242
ALLOWED = {
    "write in the workdir",
    "write in the temp folder",
    "read an ordinary file outside",
    "commit",
    "status",
    "run python",
    "use a pool of processes",
}


def as_user(user: int) -> dict[str, object]:
    """Arguments that start a process as a user."""
    return {} if user == os.geteuid() else {"user": user, "group": user, "extra_groups": []}


def python_for(user: int) -> str:
    """An interpreter that a user can start: ours, or the system's if it is of the same version."""
    for candidate in (sys.executable, f"/usr/bin/python3.{sys.version_info.minor}"):
        try:
            subprocess.run([candidate, "-c", ""], check=True, capture_output=True, **as_user(user))  # type: ignore[call-overload]
        except (OSError, subprocess.CalledProcessError):
            continue
        return candidate
    return ""


@pytest.fixture
def public_place() -> Iterator[Path]:
    """A directory that every user can reach, which pytest's own are not; not under what a sandbox empties."""
    place = Path(tempfile.mkdtemp(prefix="agentctl-test-", dir="/var/lib" if os.geteuid() == 0 else None))
    place.chmod(0o755)
    yield place
    shutil.rmtree(place)


def run_outside(place: Path, kind: SandboxKind, user: int) -> dict[str, object]:
    if user not in (os.geteuid(), ORDINARY) or (user != os.geteuid() and os.geteuid() != 0):
        pytest.skip("only root can start a process as another user")
    python = python_for(user)
    if not python:
        pytest.skip("no interpreter of this version that an ordinary user can start")
    packages = [path for path in sys.path if path.endswith("site-packages")]
    done = subprocess.run(
        [python, str(HERE / "sandbox_outside.py"), str(place), kind.value, python],
        check=False,
        capture_output=True,
        text=True,
        env={
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "PYTHONPATH": ":".join([str(REPOSITORY), *packages]),
            "HOME": str(place),
        },
        cwd=str(place),
        **as_user(user),  # type: ignore[call-overload]
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, object] = json.loads(done.stdout)
    return answer


@pytest.mark.parametrize("owner", ["its own", "another's"])
@pytest.mark.parametrize("user", [0, ORDINARY])
@pytest.mark.parametrize("kind", [SandboxKind.BUBBLEWRAP, SandboxKind.LANDLOCK])
def test_nothing_gets_out(public_place: Path, kind: SandboxKind, user: int, owner: str) -> None:
    place = public_place / "place"
    place.mkdir()
    (place / "repo").mkdir()
    mine = user if owner == "its own" else 4343
    if os.geteuid() == 0:
        os.chown(place, user, user)
        os.chown(place / "repo", mine, mine)
    if owner == "another's":
        if user != 0 or os.geteuid() != 0:
            pytest.skip("an ordinary user can't write in another's workdir, sandbox or not")
        subprocess.run(["git", "init", "-q", str(place / "repo")], check=True)
        subprocess.run(["chown", "-R", "4343:4343", str(place / "repo")], check=True)

    answer = run_outside(place, kind, user)

    if answer["kind"] != kind.value:
        pytest.skip(f"this kernel refuses {kind.value}")
    inside = answer["inside"]
    assert isinstance(inside, dict)
    # Into a network of its own a datagram can always be sent; whether it arrived here is what counts.
    could = {name for name, word in inside.items() if word == "yes"} - {"send by UDP"}
    allowed = set(ALLOWED)
    if kind is SandboxKind.LANDLOCK:
        # Landlock can't hold places inside a writable one; they are put back after the command. Nor has it a
        # /dev/shm of its own, which a pool's locks need.
        allowed |= {"write a hook", "write git's configuration", "put another .git in place"}
        allowed -= {"use a pool of processes"}
    if any(place.is_relative_to(emptied) for emptied in PRIVATE_PLACES):
        # All of it is an empty place of the command's own, where it may write what nobody will see.
        allowed -= {"read an ordinary file outside"}
        allowed |= {"write in the home directory", "write beside the workdir"}
    if owner == "another's":
        # Git itself refuses a repository of another owner.
        could -= {"commit", "status"}
        allowed -= {"commit", "status"}
    assert could - allowed == set(), {name: inside[name] for name in could - allowed}
    optional = {"write a hook", "write git's configuration", "put another .git in place"}
    optional |= {"write in the home directory", "write beside the workdir"}
    missing = allowed - could - optional
    assert missing == set(), {name: inside[name] for name in missing}
    assert answer["arrived"] == []
    assert answer["outside"] == ["old", ["s", "secret"]]
    assert answer["home"] == [".netrc", ".ssh"]
    if kind is SandboxKind.BUBBLEWRAP:
        assert answer["tampered"] == []
        assert answer["config kept"]
        assert answer["hooks"] == []
    else:
        assert answer["tampered"]


@pytest.mark.parametrize("user", [0, ORDINARY])
def test_without_a_sandbox_the_same_attempts_succeed(public_place: Path, user: int) -> None:
    place = public_place / "place"
    place.mkdir()
    if os.geteuid() == 0:
        os.chown(place, user, user)

    inside = run_outside(place, SandboxKind.NONE, user)["inside"]

    assert isinstance(inside, dict)
    assert set(inside.values()) == {"yes"}
    assert len(inside) == 4
