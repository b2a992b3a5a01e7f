"""The one funnel for every tool call of every kind. Exactly one result a call; no side door.

hooks → offered? → arguments valid? → effects → containment → policy → budgets → ask → committed → run
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeAlias

from agentctl.agent.asking_tool import PersonAbsent, person_asker
from agentctl.agent.context import AgentContext, Suspend
from agentctl.agent.sampling import sampler
from agentctl.agent.script_reach import Reach
from agentctl.errors import LimitReached, ToolError
from agentctl.policy.budgets import Reservation
from agentctl.protocol.decisions import Decision, Verdict
from agentctl.protocol.events import CallCompleted, CallStarted, GrantUsed, OutputStreamed, ToolCallDecided
from agentctl.protocol.messages import ToolCall, ToolResult
from agentctl.records import dataclass
from agentctl.tools.definition import ActContext, InnerCall, Prepared, ToolOutput


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """A call that has its result."""

    call: ToolCall
    result: ToolResult
    bytes_written: int = 0
    files_written: int = 0
    elapsed_s: float = 0.0
    ran: bool = False
    recorded: bool = False
    """Its completion is in the journal already."""
    decision: Decision | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """A call that was judged and may run, exactly as judged."""

    call: ToolCall
    prepared: Prepared
    decision: Decision
    reservation: Reservation


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """A call that was judged and needs a person."""

    call: ToolCall
    prepared: Prepared
    decision: Decision
    reservation: Reservation
    reach: Reach
    """What its caller may call: holds for the arguments that a person writes in its place, too."""


Judged: TypeAlias = Answered | Ready | Asking


async def judge(context: AgentContext, call: ToolCall, reach: Reach | None = None) -> Judged:
    """Take a call through the funnel up to the point where it runs, asks, or is answered.

    `reach` is what the caller may call; None is the model, and what its stage offers.

    Refusals for a tool that is not offered, for wrong arguments, by containment, by rule and by budget are
    results for the model and never ask. Nothing is executed here.
    """
    tools = context.tools
    reach = reach or tools.reach()
    changed = await tools.hooks.before_call(call)
    if isinstance(changed, ToolResult):
        return Answered(call=call, result=changed)
    call = changed
    if (fault := tools.fault_of(call, reach)) is not None:
        return _failed(call, fault)
    call = tools.normal(call, reach)
    try:
        prepared = await tools.prepare(call, reach)
    except ToolError as error:
        return _failed(call, str(error))
    if outside := tools.outside(call, prepared):
        return _denied(call, outside)
    decision = tools.decide(call, prepared)
    if decision.verdict is Verdict.DENY:
        return _denied(call, decision.reason, decision)
    try:
        reservation = await tools.reserve(call, prepared, decision)
    except LimitReached as limit:
        return _denied(call, f"{limit.message} {limit.hint}".strip(), decision)
    if decision.verdict is Verdict.ASK:
        return Asking(call=call, prepared=prepared, decision=decision, reservation=reservation, reach=reach)
    return Ready(call=call, prepared=prepared, decision=decision, reservation=reservation)


CallTool: TypeAlias = Callable[[InnerCall], Awaitable[ToolResult]]


async def run_call(
    context: AgentContext, ready: Ready, *, settles_at_once: bool, call_tool: CallTool | None = None
) -> Answered | Suspend:
    """Run a judged call: its decision and start are durable before it acts, its completion right after.

    `call_tool` is what a script tool makes its own calls with; without it, it can make none.

    With `settles_at_once` the completion is left to the step's own commit, which follows at once. `Suspend`
    when the call waits for a person who is not there; it is judged and run again by a resume.
    """
    call, recorder = ready.call, context.recorder
    used = tuple(GrantUsed(key=key) for key in context.tools.use_grants(ready.decision))
    await recorder.commit(
        *used,
        ToolCallDecided(
            call_id=call.call_id, tool=call.tool, arguments=call.arguments, decision=ready.decision
        ),
        CallStarted(call_id=call.call_id, tool=call.tool, read_only=ready.prepared.read_only),
    )
    begun = context.clock.monotonic()
    try:
        output = await _act(context, ready, call_tool)
    except PersonAbsent as absent:
        context.tools.release(ready.reservation)
        return absent.suspend
    output = context.tools.hooks.clean(output)
    elapsed = context.clock.monotonic() - begun
    output = context.tools.settle(ready.reservation, output)
    result = ToolResult(
        call_id=call.call_id,
        tool=call.tool,
        outcome="failed" if output.failed else "ok",
        text=output.text,
        structured=output.structured,
        images=output.images,
    )
    done = Answered(
        call=call,
        result=result,
        bytes_written=output.bytes_written,
        files_written=output.files_written,
        elapsed_s=elapsed,
        ran=True,
        recorded=not settles_at_once,
        decision=ready.decision,
    )
    if not settles_at_once:
        budgets = context.tools.budgets
        await recorder.commit(replace(completion(done), spent=budgets.spent(), own=budgets.own()))
    return done


def completion(done: Answered) -> CallCompleted:
    """Return the fact that a call ended."""
    return CallCompleted(
        call_id=done.call.call_id,
        result=done.result,
        elapsed_s=done.elapsed_s,
        bytes_written=done.bytes_written,
        files_written=done.files_written,
    )


async def _act(context: AgentContext, ready: Ready, call_tool: CallTool | None) -> ToolOutput:
    call_id = ready.call.call_id
    ask = person_asker(context, ready.call.tool)
    act = ActContext(
        call_id=call_id,
        emit_output=lambda text: context.recorder.show(OutputStreamed(call_id=call_id, text=text)),
        ask_person=ask,
        workdir_read_only=context.tools.workdir_read_only(ready.decision),
        sample=sampler(context, call_id, ask),
    )
    if call_tool is not None:
        act = replace(act, call_tool=call_tool)
    try:
        return await ready.prepared.act(act)
    except ToolError as error:
        return ToolOutput(text=str(error), failed=True)


def _failed(call: ToolCall, text: str) -> Answered:
    result = ToolResult(call_id=call.call_id, tool=call.tool, outcome="failed", text=text)
    return Answered(call=call, result=result)


def _denied(call: ToolCall, text: str, decision: Decision | None = None) -> Answered:
    result = ToolResult(call_id=call.call_id, tool=call.tool, outcome="denied", text=text)
    return Answered(call=call, result=result, decision=decision)
