"""Calls that were under way when the process ended: what a person knows of them, and the model is told."""

import json

from agentctl.agent.asking_tool import person_asker
from agentctl.agent.context import AgentContext
from agentctl.agent.dispatch import Answered
from agentctl.agent.snapshot import RunSnapshot
from agentctl.ids import new_question_id
from agentctl.protocol.messages import ToolCall, ToolMessage, ToolResult
from agentctl.protocol.questions import PersonQuestion

_UNKNOWN = (
    "agentctl was stopped while this call ran. It may have happened, wholly, partly or not at all. "
    "Look at the state of things before you do it again."
)
_NEVER_RAN = "Not run: agentctl was stopped before this call began. Make it again if it is still wanted."
_IT_DID, _IT_DID_NOT, _CANNOT_TELL = "it happened", "it did not happen", "I can't tell"
_SAID = {
    _IT_DID: "agentctl was stopped while this call ran. A person looked: it happened. Its output is lost.",
    _IT_DID_NOT: "agentctl was stopped while this call ran. A person looked: it did not happen.",
}


async def answer_in_doubt(context: AgentContext, call: ToolCall) -> Answered:
    """Answer a call that was started before a crash and has no result: it is never run again silently.

    A person who is there is asked what became of it; the answer is in the journal. Unless they say that it
    did not happen, `limits.calls` count it: one that may have happened counts.
    """
    text = _UNKNOWN
    if context.person.attended():
        shown = json.dumps(call.arguments, ensure_ascii=False)
        question = PersonQuestion(
            question_id=new_question_id(),
            asker=context.tools.asker(),
            kind="choice",
            prompt=f"agentctl was stopped while this call ran. What became of it?\n{call.tool} {shown}",
            options=(_IT_DID, _IT_DID_NOT, _CANNOT_TELL),
            call_id=f"{call.call_id}/in-doubt",
        )
        answer = await person_asker(context, call.tool)(question)
        text = _SAID.get(answer.option, _UNKNOWN)
    if text != _SAID[_IT_DID_NOT]:
        _count(context, call)
    return Answered(call=call, result=_result(call, text))


def _count(context: AgentContext, call: ToolCall) -> None:
    """Count the call, and those that it had begun itself and not ended: the ended ones are counted."""
    known = context.recorder.snapshot
    for begun in known.running:
        mine = begun == call.call_id or begun.startswith(f"{call.call_id}/")
        if mine and begun not in known.completed and (decided := known.decided.get(begun)) is not None:
            context.tools.count_in_doubt(decided)


def left_open(snapshot: RunSnapshot) -> tuple[ToolMessage, ...]:
    """Return the results of the calls that a run left open, for the run that takes its thread over. Pure.

    A call that had ended gets its own result; one that was under way is in doubt, whether it only looked at
    something or not: nobody will make it again for this reply.
    """
    results = []
    for call in snapshot.open_calls():
        done = snapshot.completed.get(call.call_id)
        if done is not None:
            result = done.result
        elif call.call_id in snapshot.running:
            result = _result(call, _UNKNOWN)
        else:
            result = ToolResult(call_id=call.call_id, tool=call.tool, outcome="failed", text=_NEVER_RAN)
        results.append(ToolMessage(result=result))
    return tuple(results)


def _result(call: ToolCall, text: str) -> ToolResult:
    return ToolResult(call_id=call.call_id, tool=call.tool, outcome="in_doubt", text=text)
