"""A reply without tool calls: the stage's answer, or a nudge towards one."""

import json

import jsonschema_rs

from agentctl.agent.context import AgentContext, StageEnd
from agentctl.protocol.events import MessageAdded
from agentctl.protocol.messages import AssistantMessage, RefusalPart, user_text
from agentctl.protocol.values import JsonObject, JsonValue

_MAX_NUDGES = 2


async def judge_answer(context: AgentContext, reply: AssistantMessage) -> StageEnd | None:
    """Return how the stage ends with this reply, or None after a nudge: the loop goes on.

    One open edge or none: the reply is the stage's answer. Several: two nudges to use `transition`, then
    `dead_end`. A reply that was cut is nudged to go on; one that misses the output schema is told how.
    """
    plan = context.plan
    match reply.stop:
        case "refusal":
            return StageEnd(reason="error", note=f"the model declined: {_refusal(reply)}")
        case "filtered":
            return StageEnd(reason="error", note="the service's content filter cut the reply")
        case "length" | "incomplete":
            return await _nudge(
                context, "Your reply was cut before its end. Go on where it stopped, shorter.", "error"
            )
        case _:
            pass
    if plan.output_schema is not None:
        output, fault = _read_output(reply.text, plan.output_schema)
        if fault:
            return await _nudge(context, f"Call `submit_output` with the answer. {fault}", "error")
        return StageEnd(reason="answer", target=_only_edge(context), answer=reply.text, output=output)
    if len(plan.edges) > 1:
        names = ", ".join(f"`{edge.target}`" for edge in plan.edges)
        return await _nudge(
            context, f"Call `transition` with the stage that comes next: {names}.", "dead_end"
        )
    if not reply.text.strip():
        return await _nudge(context, "Your reply was empty. Answer, or call a tool.", "error")
    return StageEnd(reason="answer", target=_only_edge(context), answer=reply.text)


def _only_edge(context: AgentContext) -> str:
    return context.plan.edges[0].target if len(context.plan.edges) == 1 else ""


def _refusal(reply: AssistantMessage) -> str:
    words = [part.text for part in reply.parts if isinstance(part, RefusalPart)]
    return " ".join(words) or reply.text or "without words"


async def _nudge(context: AgentContext, text: str, otherwise: str) -> StageEnd | None:
    if context.recorder.snapshot.nudges >= _MAX_NUDGES:
        if otherwise == "dead_end":
            return StageEnd(reason="dead_end", note="several stages could follow and none was chosen")
        return StageEnd(reason="error", note="the model gave no usable answer after two nudges")
    await context.recorder.commit(MessageAdded(message=user_text(text, source="nudge")))
    return None


def _read_output(text: str, schema: JsonObject) -> tuple[JsonValue, str]:
    body = text.strip()
    if body.startswith("```"):
        body = body.strip("`").removeprefix("json").strip()
    try:
        value: JsonValue = json.loads(body)
    except ValueError:
        return None, "The reply was not JSON."
    fault = describe_faults(value, schema)
    return (None, fault) if fault else (value, "")


def describe_faults(value: JsonValue, schema: JsonObject) -> str:
    """Return what makes `value` invalid against `schema`, one line a fault, or empty."""
    validator = jsonschema_rs.validator_for(schema)
    lines = []
    for error in validator.iter_errors(value):
        place = "/".join(str(part) for part in error.instance_path)
        lines.append(f"{place or 'the value'}: {error.message}")
    return "\n".join(lines)
