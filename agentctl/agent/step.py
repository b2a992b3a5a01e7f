"""One step's tool calls: decide all in call order, ask, run, settle in call order."""

import json
from contextlib import nullcontext

import anyio

from agentctl.agent.asking import ask_all
from agentctl.agent.context import AgentContext, LoopEnd, StageEnd, Suspend
from agentctl.agent.dispatch import Answered, Asking, Judged, Ready, judge, run_call
from agentctl.agent.hooks import NEVER_EXECUTED, NoCallRuns
from agentctl.agent.in_doubt import answer_in_doubt
from agentctl.agent.inner_calls import inner_caller
from agentctl.agent.settle import settle_step
from agentctl.protocol.messages import AssistantMessage, ToolCall, ToolMessage, ToolResult

_ENDS = frozenset({"transition", "submit_output"})


async def take_step(context: AgentContext, reply: AssistantMessage) -> LoopEnd | None:
    """Answer every open call of `reply`, settled in one commit; return the stage's end if a call ends it.

    No call starts before all asks of the step are answered. Then calls run side by side up to the stage's
    limit. Results, state and budgets fold in call order, so that a parallel and a sequential run reach the
    same thread. Calls that were finished before a crash are taken from the journal and not run again.
    """
    calls = context.recorder.snapshot.open_calls()
    if reply.stop in NEVER_EXECUTED:
        refused = [_refused(call, NEVER_EXECUTED[reply.stop]) for call in calls]
        await settle_step(context, refused)
        return None

    repaired = await _repaired(context, calls)
    if isinstance(repaired, str):
        await settle_step(context, [_refused(call, repaired) for call in calls])
        return None

    judged: list[Judged] = [await _judge_or_recall(context, call) for call in repaired]
    asking = [(index, one) for index, one in enumerate(judged) if isinstance(one, Asking)]
    if asking:
        answered = await ask_all(context, [one for _, one in asking])
        if isinstance(answered, Suspend):
            _release(context, judged)
            return answered
        for (index, _), one in zip(asking, answered, strict=True):
            judged[index] = one

    judged = _one_way_out(context, judged)
    results = await _run(context, judged)
    if isinstance(results, Suspend):
        return results
    await settle_step(context, results)
    both = [(one.call, done.result) for one, done in zip(judged, results, strict=True)]
    return _end_of_stage(context, both)


async def _repaired(context: AgentContext, calls: tuple[ToolCall, ...]) -> tuple[ToolCall, ...] | str:
    """Return the calls with those for tools that are not there as hooks repaired them, or why none runs."""
    repaired: list[ToolCall] = []
    known = context.recorder.snapshot
    for call in calls:
        settled = call.call_id in known.completed or call.call_id in known.running
        decided = None
        if not settled and not context.tools.is_offered(call.tool):
            decided = await context.tools.hooks.invalid_call(call, context.tools.offered)
        if isinstance(decided, NoCallRuns):
            return f"{decided.why.rstrip('. ')}. No call of this reply was run."
        repaired.append(decided or call)
    return tuple(repaired)


async def _judge_or_recall(context: AgentContext, call: ToolCall) -> Judged:
    snapshot = context.recorder.snapshot
    if (done := snapshot.completed.get(call.call_id)) is not None:
        return Answered(call=call, result=done.result, ran=True, recorded=True)
    if (begun := snapshot.running.get(call.call_id)) is not None and not begun.read_only:
        return await answer_in_doubt(context, call)
    return await judge(context, call)


def _one_way_out(context: AgentContext, judged: list[Judged]) -> list[Judged]:
    """Refuse every end of the stage after a transition: the first one is taken, and the model is told so."""
    kept: list[Judged] = []
    target = ""
    for one in judged:
        if target and isinstance(one, Ready) and one.call.tool in _ENDS:
            context.tools.release(one.reservation)
            kept.append(_refused(one.call, f"Not done: this step goes to stage {target} already."))
            continue
        if one.call.tool == "transition" and _is_taken(one):
            target = target or str(one.call.arguments.get("to", ""))
        kept.append(one)
    return kept


def _is_taken(one: Judged) -> bool:
    return one.result.outcome == "ok" if isinstance(one, Answered) else isinstance(one, Ready)


async def _run(context: AgentContext, judged: list[Judged]) -> list[Answered] | Suspend:
    results: list[Answered | Suspend | None] = [one if isinstance(one, Answered) else None for one in judged]
    slots = anyio.Semaphore(max(1, context.plan.tool_concurrency))
    alone = len(judged) == 1

    async def run_one(index: int, ready: Ready) -> None:
        async with nullcontext() if ready.prepared.waits_for_agents else slots:
            call_tool = inner_caller(context, ready.call.call_id)
            results[index] = await run_call(context, ready, settles_at_once=alone, call_tool=call_tool)

    async with anyio.create_task_group() as group:
        for index, one in enumerate(judged):
            if isinstance(one, Ready):
                group.start_soon(run_one, index, one)
    waiting = next((one for one in results if isinstance(one, Suspend)), None)
    return waiting or [one for one in results if isinstance(one, Answered)]


def _refused(call: ToolCall, why: str) -> Answered:
    result = ToolResult(call_id=call.call_id, tool=call.tool, outcome="failed", text=why)
    return Answered(call=call, result=result)


def _release(context: AgentContext, judged: list[Judged]) -> None:
    for one in judged:
        if isinstance(one, Ready | Asking):
            context.tools.release(one.reservation)


def end_of_last_step(context: AgentContext) -> StageEnd | None:
    """Return the stage's end where its last step ended it and the run died before that was written down."""
    snapshot = context.recorder.snapshot
    results: dict[str, ToolResult] = {}
    for message in reversed(snapshot.messages[snapshot.stage_from :]):
        match message:
            case ToolMessage(result=result):
                results[result.call_id] = result
            case AssistantMessage(tool_calls=calls) if all(call.call_id in results for call in calls):
                return _end_of_stage(context, [(call, results[call.call_id]) for call in calls])
            case _:
                return None
    return None


def _end_of_stage(context: AgentContext, answered: list[tuple[ToolCall, ToolResult]]) -> StageEnd | None:
    """The first successful `transition` or `submit_output`, in call order, ends the stage."""
    for call, result in answered:
        if result.outcome != "ok":
            continue
        arguments = call.arguments
        if result.tool == "transition":
            note = str(arguments.get("note", ""))
            return StageEnd(reason="transition", target=str(arguments.get("to", "")), note=note)
        if result.tool == "submit_output":
            output = arguments.get("output", dict(arguments))
            target = context.plan.edges[0].target if len(context.plan.edges) == 1 else ""
            return StageEnd(reason="answer", target=target, answer=json.dumps(output), output=output)
    return None
