"""One model call: the request, what it may cost, the reply made durable before anything follows from it."""

from dataclasses import replace

from agentctl.agent.compaction import shrink
from agentctl.agent.context import AgentContext
from agentctl.agent.prompt import build_request, estimate_tokens
from agentctl.errors import ProviderError
from agentctl.ids import new_call_id
from agentctl.llm.base import ModelCallFailed, ModelRequest
from agentctl.policy.budgets import StepCost
from agentctl.protocol.events import MessageAdded, ModelCalled, Noted
from agentctl.protocol.messages import AssistantMessage, ToolCall


async def call_model(context: AgentContext) -> AssistantMessage:
    """Return the model's reply, committed to the thread.

    Raises:
        LimitReached: steps, tokens, money or time do not allow another call.
        ProviderError: every model of the stage failed for good.
    """
    recorder, plan = context.recorder, context.plan
    request, left_out = await context.showing.added_to(build_request(context), recorder.snapshot)
    for warning in left_out:
        await recorder.commit(Noted(level="warning", text=warning, source="views"))
    reservation = context.tools.reserve_step(step_cost(context, request))
    recorder.show(ModelCalled(step=recorder.snapshot.step + 1, model=plan.model.name))
    try:
        reply = await plan.model.reply(request, recorder.show)
    except BaseException as failure:
        context.tools.release(reservation)
        if not isinstance(failure, ModelCallFailed):
            raise
        if failure.details.kind != "context_length" or not await shrink(context):
            raise ProviderError(
                f"{plan.model.name}: {failure.message}",
                hint="`agentctl resume last` goes on from here; `--model` takes another model.",
            ) from failure
        return await call_model(context)
    reply = _with_call_ids(reply)
    context.tools.settle_step(reservation, reply.usage)
    await recorder.commit(MessageAdded(message=reply, step=recorder.snapshot.step + 1))
    return reply


def step_cost(context: AgentContext, request: ModelRequest) -> StepCost:
    """Return what the call is known to cost before it is made: its prompt, and no more than it may answer."""
    plan = context.plan
    tokens = estimate_tokens(request)
    unpriced = plan.prices.unpriced
    return StepCost(
        model=", ".join(unpriced) or plan.model.name,
        tokens=tokens,
        cost_usd=plan.prices.estimate_usd(tokens, request.max_output_tokens or 0) or 0.0,
        price_known=not unpriced,
    )


def _with_call_ids(reply: AssistantMessage) -> AssistantMessage:
    """Give an id to calls that came without one, and a new one to a second call with the same id."""
    seen: set[str] = set()
    parts = []
    for part in reply.parts:
        fresh = part
        if isinstance(part, ToolCall):
            if not part.call_id or part.call_id in seen:
                fresh = replace(part, call_id=new_call_id())
            seen.add(fresh.call_id if isinstance(fresh, ToolCall) else "")
        parts.append(fresh)
    return replace(reply, parts=tuple(parts))
