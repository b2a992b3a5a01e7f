"""How a model without dependable tool calls is made to act: one JSON action at a time, held by a grammar.

Every reply is one object: a call of one offered tool with arguments that fit its schema, or the final answer.
The thread is shown to the model in the same form. The wording is frozen: it was measured on the embedded
default (docs/local-model.md), and that model is sensitive to it.
"""

import json

from agentctl.ids import new_call_id
from agentctl.llm.base import ModelRequest
from agentctl.llm.local_guidance import RULES, Next, compact_listing, narrowed, next_step, same_call
from agentctl.protocol.messages import (
    AssistantMessage,
    AssistantPart,
    Message,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    ToolSpec,
    UserMessage,
    user_text,
)
from agentctl.protocol.values import JsonObject, JsonValue
from agentctl.records import dataclass

FINAL_ANSWER = "final_answer"
_SUBMIT = "submit_output"
_TRANSITION = "transition"
_ANSWER_CHARS = 1500
_STRING_CHARS = 400
_RESULT_CHARS = 1500
_OLD_RESULT_CHARS = 500
_RECENT_RESULTS = 2
_MOST_CALLS = 8
"""Calls a task may take before only the answer is left."""
_OUTPUT_TOKENS = 700

_FORM = """\
Work step by step. Every reply is one JSON object.
To use a tool: {"tool": "<name>", "arguments": {...}}
When you know the answer: {"final_answer": "<answer>"}
Look things up with the tools; do not guess. Use the exact values that the tools returned.
"""
_REMINDER = "If the results answer it, give the final_answer with the exact values. If not, use another tool."
_ANSWER_FORM = 'Reply with one JSON object: {"final_answer": "<answer>"}'


@dataclass(frozen=True, slots=True, kw_only=True)
class Actions:
    """What the model may do in one reply."""

    shown: tuple[ToolSpec, ...]
    """Tools it is told about; empty where it just talks."""
    tools: tuple[ToolSpec, ...]
    """Those of them that it may call now."""
    answer: bool
    """It may give the final answer."""

    @property
    def schema(self) -> JsonObject:
        """JSON Schema of one action."""
        choices: list[JsonValue] = [
            _closed({"tool": {"const": tool.name}, "arguments": _bounded(tool.parameters)})
            for tool in self.tools
        ]
        if self.answer or not choices:
            choices.append(_closed({FINAL_ANSWER: {"type": "string", "maxLength": _ANSWER_CHARS}}))
        return {"anyOf": choices}


def allowed_actions(request: ModelRequest, *, guided: bool) -> Actions:
    """Return what the reply to `request` may be. Pure.

    The first reply to a task is a tool call. After a call that repeats an earlier one, and after eight calls,
    only the answer is left. `guided` narrows further, for the embedded default.
    """
    tools = tuple(tool for tool in request.tools if not _has_one_way(tool))
    if guided:
        tools = narrowed(tools, request.messages)
    if not tools:
        return Actions(shown=(), tools=(), answer=True)
    ends = tuple(tool for tool in tools if tool.name in {_SUBMIT, _TRANSITION})
    looking = tuple(tool for tool in tools if tool not in ends)
    submits = any(tool.name == _SUBMIT for tool in ends)
    match request.tool_choice:
        case "none":
            return Actions(shown=tools, tools=(), answer=True)
        case "auto" | "required":
            may_answer = request.tool_choice == "auto" and not submits
        case name:
            named = tuple(tool for tool in tools if tool.name == name)
            return Actions(shown=tools, tools=named or tools, answer=False)
    done = _calls_since_task(request.messages)
    if len(done) >= _MOST_CALLS or not looking:
        return Actions(shown=tools, tools=ends, answer=may_answer or not ends)
    step = Next(tools=looking, ready=bool(done))
    if guided:
        step = next_step(looking, request.messages, done)
    if step.ready and _repeats(done):
        return Actions(shown=tools, tools=ends, answer=may_answer or not ends)
    return Actions(
        shown=tools, tools=(*step.tools, *(ends if step.ready else ())), answer=step.ready and may_answer
    )


def action_request(request: ModelRequest, actions: Actions, *, guided: bool) -> ModelRequest:
    """Return the request that makes the server write one of `actions`. Pure."""
    acting = is_acting(request, actions)
    rules = _ANSWER_FORM
    if actions.shown:
        listed = "\n".join(_listed(tool) for tool in actions.shown)
        rules = f"{_FORM}{RULES if guided else ''}\nTools:\n{listed}"
    reminder = _REMINDER if actions.answer and actions.tools else _order(request.system)
    return ModelRequest(
        system=f"{request.system}\n\n{rules}".lstrip() if acting else request.system,
        messages=_as_actions(request.messages, reminder=reminder),
        output_schema=actions.schema if acting else request.output_schema,
        output_name="action" if acting else request.output_name,
        max_output_tokens=request.max_output_tokens or _OUTPUT_TOKENS,
        temperature=0.0 if request.temperature is None else request.temperature,
        stop=request.stop,
        extra=request.extra,
    )


def is_acting(request: ModelRequest, actions: Actions) -> bool:
    """Tell whether the reply is an action: where there are tools, and after any, so that the form stays."""
    if request.output_schema is not None and not actions.shown:
        return False
    return bool(actions.shown) or any(isinstance(message, AssistantMessage) for message in request.messages)


def as_reply(raw: AssistantMessage, *, model: str) -> AssistantMessage:
    """Return a reply written as an action in the loop's words: a tool call, or text.

    What is no whole action stays text. Pure but for the call's id.
    """
    parts: tuple[AssistantPart, ...] = raw.parts
    stop = raw.stop
    match _parsed(raw.text) if raw.stop in {"end", "stop_sequence"} else None:
        case {"tool": str(tool), "arguments": dict(arguments)}:
            parts, stop = (ToolCall(call_id=new_call_id(), tool=tool, arguments=arguments),), "tool_calls"
        case {"final_answer": str(answer)}:
            parts = (TextPart(text=answer),)
        case _:
            pass
    return AssistantMessage(parts=parts, stop=stop, usage=raw.usage, model=model, response_id=raw.response_id)


def _parsed(text: str) -> JsonValue:
    try:
        value: JsonValue = json.loads(text)
    except ValueError:
        return None
    return value


def _calls_since_task(messages: tuple[Message, ...]) -> list[ToolCall]:
    calls: list[ToolCall] = []
    for message in messages:
        match message:
            case UserMessage(source="harness") | ToolMessage():
                continue
            case UserMessage():
                calls.clear()
            case AssistantMessage():
                calls += [call for call in message.tool_calls if call.tool != _TRANSITION]
    return calls


def _repeats(done: list[ToolCall]) -> bool:
    return len({same_call(call) for call in done}) != len(done)


def _as_actions(messages: tuple[Message, ...], *, reminder: str) -> tuple[Message, ...]:
    """Show the thread as the model would have written it: actions, and results as what it is told."""
    shown: list[Message] = []
    task = ""
    results = sum(isinstance(message, ToolMessage) for message in messages)
    for message in messages:
        match message:
            case UserMessage():
                text = "\n".join(part.text for part in message.parts if isinstance(part, TextPart))
                task = task if message.source == "harness" else text
                _tell(shown, text)
            case AssistantMessage():
                shown.append(AssistantMessage(parts=(TextPart(text=_written(message)),)))
            case ToolMessage(result=result):
                limit = _RESULT_CHARS if results <= _RECENT_RESULTS else _OLD_RESULT_CHARS
                results -= 1
                _tell(shown, f"Result of {result.tool}:\n{_result_text(result, limit)}")
    if task and not _is_task(messages[-1]):
        _tell(shown, f"The task is: {task}\n{reminder}")
    return tuple(shown)


def _order(system: str) -> str:
    """Return the first paragraph of the stage's prompt: a small model heeds what it read last."""
    return system.strip().partition("\n\n")[0]


def _is_task(message: Message) -> bool:
    return isinstance(message, UserMessage) and message.source != "harness"


def _tell(shown: list[Message], text: str) -> None:
    """Add what the model is told; chat templates want the sides to alternate, so neighbours are joined."""
    match shown[-1] if shown else None:
        case UserMessage(parts=(TextPart(text=before),)):
            shown[-1] = user_text(f"{before}\n\n{text}")
        case _:
            shown.append(user_text(text))


def _written(message: AssistantMessage) -> str:
    actions: list[JsonObject] = [
        {"tool": call.tool, "arguments": call.arguments} for call in message.tool_calls
    ]
    if not actions:
        actions.append({FINAL_ANSWER: message.text})
    return "\n".join(json.dumps(action, ensure_ascii=False) for action in actions)


def _result_text(result: ToolResult, limit: int) -> str:
    text = compact_listing(result) or result.text
    if len(text) <= limit:
        return text
    head, tail = limit * 3 // 4, limit // 4
    return f"{text[:head]}\n[… {len(text) - head - tail} characters left out …]\n{text[-tail:]}"


def _listed(tool: ToolSpec) -> str:
    parameters = json.dumps(_without_enums(tool.parameters), ensure_ascii=False)
    return f"- {tool.name}: {tool.description} arguments: {parameters}"


def _has_one_way(tool: ToolSpec) -> bool:
    """Tell a transition with one way out: it is left out, since giving the answer takes that way."""
    match tool:
        case ToolSpec(name="transition", parameters={"properties": {"to": {"enum": [_]}}}):
            return True
        case _:
            return False


def _closed(properties: JsonObject) -> JsonObject:
    required: list[JsonValue] = [*properties]
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _bounded(schema: JsonObject) -> JsonObject:
    """Return `schema` with a bound on every string, so that no reply runs away inside one."""
    bounded: JsonObject = {name: _bounded_value(value) for name, value in schema.items()}
    if schema.get("type") == "string" and not {"enum", "maxLength", "pattern"} & set(schema):
        bounded["maxLength"] = _STRING_CHARS
    return bounded


def _bounded_value(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return _bounded(value)
    if isinstance(value, list):
        return [_bounded_value(item) for item in value]
    return value


def _without_enums(schema: JsonObject) -> JsonObject:
    """Return `schema` for the prompt, which must not change with what was seen, or its cache is lost."""
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return schema
    told: JsonObject = {}
    for name, shape in properties.items():
        told[name] = (
            {key: value for key, value in shape.items() if key not in {"enum", "pattern"} or name == "to"}
            if isinstance(shape, dict)
            else shape
        )
    return {**schema, "properties": told}
