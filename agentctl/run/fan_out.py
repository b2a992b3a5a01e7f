"""A stage with `mode = "fan_out"`: its model names the items, and its workers' report is its answer."""

from agentctl.agent.context import AgentContext, LoopEnd, StageEnd
from agentctl.agent.loop import run_stage
from agentctl.agent.step import take_step
from agentctl.blueprint.model import FanOutTable, StageTable
from agentctl.ids import new_call_id
from agentctl.protocol.events import MessageAdded
from agentctl.protocol.messages import AssistantMessage, ToolCall, ToolMessage, ToolResult
from agentctl.protocol.values import JsonObject

_HARNESS = "harness:fan_out"


def items_schema(table: FanOutTable) -> JsonObject:
    """Return the form in which the stage's model names the items."""
    items: JsonObject = {
        "type": "array",
        "items": {"type": "string", "minLength": 1},
        "description": "One text an item: what each worker has to do, complete in itself; none if nothing.",
    }
    if table.max_items is not None:
        items["maxItems"] = table.max_items
    return {
        "type": "object",
        "properties": {"items": items},
        "required": ["items"],
        "additionalProperties": False,
    }


async def run_fan_out(context: AgentContext, stage: StageTable) -> LoopEnd:
    """Let the model name the items, run the workers through the funnel, and return their report.

    The call is the harness's own and stands in the thread like any other, so that rules, budgets, asks and a
    resume treat it as one.
    """
    table = stage.fan_out
    if table is None:
        return StageEnd(reason="error", note=f"the stage {stage.name!r} has no [fan_out] table")
    call = _call_of(context)
    if call is None:
        named = await run_stage(context)
        if not isinstance(named, StageEnd) or named.reason != "answer":
            return named
        output = named.output if isinstance(named.output, dict) else {}
        call = _fan_out_call(table, output)
        reply = AssistantMessage(parts=(call,), stop="tool_calls", model=_HARNESS)
        await context.recorder.commit(MessageAdded(message=reply, step=context.recorder.snapshot.step))
    reply = AssistantMessage(parts=(call,), stop="tool_calls", model=_HARNESS)
    if context.recorder.snapshot.open_calls():
        ended = await take_step(context, reply)
        if ended is not None:
            return ended
    result = _result_of(context, call)
    if result is None or result.outcome != "ok":
        return StageEnd(reason="error", note=result.text if result else "the workers gave no report")
    target = context.plan.edges[0].target if len(context.plan.edges) == 1 else ""
    return StageEnd(reason="answer", target=target, answer=result.text, output=result.structured)


def _fan_out_call(table: FanOutTable, output: JsonObject) -> ToolCall:
    arguments: JsonObject = {
        "agent": table.worker,
        "items": output.get("items", []),
        "max_workers": table.max_workers,
        "on_failure": table.on_failure,
    }
    if table.scope:
        arguments["scope"] = table.scope
    if table.read:
        arguments["read"] = list(table.read)
    if table.output_schema:
        arguments["output_schema"] = table.output_schema
    return ToolCall(call_id=new_call_id(), tool="fan_out", arguments=arguments)


def _call_of(context: AgentContext) -> ToolCall | None:
    """The harness's call of this visit of the stage, when a resume finds it made already."""
    snapshot = context.recorder.snapshot
    for message in reversed(snapshot.messages[snapshot.stage_from :]):
        if isinstance(message, AssistantMessage) and message.model == _HARNESS:
            return message.tool_calls[0]
    return None


def _result_of(context: AgentContext, call: ToolCall) -> ToolResult | None:
    for message in reversed(context.recorder.snapshot.messages):
        if isinstance(message, ToolMessage) and message.result.call_id == call.call_id:
            return message.result
    return None
