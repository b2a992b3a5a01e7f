"""All hooks of a run, as its loop sees them: one call an event, every action in the journal."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import field, replace
from typing import Literal, Protocol, TypeAlias

import anyio

from agentctl.agent.hook import HookContext
from agentctl.agent.hook_events import (
    Continue,
    Fail,
    Feedback,
    InvalidToolCall,
    ModelCall,
    ModelReply,
    ModelSelect,
    Patch,
    ReasoningDelta,
    Repair,
    Repeat,
    RetryCall,
    RewriteArguments,
    RewriteResult,
    Select,
    Skip,
    Stop,
    TextDelta,
    ToolCallEvent,
    ToolResultEvent,
    TurnFinished,
)
from agentctl.agent.hook_patch import patched
from agentctl.agent.hook_record import acted_event, noted, restored
from agentctl.agent.hook_stack import Acted, HookStack
from agentctl.agent.shipped_hooks import Redact
from agentctl.agent.snapshot import RunSnapshot
from agentctl.errors import RunFailed
from agentctl.llm.base import Emit, ModelRequest
from agentctl.protocol.commands import Command
from agentctl.protocol.events import HookActed, LiveEvent, ReasoningStreamed, TextStreamed
from agentctl.protocol.messages import AssistantMessage, ToolCall, ToolResult
from agentctl.records import dataclass
from agentctl.state.cells import CellView
from agentctl.state.scratchpad import Scratchpad
from agentctl.tools.definition import ToolOutput


@dataclass(frozen=True, slots=True, kw_only=True)
class AskAgain:
    """The model is called again."""

    feedback: str = ""
    """What it is told after its reply; empty drops the reply and repeats the request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoCallRuns:
    """No call of the turn runs: one of them was for a tool that is not there."""

    why: str


NEVER_EXECUTED = {
    "length": "Not run: the reply was cut by its length limit, so this call may be incomplete. Be shorter.",
    "incomplete": "Not run: the reply broke off, so this call may be incomplete. Make it again.",
    "filtered": "The reply was cut by a content filter; this call was not run.",
    "refusal": "The reply was a refusal; this call was not run.",
}
"""Why the calls of a reply that ended so are not run."""

InvalidCall: TypeAlias = ToolCall | NoCallRuns | None


class Hooks(Protocol):
    """All hooks of a run, as one."""

    async def before_model(self, request: ModelRequest) -> ModelRequest:
        """Return the request that goes out.

        Raises:
            RunFailed: a hook stops the run, or its patch asks for a tool that is not offered.
        """

    async def choose_model(self, candidate: str) -> str:
        """Return the name of the model to call."""

    def watching(self, emit: Emit, stop: Callable[[str], None]) -> Emit:
        """Return an emit that lets hooks see pieces of a reply; `stop` is called at most once, with why."""

    async def stopped_while_streaming(self, reason: str) -> RunFailed:
        """Write down who stopped the reply, and return what ends the run."""

    async def after_reply(self, reply: AssistantMessage) -> AskAgain | None:
        """Return whether the model is asked again; None accepts the reply."""

    async def invalid_call(self, call: ToolCall, offered: Sequence[str]) -> InvalidCall:
        """Return the repaired call, that no call of the turn runs, or None where no hook decides.

        Asked when the reply came in, and again when its step is taken, which a crash may come before: hooks
        see a call once in each process.
        """

    async def before_call(self, call: ToolCall) -> ToolCall | ToolResult:
        """Return the call that is judged next, or the result that stands for a call that was skipped."""

    def clean(self, output: ToolOutput) -> ToolOutput:
        """Return a call's output without what must not reach the journal."""

    async def after_call(self, call: ToolCall, result: ToolResult) -> ToolResult:
        """Return the result as the model is going to see it; the raw one stays in the journal."""

    def notes(self) -> tuple[Command, ...]:
        """Return what saves the scratchpad with the step's commit; empty when it has not changed."""


class NoHooks:
    """Nothing hooked."""

    async def before_model(self, request: ModelRequest) -> ModelRequest:
        """Return the request as it is."""
        return request

    async def choose_model(self, candidate: str) -> str:
        """Return the stage's model."""
        return candidate

    def watching(self, emit: Emit, stop: Callable[[str], None]) -> Emit:
        """Return `emit` as it is."""
        del stop
        return emit

    async def stopped_while_streaming(self, reason: str) -> RunFailed:
        """Never called."""
        return _stopped(reason)

    async def after_reply(self, reply: AssistantMessage) -> AskAgain | None:
        """Accept the reply."""
        del reply
        return None

    async def invalid_call(self, call: ToolCall, offered: Sequence[str]) -> InvalidCall:
        """Decide nothing."""
        del call, offered
        return None

    async def before_call(self, call: ToolCall) -> ToolCall | ToolResult:
        """Return the call as it is."""
        return call

    def clean(self, output: ToolOutput) -> ToolOutput:
        """Return the output as it is."""
        return output

    async def after_call(self, call: ToolCall, result: ToolResult) -> ToolResult:
        """Return the result as it is."""
        del call
        return result

    def notes(self) -> tuple[Command, ...]:
        """Return nothing."""
        return ()


@dataclass(slots=True, kw_only=True)
class RunHooks:
    """Implements `Hooks` over a stack; actions are committed before what follows from them."""

    stack: HookStack
    snapshot: RunSnapshot
    agent: str
    run_id: str
    thread_id: str
    commit: Callable[[HookActed], Awaitable[None]]
    scratchpad: Scratchpad = field(default_factory=Scratchpad)
    acted: list[Acted] = field(default_factory=list)
    """Filled by the stack's report; written to the journal after each event."""
    _decided: dict[str, InvalidCall] = field(default_factory=dict)
    _skipped: set[str] = field(default_factory=set)
    _saved: str = ""
    _model: str = ""

    def restore(self, cells: CellView) -> None:
        """Take in the scratchpad that was saved with the run."""
        self._saved = restored(self.scratchpad, cells)

    async def before_model(self, request: ModelRequest) -> ModelRequest:
        """Return the request with every hook's patch; nothing of it stays for the next."""
        self._decided.clear()
        if not self.stack.observes("model_call"):
            return request
        action = await self.stack.on_model_call(self._context(), ModelCall(request=request))
        await self._record()
        match action:
            case Stop(reason=reason):
                raise _stopped(reason)
            case Patch():
                return patched(request, action)
            case Continue():
                return request

    async def choose_model(self, candidate: str) -> str:
        """Return the last hook's choice, else the stage's model."""
        previous, chosen = self._model, candidate
        if self.stack.observes("model_select"):
            event = ModelSelect(candidate=candidate, previous=previous)
            action = await self.stack.on_model_select(self._context(), event)
            await self._record()
            if isinstance(action, Stop):
                raise _stopped(action.reason)
            if isinstance(action, Select):
                chosen = action.model
        self._model = chosen
        return chosen

    def watching(self, emit: Emit, stop: Callable[[str], None]) -> Emit:
        """Return an emit that shows each piece to the hooks first."""
        if not (self.stack.observes("text_delta") or self.stack.observes("reasoning_delta")):
            return emit
        context = self._context()
        stopped = False

        def seen(event: LiveEvent) -> None:
            nonlocal stopped
            action = None
            if isinstance(event, TextStreamed):
                action = self.stack.on_text_delta(context, TextDelta(text=event.text))
            elif isinstance(event, ReasoningStreamed):
                action = self.stack.on_reasoning_delta(context, ReasoningDelta(text=event.text))
            if isinstance(action, Stop) and not stopped:
                stopped = True
                stop(action.reason)
            emit(event)

        return seen

    async def stopped_while_streaming(self, reason: str) -> RunFailed:
        """Write down who stopped the reply, and return what ends the run."""
        await self._record()
        return _stopped(reason)

    async def after_reply(self, reply: AssistantMessage) -> AskAgain | None:
        """Return whether the model is asked again, which only a turn without tool calls may be."""
        if self.stack.observes("model_reply"):
            observed = await self.stack.on_model_reply(
                self._context(), ModelReply(reply=reply, usage=reply.usage)
            )
            await self._record()
            if isinstance(observed, Stop):
                raise _stopped(observed.reason)
        if not self.stack.observes("turn_finished"):
            return None
        action = await self.stack.on_turn_finished(self._context(), TurnFinished(reply=reply))
        await self._record()
        match action:
            case Stop(reason=reason):
                raise _stopped(reason)
            case Continue():
                return None
            case Repeat() | Feedback() if reply.tool_calls:
                raise RunFailed(
                    "A hook asked for a turn with tool calls again.",
                    hint="Tool-bearing model turns cannot be retried; use tool-call hooks.",
                )
            case Repeat():
                return AskAgain()
            case Feedback(text=text):
                return AskAgain(feedback=text)

    async def invalid_call(self, call: ToolCall, offered: Sequence[str]) -> InvalidCall:
        """Return what the first hook that decides says; the second time, what it said the first."""
        if not self.stack.observes("invalid_tool_call"):
            return None
        if call.call_id in self._decided:
            return self._decided.pop(call.call_id)
        self._decided[call.call_id] = decided = await self._decide(call, offered)
        return decided

    async def _decide(self, call: ToolCall, offered: Sequence[str]) -> InvalidCall:
        event = InvalidToolCall(
            call_id=call.call_id, tool=call.tool, arguments=call.arguments, offered=tuple(offered)
        )
        action = await self.stack.on_invalid_tool_call(self._context(), event)
        await self._record()
        match action:
            case None:
                return None
            case Fail(reason=reason):
                raise RunFailed(reason or f"The model called {call.tool!r}, which is no tool of this stage.")
            case Stop(reason=reason):
                raise _stopped(reason)
            case Repair(tool=tool):
                if tool not in offered:
                    raise RunFailed(f"A hook repaired {call.tool!r} to {tool!r}, which is not offered.")
                return replace(call, tool=tool)
            case RetryCall(feedback=why) | Skip(reason=why):
                return NoCallRuns(why=why)

    async def before_call(self, call: ToolCall) -> ToolCall | ToolResult:
        """Return the call as hooks left it, or the result of a skipped one."""
        if not self.stack.observes("tool_call"):
            return call
        event = ToolCallEvent(call_id=call.call_id, tool=call.tool, arguments=call.arguments)
        action = await self.stack.on_tool_call(self._context(), event)
        await self._record()
        match action:
            case Continue():
                return call
            case RewriteArguments(arguments=arguments):
                if not isinstance(arguments, dict):
                    return _answer(call, "failed", "A hook left arguments that are no JSON object.")
                return replace(call, arguments=arguments, invalid_arguments="")
            case Skip(reason=reason):
                self._skipped.add(call.call_id)
                return _answer(call, "denied", reason)
            case Stop(reason=reason):
                raise _stopped(reason)

    def clean(self, output: ToolOutput) -> ToolOutput:
        """Return the output after every `redact` hook: before it is recorded, so the journal has none."""
        for member in self.stack.members:
            if isinstance(member.hook, Redact):
                output = member.hook.cleaned(output)
        return output

    async def after_call(self, call: ToolCall, result: ToolResult) -> ToolResult:
        """Return the result with the text that hooks left; outcome and raw text stay what they are."""
        if not self.stack.observes("tool_result"):
            return result
        event = ToolResultEvent(
            call_id=call.call_id,
            tool=call.tool,
            arguments=call.arguments,
            outcome="skipped" if call.call_id in self._skipped else result.outcome,
            raw=result.text,
            structured=result.structured,
            shown=result.text,
        )
        action = await self.stack.on_tool_result(self._context(), event)
        await self._record()
        match action:
            case Continue():
                return result
            case RewriteResult(text=text):
                return replace(result, text=text)
            case Stop(reason=reason):
                raise _stopped(reason)

    def notes(self) -> tuple[Command, ...]:
        """Return what saves the scratchpad; empty when nothing in it has changed."""
        command, self._saved = noted(self.scratchpad, self._saved)
        return (command,) if command is not None else ()

    def _context(self) -> HookContext:
        return HookContext(
            run_id=self.run_id,
            agent=self.agent,
            stage=self.snapshot.stage,
            thread_id=self.thread_id,
            step=self.snapshot.step + 1,
            scratchpad=self.scratchpad,
        )

    async def _record(self) -> None:
        acted, self.acted[:] = list(self.acted), []
        with anyio.CancelScope(shield=True):
            for one in acted:
                await self.commit(acted_event(one))


def _answer(call: ToolCall, outcome: Literal["denied", "failed"], text: str) -> ToolResult:
    return ToolResult(call_id=call.call_id, tool=call.tool, outcome=outcome, text=text)


def _stopped(reason: str) -> RunFailed:
    return RunFailed(f"A hook stopped the run: {reason}")
