"""Interaction points: a person is asked at the stage boundary, every time, before the run moves on."""

from dataclasses import dataclass

from agentctl.agent.context import AgentContext, StageEnd, Suspend
from agentctl.blueprint.model import Blueprint, InteractionPointTable, StageTable
from agentctl.ids import new_question_id
from agentctl.interaction.unattended import Suspend as StandStill
from agentctl.interaction.unattended import suspends, without_person
from agentctl.protocol.events import MessageAdded, QuestionAnswered, QuestionAsked
from agentctl.protocol.messages import UserMessage, user_text
from agentctl.protocol.questions import PersonAnswer, PersonQuestion
from agentctl.run.documents import read_document, write_document

_MAX_ROUNDS = 4


@dataclass(frozen=True, slots=True)
class _GoOn:
    """The checkpoint lets the run move on."""


async def pass_checkpoints(
    context: AgentContext, blueprint: Blueprint, stage: StageTable, end: StageEnd
) -> StageEnd | Suspend | None:
    """Ask what the stage's interaction points ask; return `end` when all let it pass.

    None sends the stage back to work with a person's directive, at most four times a visit; `Suspend` keeps
    the question for later. An answer that aborts turns into a StageEnd with reason `checkpoint`.
    """
    del blueprint
    if end.reason not in {"transition", "answer"}:
        return end
    for point in stage.interaction_points:
        passed = await _pass(context, stage, point)
        if not isinstance(passed, _GoOn):
            return passed
    return end


async def _pass(
    context: AgentContext, stage: StageTable, point: InteractionPointTable
) -> StageEnd | Suspend | _GoOn | None:
    answer = await _answer(context, stage, point)
    if isinstance(answer, Suspend):
        return answer
    if answer.document and point.document:
        await write_document(context, point.document, answer.document)
    if answer.option in point.abort_options:
        note = f"{point.name}: {answer.option}. {answer.text}".strip()
        return StageEnd(reason="checkpoint", note=note)
    directive = point.directives.get(answer.option, "")
    words = "\n".join(text for text in (directive, answer.text) if text)
    if not words:
        return _GoOn()
    source = f"checkpoint:{stage.name}/{point.name}"
    if _rounds(context, source) >= _MAX_ROUNDS:
        return StageEnd(
            reason="checkpoint", note=f"{point.name}: {_MAX_ROUNDS} rounds of revision were not enough"
        )
    text = f"A person answered {answer.option!r} at the checkpoint {point.name!r}: {words}"
    await context.recorder.commit(MessageAdded(message=user_text(text, source=source)))
    return None


async def _answer(
    context: AgentContext, stage: StageTable, point: InteractionPointTable
) -> PersonAnswer | Suspend:
    snapshot = context.recorder.snapshot
    saved = snapshot.answers.get(f"{stage.name}/{point.name}")
    if isinstance(saved, PersonAnswer) and not _says_nothing(saved):
        return saved
    question = PersonQuestion(
        question_id=new_question_id(),
        asker=context.tools.asker(),
        kind="edit" if point.edit_options and not point.options else "choice",
        prompt=point.prompt,
        options=point.options,
        document=await read_document(context, point.document) if point.document else "",
        checkpoint=point.name,
        edit_options=point.edit_options,
        insists=point.unattended == "ask",
        deadline_s=context.tools.interaction_timeout_s,
    )
    if not context.person.attended(insists=question.insists):
        if point.unattended == "auto_approve":
            return PersonAnswer(by="unattended")
        standing = without_person(question, on_ask=context.tools.on_ask)
        if isinstance(standing, StandStill):
            await context.recorder.commit(QuestionAsked(question=question))
            return Suspend(question_id=question.question_id, reason=standing.reason)
    await context.recorder.commit(QuestionAsked(question=question))
    answer = await context.person.ask(question)
    if not isinstance(answer, PersonAnswer) or suspends(question, answer) or _says_nothing(answer):
        return Suspend(
            question_id=question.question_id, reason=f"checkpoint {point.name!r} waits for a person"
        )
    await context.recorder.commit(QuestionAnswered(question_id=question.question_id, answer=answer))
    return answer


def _says_nothing(answer: PersonAnswer) -> bool:
    """Whether a person was there and chose nothing: that is no yes, and the question is asked again."""
    chosen = answer.option or answer.text or answer.document
    return answer.no_answer == "declined" or not (chosen or answer.no_answer)


def _rounds(context: AgentContext, source: str) -> int:
    """How often this visit of the stage was sent back from that checkpoint."""
    snapshot = context.recorder.snapshot
    return sum(
        isinstance(message, UserMessage) and message.source == source
        for message in snapshot.messages[snapshot.stage_from :]
    )
