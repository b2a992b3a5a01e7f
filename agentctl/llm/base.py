"""What a model service is to the rest: a request in, pieces while it comes, one whole message at the end."""

from collections.abc import Callable
from dataclasses import field
from typing import Literal, Protocol, TypeAlias

from agentctl.protocol.events import LiveEvent
from agentctl.protocol.messages import AssistantMessage, Message, ToolSpec, Usage
from agentctl.protocol.values import JsonObject
from agentctl.records import dataclass

Emit: TypeAlias = Callable[[LiveEvent], None]
"""Receives what is streamed; never blocks, never raises."""

ToolChoice: TypeAlias = Literal["auto", "none", "required"] | str
"""`auto`, `none`, `required`, or the name of the one tool to call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """Everything one model call depends on. Equal requests give byte-equal bodies."""

    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: ToolChoice = "auto"
    parallel_tool_calls: bool | None = None
    """None leaves it to the service."""
    output_schema: JsonObject | None = None
    """JSON Schema that the reply's text must satisfy."""
    output_name: str = "output"
    max_output_tokens: int | None = None
    temperature: float | None = None
    reasoning_effort: Literal["", "none", "low", "medium", "high"] = ""
    stop: tuple[str, ...] = ()
    cache: bool = True
    """Mark the stable prefix for caching where the protocol has markers."""
    cache_key: str = ""
    """Names the thread where a service routes equal prefixes by a key; empty sends none."""
    extra: JsonObject = field(default_factory=dict)
    """Members added to the body as they are, over ours: the blueprint's `[model.extra]`."""
    run: str = ""
    """The run a person started, for all agents of its tree. Never sent; each run reads a script by itself."""
    agent: str = ""
    """Whose call it is. Never sent; a script's replies may be meant for one agent."""
    stage: str = ""
    """The stage the agent is in. Never sent, as above."""


FailureKind: TypeAlias = Literal[
    "auth",  # no key, a wrong one, no money, or no right to this model
    "rate_limit",  # too many requests or tokens
    "overloaded",  # the service has no capacity now
    "invalid",  # the request is wrong and stays wrong
    "context_length",  # the request is too long for the model
    "server",  # the service failed
    "transport",  # the connection failed or died
    "stalled",  # nothing came for too long
]


class LanguageModel(Protocol):
    """One `provider:model`, ready to answer. Implementations hold no state of a thread."""

    @property
    def name(self) -> str:
        """The `provider:model` name."""

    @property
    def context_window(self) -> int | None:
        """Tokens that prompt and reply may have together; None when not known."""

    async def reply(self, request: ModelRequest, emit: Emit) -> AssistantMessage:
        """Return the whole reply, after emitting its pieces. Safe to cancel: closes the connection.

        One try: retry and fallback are wrapped around it by `llm/retry.py`.

        Raises:
            ModelCallFailed: the service refused or the connection died; says whether a retry can help.
        """

    async def aclose(self) -> None:
        """Let go of connections. Idempotent."""


class ModelCallFailed(Exception):
    """One try at a model call failed."""

    def __init__(self, message: str, *, details: "FailureDetails") -> None:
        super().__init__(message)
        self.message = message
        self.details = details


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureDetails:
    """What is known about a failed try."""

    kind: FailureKind
    retryable: bool
    next_model: bool = False
    """True where the next model of the list takes over (401, 402, 403, 404, open breaker)."""
    status: int | None = None
    retry_after_s: float | None = None
    request_id: str = ""
    code: str = ""
    """The service's own error code."""
    usage: Usage | None = None
    """What the service said that the failed try used."""
