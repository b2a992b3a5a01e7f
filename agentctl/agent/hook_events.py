"""What hooks are told, and what each event lets them answer: one closed set of actions an event.

A *turn* is one reply of the model; the tool calls it asks for come after it.
"""

from dataclasses import field
from typing import Literal, TypeAlias

from agentctl.llm.base import ModelRequest, ToolChoice
from agentctl.protocol.messages import AssistantMessage, Message, Usage
from agentctl.protocol.values import JsonObject, JsonValue
from agentctl.records import dataclass

EventName: TypeAlias = Literal[
    "model_call",
    "model_select",
    "text_delta",
    "reasoning_delta",
    "invalid_tool_call",
    "model_reply",
    "turn_finished",
    "tool_call",
    "tool_result",
]
EVENT_NAMES: tuple[EventName, ...] = (
    "model_call",
    "model_select",
    "text_delta",
    "reasoning_delta",
    "invalid_tool_call",
    "model_reply",
    "turn_finished",
    "tool_call",
    "tool_result",
)
"""In the order in which a turn brings them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """A request is about to go out."""

    request: ModelRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSelect:
    """A model is chosen for the request."""

    candidate: str
    """The model so far: the stage's, or what an earlier hook chose."""
    previous: str = ""
    """The model of the turn before; empty at the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta:
    """A piece of the model's text came in; provisional until the turn is accepted."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningDelta:
    """A piece of the model's thinking came in; provisional until the turn is accepted."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InvalidToolCall:
    """The model called a tool that is not offered."""

    call_id: str
    tool: str
    arguments: JsonObject
    offered: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReply:
    """A whole reply came in, before anything follows from it."""

    reply: AssistantMessage
    usage: Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFinished:
    """A whole reply came in and was observed: it may still be asked for again."""

    reply: AssistantMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallEvent:
    """A tool call is about to be judged. What hooks leave of it is what policy sees."""

    call_id: str
    tool: str
    arguments: JsonValue
    """An object; what an earlier hook made of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResultEvent:
    """A tool call has its result, also one that was skipped or refused."""

    call_id: str
    tool: str
    arguments: JsonObject
    outcome: Literal["ok", "failed", "denied", "skipped", "cancelled", "in_doubt"]
    raw: str
    """The result's text as the tool gave it; no hook changes it."""
    structured: JsonValue
    shown: str
    """The text that the model is going to see so far."""


HookEvent: TypeAlias = (
    ModelCall
    | ModelSelect
    | TextDelta
    | ReasoningDelta
    | InvalidToolCall
    | ModelReply
    | TurnFinished
    | ToolCallEvent
    | ToolResultEvent
)


@dataclass(frozen=True, slots=True)
class Continue:
    """Go on: run the call, keep the result, send the request as it is."""


@dataclass(frozen=True, slots=True)
class Stop:
    """End the run as failed, with this reason."""

    reason: str
    rewritten: JsonValue = None
    """Arguments as earlier hooks had rewritten them, for the record; filled in by the stack."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """Change this one request; None leaves a part as it is. Nothing of it stays for the next."""

    system: str | None = None
    temperature: float | None = None
    max_output_tokens: int | None = None
    tool_choice: ToolChoice | None = None
    active_tools: tuple[str, ...] | None = None
    """Offer only these; it can only narrow."""
    extra: JsonObject = field(default_factory=dict)
    """Members of the request body, over those of the stage, merged at the top level."""
    context: tuple[str, ...] = ()
    """Texts that the model is shown at the end of the request."""
    history: tuple[Message, ...] | None = None
    """What is sent in place of the messages; the thread stays what it is."""


@dataclass(frozen=True, slots=True)
class Select:
    """Use this model, a `provider:model` name."""

    model: str


@dataclass(frozen=True, slots=True)
class Fail:
    """End the run: the model called a tool that is not there."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class RetryCall:
    """Run no call of this turn, and tell the model why."""

    feedback: str


@dataclass(frozen=True, slots=True)
class Repair:
    """Take the call for one of this tool, which must be offered."""

    tool: str


@dataclass(frozen=True, slots=True)
class Skip:
    """Do not run the call; the reason is its result."""

    reason: str
    rewritten: JsonValue = None
    """Arguments as earlier hooks had rewritten them, for the record; filled in by the stack."""


@dataclass(frozen=True, slots=True)
class Repeat:
    """Drop the reply and send the same request again. Only for turns without tool calls."""


@dataclass(frozen=True, slots=True)
class Feedback:
    """Keep the reply, add this text, and call the model again. Only for turns without tool calls."""

    text: str


@dataclass(frozen=True, slots=True)
class RewriteArguments:
    """Go on with these arguments. Policy judges them, not those of the model."""

    arguments: JsonValue


@dataclass(frozen=True, slots=True)
class RewriteResult:
    """Show the model this text instead, as it is. The raw result stays in the journal."""

    text: str


ObserveAction: TypeAlias = Continue | Stop
ModelCallAction: TypeAlias = Continue | Patch | Stop
ModelSelectAction: TypeAlias = Continue | Select | Stop
InvalidToolCallAction: TypeAlias = Fail | RetryCall | Repair | Skip | Stop
TurnAction: TypeAlias = Continue | Repeat | Feedback | Stop
ToolCallAction: TypeAlias = Continue | RewriteArguments | Skip | Stop
ToolResultAction: TypeAlias = Continue | RewriteResult | Stop
HookAction: TypeAlias = (
    Continue
    | Stop
    | Patch
    | Select
    | Fail
    | RetryCall
    | Repair
    | Skip
    | Repeat
    | Feedback
    | RewriteArguments
    | RewriteResult
)

ALLOWED: dict[EventName, tuple[type, ...]] = {
    "model_call": (Continue, Patch, Stop),
    "model_select": (Continue, Select, Stop),
    "text_delta": (Continue, Stop),
    "reasoning_delta": (Continue, Stop),
    "invalid_tool_call": (Fail, RetryCall, Repair, Skip, Stop),
    "model_reply": (Continue, Stop),
    "turn_finished": (Continue, Repeat, Feedback, Stop),
    "tool_call": (Continue, RewriteArguments, Skip, Stop),
    "tool_result": (Continue, RewriteResult, Stop),
}
"""What each event may be answered with. None counts as Continue, and as undecided for invalid_tool_call."""
