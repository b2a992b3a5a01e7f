"""One model call: the request, what it may cost, the reply made durable before anything follows from it."""

from dataclasses import replace

import anyio

from agentctl.agent.compaction import shrink
from agentctl.agent.context import AgentContext
from agentctl.agent.hooks import NEVER_EXECUTED, AskAgain, NoCallRuns
from agentctl.agent.prompt import build_request, counted_tokens, estimate_tokens
from agentctl.errors import ProviderError
from agentctl.ids import new_call_id
from agentctl.llm.base import LanguageModel, ModelCallFailed, ModelRequest
from agentctl.policy.budgets import StepCost
from agentctl.protocol.events import LiveEvent, MessageAdded, ModelCalled, ModelRetried, Noted
from agentctl.protocol.messages import AssistantMessage, ToolCall, user_text
from agentctl.protocol.values import JsonObject


async def call_model(context: AgentContext) -> AssistantMessage:
    """Return the model's reply, committed to the thread.

    A hook may have the model called again, as often as the run's limits allow.

    Raises:
        LimitReached: steps, tokens, money or time do not allow another call.
        ProviderError: every model of the stage failed for good.
        RunFailed: a hook stopped the run.
    """
    recorder, hooks = context.recorder, context.tools.hooks
    while True:
        await _tell_machines(context)
        request, left_out = await context.showing.added_to(build_request(context), recorder.snapshot)
        for warning in left_out:
            await recorder.commit(Noted(level="warning", text=warning, source="views"))
        request = await hooks.before_model(request)
        model = await _chosen(context)
        reply = await _reply(context, model, request)
        if reply is None:
            continue
        again = None if await _is_recovered(context, reply) else await hooks.after_reply(reply)
        spent, own = context.tools.budgets.spent(), context.tools.budgets.own()
        added = MessageAdded(message=reply, step=recorder.snapshot.step + 1, spent=spent, own=own)
        match again:
            case None:
                await _commit_reply(context, added)
                return reply
            case AskAgain(feedback=""):
                continue
            case AskAgain(feedback=words):
                await _commit_reply(context, added, MessageAdded(message=user_text(words, source="harness")))


async def _is_recovered(context: AgentContext, reply: AssistantMessage) -> bool:
    """Return whether a hook mends a call of a tool that is not there: such a reply is no finished turn."""
    if reply.stop in NEVER_EXECUTED:
        return False
    tools, recovered = context.tools, False
    for call in reply.tool_calls:
        if not tools.is_offered(call.tool):
            decided = await tools.hooks.invalid_call(call, tools.offered)
            recovered = recovered or decided is not None
            if isinstance(decided, NoCallRuns):
                break
    return recovered


async def _tell_machines(context: AgentContext) -> None:
    """Commit what machines say before the request is made, so that the model reads it."""
    fold = context.tools.fold
    async with fold.settling():
        told = fold.told("before_model", _around(context))
        if told is not None:
            await context.recorder.commit(*told.events, commands=told.commands)


async def _commit_reply(context: AgentContext, *events: MessageAdded) -> None:
    fold = context.tools.fold
    async with fold.settling():
        told = fold.told("after_model", _around(context))
        await context.recorder.commit(*events, commands=told.commands if told else ())


def _around(context: AgentContext) -> JsonObject:
    return {"stage": context.plan.name, "agent": context.agent}


async def _chosen(context: AgentContext) -> LanguageModel:
    own = context.plan.model
    name = await context.tools.hooks.choose_model(own.name)
    return own if name == own.name else context.open_model(name)


async def _reply(
    context: AgentContext, model: LanguageModel, request: ModelRequest
) -> AssistantMessage | None:
    """Return the reply; None after making room, when the request was too long for the model."""
    recorder = context.recorder
    reservation = context.tools.reserve_step(step_cost(context, request, model))
    recorder.show(ModelCalled(step=recorder.snapshot.step + 1, model=model.name))
    stopped: list[str] = []
    try:
        with anyio.CancelScope() as streaming:

            def stop(reason: str) -> None:
                stopped.append(reason)
                streaming.cancel()

            def show(event: LiveEvent) -> None:
                if isinstance(event, ModelRetried) and event.usage is not None:
                    context.tools.settle_step(None, event.usage)
                recorder.show(event)

            reply = await model.reply(request, context.tools.hooks.watching(show, stop))
    except BaseException as failure:
        context.tools.release(reservation)
        if not isinstance(failure, ModelCallFailed):
            raise
        if failure.details.kind != "context_length" or not await shrink(context):
            raise ProviderError(
                f"{model.name}: {failure.message}",
                hint="`agentctl resume last` goes on from here; `--model` takes another model.",
            ) from failure
        return None
    if stopped:
        context.tools.release(reservation)
        raise await context.tools.hooks.stopped_while_streaming(stopped[0])
    reply = _with_call_ids(reply)
    context.tools.settle_step(reservation, reply.usage)
    return reply


def step_cost(context: AgentContext, request: ModelRequest, model: LanguageModel | None = None) -> StepCost:
    """Return what the call is known to cost before it is made: its prompt, and no more than it may answer.

    The price of a `model` that a hook chose over the stage's own is not known.
    """
    plan = context.plan
    counted = counted_tokens(context.recorder.snapshot)
    tokens = estimate_tokens(request) if counted is None else counted
    if model is not None and model is not plan.model:
        return StepCost(model=model.name, tokens=tokens, price_known=False)
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
