"""Commands in the background: an id, a log, an end."""

from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from agentctl.errors import ToolError
from agentctl.executor.api import BackgroundOutput, CommandRequest, SandboxPolicy
from agentctl.executor.local import LocalExecutor
from tests.executor.conftest import NO_SANDBOX, Hands

pytestmark = pytest.mark.anyio


async def until(hands: Hands, process_id: str, text: str, offset: int = 0) -> BackgroundOutput:
    with anyio.fail_after(10):
        while True:
            found = await hands.executor.output(process_id, offset=offset)
            if text in found.text:
                return found
            await anyio.lowlevel.checkpoint()


def request(hands: Hands, command: str, sandbox: SandboxPolicy = NO_SANDBOX) -> CommandRequest:
    return CommandRequest(command=command, roots=hands.roots, sandbox=sandbox)


@pytest.mark.parametrize("sandbox", [NO_SANDBOX, SandboxPolicy()], ids=["bare", "in the sandbox"])
async def test_output_is_read_on_from_where_it_was_left(hands: Hands, sandbox: SandboxPolicy) -> None:
    status = await hands.executor.start(
        request(hands, "echo one; read -t 0.3 x <> <(:); echo two; exec sleep 63.1", sandbox)
    )

    first = await until(hands, status.process_id, "one")
    second = await until(hands, status.process_id, "two", first.next_offset)

    assert status.running
    assert (first.text, first.offset) == ("one\n", 0)
    assert (second.text, second.offset) == ("two\n", 4)
    assert (await hands.executor.output(status.process_id, offset=-4)).text == "two\n"


async def test_the_end_and_its_code_are_told(hands: Hands) -> None:
    status = await hands.executor.start(request(hands, "echo done; exit 3"))

    with anyio.fail_after(10):
        while hands.executor.background()[0].running:
            await anyio.lowlevel.checkpoint()

    (ended,) = hands.executor.background()
    assert (ended.process_id, ended.exit_code, ended.total_bytes) == (status.process_id, 3, 5)


async def test_killing_ends_all_of_it_and_twice_is_fine(hands: Hands) -> None:
    status = await hands.executor.start(
        request(hands, "trap 'echo caught; exit 7' TERM; sleep 63.2 & echo up; wait")
    )
    await until(hands, status.process_id, "up")

    killed = await hands.executor.kill(status.process_id)
    again = await hands.executor.kill(status.process_id)

    assert (killed.running, killed.exit_code) == (False, 7)
    assert again.exit_code == 7
    assert "caught" in (await hands.executor.output(status.process_id)).text


async def test_an_unknown_id_names_the_known_ones(hands: Hands) -> None:
    await hands.executor.start(request(hands, "true"))

    with pytest.raises(ToolError, match="bg1"):
        await hands.executor.output("bg9")


async def test_a_program_that_is_not_there_is_told(hands: Hands) -> None:
    with pytest.raises(ToolError, match="no-such-program"):
        await hands.executor.start(
            CommandRequest(command=("no-such-program",), roots=hands.roots, sandbox=NO_SANDBOX)
        )

    assert hands.executor.background() == ()


async def test_closing_the_executor_ends_them(roots: object, hands: Hands) -> None:
    executor = LocalExecutor()
    await executor.start(request(hands, "setsid sleep 63.3 & sleep 63.3"))

    await executor.aclose()
    await executor.aclose()

    lines = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline")]
    assert b"sleep\x0063.3\x00" not in lines


async def test_endless_output_keeps_its_end_and_says_what_is_lost(
    hands: Hands, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentctl.executor.background.LOG_KEEP_BYTES", 1 << 16)
    status = await hands.executor.start(request(hands, "seq 1 200000; echo finished; exec sleep 63.4"))
    with anyio.fail_after(20):
        while "finished" not in (await hands.executor.output(status.process_id, offset=-100)).text:
            await anyio.lowlevel.checkpoint()

    beginning = await hands.executor.output(status.process_id, offset=0)

    (log,) = (hands.roots.temp / "output").iterdir()
    assert beginning.status.total_bytes == 1288895 + 9
    assert log.stat().st_size == 1288895 + 9
    if beginning.lost_bytes:
        # The file system gives back what was punched out.
        assert log.stat().st_blocks * 512 <= 3 << 16
        assert beginning.offset == beginning.lost_bytes


async def test_characters_are_never_split_between_reads(hands: Hands) -> None:
    status = await hands.executor.start(
        request(hands, "printf '\\xe4\\xbd\\xa0\\xe5\\xa5\\xbd'; exec sleep 63.5")
    )
    await until(hands, status.process_id, "\u4f60\u597d")

    first = await hands.executor.output(status.process_id, limit_bytes=4)
    second = await hands.executor.output(status.process_id, offset=first.next_offset)

    assert (first.text, second.text) == ("\u4f60", "\u597d")
