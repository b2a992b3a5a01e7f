"""The errors that end a command or a call, each with who must act and the exit code.

AgentctlError                 a person must act; `exit_code` is part of the interface
├── UsageError            2   the command line was wrong, or what it names is missing
├── InvalidInput          3   a blueprint, policy or config file is invalid (all problems at once)
├── WaitingForPerson      4   a question is saved; `agentctl resume` goes on
├── PolicyRefused         5   ended because the policy refused
├── LimitReached          6   a limit or budget was reached
├── ProviderError         7   the model service or its authentication failed
├── ToolServerMissing     8   a required tool server is not there
├── StateConflict         9   drift, conflict, or a thread locked by another process
└── RunFailed             1   the run could not go on
ToolError                     the model must act: the text tells it what would work
"""

from enum import IntEnum
from typing import ClassVar

from agentctl.records import dataclass


class ExitCode(IntEnum):
    """What `agentctl` exits with; the table is in docs/exit-codes.md."""

    FINISHED = 0
    FAILED = 1
    USAGE = 2
    INVALID = 3
    WAITING = 4
    REFUSED = 5
    LIMIT = 6
    PROVIDER = 7
    TOOL_SERVER = 8
    CONFLICT = 9
    SIGINT = 130
    SIGTERM = 143


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """A place in a file that a person wrote. Lines and columns count from 1; 0 means the whole file."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing wrong in a file: where, which key, what was expected, and the nearest right word."""

    position: Position
    message: str
    key: str = ""
    """Dotted path of the key, such as `stages.plan.max_steps`; empty for the file as a whole."""
    suggestion: str = ""
    """What to write instead, or empty."""

    def __str__(self) -> str:
        tail = f" (did you mean {self.suggestion!r}?)" if self.suggestion else ""
        key = f"{self.key}: " if self.key else ""
        return f"{self.position}: {key}{self.message}{tail}"


class AgentctlError(Exception):
    """A failure that a person must act on: one full sentence, and a hint with the next command."""

    exit_code: ClassVar[ExitCode] = ExitCode.FAILED

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.recorded = False
        """Its `result` record is on stdout already."""


class RunFailed(AgentctlError):
    """The run could not go on."""


class JournalUnwritable(RunFailed):
    """The journal took nothing more, for want of room for instance; a resume goes on from its last commit."""


class UsageError(AgentctlError):
    """The command line was wrong, or it names something that is missing or of the wrong kind."""

    exit_code = ExitCode.USAGE


class InvalidInput(AgentctlError):
    """A file that a person wrote is invalid. Holds every problem found, in file order."""

    exit_code = ExitCode.INVALID

    def __init__(self, problems: tuple[Problem, ...], *, hint: str = "") -> None:
        super().__init__("\n".join(str(problem) for problem in problems), hint=hint)
        self.problems = problems


class WaitingForPerson(AgentctlError):
    """A question is saved and nobody is there to answer it."""

    exit_code = ExitCode.WAITING


class PolicyRefused(AgentctlError):
    """The run ended because the policy refused."""

    exit_code = ExitCode.REFUSED


class LimitReached(AgentctlError):
    """A hard stop that a person set was reached.

    `key` is the dotted TOML key that sets it, such as `limits.steps`; `used` and `ceiling` are in its unit.
    """

    exit_code = ExitCode.LIMIT
    above: int = 0
    """How many agents up the one is whose limit it is."""

    def __init__(self, key: str, *, used: float, ceiling: float, message: str = "", hint: str = "") -> None:
        super().__init__(message or f"{key}: {used:g} would pass the ceiling of {ceiling:g}.", hint=hint)
        self.key = key
        self.used = used
        self.ceiling = ceiling


class ProviderError(AgentctlError):
    """A model service refused or failed for good."""

    exit_code = ExitCode.PROVIDER


class ToolServerMissing(AgentctlError):
    """A tool server that the blueprint requires did not start or is not there."""

    exit_code = ExitCode.TOOL_SERVER


class StateConflict(AgentctlError):
    """State was changed by another writer, has drifted from its type, or is locked."""

    exit_code = ExitCode.CONFLICT


class ToolError(Exception):
    """A tool call failed in a way that the model can act on; the text says what would work."""


def file_fault(error: OSError | ValueError) -> str:
    """Return why a file could not be read or written, in words for a person, without numbers and paths."""
    if isinstance(error, UnicodeDecodeError):
        return f"it is not UTF-8 text (byte 0x{error.object[error.start]:02x} at {error.start:,})"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error)


def known_error(group: BaseExceptionGroup[BaseException]) -> AgentctlError | None:
    """Return the first error of a group that holds nothing but errors a person must act on; else None.

    Tasks that run side by side end with a group even where one sentence says it all.
    """
    known, rest = group.split(AgentctlError)
    if known is None or rest is not None:
        return None
    error: BaseException = known
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error if isinstance(error, AgentctlError) else None
