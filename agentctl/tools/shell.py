"""`shell`, `shell_output` and `shell_kill`: the line is analysed once, judged, and then run as it is."""

import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import field, replace
from typing import Annotated

import anyio

from agentctl.errors import ToolError
from agentctl.executor.api import (
    BackgroundStatus,
    CommandRequest,
    CommandResult,
    Executor,
    Roots,
    SandboxKind,
    WorkdirChange,
    WorkdirState,
)
from agentctl.executor.text import without_redraws, without_sequences
from agentctl.policy.shell.analyse import analyse
from agentctl.protocol.effects import WritePath
from agentctl.protocol.values import JsonObject
from agentctl.records import dataclass
from agentctl.tools.definition import ActContext, Prepared, Tool, ToolOutput, ToolPlace
from agentctl.tools.places import room, roots_of
from agentctl.tools.schema import Bounds, Says
from agentctl.tools.shell_effects import Locator, leaving_sandbox
from agentctl.tools.typed import typed_tool

_SHOWN_BYTES = 14_000
"""Of the beginning and of the end each: a result is never cut again on its way to the model."""
_SHOWN_LINES = 180
"""As `_SHOWN_BYTES`."""
_TIMEOUT_S = 120
_MOST_TIMEOUT_S = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellArguments:
    """Arguments of `shell`."""

    command: Annotated[str, Says("", Bounds(min_length=1))]
    timeout_s: Annotated[int, Says("At most 3600; more counts as that.", Bounds(minimum=1))] = _TIMEOUT_S
    background: Annotated[bool, Says("Return an id at once.")] = False
    unsandboxed: Annotated[str, Says("Why it must run outside the sandbox; a person is asked.")] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellOutputArguments:
    """Arguments of `shell_output`."""

    id: str
    offset: Annotated[int, Says("Byte to read from; negative counts from the end.")] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellKillArguments:
    """Arguments of `shell_kill`."""

    id: str


def shell_tools(executor: Executor) -> tuple[Tool, ...]:
    """Return the three tools that run programs."""
    shell = _Shell(executor=executor)
    return (
        typed_tool(
            "shell",
            "Run a bash command line in the workdir. Each call is a new shell without input.",
            ShellArguments,
            shell.run,
        ),
        typed_tool("shell_output", "What a background command wrote.", ShellOutputArguments, shell.output),
        typed_tool("shell_kill", "End a background command.", ShellKillArguments, shell.kill),
    )


@dataclass(slots=True, kw_only=True)
class _WriteLedger:
    """Counts what commands write to the workdir, each change once however many commands run at a time."""

    executor: Executor
    _lock: anyio.Lock = field(default_factory=anyio.Lock)
    _running: int = 0
    _state: WorkdirState | None = None

    @asynccontextmanager
    async def counting(self, roots: Roots) -> AsyncIterator[Callable[[], WorkdirChange | None]]:
        """Run a body; what it gives tells, after the body, what changed since the last count.

        None: that could not be told.
        """
        async with self._lock:
            if self._running == 0 or self._state is None:
                self._state = await self.executor.measure(roots)
            self._running += 1
        counted: list[WorkdirChange | None] = []
        try:
            yield lambda: counted[0]
        finally:
            with anyio.CancelScope(shield=True):
                async with self._lock:
                    self._running -= 1
                    try:
                        counted.append(await self.executor.changed_since(self._state, roots))
                        if self._running:
                            self._state = await self.executor.measure(roots)
                    except ToolError:
                        # The workdir went away while the command ran; what it did and said still stands.
                        counted.append(None)


@dataclass(slots=True, kw_only=True)
class _Shell:
    executor: Executor
    _ledger: _WriteLedger = field(init=False)

    def __post_init__(self) -> None:
        self._ledger = _WriteLedger(executor=self.executor)

    async def run(self, arguments: ShellArguments, place: ToolPlace) -> Prepared:
        line = arguments.command
        if "\0" in line:
            raise ToolError("A command line cannot hold a NUL byte.")
        # SAFETY: the very text that is analysed here is what bash gets; nothing is parsed a second time.
        analysis = analyse(line, cwd=str(place.workdir), home=str(place.home))
        effects = await Locator(executor=self.executor, place=place).located(analysis.effects, line)
        sandbox, preview = place.sandbox, line
        if arguments.unsandboxed and sandbox.kind is not SandboxKind.NONE:
            sandbox = replace(sandbox, kind=SandboxKind.NONE)
            effects += leaving_sandbox(line, arguments.unsandboxed)
            preview = f"{line}\n(outside the sandbox: {arguments.unsandboxed})"

        async def act(context: ActContext) -> ToolOutput:
            lines, size = room(place, lines=2 * _SHOWN_LINES, size_bytes=2 * _SHOWN_BYTES)
            request = CommandRequest(
                command=line,
                roots=roots_of(place),
                timeout_s=float(min(arguments.timeout_s, _MOST_TIMEOUT_S)),
                sandbox=sandbox,
                read_only=context.workdir_read_only,
                pass_names=place.pass_names,
                head_bytes=size // 2,
                tail_bytes=size // 2,
                end_lines=max(1, lines // 2),
                spill_name=f"shell-{context.call_id}",
                on_output=context.emit_output,
            )
            if arguments.background:
                return _started(await self.executor.start(request))
            async with self._ledger.counting(request.roots) as changed:
                result = await self.executor.run(request)
            return _ended(result, changed())

        return Prepared(
            effects=effects,
            act=act,
            preview=preview,
            measures_workdir=True,
            declared_files=len({effect.path for effect in effects if isinstance(effect, WritePath)}),
        )

    async def output(self, arguments: ShellOutputArguments, place: ToolPlace) -> Prepared:
        lines, size = room(place, lines=2 * _SHOWN_LINES, size_bytes=2 * _SHOWN_BYTES)

        async def act(context: ActContext) -> ToolOutput:
            del context
            part = await self.executor.output(
                arguments.id,
                offset=arguments.offset,
                limit_bytes=size,
                limit_lines=lines,
            )
            more = f" of {total} bytes" if part.next_offset < (total := part.status.total_bytes) else ""
            notes = [_state_of(part.status), f"next offset {part.next_offset}{more}"]
            if part.lost_bytes:
                notes.append(f"{part.lost_bytes:,} bytes before are no longer kept")
            output = without_sequences(part.text)
            return ToolOutput(
                text=f"{without_redraws(output).rstrip()}\n[{'; '.join(notes)}]".lstrip("\n"),
                structured={
                    **_status(part.status),
                    "output": output,
                    "offset": part.offset,
                    "next_offset": part.next_offset,
                },
            )

        return Prepared(effects=(), act=act, preview=f"output of {arguments.id}", read_only=True)

    async def kill(self, arguments: ShellKillArguments, place: ToolPlace) -> Prepared:
        del place

        async def act(context: ActContext) -> ToolOutput:
            del context
            status = await self.executor.kill(arguments.id)
            return ToolOutput(text=f"[{_state_of(status)}]", structured=_status(status))

        return Prepared(effects=(), act=act, preview=f"kill {arguments.id}")


def _started(status: BackgroundStatus) -> ToolOutput:
    text = f"Started in the background as {status.process_id}: shell_output reads it, shell_kill ends it."
    return ToolOutput(text=text, structured=_status(status))


def _state_of(status: BackgroundStatus) -> str:
    if status.running:
        return f"{status.process_id} is running, {status.started_s_ago:.0f} s"
    if status.disk_low:
        return f"{status.process_id} was stopped: the disk is nearly full"
    return f"{status.process_id} ended with exit code {status.exit_code}"


def _status(status: BackgroundStatus) -> JsonObject:
    return {
        "id": status.process_id,
        "running": status.running,
        "exit_code": status.exit_code,
        "total_bytes": status.total_bytes,
    }


def _ended_by(exit_code: int) -> str:
    """Return what an exit code beyond 128 usually stands for: the signal that ended a program."""
    number = exit_code - 128
    known = number in signal.valid_signals() and number < signal.SIGRTMIN
    return f" (128 + {signal.Signals(number).name})" if known else ""


def _ended(result: CommandResult, change: WorkdirChange | None) -> ToolOutput:
    notes = []
    if result.timed_out:
        notes.append(
            f"stopped after {result.timeout_s:g} s; raise timeout_s or use background=true. "
            "A program that waits for input gets none"
        )
    elif result.disk_low:
        notes.append("stopped: the disk is nearly full; free some space before anything else")
    elif result.exit_code or not result.output.total_bytes:
        notes.append(f"exit code {result.exit_code}{_ended_by(result.exit_code)}")
    if result.survivors_killed == 1:
        notes.append("1 process it left running was ended")
    elif result.survivors_killed:
        notes.append(f"{result.survivors_killed} processes it left running were ended")
    if change is None:
        notes.append("the workdir is not where it was any more; what was written could not be counted")
        change = WorkdirChange(counted_bytes=0, files=0, paths=())
    if result.tampered:
        notes.append(f"protected files were put back: {', '.join(result.tampered)}")
    output = without_sequences(result.output.text)
    text = without_redraws(output).rstrip("\n")
    if notes:
        text = f"{text}\n[{'; '.join(notes)}]".lstrip("\n")
    return ToolOutput(
        text=text,
        structured={
            "exit_code": result.exit_code,
            "output": output,
            "total_bytes": result.output.total_bytes,
            "timed_out": result.timed_out,
            "duration_s": round(result.duration_s, 3),
            "sandbox": result.sandbox.value,
            "changed": [*change.paths],
        },
        failed=result.timed_out or result.disk_low or result.exit_code != 0,
        bytes_written=change.counted_bytes,
        files_written=change.files,
        spill=str(result.output.spill or ""),
    )
