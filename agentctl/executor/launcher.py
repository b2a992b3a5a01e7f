"""agentctl's side of the supervisors: starts the launcher, hands it commands, and hears how they end."""

import json
import os
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import anyio

from agentctl.errors import RunFailed, ToolError
from agentctl.executor.supervisor_wire import Answer, Ended, Request

# Fed through standard input so that the process list does not show agentctl's name: a command such as
# `pkill -f agentctl` is not to end those who clean up after it.
_PROGRAM = """
import sys
sys.path.append({path!r})
from agentctl.executor.supervisor import serve
serve({channel})
"""
_LENGTH = struct.Struct("!I")
_READ = 1 << 16


class Supervised:
    """A command under a supervisor, as agentctl sees it."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._rest = b""
        self.pid = 0
        self._supervisor = 0
        self.ended: Ended | None = None
        self.lost = False
        """The supervisor was killed by something else."""

    async def started(self) -> None:
        """Return once the command runs.

        Raises:
            ToolError: it could not be started; says what was missing.
        """
        while not self.pid and self.ended is None and not self.lost:
            await anyio.wait_readable(self._control)
            self.hear()

    async def over(self) -> None:
        """Return once nothing of the command is left. Safe to cancel.

        Raises:
            ToolError: it could not be started; says what was missing.
        """
        while self.ended is None and not self.lost:
            await anyio.wait_readable(self._control)
            self.hear()

    def hear(self) -> None:
        """Take in what the supervisor said up to now. Does not block.

        Raises:
            ToolError: the command could not be started.
        """
        closed = False
        try:
            while not closed:
                try:
                    piece = self._control.recv(_READ)
                except ConnectionResetError:
                    piece = b""  # it ended with a word of ours unread; all it said itself was read before
                self._rest += piece
                closed = not piece
        except BlockingIOError:
            pass
        except ConnectionResetError:
            # It ended before it read our last word; what it said has been received by now.
            closed = True
        *lines, self._rest = self._rest.split(b"\n")
        for line in lines:
            self._understand(json.loads(line))
        self.lost = closed and self.ended is None

    def _understand(self, said: Answer) -> None:
        if "failed" in said:
            self.lost = True
            raise _start_failed(said["failed"], said["about"])
        if "supervisor" in said:
            self._supervisor = said["supervisor"]
        if "started" in said:
            self.pid = said["started"]
        if "ended" in said:
            self.ended = said["ended"]

    def stop(self) -> None:
        """Ask that the command and all it started be ended. Idempotent; returns at once."""
        with suppress(OSError):
            self._control.send(b"s")

    def give_up(self) -> None:
        """End a supervisor that does not answer; the launcher ends what it leaves."""
        self.lost = self.ended is None
        if self._supervisor and self.lost:
            with suppress(OSError):
                os.kill(self._supervisor, signal.SIGKILL)

    def close(self) -> None:
        """Let go; what still runs is ended by the supervisor. Idempotent."""
        self._control.close()


class Launcher:
    """Starts commands. One serves a whole process, however many runs are in it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None
        self._lock = anyio.Lock()

    async def launch(self, request: Request, fds: Sequence[int]) -> Supervised:
        """Start a command with the descriptors its request tells of; they stay the caller's to close.

        Whether it could be started is known from `started` or `over`.

        Raises:
            RunFailed: no supervisor could be started.
        """
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        try:
            await self._hand_over([theirs.fileno(), *fds])
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        command = Supervised(ours)
        try:
            await _send(ours, _framed(request))
        except BaseException:
            command.close()
            raise
        return command

    async def succeeds(self, request: Request) -> bool:
        """Run a command without input or output; return whether it ended with 0."""
        # SAFETY: fixed names.
        root = os.open("/", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        try:
            command = await self.launch(request, (root, nothing, nothing, nothing))
        finally:
            os.close(root)
            os.close(nothing)
        try:
            await command.over()
        except ToolError:
            return False
        finally:
            command.close()
        return command.ended is not None and command.ended["status"] == 0

    async def _hand_over(self, fds: list[int]) -> None:
        async with self._lock:
            for last_try in (False, True):
                channel = self._channel or await self._start()
                try:
                    await _send_descriptors(channel, fds)
                except OSError as error:
                    # It was killed by something else; another is started once.
                    self._forget()
                    if last_try:
                        raise RunFailed(f"No command can be started: {error.strerror}.") from error
                else:
                    return

    async def _start(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        try:
            self._process = await anyio.to_thread.run_sync(_start_process, theirs.fileno())
        except OSError as error:
            ours.close()
            raise RunFailed(
                f"Python could not be started to supervise commands: {error.strerror}."
            ) from error
        finally:
            theirs.close()
        self._channel = ours
        return ours

    def _forget(self) -> None:
        if self._channel is not None:
            self._channel.close()
            self._channel = None
        process, self._process = self._process, None
        if process is not None:
            with suppress(OSError):
                process.send_signal(signal.SIGKILL)
            process.wait()

    async def aclose(self) -> None:
        """End the launcher; supervisors end with the last word of their commands. Idempotent."""
        process, self._process = self._process, None
        if self._channel is not None:
            self._channel.close()
            self._channel = None
        if process is not None:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(process.wait)


def _start_process(channel: int) -> subprocess.Popen[bytes]:
    program = _PROGRAM.format(path=str(Path(__file__).resolve().parents[2]), channel=channel)
    # SAFETY: our own interpreter and our own text; no environment, no descriptor but the channel.
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(channel,),
        start_new_session=True,
        env={"PYTHONDONTWRITEBYTECODE": "1"},
        cwd="/",
    )
    assert process.stdin is not None  # noqa: S101 - PIPE was asked for
    process.stdin.write(program.encode())
    process.stdin.close()
    return process


def _framed(request: Request) -> bytes:
    body = json.dumps(request).encode()
    return _LENGTH.pack(len(body)) + body


async def _send(target: socket.socket, data: bytes) -> None:
    view = memoryview(data)
    while view:
        try:
            view = view[target.send(view) :]
        except BlockingIOError:
            await anyio.wait_writable(target)


async def _send_descriptors(target: socket.socket, fds: list[int]) -> None:
    while True:
        try:
            socket.send_fds(target, [bytes([len(fds)])], fds)
        except BlockingIOError:
            await anyio.wait_writable(target)
        else:
            return


def _start_failed(text: str, about: str) -> ToolError:
    if about == "the sandbox":
        return ToolError(f"The sandbox could not be set up ({text}); the command did not run.")
    if about == "the working directory":
        return ToolError(f"The working directory can't be entered ({text}); the command did not run.")
    return ToolError(f"{about or 'The command'!r} could not be started: {text}.")


def exit_of(status: int) -> tuple[int, int | None]:
    """Return the exit code a shell would give for a wait status, and the signal if one ended it. Pure."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return 128 + number, number
    return os.WEXITSTATUS(status), None
