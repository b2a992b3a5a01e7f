"""Keeps a thread inside the model's window: old tool results are cut first, then old steps are summarised."""

from dataclasses import replace

from agentctl.agent.context import AgentContext
from agentctl.agent.prompt import build_request, counted_tokens, estimate_tokens, visible_messages
from agentctl.agent.snapshot import RunSnapshot
from agentctl.llm.base import ModelCallFailed
from agentctl.protocol.events import ContextCompacted
from agentctl.protocol.messages import AssistantMessage, ToolMessage, user_text

_SUMMARISE = (
    "Summarise the work above for yourself, since the older part of it will no longer be shown: the plan, "
    "decisions and their reasons, files read and changed, facts found, open questions. Be brief and exact."
)


async def keep_in_window(context: AgentContext) -> None:
    """Make room when the next request would fill the model's window; else do nothing."""
    window = context.plan.model.context_window
    if window is None or _tokens(context) < window * context.plan.compact_at:
        return
    await shrink(context)


async def shrink(context: AgentContext) -> bool:
    """Cut old tool results, or if that was done already summarise old steps; tell whether anything went."""
    snapshot = context.recorder.snapshot
    before = _tokens(context)
    first_kept = start_of_recent_steps(snapshot, context.plan.keep_recent)
    old = snapshot.messages[snapshot.window_from : first_kept]
    cut = [
        message.result
        for message in old
        if isinstance(message, ToolMessage) and message.result.call_id not in snapshot.cut_results
    ]
    if cut:
        gone = sum(len(result.text) for result in cut) // 4
        event = ContextCompacted(
            how="results_cut",
            kept_from=first_kept,
            tokens_before=before,
            tokens_after=max(0, before - gone),
            cut_call_ids=tuple(result.call_id for result in cut),
        )
    elif old:
        event = await _summary(context, before, first_kept)
    else:
        return False
    await context.recorder.commit(event)
    return True


async def summarise_stage(context: AgentContext) -> ContextCompacted:
    """Return the event that puts a summary in the place of everything so far, for the next stage."""
    return await _summary(context, _tokens(context), len(context.recorder.snapshot.messages))


async def _summary(context: AgentContext, before: int, kept_from: int) -> ContextCompacted:
    summary = await _summarise(context)
    kept = context.recorder.snapshot.messages[kept_from:]
    after = (len(summary) + sum(len(repr(message)) for message in kept)) // 4
    return ContextCompacted(
        how="summary", kept_from=kept_from, tokens_before=before, tokens_after=after, summary=summary
    )


def _tokens(context: AgentContext) -> int:
    counted = counted_tokens(context.recorder.snapshot)
    return estimate_tokens(build_request(context)) if counted is None else counted


def start_of_recent_steps(snapshot: RunSnapshot, keep: int) -> int:
    """Index of the first message of the latest steps; a call is never split from its results."""
    steps = 0
    for index in range(len(snapshot.messages) - 1, snapshot.window_from, -1):
        if isinstance(snapshot.messages[index], AssistantMessage):
            steps += 1
            if steps == keep:
                return index
    return snapshot.window_from


async def _summarise(context: AgentContext) -> str:
    shown = visible_messages(context.recorder.snapshot)
    words = (*shown, user_text(_SUMMARISE, source="harness"))
    asking = replace(build_request(context), messages=words, tools=(), output_schema=None)
    try:
        reply = await context.plan.model.reply(asking, lambda _event: None)
    except ModelCallFailed:
        return "(the older steps could not be summarised and are left out)"
    context.tools.settle_step(None, reply.usage)
    return reply.text
