"""An executor that starts nothing: commands get scripted answers, files are real, everything is noted."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agentctl.errors import ToolError
from agentctl.executor.api import (
    BackgroundOutput,
    BackgroundStatus,
    CommandRequest,
    CommandResult,
    Conversation,
    Edit,
    GitFacts,
    GlobRequest,
    GrepRequest,
    GrepResult,
    Listing,
    Output,
    Page,
    PageRequest,
    PlannedWrite,
    ResolvedPath,
    Roots,
    SandboxKind,
    SandboxPolicy,
    WorkdirChange,
    WorkdirState,
    WriteMode,
    Written,
)
from agentctl.executor.local import LocalExecutor
from agentctl.executor.text import first_lines


def answer(text: str = "", *, exit_code: int = 0) -> CommandResult:
    """Return the result of a command that wrote a text and ended."""
    size = len(text.encode())
    return CommandResult(
        exit_code=exit_code,
        signal=None,
        output=Output(head=text, tail="", total_bytes=size, omitted_bytes=0),
        timeout_s=120.0,
        duration_s=0.0,
        sandbox=SandboxKind.NONE,
    )


@dataclass(slots=True)
class _Process:
    status: BackgroundStatus
    text: str


@dataclass(slots=True)
class RecordingExecutor:
    """Notes every command and write; strict both ways: `check` tells of answers that nobody asked for."""

    answers: Sequence[CommandResult] = ()
    """For the commands, in order; a command too many is an AssertionError."""
    sandbox: SandboxKind = SandboxKind.NONE
    free: int = 1 << 40
    commands: list[CommandRequest] = field(default_factory=list)
    """Every command, background ones too, in the order in which they came."""
    writes: list[PlannedWrite] = field(default_factory=list)
    _files: LocalExecutor = field(default_factory=LocalExecutor)
    _answered: int = 0
    _processes: dict[str, _Process] = field(default_factory=dict)

    def check(self) -> None:
        """Fail when an answer was not used.

        Raises:
            AssertionError: says how many were left.
        """
        left = len(self.answers) - self._answered
        if left:
            raise AssertionError(f"{left} answers were not asked for")

    def _answer(self, request: CommandRequest) -> CommandResult:
        self.commands.append(request)
        if self._answered == len(self.answers):
            raise AssertionError(f"no answer is left for the command {request.command!r}")
        self._answered += 1
        return self.answers[self._answered - 1]

    async def resolve(self, text: str, roots: Roots) -> ResolvedPath:
        """Return where a path leads, on the real disk."""
        return await self._files.resolve(text, roots)

    async def read_page(self, path: ResolvedPath, request: PageRequest) -> Page:
        """Return lines of a real file."""
        return await self._files.read_page(path, request)

    async def read_bytes(self, path: ResolvedPath, limit_bytes: int) -> bytes:
        """Return a real file."""
        return await self._files.read_bytes(path, limit_bytes)

    async def list_dir(self, path: ResolvedPath, *, depth: int = 1, limit: int = 1000) -> Listing:
        """Return real names."""
        return await self._files.list_dir(path, depth=depth, limit=limit)

    async def glob(self, base: ResolvedPath, request: GlobRequest) -> Listing:
        """Return real names that match."""
        return await self._files.glob(base, request)

    async def grep(self, base: ResolvedPath, request: GrepRequest) -> GrepResult:
        """Return lines of real files that match."""
        return await self._files.grep(base, request)

    async def plan_write(self, path: ResolvedPath, text: str, mode: WriteMode) -> PlannedWrite:
        """Return what a write would do to a real file."""
        return await self._files.plan_write(path, text, mode)

    async def plan_edit(self, path: ResolvedPath, edits: tuple[Edit, ...]) -> PlannedWrite:
        """Return what edits would do to a real file."""
        return await self._files.plan_edit(path, edits)

    async def apply_write(self, planned: PlannedWrite) -> Written:
        """Note a write and make it."""
        self.writes.append(planned)
        return await self._files.apply_write(planned)

    async def run(self, request: CommandRequest) -> CommandResult:
        """Note a command and return the next answer."""
        result = self._answer(request)
        if request.on_output is not None and result.output.text:
            request.on_output(result.output.text)
        return result

    async def start(self, request: CommandRequest) -> BackgroundStatus:
        """Note a command; it runs until it is killed and has written the next answer's text."""
        result = self._answer(request)
        process_id = f"bg{len(self._processes) + 1}"
        status = BackgroundStatus(
            process_id=process_id,
            command=str(request.command),
            running=True,
            exit_code=None,
            started_s_ago=0.0,
            total_bytes=result.output.total_bytes,
        )
        self._processes[process_id] = _Process(status, result.output.text)
        return status

    async def output(
        self, process_id: str, *, offset: int = 0, limit_bytes: int = 32_768, limit_lines: int = 0
    ) -> BackgroundOutput:
        """Return a part of what a background command wrote."""
        process = self._find(process_id)
        data = process.text.encode()
        start = max(0, len(data) + offset) if offset < 0 else min(offset, len(data))
        part = data[start : start + limit_bytes]
        part = first_lines(part, limit_lines) if limit_lines else part
        return BackgroundOutput(
            status=process.status,
            text=part.decode("utf-8", "replace"),
            offset=start,
            next_offset=start + len(part),
        )

    async def kill(self, process_id: str) -> BackgroundStatus:
        """End a background command."""
        process = self._find(process_id)
        process.status = BackgroundStatus(
            process_id=process_id,
            command=process.status.command,
            running=False,
            exit_code=143,
            started_s_ago=0.0,
            total_bytes=process.status.total_bytes,
        )
        return process.status

    def _find(self, process_id: str) -> _Process:
        if process_id not in self._processes:
            raise ToolError(f"There is no background process {process_id!r}.")
        return self._processes[process_id]

    def background(self) -> tuple[BackgroundStatus, ...]:
        """Return every background command."""
        return tuple(process.status for process in self._processes.values())

    async def converse(self, request: CommandRequest) -> Conversation:
        """Note a command and refuse: nothing is started here.

        Raises:
            ToolError: always.
        """
        self.commands.append(request)
        raise ToolError(f"{request.command!r} is not started: this executor starts nothing.")

    async def sandbox_in_force(self, policy: SandboxPolicy) -> SandboxKind:
        """Return the sandbox this was made with."""
        del policy
        return self.sandbox

    async def measure(self, roots: Roots) -> WorkdirState:
        """Return the real workdir's state."""
        return await self._files.measure(roots)

    async def changed_since(self, before: WorkdirState, roots: Roots) -> WorkdirChange:
        """Return what changed in the real workdir."""
        return await self._files.changed_since(before, roots)

    async def free_bytes(self, path: Path) -> int:
        """Return the free space this was made with."""
        del path
        return self.free

    async def git_facts(self, cwd: Path) -> GitFacts:
        """Return the facts of a real repository."""
        return await self._files.git_facts(cwd)

    async def aclose(self) -> None:
        """Let go of the real files."""
        await self._files.aclose()
