"""Commands that go on beside the conversation: with an id, a log, and an end at the latest with the run."""

import os
from dataclasses import dataclass
from time import monotonic

import anyio
import anyio.to_thread

from agentctl.errors import ToolError
from agentctl.executor.commands import Commands, supervisor_request
from agentctl.executor.launcher import Supervised, exit_of
from agentctl.executor.machine import Machine
from agentctl.executor.prepare import Ready, command_descriptors, open_new
from agentctl.executor.process_types import BackgroundOutput, BackgroundStatus, CommandRequest
from agentctl.executor.text import cut_end, cut_start, first_lines, last_lines, looks_binary, show

LOG_KEEP_BYTES = 32 << 20
"""The last bytes of output that are kept at least; twice as many are at most."""
_LAST_WORD_S = 15.0
_SHOWN_COMMAND = 200


@dataclass(slots=True)
class _Running:
    process_id: str
    command: str
    supervised: Supervised
    log: int
    ready: Ready
    began: float
    noted_end: bool = False


class Background:
    """The background processes of one run."""

    def __init__(self, machine: Machine, commands: Commands) -> None:
        self._machine = machine
        self._commands = commands
        self._ledger = machine.ledger
        self._processes: dict[str, _Running] = {}
        self._started = 0

    async def start(self, request: CommandRequest) -> BackgroundStatus:
        """Start a process as `Processes.start` says."""
        ready, boxed = await self._commands.ready(request)
        name = f"{ready.output_name}.log"
        log = -1
        try:
            log = await anyio.to_thread.run_sync(open_new, ready.output_directory, name)
            asked = supervisor_request(
                self._machine, boxed, ready, timeout_s=0, log_keep_bytes=LOG_KEEP_BYTES
            )
            with command_descriptors(ready, request.stdin) as (directory, stdin):
                supervised = await self._machine.launcher.launch(asked, (directory, stdin, log))
            try:
                await supervised.started()
            except BaseException:
                supervised.close()
                raise
        except BaseException:
            ready.clean_up()
            if log >= 0:
                os.close(log)
            raise
        self._started += 1
        process_id = f"bg{self._started}"
        shown = request.command if isinstance(request.command, str) else " ".join(request.command)
        running = _Running(
            process_id=process_id,
            command=shown if len(shown) <= _SHOWN_COMMAND else f"{shown[:_SHOWN_COMMAND]}…",
            supervised=supervised,
            log=log,
            ready=ready,
            began=monotonic(),
        )
        self._processes[process_id] = running
        self._ledger.begun(ready.workdir)
        return self._status(running)

    async def output(
        self, process_id: str, offset: int, limit_bytes: int, limit_lines: int
    ) -> BackgroundOutput:
        """Return a part of a process's output as `Processes.output` says."""
        running = self._find(process_id)
        status = self._status(running)
        asked = max(0, status.total_bytes + offset) if offset < 0 else min(offset, status.total_bytes)
        start = _kept_from(running.log, asked, status.total_bytes)
        data = await anyio.to_thread.run_sync(os.pread, running.log, limit_bytes, start)
        if offset < 0:
            cut = cut_start(data)
            start, data = start + cut, data[cut:]
        if limit_lines and offset < 0 and start + len(data) >= status.total_bytes:
            kept = last_lines(data, limit_lines)
            start, data = start + len(data) - len(kept), kept
        elif limit_lines:
            data = first_lines(data, limit_lines)
        if status.running or start + len(data) < status.total_bytes:
            data = data[: len(data) - cut_end(data)]
        text = f"[binary output, {len(data)} bytes]" if looks_binary(data) else show(data)
        return BackgroundOutput(
            status=status,
            text=text,
            offset=start,
            next_offset=start + len(data),
            lost_bytes=start - asked if offset >= 0 else 0,
        )

    async def kill(self, process_id: str) -> BackgroundStatus:
        """End a process as `Processes.kill` says."""
        running = self._find(process_id)
        await self._end([running])
        return self._status(running)

    def all(self) -> tuple[BackgroundStatus, ...]:
        """Return every process, oldest first."""
        return tuple(self._status(running) for running in self._processes.values())

    async def aclose(self) -> None:
        """End every process and close its log; the logs stay. Idempotent."""
        processes, self._processes = list(self._processes.values()), {}
        await self._end(processes)
        for running in processes:
            self._status(running)
            running.supervised.close()
            os.close(running.log)

    async def _end(self, processes: list[_Running]) -> None:
        for running in processes:
            running.supervised.stop()
        with anyio.move_on_after(_LAST_WORD_S, shield=True):
            for running in processes:
                await running.supervised.over()
        for running in processes:
            running.supervised.give_up()

    def _find(self, process_id: str) -> _Running:
        running = self._processes.get(process_id)
        if running is None:
            known = ", ".join(self._processes) or "there are none"
            raise ToolError(f"There is no background process {process_id!r}; known: {known}.")
        return running

    def _status(self, running: _Running) -> BackgroundStatus:
        supervised = running.supervised
        if supervised.ended is None and not supervised.lost:
            supervised.hear()
        ended = supervised.ended
        alive = ended is None and not supervised.lost
        if not alive and not running.noted_end:
            running.noted_end = True
            running.ready.clean_up()
            self._ledger.ended(running.ready.workdir)
        return BackgroundStatus(
            process_id=running.process_id,
            command=running.command,
            running=alive,
            exit_code=None if ended is None else exit_of(ended["status"])[0],
            disk_low=ended is not None and ended["disk_low"],
            started_s_ago=monotonic() - running.began,
            total_bytes=os.fstat(running.log).st_size,
        )


def _kept_from(log: int, offset: int, size: int) -> int:
    """Return the first position from an offset on that the log still holds."""
    seek_data = getattr(os, "SEEK_DATA", None)
    if seek_data is None or offset >= size:
        return offset
    try:
        return os.lseek(log, offset, seek_data)
    except OSError:
        return offset
