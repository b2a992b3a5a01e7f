"""A running run's door for other terminals of the same user: a Unix socket that nobody else can open.

One connection carries one request and one reply, each a JSON object on a line of its own; blank lines are
skipped. The door leads to questions and to stopping; everything durable goes through the journal.
"""

import json
import os
import socket
import struct
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

import anyio
import anyio.abc
import anyio.to_thread
from anyio.streams.buffered import BufferedByteReceiveStream

from agentctl.protocol.codec import decode, encode
from agentctl.protocol.questions import Answer
from agentctl.protocol.values import JsonValue
from agentctl.records import dataclass

_LONGEST_NAME = 100
"""Bytes of a socket's path that every system takes; Linux has room for 107, macOS for 103."""
_LONGEST_LINE = 4 * 1024 * 1024
_PATIENCE_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GiveAnswer:
    """Answer a question that waits."""

    question_id: str
    answer: Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class StopRun:
    """Stop the whole tree of agents: `pause` can be resumed, `cancel` is the end."""

    how: Literal["pause", "cancel"]


Request: TypeAlias = GiveAnswer | StopRun


class Control(Protocol):
    """What a run lets other terminals do. Called from the run's event loop; never blocks."""

    def answer(self, question_id: str, answer: Answer) -> bool:
        """Give an answer; False when the question does not wait, or no longer."""

    def stop(self, how: Literal["pause", "cancel"]) -> None:
        """Begin to stop the run. Idempotent."""


async def serve_control(
    folder: Path,
    run_id: str,
    control: Control,
    *,
    task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """Open the run's door in `folder` and serve it until cancelled; the door is closed behind."""
    async with _door(folder, run_id) as listener:
        task_status.started()

        async def serve(stream: anyio.abc.SocketStream) -> None:
            async with stream:
                with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream):
                    await _serve_one(stream, control)

        await listener.serve(serve)


async def send_request(folder: Path, run_id: str, request: Request) -> bool | None:
    """Return whether the run took `request`; None when no process is at work on the run.

    Gives up after a few seconds of silence, as if nobody were there.
    """
    path = _reachable(folder / f"{run_id}.sock")
    with anyio.move_on_after(_PATIENCE_S):
        try:
            stream = await anyio.connect_unix(path)
        except OSError:
            return None
        async with stream:
            with suppress(anyio.BrokenResourceError, anyio.EndOfStream, anyio.IncompleteRead):
                await stream.send(_line(encode(request)))
                reply = json.loads(await _receive_line(stream))
                return isinstance(reply, dict) and reply.get("done") is True
    return None


async def _serve_one(stream: anyio.abc.SocketStream, control: Control) -> None:
    with anyio.move_on_after(_PATIENCE_S):
        if not _is_ours(stream):
            return
        try:
            done = _do(control, decode(Request, json.loads(await _receive_line(stream))))
        except anyio.IncompleteRead:
            return
        except (ValueError, RecursionError, anyio.DelimiterNotFound) as error:
            await stream.send(_line({"done": False, "problem": str(error)}))
            return
        await stream.send(_line({"done": done}))


def _do(control: Control, request: Request) -> bool:
    match request:
        case GiveAnswer(question_id=question_id, answer=answer):
            return control.answer(question_id, answer)
        case StopRun(how=how):
            control.stop(how)
            return True


async def _receive_line(stream: anyio.abc.SocketStream) -> bytes:
    buffered = BufferedByteReceiveStream(stream)
    line = b""
    while not line.strip():
        line = await buffered.receive_until(b"\n", _LONGEST_LINE)
    return line


def _line(value: JsonValue) -> bytes:
    return json.dumps(value).encode() + b"\n"


@asynccontextmanager
async def _door(folder: Path, run_id: str) -> AsyncIterator[anyio.abc.SocketListener]:
    """Give a listening socket that is found as `folder/RUN.sock`."""
    place = await anyio.to_thread.run_sync(_make_place, folder, run_id)
    # SAFETY: the socket opens in a folder that only this user can enter, and is 0600 besides.
    listener = await anyio.create_unix_listener(place.socket, mode=0o600)
    try:
        await anyio.to_thread.run_sync(place.show)
        yield listener
    finally:
        with anyio.CancelScope(shield=True):
            await listener.aclose()
            await anyio.to_thread.run_sync(place.remove)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where a socket is, and under which name it is found."""

    name: Path
    socket: Path

    def show(self) -> None:
        """Make the name lead to the socket."""
        if self.socket != self.name:
            self.name.symlink_to(self.socket)

    def remove(self) -> None:
        """Take everything away."""
        self.name.unlink(missing_ok=True)
        if self.socket != self.name:
            self.socket.unlink(missing_ok=True)
            self.socket.parent.rmdir()


def _make_place(folder: Path, run_id: str) -> _Place:
    """Return a free place: in `folder`, or in a folder of its own where that path would be too long."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    name = folder / f"{run_id}.sock"
    name.unlink(missing_ok=True)  # left behind by a process that was killed
    if len(os.fsencode(name)) <= _LONGEST_NAME:
        return _Place(name=name, socket=name)
    return _Place(name=name, socket=Path(tempfile.mkdtemp(prefix="agentctl-")) / "run.sock")


def _reachable(name: Path) -> Path:
    try:
        return name.readlink()
    except OSError:
        return name


def _is_ours(stream: anyio.abc.SocketStream) -> bool:
    """Return whether the other end is this user, where the system can tell."""
    option = getattr(socket, "SO_PEERCRED", None)  # Linux only; elsewhere the folder's mode is what guards
    if option is None:
        return True
    raw = stream.extra(anyio.abc.SocketAttribute.raw_socket)  # noqa: S610 - a socket, not a query
    _, user, _ = struct.unpack("3i", raw.getsockopt(socket.SOL_SOCKET, option, struct.calcsize("3i")))
    return user in (os.getuid(), 0)
