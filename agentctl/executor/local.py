"""The executor of this machine: one for each run; sub-agents of a run use their parent's."""

import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import ParamSpec, TypeVar

import anyio
import anyio.from_thread
import anyio.to_thread

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
from agentctl.executor.background import Background
from agentctl.executor.commands import Commands
from agentctl.executor.conversation import Conversations
from agentctl.executor.git_facts import git_facts
from agentctl.executor.machine import Machine
from agentctl.executor.measure import free_bytes
from agentctl.executor.pages import PageReader, read_whole
from agentctl.executor.paths import RootPins, resolve
from agentctl.executor.search import ChildSearch, bounded, compile_pattern, search
from agentctl.executor.walk import glob, list_dir
from agentctl.executor.writes import Writer, plan_edit, plan_write

Result = TypeVar("Result")
Given = ParamSpec("Given")
_SEARCH_START_S = 5.0


class LocalExecutor:
    """Files and programs of this machine, for one run."""

    def __init__(
        self,
        machine: Machine | None = None,
        *,
        environment: Mapping[str, str] | None = None,
        passed: tuple[str, ...] = (),
    ) -> None:
        self._machine = machine or Machine()
        self._owns_machine = machine is None
        self._pins = RootPins()
        self._pages = PageReader()
        self._writer = Writer()
        self._ledger = self._machine.ledger
        self._commands = Commands(
            self._machine,
            self._pins,
            environment=os.environ if environment is None else environment,
            passed=passed,
        )
        self._background = Background(self._machine, self._commands)
        self._conversations = Conversations(self._machine, self._commands)

    async def resolve(self, text: str, roots: Roots) -> ResolvedPath:
        """Return where a path leads; see `Files.resolve`."""
        return await _in_thread(resolve, text, roots, self._pins)

    async def read_page(self, path: ResolvedPath, request: PageRequest) -> Page:
        """Return lines of a text file; see `Files.read_page`."""
        self._pins.check(path.root)
        return await _in_thread(self._pages.read_page, path, request, _checkpoint)

    async def read_bytes(self, path: ResolvedPath, limit_bytes: int) -> bytes:
        """Return a whole small file; see `Files.read_bytes`."""
        self._pins.check(path.root)
        return await _in_thread(read_whole, path, limit_bytes)

    async def list_dir(self, path: ResolvedPath, *, depth: int = 1, limit: int = 1000) -> Listing:
        """Return the names in a directory; see `Files.list_dir`."""
        self._pins.check(path.root)
        return await _in_thread(list_dir, path, depth=depth, limit=limit, checkpoint=_checkpoint)

    async def glob(self, base: ResolvedPath, request: GlobRequest) -> Listing:
        """Return the files that match; see `Files.glob`."""
        self._pins.check(base.root)
        return await _in_thread(glob, base, request, _checkpoint)

    async def grep(self, base: ResolvedPath, request: GrepRequest) -> GrepResult:
        """Return matching lines; see `Files.grep`."""
        self._pins.check(base.root)
        compile_pattern(request)
        if bounded(request):
            return await _in_thread(search, base, request, _checkpoint)
        return await self._grep_in_child(base, request)

    async def _grep_in_child(self, base: ResolvedPath, request: GrepRequest) -> GrepResult:
        """Search in a process that can be killed, since a pattern may take for ever on one line."""
        asked = ChildSearch(base=base, request=request)
        with anyio.move_on_after(request.timeout_s + _SEARCH_START_S):
            # SAFETY: our own interpreter and module, the request as JSON on its standard input.
            done = await anyio.run_process(
                ChildSearch.argv(), input=asked.encode(), env=ChildSearch.environment(), check=False
            )
            if done.returncode == 0:
                return ChildSearch.decode(done.stdout)
        return GrepResult(matches=(), files_searched=0, timed_out=True)

    async def plan_write(self, path: ResolvedPath, text: str, mode: WriteMode) -> PlannedWrite:
        """Return what writing a whole file would do; see `Files.plan_write`."""
        self._pins.check(path.root)
        return await _in_thread(plan_write, path, text, mode)

    async def plan_edit(self, path: ResolvedPath, edits: tuple[Edit, ...]) -> PlannedWrite:
        """Return what the edits would do; see `Files.plan_edit`."""
        self._pins.check(path.root)
        return await _in_thread(plan_edit, path, edits)

    async def apply_write(self, planned: PlannedWrite) -> Written:
        """Make a planned write; see `Files.apply_write`. Once begun, it is finished before a cancellation."""
        self._pins.check(planned.path.root)
        written = await _in_thread(self._writer.apply, planned, _checkpoint)
        self._ledger.leave_out(planned.path.root, planned.path.path)
        return written

    async def run(self, request: CommandRequest) -> CommandResult:
        """Run a command until nothing of it is left; see `Processes.run`."""
        return await self._commands.run(request)

    async def start(self, request: CommandRequest) -> BackgroundStatus:
        """Start a command in the background; see `Processes.start`."""
        return await self._background.start(request)

    async def output(
        self, process_id: str, *, offset: int = 0, limit_bytes: int = 32_768, limit_lines: int = 0
    ) -> BackgroundOutput:
        """Return what a background process wrote; see `Processes.output`."""
        return await self._background.output(process_id, offset, limit_bytes, limit_lines)

    async def kill(self, process_id: str) -> BackgroundStatus:
        """End a background process; see `Processes.kill`."""
        return await self._background.kill(process_id)

    def background(self) -> tuple[BackgroundStatus, ...]:
        """Return every background process, oldest first."""
        return self._background.all()

    async def converse(self, request: CommandRequest) -> Conversation:
        """Start a program that is talked to; see `Processes.converse`."""
        return await self._conversations.start(request)

    async def sandbox_in_force(self, policy: SandboxPolicy) -> SandboxKind:
        """Return the sandbox that a policy gets here; see `Processes.sandbox_in_force`."""
        return await self._machine.sandboxes.kind_for(policy)

    async def measure(self, roots: Roots) -> WorkdirState:
        """Return the state of the workdir; see `Measures.measure`."""
        return await _in_thread(self._ledger.measure, *self._measured(roots), _checkpoint)

    async def changed_since(self, before: WorkdirState, roots: Roots) -> WorkdirChange:
        """Return what commands changed since; see `Measures.changed_since`."""
        return await _in_thread(self._ledger.changed_since, before, *self._measured(roots), _checkpoint)

    def _measured(self, roots: Roots) -> tuple[Path, Path]:
        return self._pins.resolved(roots.workdir), self._pins.resolved(roots.temp)

    async def free_bytes(self, path: Path) -> int:
        """Return what may still be written where a path is; see `Measures.free_bytes`."""
        return await _in_thread(free_bytes, path)

    async def git_facts(self, cwd: Path) -> GitFacts:
        """Return what the repository around could make git run; see `Measures.git_facts`."""
        return await _in_thread(git_facts, cwd)

    async def aclose(self) -> None:
        """End every process, close every descriptor; a machine that was handed in stays open. Idempotent."""
        with anyio.CancelScope(shield=True):
            await self._conversations.aclose()
            await self._background.aclose()
            if self._owns_machine:
                await self._machine.aclose()


def open_executor(*, environment: Mapping[str, str], passed: tuple[str, ...]) -> LocalExecutor:
    """Return an executor with a machine of its own, to be closed by its user.

    `environment` is what commands' environments are chosen from; `passed` names variables that they get
    although they look like credentials.
    """
    return LocalExecutor(environment=environment, passed=passed)


async def _in_thread(work: Callable[Given, Result], *args: Given.args, **kwargs: Given.kwargs) -> Result:
    """Run blocking work beside the event loop; it is waited for, and hears of cancellation at checkpoints."""
    return await anyio.to_thread.run_sync(partial(work, *args, **kwargs))


def _checkpoint() -> None:
    anyio.from_thread.check_cancelled()
