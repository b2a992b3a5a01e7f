"""What is said: messages of a thread, tool calls and results, usage, and what a tool is to a model."""

from dataclasses import field
from typing import Literal, TypeAlias

from agentctl.protocol.values import JsonObject, JsonValue
from agentctl.records import dataclass

StopReason: TypeAlias = Literal[
    "end",  # the model was done
    "tool_calls",  # it waits for tool results
    "length",  # cut by a token limit: tool calls of such a turn are never executed
    "stop_sequence",  # a stop sequence of the request appeared
    "refusal",  # the model or service declined
    "filtered",  # a content filter cut the reply
    "incomplete",  # the stream ended without its terminator: never executed either
]

Outcome: TypeAlias = Literal[
    "ok",  # the tool did what was asked
    "failed",  # it ran and failed, or the request was wrong
    "denied",  # policy, a budget or a person said no; nothing ran
    "cancelled",  # stopped before or while running
    "in_doubt",  # started before a crash; whether it happened is not known
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens and money of one model call. A service's later figure replaces an earlier one, it never adds."""

    input_tokens: int = 0
    """All prompt tokens, those read from and written to a cache included."""
    output_tokens: int = 0
    """All tokens of the reply, reasoning included."""
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    cost_usd: float | None = None
    """None when the price of the model is not known; never taken as zero."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPart:
    """Text, as written."""

    text: str
    opaque: JsonObject = field(default_factory=dict)
    """What a service wants back with this text (an item id, a phase, a thought signature), as it came."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImagePart:
    """A picture or another file that goes to the model: base64 `data`, or a `url`, one of the two."""

    media_type: str
    data: str = ""
    url: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningPart:
    """What the model thought. `opaque` goes back to the same service unchanged when it demands it."""

    text: str = ""
    opaque: JsonObject = field(default_factory=dict)
    """The service's own block (signature, encrypted content), as it came; empty when there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalPart:
    """The model's own words for why it declines."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """The model's request to run a tool."""

    call_id: str
    tool: str
    arguments: JsonObject = field(default_factory=dict)
    invalid_arguments: str = ""
    """What came instead of a JSON object; such a call is answered with an error and never runs."""
    opaque: JsonObject = field(default_factory=dict)
    """What the service wants back with this call (a thought signature, an item id), as it came."""


UserPart: TypeAlias = TextPart | ImagePart
AssistantPart: TypeAlias = TextPart | ReasoningPart | RefusalPart | ToolCall


@dataclass(frozen=True, slots=True, kw_only=True)
class UserMessage:
    """What a person, or the harness in a person's place, said."""

    parts: tuple[UserPart, ...]
    source: str = "person"
    """`person`, `task`, `harness` (nudges, steering), `summary`, or `agent:NAME`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AssistantMessage:
    """One reply of a model: its parts in the order they came."""

    parts: tuple[AssistantPart, ...]
    stop: StopReason = "end"
    usage: Usage = field(default_factory=Usage)
    model: str = ""
    """`provider:model` that answered."""
    response_id: str = ""

    @property
    def text(self) -> str:
        """All text parts, joined."""
        return "".join(part.text for part in self.parts if isinstance(part, TextPart))

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The tool calls, in the order the model made them."""
        return tuple(part for part in self.parts if isinstance(part, ToolCall))


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """The single answer to a tool call."""

    call_id: str
    tool: str
    outcome: Outcome
    text: str
    """What the model reads."""
    structured: JsonValue = None
    """The same as JSON, for hooks, effects and programs; None when the tool has none."""
    images: tuple[ImagePart, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolMessage:
    """A tool result's place in the thread."""

    result: ToolResult


Message: TypeAlias = UserMessage | AssistantMessage | ToolMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """What a model is told about a tool. `parameters` is a JSON Schema of type object."""

    name: str
    description: str
    parameters: JsonObject
    strict: bool | None = None
    """Ask the service to enforce the schema; None leaves it to the service."""


def user_text(text: str, *, source: str = "person") -> UserMessage:
    """Return a user message of one text part."""
    return UserMessage(parts=(TextPart(text=text),), source=source)
