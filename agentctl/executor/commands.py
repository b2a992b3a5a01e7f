"""Commands that are waited for: started, listened to, ended, and all they left behind ended too."""

import fcntl
import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from time import monotonic

import anyio
import anyio.lowlevel
import anyio.to_thread

from agentctl.errors import ToolError
from agentctl.executor.git_guard import GitGuard
from agentctl.executor.launcher import Supervised, exit_of
from agentctl.executor.machine import Machine
from agentctl.executor.measure import free_bytes
from agentctl.executor.output import PIECE, Collector, Spill
from agentctl.executor.paths import RootPins
from agentctl.executor.prepare import Ready, command_descriptors, prepare
from agentctl.executor.process_types import CommandRequest, CommandResult
from agentctl.executor.sandbox import Boxed
from agentctl.executor.sandbox_policy import SandboxKind
from agentctl.executor.supervisor_wire import Ended, Request

GRACE_S = 0.5
"""Between SIGTERM and SIGKILL, for what a command left running and for a command whose time is up."""
SPILL_CAP_BYTES = 1 << 30
"""Of one command. More is counted and not kept."""
_SPILL_TOTAL_BYTES = 4 << 30
"""Of one run; what the disk has to keep free comes off besides."""
_FLOOR_BYTES = 1 << 30
_LAST_WORD_S = 15.0
"""A supervisor gives up on processes that do not die after a third of this."""
_MOST_AFTER_END = 64 << 20


@dataclass(slots=True)
class _Stream:
    pipe: int
    collector: Collector


class Commands:
    """Runs the commands of one run."""

    def __init__(
        self,
        machine: Machine,
        pins: RootPins,
        *,
        environment: Mapping[str, str],
        passed: tuple[str, ...],
    ) -> None:
        self._machine = machine
        self._pins = pins
        self._ledger = machine.ledger
        self._spilled = 0
        self._environment = environment
        self._passed = passed

    async def ready(self, request: CommandRequest) -> tuple[Ready, Boxed]:
        """Return a command made ready, in its sandbox.

        Raises:
            ToolError: as `prepare`.
            SandboxUnavailable: a sandbox is demanded and there is none.
        """
        request = replace(request, pass_names=(*self._passed, *request.pass_names))
        ready = await anyio.to_thread.run_sync(prepare, request, self._pins, self._environment)
        try:
            boxed = await self._machine.sandboxes.box(
                request, ready.argv, ready.environment, ready.cwd, ready.workdir
            )
        except BaseException:
            ready.clean_up()
            raise
        return ready, boxed

    async def run(self, request: CommandRequest) -> CommandResult:
        """Run a command as `Processes.run` says."""
        async with self._machine.turns:
            return await self._run_now(request)

    async def _run_now(self, request: CommandRequest) -> CommandResult:
        ready, boxed = await self.ready(request)
        try:
            guard = await _guard(boxed, ready)
            tampered: tuple[str, ...] = ()
            try:
                with self._ledger.running(ready.workdir) as wrote:
                    result, blocks = await self._run(request, ready, boxed)
                    wrote(blocks)
            finally:
                # A command that was cancelled is put right as one that ended is.
                if guard is not None:
                    with anyio.CancelScope(shield=True):
                        tampered = await anyio.to_thread.run_sync(guard.put_back)
            return replace(result, tampered=tampered) if tampered else result
        finally:
            ready.clean_up()

    async def _run(self, request: CommandRequest, ready: Ready, boxed: Boxed) -> tuple[CommandResult, int]:
        began = monotonic()
        with ExitStack() as stack:
            streams, ends = self._streams(request, ready, stack)
            command = await self._launch(request, ready, boxed, ends)
            stack.callback(command.close)
            await _listen(command, streams, ready.timeout_s)
            if command.ended is None:
                raise ToolError(
                    "The process that supervised the command was killed by something else; the command was "
                    "ended, and what it did until then is not known."
                )
            for stream in streams:
                _drain(stream)
            outputs = [stream.collector.finish() for stream in streams]
        for output in outputs:
            self._spilled += output.spill_bytes
        ended = command.ended
        _check_sandbox(boxed, ended, outputs[-1].text)
        exit_code, signal = exit_of(ended["status"])
        result = CommandResult(
            exit_code=exit_code,
            signal=signal,
            output=outputs[0],
            stderr=outputs[1] if request.split_stderr else None,
            timed_out=ended["timed_out"],
            disk_low=ended["disk_low"],
            timeout_s=ready.timeout_s,
            survivors_killed=max(0, ended["survivors"] - ended["left"]),
            survivors_left=ended["left"],
            duration_s=monotonic() - began,
            sandbox=boxed.kind,
        )
        return result, ended["blocks"]

    def _streams(
        self, request: CommandRequest, ready: Ready, stack: ExitStack
    ) -> tuple[list[_Stream], list[int]]:
        """Return what is read from, and the other ends, which the caller closes once the command has them."""
        streams: list[_Stream] = []
        ends: list[int] = []
        for suffix in ("", ".stderr") if request.split_stderr else ("",):
            read_end, write_end = os.pipe()
            stack.callback(os.close, read_end)
            os.set_blocking(read_end, False)
            spill = Spill(ready.output_directory, f"{ready.output_name}{suffix}.txt", self._spill_cap(ready))
            stack.callback(spill.close)
            collector = Collector(
                head_bytes=request.head_bytes,
                tail_bytes=request.tail_bytes,
                end_lines=request.end_lines,
                spill=spill,
                on_output=request.on_output,
            )
            streams.append(_Stream(read_end, collector))
            ends.append(write_end)
        return streams, ends

    def _spill_cap(self, ready: Ready) -> Callable[[], int]:
        def cap() -> int:
            free = free_bytes(ready.output_directory) - _FLOOR_BYTES
            return max(0, min(SPILL_CAP_BYTES, _SPILL_TOTAL_BYTES - self._spilled, free))

        return cap

    async def _launch(
        self, request: CommandRequest, ready: Ready, boxed: Boxed, ends: list[int]
    ) -> Supervised:
        try:
            with command_descriptors(ready, request.stdin) as (directory, stdin):
                asked = supervisor_request(self._machine, boxed, ready, timeout_s=ready.timeout_s)
                return await self._machine.launcher.launch(asked, (directory, stdin, *ends))
        finally:
            for end in ends:
                os.close(end)


def supervisor_request(
    machine: Machine, boxed: Boxed, ready: Ready, *, timeout_s: float, log_keep_bytes: int = 0
) -> Request:
    """Return what a supervisor is told. Pure."""
    return Request(
        argv=boxed.argv,
        environment=ready.environment,
        timeout_s=timeout_s,
        grace_s=GRACE_S,
        wrapped=boxed.wrapped,
        filter_hex=boxed.filter_hex,
        confinement=boxed.confinement,
        descriptors=machine.descriptors,
        floor_path=str(ready.workdir),
        floor_bytes=_FLOOR_BYTES,
        log_keep_bytes=log_keep_bytes,
    )


async def _listen(command: Supervised, streams: list[_Stream], timeout_s: float) -> None:
    """Read until nothing of the command is left; when cancelled, first see to it that nothing is.

    The supervisor keeps the time. Should a command have stopped it (by tracing it, which its user may do), it
    is ended here a little later, with all it has.

    Raises:
        ToolError: it could not be started.
    """
    failure: ToolError | None = None
    try:
        async with anyio.create_task_group() as group:
            for stream in streams:
                group.start_soon(_read, stream)
            try:
                with anyio.move_on_after(timeout_s + _LAST_WORD_S):
                    await command.over()
            except ToolError as error:
                failure = error
            group.cancel_scope.cancel()
    finally:
        if command.ended is None and failure is None and not command.lost:
            command.stop()
            with anyio.move_on_after(_LAST_WORD_S, shield=True):
                await command.over()
            command.give_up()
    if failure is not None:
        raise failure


async def _read(stream: _Stream) -> None:
    grown = False
    while True:
        count = await _take(stream)
        if count == 0:
            return
        if count is None:
            await anyio.wait_readable(stream.pipe)
        elif count >= _WORTH_A_LARGE_PIPE and not grown:
            grown = True
            _grow(stream.pipe)
        await anyio.lowlevel.checkpoint()


_WORTH_A_LARGE_PIPE = 1 << 16


async def _take(stream: _Stream) -> int | None:
    """Move one piece; None when there is none for now, 0 at the end."""
    if stream.collector.unseen:
        return await anyio.to_thread.run_sync(stream.collector.take, stream.pipe)
    try:
        data = os.read(stream.pipe, PIECE)
    except BlockingIOError:
        return None
    if stream.collector.goes_to_disk:
        # What was read is nowhere else: the end of the command, which cancels this task, must not drop it.
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(stream.collector.add, data)
    else:
        stream.collector.add(data)
    return len(data)


def _drain(stream: _Stream) -> None:
    """Take what the command had still written when it was over."""
    taken = 0
    while taken < _MOST_AFTER_END:
        try:
            data = os.read(stream.pipe, PIECE)
        except BlockingIOError:
            return
        if not data:
            return
        taken += len(data)
        stream.collector.add(data)


def _grow(pipe: int) -> None:
    """Ask for a larger pipe, so that a program that writes much wakes us less often."""
    set_size = getattr(fcntl, "F_SETPIPE_SZ", None)
    if set_size is not None:
        with suppress(OSError):
            fcntl.fcntl(pipe, set_size, PIECE)


async def _guard(boxed: Boxed, ready: Ready) -> GitGuard | None:
    places = boxed.places
    if places is None or (places.git is None and not places.own):
        return None
    return await anyio.to_thread.run_sync(GitGuard, places.git, ready.workdir, places.own)


def _check_sandbox(boxed: Boxed, ended: Ended, output: str) -> None:
    """Tell a sandbox that could not be set up from a command that failed in it.

    Raises:
        ToolError: bubblewrap ended before it started the command.
    """
    stopped = ended["timed_out"] or ended["disk_low"]
    if boxed.kind is not SandboxKind.BUBBLEWRAP or stopped or not ended["status"]:
        return
    if '"exit-code"' not in ended["wrapper_said"] and os.WIFEXITED(ended["status"]):
        raise ToolError(
            f"The sandbox could not be set up, and the command did not run: {output.strip()[:500]}"
        )
