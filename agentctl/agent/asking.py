"""The asks of one step: put at once, each answered once; an answer's grant covers the others."""

from dataclasses import dataclass, field, replace

import anyio

from agentctl.agent.context import AgentContext, Suspend
from agentctl.agent.dispatch import Answered, Asking, Judged, Ready, judge
from agentctl.ids import new_question_id
from agentctl.protocol.decisions import Grant, Verdict
from agentctl.protocol.events import AskRefused, GrantGiven, QuestionAnswered, QuestionAsked
from agentctl.protocol.messages import ToolResult
from agentctl.protocol.questions import ApprovalAnswer, ApprovalQuestion
from agentctl.protocol.values import JsonObject

_NOBODY = frozenset({"deadline", "unattended"})
"""Answers that nobody gave: the deadline passed, or the terminal hung up."""


@dataclass(slots=True)
class _Desk:
    """The questions of one step that wait for a person."""

    context: AgentContext
    waiting: dict[str, Asking] = field(default_factory=dict)
    """By question id."""
    suspend: Suspend | None = None


async def ask_all(context: AgentContext, asking: list[Asking]) -> list[Judged] | Suspend:
    """Return what became of each ask, in order, or `Suspend` when the step must stand still.

    Without a person an ask is refused with a reason the model can act on, or, with `--on-ask pause`, saved
    and the step suspended; never approved, never waited for.
    """
    desk = _Desk(context)
    results: list[Judged | None] = [None] * len(asking)

    async def one(index: int, ask: Asking) -> None:
        results[index] = await _settle_ask(desk, ask)

    async with anyio.create_task_group() as group:
        for index, ask in enumerate(asking):
            group.start_soon(one, index, ask)
    if desk.suspend is not None:
        for ready in results:
            if isinstance(ready, Ready | Asking):
                context.tools.release(ready.reservation)
        return desk.suspend
    return [result for result in results if result is not None]


async def _settle_ask(desk: _Desk, ask: Asking, *, came_from: JsonObject | None = None) -> Judged | None:
    """Ask until the call is answered, ready, or the step must stand still (None).

    `came_from` are the arguments that `ask` was judged from, before hooks, where a person wrote them.
    """
    context = desk.context
    snapshot, call_id = context.recorder.snapshot, ask.call.call_id
    edited = snapshot.edited.get(call_id)
    if edited is not None and edited != (came_from or ask.call.arguments):
        return await _judge_edited(desk, ask, edited)
    saved = snapshot.answers.get(call_id)
    # An answer was given for certain arguments; what is judged now may be others.
    if isinstance(saved, ApprovalAnswer) and snapshot.approved_for.get(call_id) == ask.call.arguments:
        await context.recorder.commit(*_grants(context, ask, saved))
        return await _apply(desk, ask, saved)
    if not context.person.attended():
        return await _without_person(desk, ask)
    question = _question(context, ask)
    await context.recorder.commit(QuestionAsked(question=question))
    desk.waiting[question.question_id] = ask
    try:
        answer = await context.person.ask(question)
    finally:
        del desk.waiting[question.question_id]
    if not isinstance(answer, ApprovalAnswer) or answer.choice == "quit":
        context.tools.release(ask.reservation)
        desk.suspend = Suspend(question_id=question.question_id, reason="stopped at the prompt")
        return None
    answered = QuestionAnswered(question_id=question.question_id, answer=answer)
    late = (_refused(context, ask),) if answer.by in _NOBODY else ()
    await context.recorder.commit(answered, *_grants(context, ask, answer), *late)
    return await _apply(desk, ask, answer)


async def _apply(desk: _Desk, ask: Asking, answer: ApprovalAnswer) -> Judged | None:
    context = desk.context
    match answer.choice:
        case "no" | "quit":
            context.tools.release(ask.reservation)
            return _declined(ask, answer)
        case "edit":
            return await _judge_edited(desk, ask, answer.arguments)
        case "stage" | "run" | "always" | "once":
            context.tools.take_grants(tuple(given.grant for given in _grants(context, ask, answer)))
            if answer.choice == "always":
                await context.tools.remember(context.tools.propose(ask.decision))
            _cover_others(desk)
    decision = context.tools.approved(ask.call, ask.prepared)
    return Ready(call=ask.call, prepared=ask.prepared, decision=decision, reservation=ask.reservation)


async def _judge_edited(desk: _Desk, ask: Asking, arguments: JsonObject) -> Judged | None:
    """Judge the call again with the arguments that a person wrote; ask again if it still asks."""
    desk.context.tools.release(ask.reservation)
    again = await judge(desk.context, replace(ask.call, arguments=arguments), ask.reach)
    return await _settle_ask(desk, again, came_from=arguments) if isinstance(again, Asking) else again


def _cover_others(desk: _Desk) -> None:
    """Answer the questions that a grant given just now covers."""
    for question_id, other in list(desk.waiting.items()):
        if desk.context.tools.decide(other.call, other.prepared).verdict is Verdict.ALLOW:
            desk.context.person.settle(question_id, ApprovalAnswer(choice="once", by="grant"))


def _grants(context: AgentContext, ask: Asking, answer: ApprovalAnswer) -> tuple[GrantGiven, ...]:
    """The grants an answer gives: for `always` too, since the run goes on with what it knows.

    Every yes also says that the source that was shown has been seen.
    """
    seen = (ask.prepared.source_key,) if ask.prepared.source_key else ()
    sources = tuple(GrantGiven(grant=Grant(key=key, scope="run")) for key in seen)
    if answer.choice not in {"stage", "run", "always"}:
        return sources if answer.choice == "once" else ()
    index = context.plan.index if answer.choice == "stage" else None
    return sources + tuple(
        GrantGiven(
            grant=Grant(
                key=key,
                scope="stage" if answer.choice == "stage" else "run",
                stage_index=index,
                uses=answer.uses,
            )
        )
        for key in context.tools.propose(ask.decision)
    )


def _question(context: AgentContext, ask: Asking) -> ApprovalQuestion:
    tools = context.tools
    return ApprovalQuestion(
        question_id=new_question_id(),
        asker=tools.asker(),
        call_id=ask.call.call_id,
        tool=ask.call.tool,
        arguments=ask.call.arguments,
        preview=ask.prepared.preview,
        decision=ask.decision,
        would_remember=tools.propose(ask.decision),
        called_by=ask.reach.caller,
        deadline_s=tools.interaction_timeout_s,
    )


async def _without_person(desk: _Desk, ask: Asking) -> Judged | None:
    context, tools = desk.context, desk.context.tools
    tools.release(ask.reservation)
    if tools.on_ask == "pause":
        question = _question(context, ask)
        await context.recorder.commit(QuestionAsked(question=question))
        desk.suspend = Suspend(question_id=question.question_id, reason="a question waits for a person")
        return None
    await context.recorder.commit(_refused(context, ask))
    text = (
        f"Refused: this needs a person's approval and nobody is there to ask ({ask.decision.reason}). "
        "Do what you can without it, and say in your answer what was left undone."
    )
    result = ToolResult(call_id=ask.call.call_id, tool=ask.call.tool, outcome="denied", text=text)
    return Answered(call=ask.call, result=result, decision=ask.decision)


def _refused(context: AgentContext, ask: Asking) -> AskRefused:
    flags, instead = context.tools.way_out(ask.decision)
    return AskRefused(
        call_id=ask.call.call_id,
        tool=ask.call.tool,
        preview=ask.prepared.preview,
        reason=ask.decision.reason,
        flags=flags,
        instead=instead,
    )


def _declined(ask: Asking, answer: ApprovalAnswer) -> Answered:
    match answer.by:
        case "deadline" | "unattended":
            text = "Refused: nobody answered in time."
        case _ if answer.reason:
            text = f"A person said no: {answer.reason}"
        case _:
            text = (
                "A person said no to this call. Do not try it again in another form; go on without it or ask."
            )
    result = ToolResult(call_id=ask.call.call_id, tool=ask.call.tool, outcome="denied", text=text)
    return Answered(call=ask.call, result=result, decision=ask.decision)
