"""The executor on the other event loop: nothing in it leans on asyncio."""

import anyio
import pytest

from agentctl.executor.api import CommandRequest, Edit, GrepRequest, WriteMode
from tests.executor.conftest import NO_SANDBOX, Hands
from tests.executor.test_commands import gone

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "trio"


async def test_files_are_written_edited_and_searched(hands: Hands) -> None:
    await hands.write("f", "one\n", WriteMode.CREATE)
    await hands.edit("f", Edit(old="one", new="two"))

    found = await hands.executor.grep(await hands.resolve("."), GrepRequest(pattern="t(w)+o.*"))

    assert [match.text for match in found.matches] == ["two"]


async def test_commands_end_with_all_they_started(hands: Hands) -> None:
    result = await hands.run("seq 1 50000; setsid sleep 66.1 & exit 3")
    with anyio.move_on_after(0.3):
        await hands.run("setsid sleep 66.1 & sleep 66.1")

    assert (result.exit_code, result.survivors_killed, result.output.total_bytes) == (3, 1, 288894)
    assert await gone("sleep 66.1")


async def test_background_commands_are_started_and_killed(hands: Hands) -> None:
    status = await hands.executor.start(
        CommandRequest(command="echo x; exec sleep 66.2", roots=hands.roots, sandbox=NO_SANDBOX)
    )

    killed = await hands.executor.kill(status.process_id)

    assert not killed.running
    assert await gone("sleep 66.2")
