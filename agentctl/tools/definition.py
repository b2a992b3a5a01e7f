"""What a tool is to the harness: a spec for the model, and `prepare`, which says what a call would do.

`prepare` resolves paths and parses shell text once; what it returns is judged, and then exactly that is run.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Protocol, runtime_checkable

from agentctl.errors import ToolError
from agentctl.executor.sandbox_policy import SandboxPolicy
from agentctl.protocol.effects import Effect
from agentctl.protocol.messages import AssistantMessage, ImagePart, Message, ToolResult, ToolSpec
from agentctl.protocol.questions import PersonAnswer, PersonQuestion
from agentctl.protocol.values import JsonObject, JsonValue
from agentctl.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutput:
    """What a call gave: text for the model and the same as JSON. Raw: cut and stashed by the agent."""

    text: str
    structured: JsonValue = None
    failed: bool = False
    images: tuple[ImagePart, ...] = ()
    bytes_written: int = 0
    """Measured after the act, not declared."""
    files_written: int = 0
    spill: str = ""
    """Path of the file that holds the whole output when `text` is a cut of it."""


class CallStandsStill(Exception):
    """A running call waits for a person who is not there. Its tool ends what it does and lets this pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleRequest:
    """A model call that a tool server asks for."""

    server: str
    system: str
    messages: tuple[Message, ...]
    max_output_tokens: int | None = None
    temperature: float | None = None
    stop: tuple[str, ...] = ()


async def _no_model(request: SampleRequest) -> AssistantMessage:
    raise ToolError(f"{request.server} may not ask for model calls here.")


@dataclass(frozen=True, slots=True, kw_only=True)
class InnerCall:
    """A call that a running script tool makes."""

    tool: str
    """One of `SCRIPT_FUNCTIONS`."""
    arguments: JsonObject
    written_here: bool
    """The script is one that nobody trusted before the run: it gets only what its stage offers."""


async def _no_calls(call: InnerCall) -> ToolResult:
    raise ToolError(f"{call.tool} may not be called from here.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ActContext:
    """What a running call may use of the run."""

    call_id: str
    emit_output: Callable[[str], None]
    """Shows a piece of output while the call runs; never blocks."""
    ask_person: Callable[[PersonQuestion], Awaitable[PersonAnswer]]
    """Puts a question to a person and waits; journaled. What comes back says when nobody answered."""
    workdir_read_only: bool = False
    """The sandbox lifted the ask on condition that the command finds the workdir read-only."""
    sample: Callable[[SampleRequest], Awaitable[AssistantMessage]] = _no_model
    """Has the stage's model answer for a tool server, if policy and budgets allow it.

    Raises ToolError when they don't, or the model fails.
    """
    call_tool: Callable[[InnerCall], Awaitable[ToolResult]] = _no_calls
    """Takes a script's call through the funnel like any other and returns its result, refusals included.

    A call that was made before the run stood still is answered from the journal, if the script makes the same
    one again. Raises ToolError when it does not, or nobody can tell whether the call happened; the script
    must end then. Raises CallStandsStill.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A call that can be judged, and then run as judged."""

    effects: tuple[Effect, ...]
    act: Callable[[ActContext], Awaitable[ToolOutput]]
    """Runs the call. Raises ToolError for what the model can mend; safe to cancel."""
    preview: str
    """For the approval prompt: the whole command, or the diff; never a summary."""
    read_only: bool = False
    """Running it twice does no harm: a resume may run it again."""
    declared_bytes: int = 0
    """Bytes the call is going to write, as far as can be told before."""
    declared_files: int = 0
    measures_workdir: bool = False
    """What it writes is known only by comparing the workdir before and after (shell)."""
    waits_for_agents: bool = False
    """Most of its time it waits for sub-agents: it takes none of its step's slots."""
    source_key: str = ""
    """Names the source text that the preview shows, where nobody trusted it before the run: `NAME@DIGEST`.

    Until a person has approved a call with this very source, only a launch flag lets one through."""


def _anything(path: str) -> bool:
    del path
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolPlace:
    """Where calls are prepared: the agent's view of the machine."""

    workdir: Path
    """Absolute and resolved."""
    temp: Path
    """The run's own temp folder; counts as workdir."""
    why_protected: Callable[[str], str]
    """Why writing a resolved path is protected always (`git internals`), or empty; pure."""
    readable_below: Callable[[str], Callable[[str], bool]] = lambda _: _anything
    """For a directory that may be read: tells of each resolved path in it whether rules let it be read as
    freely as the directory itself. A rule on a part is not lifted by looking at the whole; pure."""
    read_paths: tuple[Path, ...] = ()
    """Directories outside that may be read: declared by the blueprint and granted by the user."""
    kept: tuple[Path, ...] = ()
    """Files that no command in a sandbox can change: the running blueprint and its trusted code."""
    home: Path = Path("/")
    run_id: str = ""
    agent: str = ""
    stage: str = ""
    sandbox: SandboxPolicy = field(default_factory=SandboxPolicy)
    """What a shell command of this stage may reach when the operating system holds the line."""
    pass_names: tuple[str, ...] = ()
    """Credential-shaped environment names that the user hands on to commands."""
    facts: Mapping[str, str] | None = None
    """Shown by `run_info`."""
    shown_lines: int = 400
    """Of a result that the model sees; a longer one is cut, and what a tool itself says of gaps is lost."""
    shown_bytes: int = 32_768
    """As `shown_lines`."""


@runtime_checkable
class Tool(Protocol):
    """Something a model can call. Implementations keep no state between calls of different agents."""

    @property
    def spec(self) -> ToolSpec:
        """Name, description and parameters; stable for the life of a stage."""

    @property
    def aliases(self) -> tuple[str, ...]:
        """Other names that rules and models may use (`bash` for `shell`)."""

    @property
    def waits_for_person(self) -> bool:
        """Not offered when unattended, unless the stage requires it."""

    async def prepare(self, arguments: JsonObject, place: ToolPlace) -> Prepared:
        """Say what this call would do. Touches nothing; may look at the file system to resolve paths.

        `arguments` are valid against the spec's schema.

        Raises:
            ToolError: the call cannot be done (no such file, text not found): told to the model, never asked.
        """
