"""Supervisors that serve one command after the other keep nothing of any of them."""

import os
import signal
import sys
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from agentctl.errors import ToolError
from agentctl.executor.api import CommandRequest, SandboxPolicy
from tests.executor.conftest import NO_SANDBOX, Hands

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="looks at processes through /proc"),
]
STAY = 5
"""The four that find a place, and the one that waited meanwhile."""


def supervisors(hands: Hands) -> set[int]:
    process = hands.executor._machine.launcher._process  # noqa: SLF001 - what is looked at
    assert process is not None
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return {int(pid) for pid in children if _state(int(pid)) != "Z"}


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


def _directory(pid: int) -> str:
    return os.readlink(f"/proc/{pid}/cwd")


def descriptors(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


async def supervisor_of(hands: Hands) -> int:
    return int((await hands.run("echo $PPID")).output.text)


async def at_rest(hands: Hands, at_most: int) -> set[int]:
    """Wait until no more supervisors than these are left, all of them waiting."""
    with anyio.fail_after(10):
        while len(left := supervisors(hands)) > at_most:
            await anyio.lowlevel.checkpoint()
    return left


async def test_one_command_after_the_other_is_served_by_the_same_few(hands: Hands) -> None:
    served = {await supervisor_of(hands) for _ in range(30)}

    assert len(served) <= STAY
    assert await at_rest(hands, STAY)


async def test_of_many_commands_at_once_each_has_its_own_and_few_stay(hands: Hands) -> None:
    seen: list[str] = []

    async def one() -> None:
        seen.append((await hands.run("echo $PPID; sleep 0.3")).output.text)

    async with anyio.create_task_group() as group:
        for _ in range(12):
            group.start_soon(one)

    assert len(set(seen)) == 12
    await at_rest(hands, STAY)


async def test_a_supervisor_keeps_no_descriptor_and_no_directory_of_its_commands(hands: Hands) -> None:
    await supervisor_of(hands)
    fresh = max(map(descriptors, await at_rest(hands, STAY)))
    for number in range(6):
        await hands.run("seq 1 30000")
        await hands.run("sleep 67.1 & exit 3", timeout_s=5)
        await hands.run("echo x", SandboxPolicy())
        with pytest.raises(ToolError):
            await hands.run(("no-such-program",))
        started = await hands.executor.start(
            CommandRequest(
                command="echo x; sleep 67.2", roots=hands.roots, sandbox=NO_SANDBOX, spill_name=f"c-{number}"
            )
        )
        await hands.executor.kill(started.process_id)
    last = await supervisor_of(hands)

    waiting = await at_rest(hands, STAY)

    assert last in waiting
    with anyio.fail_after(10):  # it says that a command is over before it lets go of what that had
        while max(map(descriptors, waiting)) > fresh or any(_directory(pid) != "/" for pid in waiting):
            await anyio.lowlevel.checkpoint()


async def test_a_limit_of_one_command_is_not_the_next_ones(hands: Hands) -> None:
    first = await hands.run("ulimit -n; ulimit -n 20; ulimit -n")
    later = [(await hands.run("ulimit -n")).output.text for _ in range(6)]

    assert set(later) == {first.output.text.splitlines()[0] + "\n"}


async def test_a_waiting_supervisor_that_is_killed_is_replaced(hands: Hands) -> None:
    await supervisor_of(hands)
    for victim in await at_rest(hands, STAY):
        os.kill(victim, signal.SIGKILL)

    served = [await hands.run("echo done") for _ in range(3)]

    assert [result.output.text for result in served] == ["done\n"] * 3
