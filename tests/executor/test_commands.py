"""Commands: what runs, how it ends, and that nothing of it is left."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import anyio.lowlevel
import pytest

from agentctl.errors import ToolError
from agentctl.executor import commands
from agentctl.executor.api import CommandRequest, Roots, SandboxKind, SandboxPolicy
from agentctl.executor.local import LocalExecutor
from agentctl.executor.machine import Machine
from agentctl.executor.prepare import MAX_TIMEOUT_S
from tests.executor.conftest import NO_SANDBOX, Hands

pytestmark = pytest.mark.anyio
BOTH = pytest.mark.parametrize(
    "sandbox", [NO_SANDBOX, SandboxPolicy()], ids=["without a sandbox", "in the sandbox"]
)


def alive(marker: str) -> list[str]:
    """Command lines of processes that carry a marker."""
    found = []
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                line = (place / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            except OSError:
                continue
            if marker in line and "pytest" not in line:
                found.append(line)
    return found


async def gone(marker: str) -> bool:
    """Give the kernel a moment to bury what was killed."""
    with anyio.move_on_after(5):
        while alive(marker):
            await anyio.lowlevel.checkpoint()
    return not alive(marker)


@BOTH
async def test_a_call_ends_with_the_shell_not_with_its_background_child(
    hands: Hands, sandbox: SandboxPolicy
) -> None:
    result = await hands.run("sleep 61.5 & echo done", sandbox)

    assert (result.output.text, result.exit_code, result.survivors_killed) == ("done\n", 0, 1)
    assert result.duration_s < 2
    assert await gone("sleep 61.5")


@BOTH
async def test_a_background_child_that_keeps_writing_holds_nothing_up(
    hands: Hands, sandbox: SandboxPolicy
) -> None:
    result = await hands.run("(while :; do echo x; sleep 0.05; done) & sleep 0.3; echo fg", sandbox)

    assert result.duration_s < 2
    assert "fg" in result.output.text
    assert result.output.total_bytes < 1000


@BOTH
async def test_children_with_a_session_of_their_own_are_ended_too(
    hands: Hands, sandbox: SandboxPolicy
) -> None:
    result = await hands.run(
        "(setsid sleep 61.6 &) ; setsid nohup bash -c 'trap \"\" TERM HUP; sleep 61.6; sleep 61.6' & "
        "sleep 0.2; exit 3",
        sandbox,
    )

    assert result.exit_code == 3
    assert result.survivors_killed >= 2
    assert await gone("sleep 61.6")


@BOTH
async def test_time_ends_everything(hands: Hands, sandbox: SandboxPolicy) -> None:
    result = await hands.run("setsid sleep 61.7 & echo begun; sleep 61.7", sandbox, timeout_s=0.3)

    assert (result.timed_out, result.output.text) == (True, "begun\n")
    assert result.duration_s < 3
    assert await gone("sleep 61.7")


@BOTH
async def test_a_command_that_ignores_the_polite_signal_is_ended_all_the_same(
    hands: Hands, sandbox: SandboxPolicy
) -> None:
    result = await hands.run("trap '' TERM INT; while :; do sleep 61.8; done", sandbox, timeout_s=0.2)

    assert result.timed_out
    assert result.duration_s < 5
    assert await gone("sleep 61.8")


@BOTH
async def test_cancelling_ends_everything_before_it_returns(hands: Hands, sandbox: SandboxPolicy) -> None:
    began = anyio.Event()

    async def cancelled_run() -> None:
        await hands.run("setsid sleep 61.9 & echo x; sleep 61.9", sandbox, on_output=lambda _: began.set())

    async with anyio.create_task_group() as group:
        group.start_soon(cancelled_run)
        with anyio.fail_after(10):
            await began.wait()
        group.cancel_scope.cancel()

    assert await gone("sleep 61.9")


async def test_a_cancelled_command_leaves_nothing_for_the_next_one(hands: Hands) -> None:
    with anyio.move_on_after(0.2):
        await hands.run("sleep 5; echo STALE")

    assert (await hands.run("echo NEXT")).output.text == "NEXT\n"


@BOTH
@pytest.mark.parametrize(
    ("command", "text", "exit_code"),
    [
        ("exit 1", "", 1),
        ("cat; echo done", "done\n", 0),
        ("cat << 'EOF'\nhello\nEOF", "hello\n", 0),
        ("printf '__DONE__7\\nafter\\n'; (exit 3)", "__DONE__7\nafter\n", 3),
        ("echo out; echo err >&2", "out\nerr\n", 0),
        ("kill -TERM $$", "", 143),
        ("no-such-program-here 2>/dev/null", "", 127),
        ("yes | head -n 1", "y\n", 0),
        ("printf '\\xe4\\xbd'; sleep 0.05; printf '\\xa0\\xe5\\xa5\\xbd'", "\u4f60\u597d", 0),
        ("printf 'caf\\xe9\\n'", "caf\\xe9\n", 0),
        ("tty", "not a tty\n", 1),
    ],
)
async def test_a_command_gives(
    hands: Hands, sandbox: SandboxPolicy, command: str, text: str, exit_code: int
) -> None:
    result = await hands.run(command, sandbox)

    assert (result.output.text, result.exit_code) == (text, exit_code)


async def test_a_trailing_backslash_swallows_nothing_of_ours(hands: Hands, workdir: Path) -> None:
    (workdir / "f").write_text("")

    result = await hands.run("ls\\")

    assert (result.output.text, result.exit_code) == ("f\n", 0)


async def test_a_signal_that_ended_the_command_is_told(hands: Hands) -> None:
    result = await hands.run("kill -9 $$")

    assert (result.exit_code, result.signal) == (137, signal.SIGKILL)


async def test_signals_to_its_own_group_do_not_reach_us(hands: Hands) -> None:
    for command in ("kill -INT 0", "kill -TERM 0", "kill -KILL -- -$$"):
        await hands.run(command)

    assert (await hands.run("echo alive")).output.text == "alive\n"


async def test_killing_what_carries_our_name_spares_the_supervisors(hands: Hands) -> None:
    result = await hands.run("pgrep -f 'agentctl.executor.supervisor|agentctl/executor/supervisor' -l; true")

    assert "python" not in result.output.text


async def test_words_are_executed_without_a_shell(hands: Hands) -> None:
    result = await hands.run(("printf", "%s|", "$HOME", "a b", "`id`", "{status}", "{filter}"))

    assert result.output.text == "$HOME|a b|`id`|{status}|{filter}|"


@BOTH
async def test_a_command_has_the_standard_descriptors_and_no_other(
    hands: Hands, sandbox: SandboxPolicy
) -> None:
    for line in ("exec ls /proc/self/fd", ("ls", "/proc/self/fd")):
        result = await hands.run(line, sandbox)

        assert result.output.text.split() == ["0", "1", "2", "3"], "the last is the listed directory's own"


@BOTH
async def test_words_with_braces_stay_words_in_the_sandbox(hands: Hands, sandbox: SandboxPolicy) -> None:
    result = await hands.run(("printf", "%s|", "{status}", "--", "{filter}"), sandbox)

    assert result.output.text == "{status}|--|{filter}|"


async def test_a_program_that_is_not_there_is_told(hands: Hands) -> None:
    with pytest.raises(ToolError, match="no-such-program"):
        await hands.run(("no-such-program", "x"))


async def test_a_command_line_longer_than_the_kernel_takes_runs_whole(hands: Hands, roots: object) -> None:
    body = "x" * 300_000

    result = await hands.run(f"cat <<'EOF' | wc -c\n{body}\nEOF\necho $?")

    assert result.output.text == "300001\n0\n"
    assert list((hands.roots.temp / "output").iterdir()) == []


async def test_stdin_is_given_when_there_is_some(hands: Hands) -> None:
    result = await hands.run(("cat",), stdin=b'{"a": 1}')

    assert result.output.text == '{"a": 1}'


async def test_standard_error_can_be_kept_apart(hands: Hands) -> None:
    result = await hands.run("echo out; echo err >&2", split_stderr=True)

    assert result.stderr is not None
    assert (result.output.text, result.stderr.text) == ("out\n", "err\n")


async def test_the_directory_can_be_chosen_inside_only(hands: Hands, workdir: Path, outside: Path) -> None:
    (workdir / "sub").mkdir()

    assert (await hands.run("pwd", cwd=workdir / "sub")).output.text == f"{workdir / 'sub'}\n"
    with pytest.raises(ToolError, match="outside"):
        await hands.run("pwd", cwd=outside)


async def test_a_timeout_is_lowered_to_the_ceiling(hands: Hands) -> None:
    assert (await hands.run("true", timeout_s=999_999_999.0)).timeout_s == MAX_TIMEOUT_S


@BOTH
async def test_a_long_git_history_comes_whole_without_a_pager(
    hands: Hands, workdir: Path, sandbox: SandboxPolicy
) -> None:
    git = ["git", "-C", str(workdir), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", "init", "-q", str(workdir)], check=True)
    tree = subprocess.run([*git, "write-tree"], check=True, capture_output=True, text=True).stdout.strip()
    parent: list[str] = []
    for number in range(60):
        made = subprocess.run(
            [*git, "commit-tree", tree, "-m", f"change {number}", *parent],
            check=True,
            capture_output=True,
            text=True,
        )
        parent = ["-p", made.stdout.strip()]
    subprocess.run([*git, "update-ref", "HEAD", parent[1]], check=True)
    subprocess.run([*git, "config", "core.pager", "sleep 60"], check=True)

    result = await hands.run("git log; git commit --allow-empty", sandbox, environment={"HOME": str(workdir)})

    assert result.output.text.count("change ") == 60
    assert result.duration_s < 5


@BOTH
async def test_a_thousand_megabytes_are_counted_and_not_held(hands: Hands, sandbox: SandboxPolicy) -> None:
    pieces: list[str] = []

    result = await hands.run(
        "head -c 300000000 /dev/zero | tr '\\0' 'x'; echo end", sandbox, on_output=pieces.append
    )

    output = result.output
    assert output.total_bytes == 300_000_004
    assert output.omitted_bytes == output.total_bytes - len(output.head) - len(output.tail)
    assert output.tail.endswith("xend\n")
    assert output.spill is not None
    assert output.spill.stat().st_size == output.spill_bytes == output.total_bytes
    assert sum(map(len, pieces)) < 4 << 20
    output.spill.unlink()


async def test_nothing_is_lost_when_a_command_ends_while_it_is_read(hands: Hands, workdir: Path) -> None:
    (workdir / "long").write_bytes(b"x" * 200_000)

    async def run() -> None:
        for _ in range(100):
            result = await hands.run("cat long", head_bytes=10_000, on_output=shown.append)
            lengths.add((result.output.total_bytes, result.output.spill_bytes))

    lengths: set[tuple[int, int]] = set()
    shown: list[str] = []
    async with anyio.create_task_group() as group:
        group.start_soon(run)
        group.start_soon(run)

    assert lengths == {(200_000, 200_000)}


async def test_what_is_too_much_for_the_file_is_counted_and_its_end_kept(
    hands: Hands, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentctl.executor.commands.SPILL_CAP_BYTES", 1_000_000)

    result = await hands.run("head -c 5000000 /dev/zero | tr '\\0' 'x'; echo end")

    output = result.output
    assert (output.total_bytes, output.spill_bytes) == (5_000_004, 1_000_000)
    assert output.tail.endswith("xend\n")
    assert len(output.tail) == 32_768
    assert "the first 1000000 bytes" in output.text


async def test_endless_output_ends_with_the_time(hands: Hands, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentctl.executor.commands.SPILL_CAP_BYTES", 1_000_000)

    result = await hands.run("yes", timeout_s=0.3)

    assert result.timed_out
    assert result.output.spill_bytes == 1_000_000
    assert result.output.head.startswith("y\ny\n")


async def test_binary_output_is_counted_and_not_shown(hands: Hands) -> None:
    result = await hands.run("head -c 100000 /dev/urandom")

    assert result.output.binary
    assert result.output.text.startswith("[binary output, 100000 bytes")


async def test_hostile_names_do_not_lead_the_spill_file_astray(hands: Hands) -> None:
    result = await hands.run("seq 1 50000", spill_name="../../x/a/b")

    assert result.output.spill is not None
    assert result.output.spill.parent == hands.roots.temp / "output"


async def test_a_spill_folder_swapped_for_a_link_is_not_followed(hands: Hands, outside: Path) -> None:
    (hands.roots.temp / "output").symlink_to(outside)

    result = await hands.run("seq 1 50000")

    assert result.output.spill is None
    assert result.output.total_bytes == 288894
    assert list(outside.iterdir()) == []


async def test_credentials_are_withheld_and_can_be_passed(roots: object, hands: Hands, workdir: Path) -> None:
    environment = {"GITHUB_TOKEN": "t", "MY_REGION": "r", "PATH": os.environ["PATH"], "BASH_ENV": "/x"}
    executor = LocalExecutor(environment=environment, passed=())
    passing = LocalExecutor(environment=environment, passed=("github_token",))
    command = CommandRequest(
        command="echo $GITHUB_TOKEN $MY_REGION $BASH_ENV", roots=hands.roots, sandbox=NO_SANDBOX
    )

    withheld = await executor.run(command)
    passed = await passing.run(command)

    await executor.aclose()
    await passing.aclose()
    assert (withheld.output.text, passed.output.text) == ("r\n", "t r\n")


async def test_many_commands_at_once_keep_their_output_apart(hands: Hands) -> None:
    results: dict[int, str] = {}

    async def one(number: int) -> None:
        results[number] = (await hands.run(f"echo {number}; sleep 0.05; echo {number}")).output.text

    async with anyio.create_task_group() as group:
        for number in range(40):
            group.start_soon(one, number)

    assert results == {number: f"{number}\n{number}\n" for number in range(40)}


async def test_a_launcher_that_was_killed_is_started_again(hands: Hands) -> None:
    await hands.run("true")
    launcher = hands.executor._machine.launcher  # noqa: SLF001 - the victim
    assert launcher._process is not None  # noqa: SLF001
    launcher._process.kill()  # noqa: SLF001
    launcher._process.wait()  # noqa: SLF001

    for number in range(3):
        assert (await hands.run(f"echo {number}")).output.text == f"{number}\n"


async def test_a_supervisor_that_was_killed_takes_its_command_along(hands: Hands) -> None:
    def parent_of(pid: int) -> int:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])

    def kill_supervisor(text: str) -> None:
        os.kill(parent_of(int(text)), signal.SIGKILL)

    with pytest.raises(ToolError, match="killed by something else"):
        await hands.run("sleep 62.1 & echo $$; wait", on_output=kill_supervisor)

    assert await gone("sleep 62.1")


async def test_a_supervisor_that_was_stopped_holds_nobody_up(
    hands: Hands, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentctl.executor.commands._LAST_WORD_S", 0.3)

    with pytest.raises(ToolError, match="killed by something else"):
        await hands.run("kill -STOP $PPID; sleep 62.3", timeout_s=0.3)

    assert await gone("sleep 62.3")
    assert (await hands.run("echo next")).output.text == "next\n"


async def test_one_machine_serves_many_executors(roots: object, hands: Hands) -> None:
    machine = Machine()
    executors = [LocalExecutor(machine) for _ in range(5)]
    request = CommandRequest(command="echo $PPID", roots=hands.roots, sandbox=NO_SANDBOX)

    texts = [(await executor.run(request)).output.text for executor in executors]

    for executor in executors:
        await executor.aclose()
    assert machine.launcher._process is not None  # noqa: SLF001 - still open for the next run
    await machine.aclose()
    assert all(text.strip().isdigit() for text in texts)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
@BOTH
async def test_everything_ends_when_agentctl_itself_is_killed(
    tmp_path: Path, how: signal.Signals, sandbox: SandboxPolicy
) -> None:
    marker = f"62.{200 + how}{int(sandbox.kind is SandboxKind.NONE)}"
    program = f"""
import anyio
from pathlib import Path
from agentctl.executor.api import *
from agentctl.executor.local import LocalExecutor
async def main():
    executor = LocalExecutor()
    roots = Roots(workdir=Path({str(tmp_path)!r}), temp=Path({str(tmp_path / "t")!r}))
    sandbox = SandboxPolicy(kind=SandboxKind({sandbox.kind.value!r}))
    await executor.start(CommandRequest(command="setsid sleep {marker}", roots=roots, sandbox=sandbox))
    command = "sleep {marker} & (setsid sleep {marker} &); echo; wait"
    await executor.run(CommandRequest(command=command, roots=roots, sandbox=sandbox,
                       on_output=lambda _: print("begun", flush=True)))
anyio.run(main)
"""
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"begun\n"
        assert len(alive(f"sleep {marker}")) >= 2
        process.send_signal(how)
        process.wait()

    assert await gone(f"sleep {marker}")


async def test_more_commands_than_descriptors_allow_take_turns(hands: Hands) -> None:
    machine = Machine()
    machine.turns.total_tokens = 3
    executor = LocalExecutor(machine)
    texts: list[str] = []
    request = CommandRequest(command="echo x; ulimit -n", roots=hands.roots, sandbox=NO_SANDBOX)

    async def one() -> None:
        texts.append((await executor.run(request)).output.text)

    async with anyio.create_task_group() as group:
        for _ in range(12):
            group.start_soon(one)
    await executor.aclose()
    await machine.aclose()

    assert texts == [f"x\n{machine.descriptors}\n"] * 12


@BOTH
async def test_a_command_that_fills_the_disk_is_stopped(
    tmp_path: Path, sandbox: SandboxPolicy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The floor is put just below what is free on a disk that few others write to."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        pytest.skip("this machine has no disk in memory")
    with TemporaryDirectory(dir=memory) as folder:
        free = os.statvfs(folder)
        monkeypatch.setattr(commands, "_FLOOR_BYTES", free.f_bavail * free.f_frsize - (64 << 20))
        executor = LocalExecutor()
        roots = Roots(workdir=Path(folder), temp=tmp_path)
        try:
            request = CommandRequest(command="yes > full", roots=roots, timeout_s=30, sandbox=sandbox)
            filled = await executor.run(request)
            looked = await executor.run(replace(request, command="ls"))
        finally:
            await executor.aclose()

    assert (filled.disk_low, filled.timed_out) == (True, False)
    assert filled.duration_s < 20
    assert (looked.disk_low, looked.output.text) == (False, "full\n")
