"""Programs that are talked to over their standard streams for as long as a run needs them: tool servers."""

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

import anyio

from agentctl.errors import ToolError
from agentctl.executor.commands import Commands, supervisor_request
from agentctl.executor.launcher import Supervised, exit_of
from agentctl.executor.machine import Machine
from agentctl.executor.prepare import Ready, command_descriptors
from agentctl.executor.process_types import CommandRequest, Conversation
from agentctl.executor.text import show

GRACE_S = 2.0
"""A program whose input was closed may take so long to end by itself."""
_STDERR_KEPT = 16_384
_READ = 1 << 16
_LAST_WORD_S = 15.0
_DRAIN_S = 0.2


@dataclass(slots=True, kw_only=True)
class LocalConversation:
    """A program of this machine under a supervisor; see `Conversation`."""

    supervised: Supervised
    ready: Ready
    stdin: int
    stdout: int
    stderr: int
    ended: Callable[[], None]
    """Told once, when nothing of the program is left."""
    _said: bytes = b""
    _closed: bool = False
    _closing: anyio.Lock = field(default_factory=anyio.Lock)

    async def send(self, data: bytes) -> None:
        """Write all of `data`; see `Conversation.send`."""
        view = memoryview(data)
        while view:
            if self.stdin < 0:
                raise ToolError("The program takes no more input.")
            try:
                view = view[os.write(self.stdin, view) :]
            except BlockingIOError:
                await anyio.wait_writable(self.stdin)
            except OSError as error:
                raise ToolError(f"The program takes no more input: {error.strerror}.") from error

    async def receive(self) -> bytes:
        """Return what the program wrote next; see `Conversation.receive`."""
        while self.stdout >= 0:
            try:
                return os.read(self.stdout, _READ)
            except BlockingIOError:
                await anyio.wait_readable(self.stdout)
        return b""

    async def listen_to_stderr(self) -> None:
        """Keep the end of what the program complains of, until it ends; see `Conversation`."""
        while self.stderr >= 0 and not self._take_stderr():
            await anyio.wait_readable(self.stderr)

    def _take_stderr(self) -> bool:
        """Take in what is there; return whether that was the end."""
        while self.stderr >= 0:
            try:
                piece = os.read(self.stderr, _READ)
            except BlockingIOError:
                return False
            if not piece:
                return True
            self._said = (self._said + piece)[-_STDERR_KEPT:]
        return True

    def stderr_tail(self) -> str:
        """Return the last of what was written on standard error, as text."""
        return show(self._said)

    @property
    def exit_code(self) -> int | None:
        """How it ended, as a shell says it; None while it runs."""
        ended = self.supervised.ended
        return None if ended is None else exit_of(ended["status"])[0]

    async def aclose(self) -> None:
        """End it: its input is closed, then a grace, then all it started; idempotent, and not cancelled."""
        with anyio.CancelScope(shield=True):
            async with self._closing:
                if self._closed:
                    return
                self._closed = True
                await self._end()

    async def _end(self) -> None:
        self._close("stdin")
        async with anyio.create_task_group() as group:
            # A program that is busy writing can't see that its input ended.
            group.start_soon(self._drain)
            group.start_soon(self.listen_to_stderr)
            with suppress(ToolError):
                with anyio.move_on_after(GRACE_S):
                    await self.supervised.over()
                self.supervised.stop()
                with anyio.move_on_after(_LAST_WORD_S):
                    await self.supervised.over()
                self.supervised.give_up()
            group.cancel_scope.deadline = anyio.current_time() + _DRAIN_S
        self._take_stderr()
        for name in ("stdout", "stderr"):
            self._close(name)
        self.supervised.close()
        self.ready.clean_up()
        self.ended()

    async def _drain(self) -> None:
        while await self.receive():
            pass

    def _close(self, name: str) -> None:
        match name:
            case "stdin":
                fd, self.stdin = self.stdin, -1
            case "stdout":
                fd, self.stdout = self.stdout, -1
            case _:
                fd, self.stderr = self.stderr, -1
        if fd >= 0:
            anyio.notify_closing(fd)
            os.close(fd)


class Conversations:
    """Starts the programs that a run talks to."""

    def __init__(self, machine: Machine, commands: Commands) -> None:
        self._machine = machine
        self._commands = commands
        self._ledger = machine.ledger
        self._open: list[LocalConversation] = []

    async def start(self, request: CommandRequest) -> Conversation:
        """Start a program as `Processes.converse` says."""
        ready, boxed = await self._commands.ready(request)
        stdin, our_stdin = os.pipe()
        our_stdout, stdout = os.pipe()
        our_stderr, stderr = os.pipe()
        ours = (our_stdin, our_stdout, our_stderr)
        try:
            for fd in ours:
                os.set_blocking(fd, False)
            asked = supervisor_request(self._machine, boxed, ready, timeout_s=0)
            try:
                with command_descriptors(ready, b"") as (directory, _):
                    supervised = await self._machine.launcher.launch(
                        asked, (directory, stdin, stdout, stderr)
                    )
            finally:
                for fd in (stdin, stdout, stderr):
                    os.close(fd)
            try:
                await supervised.started()
            except BaseException:
                supervised.close()
                raise
        except BaseException:
            for fd in ours:
                os.close(fd)
            raise
        self._ledger.begun(ready.workdir)
        conversation = LocalConversation(
            supervised=supervised,
            ready=ready,
            stdin=our_stdin,
            stdout=our_stdout,
            stderr=our_stderr,
            ended=lambda: self._ledger.ended(ready.workdir),
        )
        self._open.append(conversation)
        return conversation

    async def aclose(self) -> None:
        """End every program. Idempotent."""
        conversations, self._open = self._open, []
        for conversation in conversations:
            await conversation.aclose()
