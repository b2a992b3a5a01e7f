"""What the executor can do for a tool: requests, results, and the protocol between them.

Paths come in as text that a model chose, are resolved once (`resolve`), judged, and then used as resolved:
every later call opens exactly that path without following links, and fails when it became something else.
"""

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Protocol

from agentctl.executor.file_types import (
    Edit,
    Entry,
    FileIdentity,
    GlobRequest,
    GrepRequest,
    GrepResult,
    Listing,
    Match,
    Page,
    PageRequest,
    PathKind,
    PlannedWrite,
    ResolvedPath,
    Roots,
    WriteMode,
    Written,
)
from agentctl.executor.process_types import (
    BackgroundOutput,
    BackgroundStatus,
    CommandRequest,
    CommandResult,
    Conversation,
    Output,
)
from agentctl.executor.sandbox_policy import (
    OnUnavailable,
    SandboxKind,
    SandboxLayer,
    SandboxPolicy,
    SandboxUnavailable,
    effective_policy,
)
from agentctl.records import dataclass

__all__ = [
    "BackgroundOutput",
    "BackgroundStatus",
    "CommandRequest",
    "CommandResult",
    "Conversation",
    "Edit",
    "Entry",
    "Executor",
    "FileIdentity",
    "Files",
    "GitFacts",
    "GlobRequest",
    "GrepRequest",
    "GrepResult",
    "Listing",
    "Match",
    "Measures",
    "OnUnavailable",
    "Output",
    "Page",
    "PageRequest",
    "PathKind",
    "PlannedWrite",
    "Processes",
    "ResolvedPath",
    "Roots",
    "SandboxKind",
    "SandboxLayer",
    "SandboxPolicy",
    "SandboxUnavailable",
    "WorkdirChange",
    "WorkdirState",
    "WriteMode",
    "Written",
    "effective_policy",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkdirState:
    """Sizes and identities of the files under the roots at one moment, for write budgets."""

    files: Mapping[bytes, tuple[int, int, int, int]] = field(repr=False)
    """Path → inode, size, mtime in ns, ctime in ns."""
    complete: bool
    """False: more files than are counted; changes beyond them are not seen."""
    directories: Mapping[bytes, int] = field(default_factory=dict, repr=False)
    """Path → mtime in ns."""
    recent: tuple[bytes, ...] = ()
    """Files that changed shortly before; writes to them the kernel may not count again."""
    taken_ns: int = 0
    """What happened before this moment is not counted, whenever it is noticed; 0 counts all."""
    quiet_mark: int = -1
    """The executor's own count of commands that may have written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkdirChange:
    """What changed between two states."""

    counted_bytes: int
    """A file made or replaced counts its size, a file changed in place its growth."""
    files: int
    """Made, changed or removed."""
    paths: tuple[str, ...]
    """At most 100 of them, sorted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GitFacts:
    """Whether git, run in a directory, could start a program that the repository names."""

    repository: Path | None
    """The `.git` directory in force, or None."""
    runs_programs: tuple[str, ...]
    """Each reason in words: `core.fsmonitor in .git/config names a program`.

    Empty: a read-only git command runs nothing but git."""


class Files(Protocol):
    """Files of a run. Every method raises ToolError for what the model can mend."""

    async def resolve(self, text: str, roots: Roots) -> ResolvedPath:
        """Return where a path leads, links included. Touches nothing.

        Raises:
            ToolError: empty, with NUL or control characters, `~user`, a loop of links, or the workdir was
                moved, removed or replaced since the run began.
        """

    async def read_page(self, path: ResolvedPath, request: PageRequest) -> Page:
        """Return lines of a text file, in bounded memory whatever its size.

        Raises:
            ToolError: not readable, not a regular file, binary, or changed into a link since it was resolved.
        """

    async def read_bytes(self, path: ResolvedPath, limit_bytes: int) -> bytes:
        """Return a whole small file, such as an image.

        Raises:
            ToolError: as `read_page`, or larger than the limit.
        """

    async def list_dir(self, path: ResolvedPath, *, depth: int = 1, limit: int = 1000) -> Listing:
        """Return the names in a directory; with `depth` also of the directories in it."""

    async def glob(self, base: ResolvedPath, request: GlobRequest) -> Listing:
        """Return the files that match; links are never entered, nothing outside the base is named."""

    async def grep(self, base: ResolvedPath, request: GrepRequest) -> GrepResult:
        """Return matching lines under a directory or in one file; binary files and links are passed over.

        Raises:
            ToolError: the pattern is no regular expression.
        """

    async def plan_write(self, path: ResolvedPath, text: str, mode: WriteMode) -> PlannedWrite:
        """Return what writing a whole file would do; touches nothing.

        Raises:
            ToolError: not inside, exists (with CREATE), a directory, or text that can't be encoded.
        """

    async def plan_edit(self, path: ResolvedPath, edits: tuple[Edit, ...]) -> PlannedWrite:
        """Return what the edits, made in order, would do; all or none; touches nothing.

        Raises:
            ToolError: not found, found more than once, binary, or not inside; says where and how often.
        """

    async def apply_write(self, planned: PlannedWrite) -> Written:
        """Make a planned write: atomic and durable, the old file is whole until the new one is.

        Raises:
            ToolError: the file is not the one that was judged any more, or the disk refused; nothing changed.
        """


class Processes(Protocol):
    """Programs of a run."""

    async def run(self, request: CommandRequest) -> CommandResult:
        """Run a command until it ends, its time is up, or the caller is cancelled; leaves no process behind.

        Raises:
            ToolError: the working directory or the program is not there.
            SandboxUnavailable: a sandbox is demanded and the machine has none; nothing ran.
        """

    async def start(self, request: CommandRequest) -> BackgroundStatus:
        """Start a command that goes on in the background until it ends, is killed, or the executor closes."""

    async def output(
        self, process_id: str, *, offset: int = 0, limit_bytes: int = 32_768, limit_lines: int = 0
    ) -> BackgroundOutput:
        """Return what a background process wrote from a byte position on; negative counts from the end.

        0 lines bounds bytes alone.

        Raises:
            ToolError: no such process; names those there are.
        """

    async def kill(self, process_id: str) -> BackgroundStatus:
        """End a background process and all it started. Idempotent."""

    def background(self) -> tuple[BackgroundStatus, ...]:
        """Return every background process, oldest first."""

    async def converse(self, request: CommandRequest) -> Conversation:
        """Start a program that is talked to until it is closed, or the executor is; `timeout_s` is not used.

        Raises:
            ToolError: the working directory or the program is not there.
            SandboxUnavailable: a sandbox is demanded and the machine has none; nothing ran.
        """

    async def sandbox_in_force(self, policy: SandboxPolicy) -> SandboxKind:
        """Return the sandbox that a command under this policy would get here; probes once a process.

        Raises:
            SandboxUnavailable: it demands one that the machine does not have.
        """


class Measures(Protocol):
    """Facts for budgets and judgements."""

    async def measure(self, roots: Roots) -> WorkdirState:
        """Return the state of the workdir, to be compared after a call."""

    async def changed_since(self, before: WorkdirState, roots: Roots) -> WorkdirChange:
        """Return what changed since a state was taken."""

    async def free_bytes(self, path: Path) -> int:
        """Return the bytes an ordinary user may still write on the path's file system."""

    async def git_facts(self, cwd: Path) -> GitFacts:
        """Return what the repository around a directory could make git run. Reads files, starts nothing."""


class Executor(Files, Processes, Measures, Protocol):
    """Everything a tool may do to the machine. Must not decide: what comes in has been judged."""

    async def aclose(self) -> None:
        """End every process, close every descriptor. Idempotent; the executor is of no use afterwards."""
