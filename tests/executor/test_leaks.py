"""Commands with time-outs, cancellations and runaway children leave no process, descriptor or file."""

import os
import random
from pathlib import Path

import anyio
import pytest

from agentctl.executor.api import CommandRequest, Roots, SandboxPolicy
from agentctl.executor.local import LocalExecutor
from tests.executor.conftest import NO_SANDBOX
from tests.executor.test_commands import gone

pytestmark = pytest.mark.anyio
MARKER = "65.4321"
COMMANDS = (
    "echo x",
    "exit 3",
    "sleep {marker} & echo x",
    "setsid sleep {marker} & exit 1",
    "(setsid nohup sleep {marker} &) ; echo x",
    "trap '' TERM; sleep {marker}",
    "sleep {marker} | cat",
    "seq 1 20000",
    "head -c 100000 /dev/urandom",
    "bash -c 'sleep {marker} & disown; kill -9 $$'",
    "yes",
    "mkdir -p d && touch d/f && rm -r d",
    "cat <<EOF\n{long}\nEOF",
    "kill -INT 0",
    "echo $BASHPID; exec sleep {marker}",
)


def descriptors() -> dict[str, str]:
    found = {}
    for place in Path("/proc/self/fd").iterdir():
        try:
            found[place.name] = os.readlink(place)
        except OSError:
            continue
    return found


def children() -> list[int]:
    me = os.getpid()
    found = []
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                parent = int((place / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, IndexError):
                continue
            if parent == me:
                found.append(int(place.name))
    return found


async def storm(roots: Roots, count: int, at_once: int) -> None:
    executor = LocalExecutor()
    generator = random.Random(4)  # noqa: S311 - an order, not a secret
    limiter = anyio.CapacityLimiter(at_once)

    async def one(number: int) -> None:
        command = COMMANDS[number % len(COMMANDS)].format(marker=MARKER, long="x" * 140_000)
        request = CommandRequest(
            command=command,
            roots=roots,
            sandbox=SandboxPolicy() if number % 3 == 0 else NO_SANDBOX,
            timeout_s=0.3,
            spill_name=f"call-{number}",
        )
        async with limiter:
            if number % 11 == 10:
                status = await executor.start(request)
                if number % 2:
                    await executor.kill(status.process_id)
                return
            with anyio.move_on_after(generator.uniform(0.01, 0.2) if number % 4 == 3 else 60):
                await executor.run(request)

    async with anyio.create_task_group() as group:
        for number in range(count):
            group.start_soon(one, number)
    await executor.aclose()


@pytest.mark.parametrize(
    ("count", "at_once"),
    [(60, 8), pytest.param(500, 8, marks=[pytest.mark.slow, pytest.mark.timeout(600)])],
)
async def test_a_storm_of_commands_leaves_nothing(roots: Roots, count: int, at_once: int) -> None:
    await storm(roots, 6, 3)
    before, processes = descriptors(), children()

    await storm(roots, count, at_once)

    assert await gone(f"sleep {MARKER}")
    assert children() == processes
    left = {number: target for number, target in descriptors().items() if number not in before}
    assert left == {}
    # What was spilled and logged is the run's, and goes with its temp folder; scripts are gone.
    assert {path.suffix for path in (roots.temp / "output").iterdir()} <= {".txt", ".log"}
    assert [path.name for path in roots.temp.iterdir()] == ["output"]
    assert [path.name for path in roots.workdir.iterdir()] == []
