"""Commands that hung, lingered, told a wrong end or hit the program that had started them elsewhere."""

import os
import re
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import anyio
import pytest

from agentctl.executor import commands
from agentctl.executor.api import CommandRequest, Roots, SandboxKind, SandboxPolicy
from agentctl.executor.local import LocalExecutor
from agentctl.protocol.messages import ToolResult
from tests.reported.cases import Case, each_case, nobody_reads
from tests.reported.desk import Desk, call

pytestmark = pytest.mark.anyio

MARGIN_S = 3.0
"""Beyond what a case allows, for a machine that has other work."""


@each_case("subprocess")
async def test_a_reported_command(case: Case, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.without_sandbox()  # nothing but the executor's own care ends what is left
    match case.given:
        case {"command": str(line)}:
            prepare(case, desk, monkeypatch)
            await a_command(case, desk, line)
        case {"steps": [str(first), str(second)]}:
            await cancelled(desk, quoted(first), quoted(second))
        case {"stdout_chunks_hex": list(chunks)}:
            program = "; sleep 0.05; ".join(f"printf {shlex.quote(escaped(one))}" for one in chunks)
            (told,) = await desk.calls(call("shell", command=program))
            wanted = "".join(chr(int(one, 16)) for one in re.findall(r"U\+(\w+)", case.expected)[:-1])
            assert told.text == wanted, told.text
        case {"timeout_ms": int(milliseconds)}:
            (told,) = await desk.calls(call("shell", command="true", timeout_s=milliseconds // 1000))
            assert told.outcome == "ok", told.text
        case _:
            nobody_reads(case)


def quoted(step: str) -> str:
    """Return the command in the words of a step."""
    found = re.search(r'"(.*)"', step)
    assert found is not None
    return found[1]


def escaped(chunk: str) -> str:
    """Return hex as `printf` takes bytes."""
    return "".join(f"\\x{byte:02x}" for byte in bytes.fromhex(chunk))


def prepare(case: Case, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make what a command needs to show its fault."""
    if "longer than a page" in str(case.given.get("setup", "")):
        history = "git init -q . && for n in $(seq 60); do "
        history += "git -c user.name=a -c user.email=a@b commit -q --allow-empty -m number$n; done"
        subprocess.run(["bash", "-c", history], cwd=desk.work, check=True)
    if "below the cap" in case.expected:
        monkeypatch.setattr(commands, "SPILL_CAP_BYTES", 1 << 20)


async def a_command(case: Case, desk: Desk, line: str) -> None:
    """Run it, and hold all that the case expects against what came."""
    checks = [check for pattern, check in EXPECTED if re.search(pattern, case.expected)]
    assert checks, f"{case.id}: nothing that is expected is understood: {case.expected}"
    given_s = case.given.get("timeout_s", 2 if line == "yes" else 20)
    if "pkill" in line:
        # The name of this very program stands in its command line, as agentctl's does in its own.
        line = line.replace("agentctl", f"named-{os.getpid()}")
    began = time.monotonic()
    ran = await desk.run(call("shell", command=line, timeout_s=given_s))
    took_s = time.monotonic() - began
    assert len(ran.results) == 1, ran.end
    told = ran.results[0]
    assert getattr(ran.end, "answer", "") == "done"
    for check in checks:
        check(case, told, took_s)
    assert lingering(desk) == []


def lingering(desk: Desk) -> list[str]:
    """Return the processes that still stand in the workdir."""
    deadline = time.monotonic() + 1
    while (left := list(_standing_in(desk.work))) and time.monotonic() < deadline:
        time.sleep(0.01)
    return left


def _standing_in(place: Path) -> Iterator[str]:
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                if Path(entry, "cwd").readlink() == place:
                    yield Path(entry, "cmdline").read_text().replace("\0", " ")
            except OSError:
                continue


def exit_code(case: Case, told: ToolResult, took_s: float) -> None:
    del took_s
    wanted = re.search(r"exit (?:code )?(?:is )?(\d+)", case.expected)
    assert wanted is not None
    assert isinstance(told.structured, dict)
    assert told.structured["exit_code"] == int(wanted[1]), told.text


def output(case: Case, told: ToolResult, took_s: float) -> None:
    del took_s
    wanted = re.search(r'output "?(\w+)"?', case.expected)
    assert wanted is not None
    assert told.text.split("\n[")[0] == wanted[1]


def in_time(case: Case, told: ToolResult, took_s: float) -> None:
    del told
    wanted = re.search(r"< (\d+) s", case.expected)
    assert wanted is not None
    assert took_s < float(wanted[1]) + MARGIN_S


def empty(case: Case, told: ToolResult, took_s: float) -> None:
    del case, took_s
    assert isinstance(told.structured, dict)
    assert told.structured["output"] == ""


def whole(case: Case, told: ToolResult, took_s: float) -> None:
    del case, took_s
    assert (told.text.count("number"), told.text.count("\x1b")) == (60, 0)


def both_lines(case: Case, told: ToolResult, took_s: float) -> None:
    del took_s
    lines = re.findall(r"[\w]+", str(case.given["command"]).replace("\\n", " "))[1:3]
    assert all(line in told.text.splitlines() for line in lines), told.text


def bounded(case: Case, told: ToolResult, took_s: float) -> None:
    del case, took_s
    assert len(told.text) < 40_000
    kept = getattr(told, "spill", "")
    assert not kept or Path(kept).stat().st_size <= 1 << 20


def binary(case: Case, told: ToolResult, took_s: float) -> None:
    del took_s
    wanted = re.search(r"head -c (\d+)", str(case.given["command"]))
    assert wanted is not None
    assert f"{int(wanted[1])} bytes" in told.text
    assert told.text.isprintable()
    assert len(told.text) < 300


def alive(case: Case, told: ToolResult, took_s: float) -> None:
    """The run went on to its answer, or this line would not be reached."""
    del case, told, took_s


EXPECTED: tuple[tuple[str, Callable[[Case, ToolResult, float], None]], ...] = (
    (r"exit (code )?(is )?\d+", exit_code),
    (r'output "?(hello|done)"?', output),
    (r"< \d+ s", in_time),
    (r"empty output", empty),
    (r"no pager", whole),
    (r"both lines", both_lines),
    (r"output bounded|below the cap", bounded),
    (r"binary with a byte count", binary),
    (r"unaffected|survives|no process|exit status of ls returned", alive),
)


async def cancelled(desk: Desk, first: str, second: str) -> None:
    """Cancel a command in the middle; the next one starts with nothing of it."""
    executor = LocalExecutor()
    roots = Roots(workdir=desk.work, temp=desk.folder / "temp")
    sandbox = SandboxPolicy(kind=SandboxKind.NONE)
    try:
        with anyio.move_on_after(0.3):
            await executor.run(CommandRequest(command=first, roots=roots, sandbox=sandbox))
        told = await executor.run(CommandRequest(command=second, roots=roots, sandbox=sandbox))
    finally:
        await executor.aclose()
    assert told.output.text == f"{second.rsplit(maxsplit=1)[-1]}\n"
    assert lingering(desk) == []
