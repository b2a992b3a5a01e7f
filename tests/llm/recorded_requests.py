"""A recorded request read back into a ModelRequest, and the form in which two bodies are compared.

The form drops what docs/models.md lists as our own choice ("What we send"); everything else has to be equal.
"""

import copy
import json
from typing import Any

from cassettes import Exchange

from agentctl.llm.base import ModelRequest
from agentctl.protocol.messages import (
    AssistantMessage,
    AssistantPart,
    Message,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    ToolSpec,
    UserMessage,
)

Json = dict[str, Any]


class Unsupported(Exception):
    """The recorded request uses what agentctl never sends; the text says what."""


# what may pass through `extra`, by protocol: members without a place of their own in ModelRequest
EXTRA = {
    "openai-chat": {
        "n", "seed", "grammar", "top_p", "provider", "include_reasoning", "search_context_size",
        "return_related_questions", "thinking", "response_format", "reasoning", "venice_parameters",
    },
    "openai-responses": {"previous_response_id", "reasoning", "tool_choice", "store", "include"},
    "anthropic": {"thinking"},
    "gemini": {"generationConfig", "cachedContent", "tools"},
    "ollama": {"think"},
}  # fmt: skip


def read(exchange: Exchange) -> ModelRequest:
    """Return the request that the recorded body stands for."""
    body = copy.deepcopy(exchange.request)
    reader = {
        "openai-chat": _chat, "openai-responses": _responses, "anthropic": _anthropic, "gemini": _gemini,
        "ollama": _ollama,
    }[exchange.wire or ""]  # fmt: skip
    request = reader(body, exchange)
    unknown = set(request.extra) - EXTRA[exchange.wire or ""]
    assert not unknown, f"members without a place: {unknown}"
    return request


def _text(content: Any) -> str:
    if content is None:
        return ""
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def _tools(specs: list[Json], schema: str) -> tuple[ToolSpec, ...]:
    return tuple(
        ToolSpec(
            name=one["name"],
            description=one.get("description", ""),
            parameters=one.get(schema, {}),
            strict=one.get("strict"),
        )
        for one in specs
    )


def _chat(body: Json, exchange: Exchange) -> ModelRequest:
    system: list[str] = []
    messages: list[Message] = []
    names: dict[str, str] = {}
    for one in body.pop("messages"):
        match one["role"]:
            case "system":
                if messages:
                    raise Unsupported("a system message inside the thread")
                system.append(_text(one["content"]))
            case "user":
                messages.append(UserMessage(parts=(TextPart(text=_text(one["content"])),)))
            case "tool":
                call_id = one["tool_call_id"]
                messages.append(_result(call_id, names.get(call_id, ""), _text(one["content"])))
            case _:
                messages.append(_chat_reply(one, exchange, names))
    choice = body.pop("tool_choice", None)
    if isinstance(choice, dict):
        choice = choice["function"]["name"]
    format_ = body.get("response_format", {})
    schema = body.pop("response_format")["json_schema"] if format_.get("type") == "json_schema" else None
    effort = body.pop("reasoning_effort", "")
    if exchange.service == "openrouter" and set(body.get("reasoning", {})) == {"effort"}:
        effort = body.pop("reasoning")["effort"]
    if exchange.service == "deepseek" and (effort or body.get("thinking") == {"type": "disabled"}):
        effort = "none" if body.pop("thinking", {}).get("type") == "disabled" else effort
    for name in ("model", "stream", "stream_options"):
        body.pop(name, None)
    most = body.pop("max_tokens", None)
    return ModelRequest(
        system="\n".join(system),
        messages=tuple(messages),
        tools=_tools([one["function"] for one in body.pop("tools", None) or []], "parameters"),
        tool_choice={"any": "required", None: "auto"}.get(choice, choice),
        parallel_tool_calls=body.pop("parallel_tool_calls", None),
        output_schema=schema["schema"] if schema else None,
        output_name=schema["name"] if schema else "output",
        max_output_tokens=body.pop("max_completion_tokens", most),
        temperature=body.pop("temperature", None),
        stop=tuple(body.pop("stop", [])),
        reasoning_effort=effort,
        extra=body,
    )


def _chat_reply(one: Json, exchange: Exchange, names: dict[str, str]) -> AssistantMessage:
    parts: list[AssistantPart] = []
    if one.get("reasoning_content"):
        parts.append(ReasoningPart(text=one["reasoning_content"]))
    if one.get("reasoning_details"):
        parts.append(ReasoningPart(opaque={"reasoning_details": one["reasoning_details"]}))
    if _text(one.get("content")):
        parts.append(TextPart(text=_text(one["content"])))
    for call in one.get("tool_calls") or []:
        names[call["id"]] = call["function"]["name"]
        arguments = json.loads(call["function"]["arguments"]) or {}
        parts.append(ToolCall(call_id=call["id"], tool=call["function"]["name"], arguments=arguments))
    return AssistantMessage(parts=tuple(parts), model=f"{exchange.provider}:{exchange.model}")


def _result(call_id: str, tool: str, text: str) -> ToolMessage:
    return ToolMessage(result=ToolResult(call_id=call_id, tool=tool, outcome="ok", text=text))


def _anthropic(body: Json, exchange: Exchange) -> ModelRequest:
    messages: list[Message] = []
    names: dict[str, str] = {}
    for one in body.pop("messages"):
        if one["role"] == "system":
            raise Unsupported("a system message inside the thread")
        blocks = one["content"]
        if isinstance(blocks, str):
            blocks = [{"type": "text", "text": blocks}]
        if one["role"] == "assistant":
            parts = tuple(_anthropic_part(block, names) for block in blocks)
            messages.append(AssistantMessage(parts=parts, model=f"anthropic:{exchange.model}"))
            continue
        for block in blocks:
            if block["type"] == "tool_result":
                call_id = block["tool_use_id"]
                messages.append(_result(call_id, names.get(call_id, ""), _text(block["content"])))
            else:
                messages.append(UserMessage(parts=(TextPart(text=block["text"]),)))
    tools = body.pop("tools", [])
    if any("input_schema" not in tool for tool in tools):
        raise Unsupported("a tool of the service's own")
    choice = body.pop("tool_choice", {"type": "auto"})
    kind = {"any": "required", "tool": choice.get("name")}.get(choice["type"], choice["type"])
    config = body.pop("output_config", {})
    for name in ("model", "stream", "cache_control"):
        body.pop(name, None)
    system = body.pop("system", [])
    return ModelRequest(
        system=system if isinstance(system, str) else "\n".join(block["text"] for block in system),
        messages=tuple(messages),
        tools=_tools(tools, "input_schema"),
        tool_choice=kind,
        output_schema=config.get("format", {}).get("schema"),
        max_output_tokens=body.pop("max_tokens"),
        temperature=body.pop("temperature", None),
        stop=tuple(body.pop("stop_sequences", [])),
        extra=body,
    )


def _anthropic_part(block: Json, names: dict[str, str]) -> AssistantPart:
    match block["type"]:
        case "text":
            return TextPart(text=block["text"])
        case "tool_use":
            names[block["id"]] = block["name"]
            return ToolCall(call_id=block["id"], tool=block["name"], arguments=block["input"])
        case "thinking":
            text = block.pop("thinking")
            return ReasoningPart(text=text, opaque=block)
        case _:
            return ReasoningPart(opaque=block)


def _responses(body: Json, exchange: Exchange) -> ModelRequest:
    thread = _ResponsesThread(f"{exchange.provider}:{exchange.model}")
    for item in body.pop("input"):
        thread.take(item)
    thread.end_reply()
    choice = body.pop("tool_choice", "auto")
    if isinstance(choice, dict):
        if choice["type"] != "function":
            body["tool_choice"] = choice
        choice = choice.get("name", "auto")
    schema = body.pop("text", {}).get("format")
    plain_effort = set(body.get("reasoning", {})) == {"effort"}
    effort = body.pop("reasoning")["effort"] if plain_effort else ""
    for name in ("model", "stream"):
        body.pop(name, None)
    return ModelRequest(
        system="\n".join(one for one in [body.pop("instructions", ""), *thread.system] if one),
        messages=tuple(thread.messages),
        tools=_tools(body.pop("tools", []), "parameters"),
        tool_choice=choice,
        parallel_tool_calls=body.pop("parallel_tool_calls", None),
        output_schema=schema["schema"] if schema else None,
        output_name=schema["name"] if schema else "output",
        max_output_tokens=body.pop("max_output_tokens", None),
        temperature=body.pop("temperature", None),
        reasoning_effort=effort,
        extra=body,
    )


class _ResponsesThread:
    """Flat items back into messages: what stands between two inputs is one reply."""

    def __init__(self, model: str) -> None:
        self.model = model
        self.system: list[str] = []
        self.messages: list[Message] = []
        self.reply: list[AssistantPart] = []
        self.names: dict[str, str] = {}

    def take(self, item: Json) -> None:
        opaque = {"id": item["id"]} if item.get("id") else {}
        match item.get("type", "message"), item.get("role"):
            case "message", "assistant":
                self.reply.append(TextPart(text=_text(item["content"]), opaque=opaque))
            case "message", "system":
                if self.messages or self.reply:
                    raise Unsupported("a system message inside the thread")
                self.system.append(_text(item["content"]))
            case "message", _:
                self.end_reply()
                self.messages.append(UserMessage(parts=(TextPart(text=_text(item["content"])),)))
            case "function_call", _:
                call_id, name = item["call_id"], item["name"]
                self.names[call_id] = name
                arguments = json.loads(item["arguments"])
                self.reply.append(ToolCall(call_id=call_id, tool=name, arguments=arguments, opaque=opaque))
            case "function_call_output", _:
                self.end_reply()
                self.messages.append(_result(item["call_id"], self.names[item["call_id"]], item["output"]))
            case _:
                self.reply.append(ReasoningPart(opaque={k: v for k, v in item.items() if k != "type"}))

    def end_reply(self) -> None:
        if self.reply:
            self.messages.append(AssistantMessage(parts=tuple(self.reply), model=self.model))
            self.reply = []


def _gemini(body: Json, exchange: Exchange) -> ModelRequest:
    messages: list[Message] = []
    for turn in body.pop("contents"):
        if turn["role"] == "model":
            parts = tuple(_gemini_part(part, number) for number, part in enumerate(turn["parts"]))
            messages.append(AssistantMessage(parts=parts, model=f"gemini:{exchange.model}"))
            continue
        for part in turn["parts"]:
            if "functionResponse" in part:
                answer = part["functionResponse"]
                messages.append(_result("call", answer["name"], str(answer["response"]["result"])))
            else:
                messages.append(UserMessage(parts=(TextPart(text=part["text"]),)))
    tools = [one for entry in body.get("tools") or [] for one in entry.get("functionDeclarations", [])]
    if any(entry.get("codeExecution") is not None for entry in body.get("tools") or []):
        raise Unsupported("a tool of the service's own")
    body.pop("tools", None)
    config = body.get("generationConfig") or {}
    calling = (body.pop("toolConfig", None) or {}).get("functionCallingConfig", {})
    named = calling.get("allowed_function_names") or []
    choice = {"ANY": "required", "NONE": "none"}.get(calling.get("mode", ""), "auto")
    system = body.pop("systemInstruction", None) or {"parts": []}
    config.pop("responseMimeType", None)
    request = ModelRequest(
        system="\n".join(part["text"] for part in system["parts"]),
        messages=tuple(messages),
        tools=_tools(tools, "parameters"),
        tool_choice=named[0] if len(named) == 1 else choice,
        output_schema=config.pop("responseJsonSchema", None),
        max_output_tokens=config.pop("maxOutputTokens", None),
        temperature=config.pop("temperature", None),
        extra={"generationConfig": config} if config else {},
    )
    if body.get("cachedContent"):
        request.extra["cachedContent"] = body["cachedContent"]
    return request


def _gemini_part(part: Json, number: int) -> AssistantPart:
    signed = {"thoughtSignature": part["thoughtSignature"]} if part.get("thoughtSignature") else {}
    if "functionCall" in part:
        call = part["functionCall"]
        return ToolCall(call_id=f"call{number}", tool=call["name"], arguments=call["args"], opaque=signed)
    if part.get("thought"):
        return ReasoningPart(text=part["text"])
    return TextPart(text=part["text"], opaque=signed)


def _ollama(body: Json, exchange: Exchange) -> ModelRequest:
    system, messages = [], []
    for one in body.pop("messages"):
        match one["role"]:
            case "system":
                system.append(one["content"])
            case "user":
                messages.append(UserMessage(parts=(TextPart(text=one["content"]),)))
            case _:
                thinking = one.get("thinking")
                parts = (ReasoningPart(text=thinking),) if thinking else ()
                parts = (*parts, TextPart(text=one["content"]))
                messages.append(AssistantMessage(parts=parts, model=f"ollama:{exchange.model}"))
    options = body.pop("options")
    for name in ("model", "stream"):
        body.pop(name, None)
    return ModelRequest(
        system="\n".join(system),
        messages=tuple(messages),
        tools=_tools([one["function"] for one in body.pop("tools", [])], "parameters"),
        output_schema=body.pop("format", None),
        max_output_tokens=options.get("num_predict"),
        extra=body,
    )


def comparable(wire: str, body: Json) -> Json:
    """Return the body without what is our own choice."""
    body = copy.deepcopy(body)
    form = {
        "openai-chat": _form_chat, "openai-responses": _form_responses, "anthropic": _form_anthropic,
        "gemini": _form_gemini, "ollama": _form_ollama,
    }[wire]  # fmt: skip
    if body.get("stream") is False:
        body.pop("stream")
    form(body)
    return json.loads(json.dumps(body))


def _form_chat(body: Json) -> None:
    if "max_completion_tokens" in body:
        body["max_tokens"] = body.pop("max_completion_tokens")
    if body.get("thinking") == {"type": "enabled"} and body.get("reasoning_effort"):
        body.pop("thinking")
    if body.get("tool_choice") in (None, "auto"):
        body.pop("tool_choice", None)
    if not body.get("tools"):
        body.pop("tools", None)
    body.pop("parallel_tool_calls", None) if not body.get("tools") else None
    for one in body["messages"]:
        if isinstance(one.get("content"), list):
            one["content"] = _text(one["content"])
        if not one.get("content") and one.get("tool_calls"):
            one.pop("content", None)
        if one.get("prefix") is False:
            one.pop("prefix")
        for call in one.get("tool_calls") or []:
            call.pop("index", None)
            call["function"]["arguments"] = json.loads(call["function"]["arguments"]) or {}
    for tool in body.get("tools", []):
        if tool["function"].get("strict") is False:
            tool["function"].pop("strict")


def _form_anthropic(body: Json) -> None:
    _without_markers(body)
    if body.get("tool_choice") == {"type": "auto"}:
        body.pop("tool_choice")
    if isinstance(body.get("system"), list):
        body["system"] = "\n".join(block["text"] for block in body["system"])
    turns: list[Json] = []
    for turn in body["messages"]:
        if turns and turns[-1]["role"] == turn["role"]:
            turns[-1]["content"] += turn["content"]
        else:
            turns.append(turn)
    body["messages"] = turns


def _without_markers(value: Any) -> None:
    if isinstance(value, dict):
        value.pop("cache_control", None)
        for one in value.values():
            _without_markers(one)
    elif isinstance(value, list):
        for one in value:
            _without_markers(one)


def _form_responses(body: Json) -> None:
    system = [body.pop("instructions", "")]
    items = []
    for item in body["input"]:
        item.pop("status", None)
        item.setdefault("type", "message")
        if item["type"] == "message":
            item["content"] = _text(item["content"])
        if item["type"] == "function_call":
            item["arguments"] = json.loads(item["arguments"])
        if item.get("role") == "system":
            system.append(item["content"])
        else:
            items.append(item)
    body["input"], body["system"] = items, "\n".join(one for one in system if one)
    for name in ("store", "include"):
        body.pop(name, None)
    if body.get("tool_choice") == "auto":
        body.pop("tool_choice")


def _form_gemini(body: Json) -> None:
    for name in ("generationConfig", "systemInstruction", "toolConfig", "safetySettings", "tools"):
        if not body.get(name):
            body.pop(name, None)
    body.get("systemInstruction", {}).pop("role", None)
    config = body.get("toolConfig", {}).get("functionCallingConfig", {})
    if "allowed_function_names" in config:
        config["allowedFunctionNames"] = config.pop("allowed_function_names")
    for entry in body.get("tools", []):
        if entry.get("codeExecution", 0) is None:
            entry.pop("codeExecution")
        for tool in entry["functionDeclarations"]:
            schema = tool.pop("parameters", None) or tool.pop("parametersJsonSchema", None) or {}
            tool["schema"] = schema if schema.get("properties") else {}
    instruction = body.get("systemInstruction")
    if instruction:
        body["systemInstruction"] = "\n".join(part["text"] for part in instruction["parts"])
    turns: list[Json] = []
    for turn in body["contents"]:
        turn["parts"] = [_form_gemini_part(part) for part in turn["parts"] if not part.get("thought")]
        if turns and turns[-1]["role"] == turn["role"]:
            turns[-1]["parts"] += turn["parts"]
        else:
            turns.append(turn)
    body["contents"] = turns


def _form_gemini_part(part: Json) -> Json:
    part.pop("thought", None)
    response = part.get("functionResponse", {}).get("response")
    if response:
        response["result"] = str(response["result"])
    return part


def _form_ollama(body: Json) -> None:
    for one in body["messages"]:
        if not one.get("tool_calls"):
            one.pop("tool_calls", None)
