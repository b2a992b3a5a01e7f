"""Facts, past tense. `Event` goes to the journal; `LiveEvent` is for whoever is watching now."""

from dataclasses import field
from typing import Literal, TypeAlias

from agentctl.protocol.children import ChildEnded, ChildStarted, RunOutcome
from agentctl.protocol.decisions import Decision, Grant
from agentctl.protocol.messages import Message, ToolResult, Usage
from agentctl.protocol.questions import Answer, Question
from agentctl.protocol.values import JsonObject, JsonValue
from agentctl.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchFlags:
    """What the command line said about permission and limits; recorded, since `resume` keeps a part of it."""

    yolo: bool = False
    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    on_ask: Literal["deny", "pause"] = "deny"
    limits: tuple[str, ...] = ()
    """`KEY=VALUE`, as given to `--limit`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted:
    """A run began: all that `resume` and `replay` need to build it again."""

    run_id: str
    thread_id: str
    agent: str
    task: str
    inputs: dict[str, str]
    context: dict[str, str]
    workdir: str
    blueprint_path: str
    blueprint_source: str
    """The whole TOML text; `resume` uses this and not the file."""
    blueprint_sha256: str
    found_by: Literal["path", "shipped", "user"]
    policy_sha256: str
    model: str
    launch: LaunchFlags
    parent_run: str = ""
    parent_call: str = ""
    version: str = ""
    worker_stage: str = ""
    """The one stage that a worker runs of its parent's blueprint; empty for a whole blueprint."""
    catalogue_sha256: dict[str, str] = field(default_factory=dict)
    """What stood at each blueprint path that may be spawned, when the root run started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageEntered:
    """A stage began. `visit` counts from 1."""

    stage: str
    index: int
    visit: int
    model: str
    carry: Literal["all", "clear", "summary"] = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class StageLeft:
    """A stage ended; `taken` is the next stage, or empty at the end of the run."""

    stage: str
    reason: Literal[
        "transition", "answer", "error", "max_steps", "stuck", "dead_end", "revisits", "checkpoint"
    ]
    taken: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageAdded:
    """A message joined the thread."""

    message: Message
    step: int = 0
    spent: dict[str, float] = field(default_factory=dict)
    """The run's totals after the model call that gave it; empty for other messages."""
    own: dict[str, float] = field(default_factory=dict)
    """What of that this agent itself spent, its sub-agents left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallDecided:
    """Policy judged a call. `arguments` are those that were judged, after hooks and edits."""

    call_id: str
    tool: str
    arguments: JsonObject
    decision: Decision


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionAsked:
    """A question waits for a person."""

    question: Question


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionAnswered:
    """A question was answered, once."""

    question_id: str
    answer: Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantGiven:
    """A person's approval is remembered."""

    grant: Grant


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantUsed:
    """A grant with a number of uses covered a call."""

    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantRevoked:
    """A remembered approval was taken back."""

    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AskRefused:
    """A call needed a person and nobody was there; `flags` would have let it through, if any would."""

    call_id: str
    tool: str
    preview: str
    reason: str
    flags: tuple[str, ...] = ()
    instead: str = ""
    """What to write where no flag helps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallStarted:
    """A judged call is about to act. Without a completion after it, the call is in doubt."""

    call_id: str
    tool: str
    read_only: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CallCompleted:
    """A call ended; `result` is raw, before hooks and cuts."""

    call_id: str
    result: ToolResult
    elapsed_s: float
    bytes_written: int = 0
    files_written: int = 0
    spent: dict[str, float] = field(default_factory=dict)
    """The run's totals after it, where it is recorded before its step settles."""
    own: dict[str, float] = field(default_factory=dict)
    """What of that this agent itself spent, its sub-agents left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSettled:
    """A step's results are in the thread. `spent` holds the run's totals after it."""

    step: int
    usage: Usage
    spent: dict[str, float]
    own: dict[str, float] = field(default_factory=dict)
    """What of that this agent itself spent, its sub-agents left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateChanged:
    """The state document changed: a JSON Patch (RFC 6902) and the document's sequence number after."""

    patch: tuple[JsonValue, ...]
    sequence: int
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookActed:
    """A hook answered an event with something other than continue, or failed."""

    hook: str
    event: str
    action: str
    elapsed_s: float
    detail: JsonValue = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextCompacted:
    """Old tool results were cut or old steps summarised; messages from index `kept_from` on are kept."""

    how: Literal["results_cut", "summary"]
    kept_from: int
    tokens_before: int
    tokens_after: int
    summary: str = ""
    cut_call_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """Something a person reading the run should know."""

    level: Literal["info", "warning"]
    text: str
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSuspended:
    """The run stands still and can be resumed."""

    reason: str
    exit_code: int
    limit: str = ""
    """The key of the limit that stopped it, such as `limits.steps`; a resume with a higher one goes on."""
    above: int = 0
    """How many agents up the one is whose limit it is; those below stand still with it, and go on with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResumed:
    """The run goes on; `launch` is what holds from here."""

    launch: LaunchFlags
    version: str = ""
    blueprint_sha256: str = ""
    thread_id: str = ""
    model: str = ""
    spent: dict[str, float] = field(default_factory=dict)
    """The run's totals so far, as its last settled step had them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnded:
    """The run is over."""

    outcome: RunOutcome
    exit_code: int
    answer: str = ""
    output: JsonValue = None
    """The structured answer where the stage has an output schema."""
    reason: str = ""
    limit: str = ""
    """The key of the limit that ended it, such as `limits.steps`."""


Event: TypeAlias = (
    RunStarted
    | StageEntered
    | StageLeft
    | MessageAdded
    | ToolCallDecided
    | QuestionAsked
    | QuestionAnswered
    | GrantGiven
    | GrantUsed
    | GrantRevoked
    | AskRefused
    | CallStarted
    | CallCompleted
    | StepSettled
    | StateChanged
    | HookActed
    | ContextCompacted
    | ChildStarted
    | ChildEnded
    | Noted
    | RunSuspended
    | RunResumed
    | RunEnded
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TextStreamed:
    """A piece of the model's text."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningStreamed:
    """A piece of the model's thinking."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCalled:
    """A model request went out."""

    step: int
    model: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRetried:
    """A model call failed and is tried again; what was streamed of it so far is void."""

    model: str
    reason: str
    wait_s: float
    attempt: int
    usage: Usage | None = None
    """What the failed try is known to have used; it is paid for like any other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSwitched:
    """A model failed for good and the next of the list takes over; what was streamed so far is void."""

    model: str
    next_model: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputStreamed:
    """A piece of a running tool's output."""

    call_id: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Progressed:
    """What happens in a long act, in a person's words; `share` is 0 to 1, or None."""

    text: str
    share: float | None = None


LiveEvent: TypeAlias = (
    TextStreamed
    | ReasoningStreamed
    | ModelCalled
    | ModelRetried
    | ModelSwitched
    | OutputStreamed
    | Progressed
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """What a watcher receives: an event, journaled or live, and whose it is."""

    run_id: str
    agent: str
    stage: str
    event: Event | LiveEvent
    parent_run: str = ""
    sequence: int = 0
    """The commit's sequence number in its run's journal; 0 for live events."""
    at: str = ""
    """RFC 3339 time, UTC."""
