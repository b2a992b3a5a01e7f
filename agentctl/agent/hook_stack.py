"""Several hooks as one: the order, how their answers combine, time limits, and what a failure means."""

import inspect
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Literal, TypeAlias, TypeVar, cast

import anyio
import anyio.to_thread

from agentctl.agent.hook import Hook, HookContext, MaybeAsync
from agentctl.agent.hook_events import (
    ALLOWED,
    Continue,
    EventName,
    HookAction,
    HookEvent,
    InvalidToolCall,
    InvalidToolCallAction,
    ModelCall,
    ModelCallAction,
    ModelReply,
    ModelSelect,
    ModelSelectAction,
    ObserveAction,
    Patch,
    ReasoningDelta,
    RewriteArguments,
    RewriteResult,
    Select,
    Skip,
    Stop,
    TextDelta,
    ToolCallAction,
    ToolCallEvent,
    ToolResultAction,
    ToolResultEvent,
    TurnAction,
    TurnFinished,
)
from agentctl.records import dataclass

Part = TypeVar("Part")
OnError: TypeAlias = Literal["deny", "continue", "stop"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Acted:
    """What one hook did at one event, for the journal."""

    hook: str
    event: EventName
    action: HookAction | None
    """None when it failed."""
    elapsed_s: float
    failure: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A hook in a stack, and what its `[[hooks]]` table says about it."""

    hook: Hook
    name: str = ""
    events: tuple[str, ...] = ()
    """The events it gets; all it has a method for where empty."""
    tools: tuple[str, ...] = ()
    """Names or globs of tools whose calls it gets; all where empty."""
    timeout_s: float = 5.0
    on_error: OnError = "deny"

    @property
    def label(self) -> str:
        """How the journal names it."""
        return self.name or self.hook.name or type(self.hook).__name__

    def wants(self, event: EventName, tool: str = "") -> bool:
        """Whether it gets this event, about this tool."""
        if not self.hook.observes(event) or (self.events and event not in self.events):
            return False
        return not tool or not self.tools or any(fnmatchcase(tool, pattern) for pattern in self.tools)


class HookStack(Hook):
    """Hooks in order; a hook itself, so stacks nest.

    Rewrites and patches chain; the first answer that ends a chain wins and later hooks are not called. So
    hooks that only observe belong before hooks that steer.
    """

    def __init__(
        self, members: Sequence[Hook | Member], *, report: Callable[[Acted], None] | None = None
    ) -> None:
        """Take hooks in order; `report` is told of every action that is not Continue, and of failures."""
        super().__init__()
        self._members = tuple(
            member if isinstance(member, Member) else Member(hook=member) for member in members
        )
        self._report = report or (lambda _: None)

    @property
    def members(self) -> tuple[Member, ...]:
        """The hooks, in order."""
        return self._members

    def observes(self, event: EventName) -> bool:
        """Whether any member wants an event."""
        return any(member.wants(event) for member in self._members)

    async def on_model_call(self, context: HookContext, event: ModelCall) -> ModelCallAction:
        """Return one patch made of all, or the first Stop, which drops the patches."""
        merged = Patch()
        for member in self._members:
            action = await self._ask(member, "model_call", context, event)
            if isinstance(action, Stop):
                return action
            if isinstance(action, Patch):
                merged = merge_patches(merged, action)
        return Continue() if merged == Patch() else merged

    async def on_model_select(self, context: HookContext, event: ModelSelect) -> ModelSelectAction:
        """Return the last selection, each hook seeing the candidate so far, or the first Stop."""
        chosen: ModelSelectAction = Continue()
        for member in self._members:
            action = await self._ask(member, "model_select", context, event)
            if isinstance(action, Stop):
                return action
            if isinstance(action, Select):
                chosen, event = action, replace(event, candidate=action.model)
        return chosen

    def on_text_delta(self, context: HookContext, event: TextDelta) -> ObserveAction:
        """Return the first Stop."""
        return self._observe_now("text_delta", context, event)

    def on_reasoning_delta(self, context: HookContext, event: ReasoningDelta) -> ObserveAction:
        """Return the first Stop."""
        return self._observe_now("reasoning_delta", context, event)

    async def on_invalid_tool_call(
        self, context: HookContext, event: InvalidToolCall
    ) -> InvalidToolCallAction | None:
        """Return the first decision; None passes it on."""
        for member in self._members:
            action = await self._ask(member, "invalid_tool_call", context, event, tool=event.tool)
            if action is not None and not isinstance(action, Continue):
                return cast("InvalidToolCallAction", action)  # _ask lets only these through
        return None

    async def on_model_reply(self, context: HookContext, event: ModelReply) -> ObserveAction:
        """Return the first answer that is not Continue."""
        return cast("ObserveAction", await self._first("model_reply", context, event))

    async def on_turn_finished(self, context: HookContext, event: TurnFinished) -> TurnAction:
        """Return the first answer that is not Continue."""
        return cast("TurnAction", await self._first("turn_finished", context, event))

    async def on_tool_call(self, context: HookContext, event: ToolCallEvent) -> ToolCallAction:
        """Return the last rewrite, each hook seeing the one before; Skip and Stop keep it for the record."""
        rewritten: RewriteArguments | None = None
        for member in self._members:
            action = await self._ask(member, "tool_call", context, event, tool=event.tool)
            match action:
                case RewriteArguments(arguments=arguments):
                    rewritten = action
                    event = replace(event, arguments=arguments)
                case Skip() | Stop():
                    known = action.rewritten if action.rewritten is not None else None
                    if known is None and rewritten is not None:
                        known = rewritten.arguments
                    return replace(action, rewritten=known)
                case _:
                    continue
        return rewritten or Continue()

    async def on_tool_result(self, context: HookContext, event: ToolResultEvent) -> ToolResultAction:
        """Return the last rewrite, each hook seeing the text of the one before, or the first Stop."""
        rewritten: RewriteResult | None = None
        for member in self._members:
            action = await self._ask(member, "tool_result", context, event, tool=event.tool)
            match action:
                case RewriteResult(text=text):
                    rewritten = action
                    event = replace(event, shown=text)
                case Stop():
                    return action
                case _:
                    continue
        return rewritten or Continue()

    async def _first(self, name: EventName, context: HookContext, event: HookEvent) -> HookAction:
        for member in self._members:
            action = await self._ask(member, name, context, event)
            if action is not None and not isinstance(action, Continue):
                return action
        return Continue()

    async def _ask(
        self, member: Member, name: EventName, context: HookContext, event: HookEvent, *, tool: str = ""
    ) -> HookAction | None:
        if not member.wants(name, tool):
            return None
        begun = time.perf_counter()
        try:
            action = await _answer(member, name, context, event)
        except HookFailed as error:
            return self._failed(member, name, str(error), time.perf_counter() - begun)
        # A stack within this one has told of its own members.
        if action is not None and not isinstance(action, Continue) and not isinstance(member.hook, HookStack):
            elapsed = time.perf_counter() - begun
            self._report(Acted(hook=member.label, event=name, action=action, elapsed_s=elapsed))
        return action

    def _observe_now(self, name: EventName, context: HookContext, event: HookEvent) -> ObserveAction:
        for member in self._members:
            if not member.wants(name):
                continue
            begun = time.perf_counter()
            try:
                action = _checked(name, _method(member.hook, name)(context, event))
            except Exception as error:  # noqa: BLE001 - a person's hook may raise anything
                failure = f"{type(error).__name__}: {error}"
                action = self._failed(member, name, failure, time.perf_counter() - begun)
            else:
                if isinstance(action, Stop):
                    elapsed = time.perf_counter() - begun
                    self._report(Acted(hook=member.label, event=name, action=action, elapsed_s=elapsed))
            if isinstance(action, Stop):
                return action
        return Continue()

    def _failed(self, member: Member, name: EventName, failure: str, elapsed_s: float) -> HookAction | None:
        self._report(Acted(hook=member.label, event=name, action=None, elapsed_s=elapsed_s, failure=failure))
        words = f"hook {member.label!r} failed: {failure}"
        if member.on_error == "continue":
            return None
        if member.on_error == "stop":
            return Stop(words)
        match name:
            case "tool_call":
                return Skip(f"Refused: {words}.")
            case "tool_result":
                return RewriteResult(f"The result is withheld: {words}.")
            case "invalid_tool_call":
                return Skip(f"Refused: {words}.")
            case "model_select" | "text_delta" | "reasoning_delta" | "model_call" | "model_reply":
                return Stop(words)
            case "turn_finished":
                return Stop(words)


class HookFailed(Exception):
    """A hook raised, took too long, or answered with what its event does not allow."""


_Method: TypeAlias = Callable[[HookContext, HookEvent], MaybeAsync[HookAction]]


def _method(hook: Hook, name: EventName) -> _Method:
    # Each event's method takes that event: `_ask` is only called with the pair that belongs together.
    methods: dict[EventName, object] = {
        "model_call": hook.on_model_call,
        "model_select": hook.on_model_select,
        "text_delta": hook.on_text_delta,
        "reasoning_delta": hook.on_reasoning_delta,
        "invalid_tool_call": hook.on_invalid_tool_call,
        "model_reply": hook.on_model_reply,
        "turn_finished": hook.on_turn_finished,
        "tool_call": hook.on_tool_call,
        "tool_result": hook.on_tool_result,
    }
    return cast("_Method", methods[name])


async def _answer(
    member: Member, name: EventName, context: HookContext, event: HookEvent
) -> HookAction | None:
    method = _method(member.hook, name)
    try:
        with anyio.fail_after(member.timeout_s):
            if inspect.iscoroutinefunction(method):
                answer = await method(context, event)
            else:
                # In a thread: a hook that hangs must hang neither the run nor other agents.
                made = await anyio.to_thread.run_sync(method, context, event, abandon_on_cancel=True)
                answer = await made if inspect.isawaitable(made) else made
    except TimeoutError as error:
        raise HookFailed(f"it took longer than {member.timeout_s:g} s") from error
    except HookFailed:
        raise
    except Exception as error:
        raise HookFailed(f"{type(error).__name__}: {error}") from error
    return _checked(name, answer)


def _checked(name: EventName, answer: object) -> HookAction | None:
    if answer is None:
        return None
    if not isinstance(answer, ALLOWED[name]):
        allowed = ", ".join(kind.__name__ for kind in ALLOWED[name])
        raise HookFailed(f"on_{name} returned {type(answer).__name__}; it may return {allowed} or None")
    return cast("HookAction", answer)  # one of the event's own actions


def merge_patches(first: Patch, second: Patch) -> Patch:
    """Return both as one: context in order, extra merged at the top level, tools intersected, later wins."""
    tools = first.active_tools
    if second.active_tools is not None:
        wanted = second.active_tools
        tools = wanted if tools is None else tuple(tool for tool in tools if tool in wanted)
    return Patch(
        system=_later(first.system, second.system),
        temperature=_later(first.temperature, second.temperature),
        max_output_tokens=_later(first.max_output_tokens, second.max_output_tokens),
        tool_choice=_later(first.tool_choice, second.tool_choice),
        active_tools=tools,
        extra={**first.extra, **second.extra},
        context=(*first.context, *second.context),
        history=_later(first.history, second.history),
    )


def _later(first: Part | None, second: Part | None) -> Part | None:
    return first if second is None else second
