"""Sets up what a sandbox has to keep from a command, runs `sandbox_inside.py` in it, and prints what it did.

Arguments: a directory of its own, the sandbox's kind, and the interpreter to run inside. Meant to be started
as different users, so it does everything from scratch.
"""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import anyio

from agentctl.executor.api import CommandRequest, Roots, SandboxKind, SandboxPolicy
from agentctl.executor.local import LocalExecutor

HARMLESS = ("write beside the workdir", "read ~/.ssh", "connect by TCP", "connect to a socket file")
# Given as text: where this repository lies in /tmp, the sandbox hides its files.
INSIDE = Path(__file__).with_name("sandbox_inside.py")


def _listen(family: int, kind: int, address: object) -> socket.socket:
    held = socket.socket(family, kind)
    held.bind(address)  # type: ignore[arg-type]
    if kind == socket.SOCK_STREAM:
        held.listen()
    held.settimeout(0)
    return held


def _arrived(held: socket.socket) -> bool:
    try:
        if held.type == socket.SOCK_STREAM:
            held.accept()[0].close()
        else:
            held.recv(10)
    except BlockingIOError:
        return False
    return True


async def main(place: Path, kind: SandboxKind, python: str) -> None:
    workdir, home, outside = place / "repo", place / "home", place / "outside"
    for directory in (workdir, home / ".ssh", outside):
        directory.mkdir(parents=True, exist_ok=True)
    (home / ".ssh" / "id").write_text("TOPSECRET")
    (home / ".netrc").write_text("TOPSECRET")
    (outside / "secret").write_text("old")
    if not (workdir / ".git").exists():
        subprocess.run(["git", "init", "-q", str(workdir)], check=True)
    (workdir / ".git" / "hooks").mkdir(exist_ok=True)
    config = (workdir / ".git" / "config").read_bytes()
    listeners = {
        "connect by TCP": _listen(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)),
        "send by UDP": _listen(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)),
        "connect to an abstract socket": _listen(
            socket.AF_UNIX, socket.SOCK_STREAM, f"\0agentctl-test-{os.getpid()}"
        ),
        "connect to a socket file": _listen(socket.AF_UNIX, socket.SOCK_STREAM, str(outside / "s")),
    }
    known = {
        # What would harm this machine is tried in a sandbox only.
        "only": ";".join(HARMLESS) if kind is SandboxKind.NONE else "",
        "outside": str(outside),
        "home": str(home),
        "pid": str(os.getpid()),
        "tcp": str(listeners["connect by TCP"].getsockname()[1]),
        "udp": str(listeners["send by UDP"].getsockname()[1]),
        "abstract": f"agentctl-test-{os.getpid()}",
        "socket": str(outside / "s"),
    }
    executor = LocalExecutor(environment={"PATH": os.environ["PATH"], "HOME": str(home)})
    policy = SandboxPolicy(kind=kind)
    if kind is not SandboxKind.NONE and await executor.sandbox_in_force(policy) is not kind:
        print(json.dumps({"kind": "none"}))  # noqa: T201 - its answer
        await executor.aclose()
        return
    result = await executor.run(
        CommandRequest(
            command=(python, "-I", "-c", INSIDE.read_text("utf-8"), json.dumps(known)),
            roots=Roots(workdir=workdir, temp=place / "temp", home=home),
            sandbox=policy,
            split_stderr=True,
        )
    )
    await executor.aclose()
    answer: dict[str, object] = {"kind": result.sandbox.value}
    if result.exit_code == 0:
        answer["inside"] = json.loads(result.output.head)
    else:
        answer["failed"] = result.output.text + (result.stderr.text if result.stderr else "")
    answer["arrived"] = [name for name, held in listeners.items() if _arrived(held)]
    answer["tampered"] = list(result.tampered)
    answer["config kept"] = (workdir / ".git" / "config").read_bytes() == config
    answer["hooks"] = sorted(
        path.name for path in (workdir / ".git" / "hooks").iterdir() if not path.name.endswith(".sample")
    )
    answer["outside"] = (outside / "secret").read_text(), sorted(path.name for path in outside.iterdir())
    answer["home"] = sorted(path.name for path in home.iterdir())
    for held in listeners.values():
        held.close()
    print(json.dumps(answer))  # noqa: T201 - its answer


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]), SandboxKind(sys.argv[2]), sys.argv[3])
