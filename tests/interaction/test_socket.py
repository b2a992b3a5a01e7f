import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import anyio
import pytest

from agentctl.interaction.socket import GiveAnswer, StopRun, send_request, serve_control
from agentctl.protocol.questions import Answer, ApprovalAnswer

pytestmark = pytest.mark.anyio
RUN = "r-0123456789abcdef"


@dataclass(slots=True)
class Recording:
    """A run that notes what it was asked to do."""

    answers: dict[str, Answer] = field(default_factory=dict)
    stopped: list[str] = field(default_factory=list)

    def answer(self, question_id: str, answer: Answer) -> bool:
        return self.answers.setdefault(question_id, answer) is answer

    def stop(self, how: Literal["pause", "cancel"]) -> None:
        self.stopped.append(how)


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[Recording]:
    control = Recording()
    async with anyio.create_task_group() as group:
        await group.start(serve_control, folder, RUN, control)
        yield control
        group.cancel_scope.cancel()


async def test_an_answer_from_another_terminal_arrives_once(tmp_path: Path) -> None:
    once = GiveAnswer(question_id="q-1", answer=ApprovalAnswer(choice="once", by="approvals"))
    always = GiveAnswer(question_id="q-1", answer=ApprovalAnswer(choice="always", by="approvals"))

    async with serving(tmp_path) as control:
        replies = [await send_request(tmp_path, RUN, one) for one in (once, always)]

    assert replies == [True, False]
    assert control.answers == {"q-1": once.answer}


async def test_stopping_reaches_the_run(tmp_path: Path) -> None:
    async with serving(tmp_path) as control:
        assert await send_request(tmp_path, RUN, StopRun(how="pause"))

    assert control.stopped == ["pause"]


async def test_only_the_user_can_open_the_door(tmp_path: Path) -> None:
    folder = tmp_path / "live"

    async with serving(folder):
        door = (folder / f"{RUN}.sock").stat()

    assert stat.S_IMODE(door.st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert list(folder.iterdir()) == []


async def test_a_long_path_is_reached_through_a_link(tmp_path: Path) -> None:
    folder = tmp_path / ("deep-" * 30)

    async with serving(folder) as control:
        target = (folder / f"{RUN}.sock").readlink()
        assert await send_request(folder, RUN, StopRun(how="cancel"))

    assert control.stopped == ["cancel"]
    assert not target.parent.exists()


async def test_nobody_at_work_is_none(tmp_path: Path) -> None:
    assert await send_request(tmp_path, RUN, StopRun(how="pause")) is None


async def test_what_a_killed_process_left_behind_is_replaced(tmp_path: Path) -> None:
    left = await anyio.create_unix_listener(tmp_path / "left")
    (tmp_path / "left").rename(tmp_path / f"{RUN}.sock")
    await left.aclose()

    assert await send_request(tmp_path, RUN, StopRun(how="pause")) is None
    async with serving(tmp_path) as control:
        assert await send_request(tmp_path, RUN, StopRun(how="pause"))

    assert control.stopped == ["pause"]


@pytest.mark.parametrize(
    ("sent", "reply"),
    [
        (b'\r\n\n{"type":"StopRun","how":"pause"}\r\n', b'{"done": true}\n'),
        (b"not json\n", b'"done": false'),
        (b'{"type":"Nobody"}\n', b'"done": false'),
        (b'{"type":"StopRun","how":"explode"}\n', b'"done": false'),
        (b"[" * 100_000 + b"\n", b'"done": false'),
    ],
    ids=["blank lines are skipped", "not JSON", "unknown request", "unknown word", "deep"],
)
async def test_the_line_protocol_takes_what_is_well_formed_and_refuses_the_rest(
    tmp_path: Path, sent: bytes, reply: bytes
) -> None:
    async with serving(tmp_path), await anyio.connect_unix(tmp_path / f"{RUN}.sock") as stream:
        await stream.send(sent)

        assert reply in await stream.receive()


async def test_a_caller_that_hangs_up_does_no_harm(tmp_path: Path) -> None:
    async with serving(tmp_path) as control:
        for sent in (b"", b'{"type":'):
            async with await anyio.connect_unix(tmp_path / f"{RUN}.sock") as stream:
                if sent:
                    await stream.send(sent)
        assert await send_request(tmp_path, RUN, StopRun(how="pause"))

    assert control.stopped == ["pause"]
