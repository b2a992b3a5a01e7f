"""Hooks as a person writes them: a class with one method an event."""

from collections.abc import Awaitable
from dataclasses import field
from typing import TypeAlias, TypeVar

from agentctl.agent.hook_events import (
    EVENT_NAMES,
    EventName,
    InvalidToolCall,
    InvalidToolCallAction,
    ModelCall,
    ModelCallAction,
    ModelReply,
    ModelSelect,
    ModelSelectAction,
    ObserveAction,
    ReasoningDelta,
    TextDelta,
    ToolCallAction,
    ToolCallEvent,
    ToolResultAction,
    ToolResultEvent,
    TurnAction,
    TurnFinished,
)
from agentctl.ids import new_run_id
from agentctl.protocol.values import JsonObject
from agentctl.records import dataclass
from agentctl.state.scratchpad import Scratchpad

Answer = TypeVar("Answer")
MaybeAsync: TypeAlias = Answer | Awaitable[Answer | None] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HookContext:
    """What every hook method receives first. One scratchpad for all hooks of the run."""

    run_id: str = field(default_factory=new_run_id)
    agent: str = ""
    stage: str = ""
    thread_id: str = ""
    step: int = 1
    """The model call it is about, from 1."""
    streaming: bool = True
    scratchpad: Scratchpad = field(default_factory=Scratchpad)


class Hook:
    """Override the events you want; the others cost nothing. Methods may be async.

    Returning None is the same as `Continue()`; for `on_invalid_tool_call` it leaves the decision to the next
    hook. A hook observes or narrows: whatever it leaves of a call is judged by policy after it.
    """

    name: str = ""
    """How the journal names it; the class's name where empty."""
    params: JsonObject
    """The `params` of its `[[hooks]]` table."""

    def __init__(self, **params: object) -> None:
        """Take the `params` of the hook's table."""
        self.params = dict(params)  # type: ignore[arg-type]  # TOML holds JSON values only

    def observes(self, event: EventName) -> bool:
        """Whether the hook wants an event; by default, whether its class has a method of its own for it."""
        method = f"on_{event}"
        return getattr(type(self), method) is not getattr(Hook, method)

    def on_model_call(self, context: HookContext, event: ModelCall) -> MaybeAsync[ModelCallAction]:
        """Return Continue, Patch or Stop before a request goes out."""

    def on_model_select(self, context: HookContext, event: ModelSelect) -> MaybeAsync[ModelSelectAction]:
        """Return Continue, Select or Stop; sees the candidate so far."""

    def on_text_delta(self, context: HookContext, event: TextDelta) -> ObserveAction | None:
        """Return Continue or Stop while text comes in. Called in the loop: must be quick and not async."""

    def on_reasoning_delta(self, context: HookContext, event: ReasoningDelta) -> ObserveAction | None:
        """Return Continue or Stop while thinking comes in. Called in the loop: must be quick, not async."""

    def on_invalid_tool_call(
        self, context: HookContext, event: InvalidToolCall
    ) -> MaybeAsync[InvalidToolCallAction]:
        """Return Fail, RetryCall, Repair, Skip or Stop, or None to leave it to the next hook."""

    def on_model_reply(self, context: HookContext, event: ModelReply) -> MaybeAsync[ObserveAction]:
        """Return Continue or Stop when a reply has come in."""

    def on_turn_finished(self, context: HookContext, event: TurnFinished) -> MaybeAsync[TurnAction]:
        """Return Continue, Repeat, Feedback or Stop; asking again is for turns without tool calls."""

    def on_tool_call(self, context: HookContext, event: ToolCallEvent) -> MaybeAsync[ToolCallAction]:
        """Return Continue, RewriteArguments, Skip or Stop before a call is judged."""

    def on_tool_result(self, context: HookContext, event: ToolResultEvent) -> MaybeAsync[ToolResultAction]:
        """Return Continue, RewriteResult or Stop before the model sees a result."""


def observed(hook: Hook) -> tuple[EventName, ...]:
    """Return the events a hook wants, in the order in which a turn brings them."""
    return tuple(event for event in EVENT_NAMES if hook.observes(event))
