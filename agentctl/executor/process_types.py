"""Words for programs: what to run, how it ended, what it wrote."""

from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Protocol

from agentctl.executor.file_types import Roots
from agentctl.executor.sandbox_policy import SandboxKind, SandboxPolicy
from agentctl.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What a program wrote, in bounded memory."""

    head: str
    """The beginning; all of it when `omitted_bytes` is 0 and `tail` is empty."""
    tail: str
    """The end, never overlapping `head`. No character is split between head, gap and tail."""
    total_bytes: int
    omitted_bytes: int
    """Bytes between head and tail that are not shown."""
    binary: bool = False
    """Not text: head and tail are empty, `total_bytes` is true."""
    spill: Path | None = None
    """File that holds all of it, or its first `spill_bytes`; None when head and tail are all of it."""
    spill_bytes: int = 0

    @property
    def text(self) -> str:
        """Head and tail with a line between them that says what is left out and where it is."""
        if self.binary:
            where = f", kept in {self.spill}" if self.spill else ""
            return f"[binary output, {self.total_bytes} bytes{where}]"
        if not self.omitted_bytes:
            return self.head + self.tail
        where = ""
        if self.spill:
            whole = self.spill_bytes == self.total_bytes
            part = "the whole" if whole else f"the first {self.spill_bytes} bytes"
            where = f"; {part} is in {self.spill}"
        return f"{self.head}\n[… {self.omitted_bytes} bytes left out{where} …]\n{self.tail}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandRequest:
    """A program to run: a shell text, or words that no shell reads."""

    command: str | tuple[str, ...]
    """Text goes to `bash -c` (or `sh -c`) as it is; a tuple is executed directly."""
    roots: Roots
    cwd: Path | None = None
    """Absolute and inside; None means the workdir."""
    cwd_anywhere: bool = False
    """`cwd` was written by a person, not chosen by a model: it may be outside."""
    timeout_s: float = 120.0
    """Lowered to the executor's ceiling; must be positive."""
    sandbox: SandboxPolicy = field(default_factory=SandboxPolicy)
    read_only: bool = False
    """Mount the workdir read-only; only where a sandbox is in force."""
    pinned: Mapping[Path, str] = field(default_factory=dict)
    """Files that must still have these SHA-256 digests when it starts: code that was trusted."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Set on top of the chosen environment."""
    pass_names: tuple[str, ...] = ()
    """Credential-shaped names that the user passes on (`[environment] pass`)."""
    stdin: bytes = b""
    split_stderr: bool = False
    """Keep standard error apart; else it goes where standard output goes, in order."""
    head_bytes: int = 32_768
    tail_bytes: int = 32_768
    end_lines: int = 0
    """Lines of the head and of the tail each, at most; 0 bounds bytes alone."""
    spill_name: str = "output"
    """Begins the spill file's name; made harmless."""
    on_output: Callable[[str], None] | None = None
    """Gets pieces of output as they come, whole characters only; must not block."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """How a program ended and what it left behind."""

    exit_code: int
    """As a shell says it: 128 + n when signal n ended it."""
    signal: int | None
    output: Output
    stderr: Output | None = None
    timed_out: bool = False
    disk_low: bool = False
    """It was stopped because less than the disk floor was left free."""
    timeout_s: float
    """The one in force, after the ceiling."""
    survivors_killed: int = 0
    """Processes that the command left running and that were ended."""
    survivors_left: int = 0
    """Processes that could not be ended (another user's, or stuck in the kernel)."""
    duration_s: float
    sandbox: SandboxKind
    """What was in force."""
    tampered: tuple[str, ...] = ()
    """Protected files that the command changed, git's and the run's own; put back where that was possible."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackgroundStatus:
    """One background process."""

    process_id: str
    command: str
    running: bool
    exit_code: int | None
    disk_low: bool = False
    """It was stopped because less than the disk floor was left free."""
    started_s_ago: float
    total_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BackgroundOutput:
    """A part of what a background process wrote."""

    status: BackgroundStatus
    text: str
    offset: int
    """Byte position of `text`."""
    next_offset: int
    """Where to read on."""
    lost_bytes: int = 0
    """Bytes before `offset` that were asked for and are no longer kept."""


class Conversation(Protocol):
    """A program that is talked to over its standard streams. One task sends, one receives, one listens."""

    async def send(self, data: bytes) -> None:
        """Write all of `data` to its input; waits while the program does not read. Safe to cancel.

        Raises:
            ToolError: it takes no more input.
        """

    async def receive(self) -> bytes:
        """Return what it wrote next on its output; empty at the end. Safe to cancel."""

    async def listen_to_stderr(self) -> None:
        """Take in what it writes on standard error, in bounded memory, until it ends. Safe to cancel.

        Somebody must do this while the program runs: one that can't complain stands still.
        """

    def stderr_tail(self) -> str:
        """Return the last of what it wrote on standard error."""

    @property
    def exit_code(self) -> int | None:
        """How it ended, as a shell says it; None while it runs."""

    async def aclose(self) -> None:
        """Close its input, wait a moment, then end it and all it started. Idempotent; not cancelled."""
