"""A hook that is a program: one JSON object on its stdin, one on its stdout.

stdin `{schema, event, run, agent, call?, …, scratchpad}`; stdout `{action, …, scratchpad?}`, or nothing,
which means continue. The scratchpad is the hook's own notes: a JSON object that is saved with the run.
"""

import json
from collections.abc import Awaitable
from dataclasses import field
from typing import Protocol

from agentctl.agent.hook import Hook, HookContext
from agentctl.agent.hook_events import (
    Continue,
    EventName,
    Fail,
    Feedback,
    InvalidToolCall,
    InvalidToolCallAction,
    ModelCall,
    ModelCallAction,
    ModelReply,
    ModelSelect,
    ModelSelectAction,
    ObserveAction,
    Patch,
    Repair,
    Repeat,
    RetryCall,
    RewriteArguments,
    RewriteResult,
    Select,
    Skip,
    Stop,
    ToolCallAction,
    ToolCallEvent,
    ToolResultAction,
    ToolResultEvent,
    TurnAction,
    TurnFinished,
)
from agentctl.agent.hook_stack import HookFailed
from agentctl.protocol.codec import encode
from agentctl.protocol.values import JsonObject, JsonValue
from agentctl.records import dataclass

SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """How a hook's program ended."""

    exit_code: int
    stdout: str
    stderr: str = ""


class RunProgram(Protocol):
    """Runs a program outside the model's reach, without credentials in its environment."""

    def __call__(self, argv: tuple[str, ...], stdin: bytes, timeout_s: float) -> Awaitable[Ran]:
        """Return how it ended; raises HookFailed when it took too long or could not be started."""


@dataclass
class HookNotes:
    """What command hooks keep in the scratchpad, by the name of the hook."""

    by_hook: dict[str, JsonObject] = field(default_factory=dict)


class CommandHook(Hook):
    """Implements every event by asking the program, except the pieces of a streamed reply."""

    def __init__(
        self, name: str, argv: tuple[str, ...], *, run: RunProgram, timeout_s: float, events: tuple[str, ...]
    ) -> None:
        """Take the program's words; `events` are those it is started for."""
        super().__init__()
        self.name = name
        self._argv = argv
        self._run = run
        self._timeout_s = timeout_s
        self._events = frozenset(events)

    def observes(self, event: EventName) -> bool:
        """Whether the program is started for an event."""
        return event in self._events

    async def on_model_call(self, context: HookContext, event: ModelCall) -> ModelCallAction:
        """Ask the program; it sees what the request holds besides its messages, and how many there are."""
        request = event.request
        facts: JsonObject = {
            "system": request.system,
            "messages": [encode(message) for message in request.messages],
            "tools": [tool.name for tool in request.tools],
            "temperature": request.temperature,
            "max_output_tokens": request.max_output_tokens,
        }
        answer = await self._ask("model_call", context, facts)
        match answer.get("action", "continue"):
            case "continue":
                return Continue()
            case "patch":
                return _patch(answer)
            case "stop":
                return _stop(answer)
            case other:
                raise _not_allowed("model_call", other)

    async def on_model_select(self, context: HookContext, event: ModelSelect) -> ModelSelectAction:
        """Ask the program."""
        answer = await self._ask(
            "model_select", context, {"candidate": event.candidate, "previous": event.previous}
        )
        match answer.get("action", "continue"):
            case "continue":
                return Continue()
            case "select":
                return Select(_text(answer, "model"))
            case "stop":
                return _stop(answer)
            case other:
                raise _not_allowed("model_select", other)

    async def on_invalid_tool_call(
        self, context: HookContext, event: InvalidToolCall
    ) -> InvalidToolCallAction | None:
        """Ask the program; empty stdout leaves the decision to the next hook."""
        answer = await self._ask(
            "invalid_tool_call",
            context,
            {"call": _call(event.call_id, event.tool, event.arguments), "offered": list(event.offered)},
        )
        match answer.get("action", "continue"):
            case "continue":
                return None
            case "fail":
                return Fail(str(answer.get("reason", "")))
            case "retry":
                return RetryCall(_text(answer, "feedback"))
            case "repair":
                return Repair(_text(answer, "tool"))
            case "skip":
                return Skip(_text(answer, "reason"))
            case "stop":
                return _stop(answer)
            case other:
                raise _not_allowed("invalid_tool_call", other)

    async def on_model_reply(self, context: HookContext, event: ModelReply) -> ObserveAction:
        """Ask the program."""
        answer = await self._ask(
            "model_reply", context, {"reply": encode(event.reply), "usage": encode(event.usage)}
        )
        match answer.get("action", "continue"):
            case "continue":
                return Continue()
            case "stop":
                return _stop(answer)
            case other:
                raise _not_allowed("model_reply", other)

    async def on_turn_finished(self, context: HookContext, event: TurnFinished) -> TurnAction:
        """Ask the program."""
        answer = await self._ask("turn_finished", context, {"reply": encode(event.reply)})
        match answer.get("action", "continue"):
            case "continue":
                return Continue()
            case "repeat":
                return Repeat()
            case "feedback":
                return Feedback(_text(answer, "text"))
            case "stop":
                return _stop(answer)
            case other:
                raise _not_allowed("turn_finished", other)

    async def on_tool_call(self, context: HookContext, event: ToolCallEvent) -> ToolCallAction:
        """Ask the program."""
        answer = await self._ask(
            "tool_call", context, {"call": _call(event.call_id, event.tool, event.arguments)}
        )
        match answer.get("action", "continue"):
            case "continue" | "run":
                return Continue()
            case "rewrite":
                if "arguments" not in answer:
                    raise HookFailed("action rewrite needs 'arguments'")
                return RewriteArguments(answer["arguments"])
            case "skip":
                return Skip(_text(answer, "reason"))
            case "stop":
                return _stop(answer)
            case other:
                raise _not_allowed("tool_call", other)

    async def on_tool_result(self, context: HookContext, event: ToolResultEvent) -> ToolResultAction:
        """Ask the program."""
        answer = await self._ask(
            "tool_result",
            context,
            {
                "call": _call(event.call_id, event.tool, event.arguments),
                "outcome": event.outcome,
                "raw": event.raw,
                "structured": event.structured,
                "shown": event.shown,
            },
        )
        match answer.get("action", "continue"):
            case "continue" | "keep":
                return Continue()
            case "rewrite":
                return RewriteResult(_text(answer, "text"))
            case "stop":
                return _stop(answer)
            case other:
                raise _not_allowed("tool_result", other)

    async def _ask(self, event: EventName, context: HookContext, facts: JsonObject) -> JsonObject:
        notes = context.scratchpad.get(HookNotes) or HookNotes()
        said: JsonObject = {
            "schema": SCHEMA,
            "event": event,
            "run": context.run_id,
            "agent": context.agent,
            "stage": context.stage,
            "step": context.step,
            **facts,
            "scratchpad": notes.by_hook.get(self.name, {}),
        }
        ran = await self._run(self._argv, json.dumps(said).encode(), self._timeout_s)
        if ran.exit_code != 0:
            last = ran.stderr.strip().splitlines()[-1:] or ["no message"]
            raise HookFailed(f"{self._argv[0]} ended with {ran.exit_code}: {last[0]}")
        answer = _object(ran.stdout)
        kept = answer.get("scratchpad")
        if isinstance(kept, dict):
            context.scratchpad.update(HookNotes, lambda notes: notes.by_hook.update({self.name: kept}))
        elif kept is not None:
            raise HookFailed("'scratchpad' is not an object")
        return answer


def _object(text: str) -> JsonObject:
    if not text.strip():
        return {}
    try:
        value: JsonValue = json.loads(text)
    except ValueError as error:
        raise HookFailed(f"its stdout is not one JSON object: {error}") from error
    if not isinstance(value, dict):
        raise HookFailed("its stdout is not one JSON object")
    return value


def _call(call_id: str, tool: str, arguments: JsonValue) -> JsonObject:
    return {"id": call_id, "tool": tool, "arguments": arguments}


def _text(answer: JsonObject, name: str) -> str:
    value = answer.get(name)
    if not isinstance(value, str):
        raise HookFailed(f"action {answer.get('action')} needs {name!r}, a text")
    return value


def _stop(answer: JsonObject) -> Stop:
    return Stop(_text(answer, "reason"))


def _patch(answer: JsonObject) -> Patch:
    patch = answer.get("patch")
    if not isinstance(patch, dict):
        raise HookFailed("action patch needs 'patch', an object")
    unknown = set(patch) - _PATCHED
    if unknown:
        raise HookFailed(f"'patch' has {min(unknown)!r}; it takes {', '.join(sorted(_PATCHED))}")
    tools, extra, context = patch.get("active_tools"), patch.get("extra"), patch.get("context")
    temperature, most = patch.get("temperature"), patch.get("max_output_tokens")
    system, choice = patch.get("system"), patch.get("tool_choice")
    return Patch(
        system=system if isinstance(system, str) else None,
        temperature=float(temperature) if isinstance(temperature, int | float) else None,
        max_output_tokens=most if isinstance(most, int) else None,
        tool_choice=choice if isinstance(choice, str) else None,
        active_tools=tuple(str(tool) for tool in tools) if isinstance(tools, list) else None,
        extra=extra if isinstance(extra, dict) else {},
        context=tuple(str(text) for text in context) if isinstance(context, list) else (),
    )


_PATCHED = frozenset(
    {"system", "temperature", "max_output_tokens", "tool_choice", "active_tools", "extra", "context"}
)


def _not_allowed(event: EventName, action: object) -> HookFailed:
    return HookFailed(f"{action!r} is no action of {event}")
