"""Programs that are talked to: both ways, and gone at the end with all they started."""

import os
import sys
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from agentctl.errors import ToolError
from agentctl.executor.api import CommandRequest, Conversation, SandboxPolicy
from tests.executor.conftest import NO_SANDBOX, Hands

pytestmark = pytest.mark.anyio


async def talk(hands: Hands, program: str, sandbox: SandboxPolicy = NO_SANDBOX) -> Conversation:
    return await hands.executor.converse(
        CommandRequest(command=(sys.executable, "-u", "-c", program), roots=hands.roots, sandbox=sandbox)
    )


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def gone(pid: int) -> None:
    with anyio.fail_after(5):
        while alive(pid):
            await anyio.lowlevel.checkpoint()


async def test_a_program_has_the_standard_descriptors_and_no_other(hands: Hands) -> None:
    program = await talk(hands, "import os\nprint(sorted(map(int, os.listdir('/proc/self/fd'))))")

    assert (await program.receive()).strip() == b"[0, 1, 2, 3]", "the last is the listed directory's own"
    await program.aclose()


@pytest.mark.parametrize("sandbox", [NO_SANDBOX, SandboxPolicy()], ids=["bare", "in the sandbox"])
async def test_what_is_sent_is_answered(hands: Hands, sandbox: SandboxPolicy) -> None:
    program = await talk(hands, "import sys\nfor line in sys.stdin: sys.stdout.write('got ' + line)", sandbox)

    with anyio.fail_after(10):
        await program.send(b"one\n")
        first = await program.receive()
        await program.send(b"two\n")
        second = await program.receive()
        await program.aclose()

    assert (first, second) == (b"got one\n", b"got two\n")
    assert program.exit_code == 0


async def test_a_program_that_ends_leaves_its_exit_code_and_its_complaint(hands: Hands) -> None:
    program = await talk(hands, "import sys; sys.exit('no such thing')")

    with anyio.fail_after(5):
        nothing = await program.receive()
        await program.aclose()

    assert nothing == b""
    assert program.exit_code == 1
    assert program.stderr_tail() == "no such thing\n"


async def test_one_that_ignores_the_end_of_its_input_is_ended_with_all_it_started(hands: Hands) -> None:
    program = await talk(
        hands,
        "import subprocess, signal, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "print(subprocess.Popen(['sleep', '300']).pid)\n"
        "while True: time.sleep(1)",
    )

    with anyio.fail_after(10):
        child = int(await program.receive())
        await program.aclose()

    await gone(child)
    assert program.exit_code == 137


async def test_what_a_program_left_running_is_ended(hands: Hands) -> None:
    program = await talk(
        hands, "import subprocess; print(subprocess.Popen(['sleep', '300'], start_new_session=True).pid)"
    )

    with anyio.fail_after(10):
        child = int(await program.receive())
        await gone(child)
        await program.aclose()

    assert program.exit_code == 0


async def test_closing_does_not_wait_for_a_program_that_does_not_read(hands: Hands) -> None:
    program = await talk(hands, "import time; time.sleep(300)")

    with anyio.move_on_after(0.3) as waited:
        await program.send(b"x" * (1 << 20))
    with anyio.fail_after(8):
        await program.aclose()

    assert waited.cancelled_caught
    with pytest.raises(ToolError):
        await program.send(b"more")


async def test_a_program_that_is_busy_writing_is_heard_out_at_the_end(hands: Hands) -> None:
    program = await talk(
        hands, "import sys\nsys.stdout.write('x' * (1 << 20))\nsys.stdout.flush()\nsys.stdin.read()"
    )

    with anyio.fail_after(8):
        await program.aclose()

    assert program.exit_code == 0


async def test_the_executor_ends_what_was_not_closed(hands: Hands) -> None:
    program = await talk(hands, "import os, sys; print(os.getpid()); sys.stdin.read()")
    pid = int(await program.receive())

    await hands.executor.aclose()

    await gone(pid)


async def test_a_person_may_have_it_start_outside(hands: Hands, tmp_path: Path) -> None:
    request = CommandRequest(
        command=(sys.executable, "-c", "import os; print(os.getcwd())"),
        roots=hands.roots,
        sandbox=NO_SANDBOX,
        cwd=tmp_path,
        cwd_anywhere=True,
    )
    program = await hands.executor.converse(request)

    assert (await program.receive()).decode().strip() == str(tmp_path.resolve())
    await program.aclose()


async def test_a_program_that_is_not_there_is_told(hands: Hands) -> None:
    with pytest.raises(ToolError, match="no-such-server"):
        await hands.executor.converse(
            CommandRequest(command=("no-such-server",), roots=hands.roots, sandbox=NO_SANDBOX)
        )
