"""Questions of the model to a person (`ask_user` and its kin): journaled, answered once, no vain waits."""

from collections.abc import Awaitable, Callable
from dataclasses import replace

from agentctl.agent.context import AgentContext, Suspend
from agentctl.interaction.unattended import Suspend as StandStill
from agentctl.interaction.unattended import without_person
from agentctl.protocol.events import QuestionAnswered, QuestionAsked
from agentctl.protocol.questions import Answer, PersonAnswer, PersonQuestion
from agentctl.tools.definition import CallStandsStill


class PersonAbsent(CallStandsStill):
    """A call waits for a person who is not there, and the run must stand still for it."""

    def __init__(self, suspend: Suspend) -> None:
        super().__init__(suspend.reason)
        self.suspend = suspend


def person_asker(context: AgentContext, tool: str) -> Callable[[PersonQuestion], Awaitable[PersonAnswer]]:
    """Return what a running call of `tool` asks a person with.

    An answer that was saved while the run stood still is taken instead of asking again. Without a person the
    answer says that none came, or, with `--on-ask pause`, PersonAbsent leaves the call.
    """

    async def ask(question: PersonQuestion) -> PersonAnswer:
        recorder, tools = context.recorder, context.tools
        saved = recorder.snapshot.answers.get(question.call_id)
        if isinstance(saved, PersonAnswer):
            return saved
        question = replace(question, asker=tools.asker(), deadline_s=tools.interaction_timeout_s)
        await recorder.commit(QuestionAsked(question=question))
        answer: Answer
        if context.person.attended(insists=tools.insists(tool)):
            answer = await context.person.ask(question)
        else:
            absent = without_person(question, on_ask=tools.on_ask)
            if isinstance(absent, StandStill):
                raise PersonAbsent(Suspend(question_id=question.question_id, reason=absent.reason))
            answer = absent
        await recorder.commit(QuestionAnswered(question_id=question.question_id, answer=answer))
        return answer if isinstance(answer, PersonAnswer) else PersonAnswer(no_answer="declined")

    return ask
