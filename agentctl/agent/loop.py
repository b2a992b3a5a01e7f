"""The loop: steps until the stage ends. Each part is committed before the next begins."""

from agentctl.agent.answer import judge_answer
from agentctl.agent.compaction import keep_in_window
from agentctl.agent.context import AgentContext, Arrived, LoopEnd, StageEnd
from agentctl.agent.model_call import call_model
from agentctl.agent.step import end_of_last_step, take_step
from agentctl.agent.stuck import is_stuck
from agentctl.protocol.events import Event, GrantRevoked, MessageAdded, Noted
from agentctl.protocol.messages import AssistantMessage, user_text

_STEER = (
    "You are repeating the same calls with the same results. Do something else: "
    "use what you have, try another way, or say what stops you."
)


async def run_stage(context: AgentContext) -> LoopEnd:
    """Take steps until the stage ends, and return why it did.

    A step is one model call and the tool calls it asked for. A run that died anywhere in here goes on
    from its journal by calling this again.

    Raises:
        LimitReached: a limit of the run stands in the way of the next act.
        ProviderError: every model of the stage failed for good.
    """
    if (ended := end_of_last_step(context)) is not None:
        return ended
    steered = False
    while True:
        await _renew_tools(context)
        arrived = await context.inbox.waiting()
        await _take_back_grants(context, arrived)
        reply = _unfinished(context)
        if reply is None:
            await _read_messages(context, arrived)
            if context.plan.max_steps is not None and _stage_steps(context) >= context.plan.max_steps:
                return StageEnd(reason="max_steps", note=f"{context.plan.max_steps} steps were taken")
            await keep_in_window(context)
            reply = await call_model(context)

        end = await (take_step(context, reply) if reply.tool_calls else judge_answer(context, reply))
        if end is not None:
            return end

        if is_stuck(context.recorder.snapshot.messages):
            if steered:
                return StageEnd(reason="stuck", note="the same calls gave the same results again and again")
            steered = True
            await context.recorder.commit(MessageAdded(message=user_text(_STEER, source="harness")))


async def _renew_tools(context: AgentContext) -> None:
    """Take in tools from outside that came or went, and note what a person should know of it."""
    renewed = await context.tools.renew()
    events: list[Event] = [Noted(level=note.level, text=note.text) for note in renewed.notes]
    events += [GrantRevoked(key=key) for key in renewed.taken_back]
    if events:
        await context.recorder.commit(*events)
    for key in renewed.taken_back:
        context.tools.take_back(key)


def _unfinished(context: AgentContext) -> AssistantMessage | None:
    """Return the last reply if what follows from it was not done before the run stood still."""
    messages = context.recorder.snapshot.messages
    calls = context.recorder.snapshot.open_calls()
    if calls:
        return next(m for m in reversed(messages) if isinstance(m, AssistantMessage))
    last = messages[-1] if messages else None
    return last if isinstance(last, AssistantMessage) else None


def _stage_steps(context: AgentContext) -> int:
    return context.recorder.snapshot.stage_step


async def _take_back_grants(context: AgentContext, arrived: tuple[Arrived, ...]) -> None:
    """Take back what a person revoked, before anything else is judged."""
    for one in arrived:
        if one.revoke:
            await context.recorder.commit(GrantRevoked(key=one.revoke), received=(one.message_id,))
            context.tools.take_back(one.revoke)


async def _read_messages(context: AgentContext, arrived: tuple[Arrived, ...]) -> None:
    if not context.plan.accepts_messages:
        return
    added = {one.message_id: MessageAdded(message=one.message) for one in arrived if one.message is not None}
    if added:
        await context.recorder.commit(*added.values(), received=tuple(added))
