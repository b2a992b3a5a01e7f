"""A recorded request read back into a ModelRequest; what agentctl never makes is told apart."""

import copy
import json
from typing import Any

from cassettes import Exchange

from agentctl.llm.base import ModelRequest
from agentctl.protocol.messages import (
    AssistantMessage,
    AssistantPart,
    ImagePart,
    Message,
    Outcome,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    ToolSpec,
    UserMessage,
    UserPart,
)

Json = dict[str, Any]


class Unsupported(Exception):
    """The recorded request uses what agentctl never sends; the text says what."""


def read(exchange: Exchange) -> ModelRequest:
    """Return the request that the recorded body stands for."""
    body = copy.deepcopy(exchange.request)
    reader = {
        "openai-chat": _chat, "openai-responses": _responses, "anthropic": _anthropic, "gemini": _gemini,
        "ollama": _ollama,
    }[exchange.wire or ""]  # fmt: skip
    # Members without a place of their own in ModelRequest go through `extra`, as a blueprint's [model.extra].
    return reader(body, exchange)


def _text(content: Any) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not all(isinstance(part, dict) and "text" in part for part in content):
        raise Unsupported("content that is no text, in a place where agentctl has text alone")
    return "".join(part["text"] for part in content)


def _picture(url: str, *, name: str = "", media_type: str = "image/png") -> ImagePart:
    """A picture or file by its address, which may hold the data itself."""
    if not url.startswith("data:"):
        return ImagePart(media_type=media_type, url=url, name=name)
    kind, _, data = url.removeprefix("data:").partition(",")
    return ImagePart(media_type=kind.removesuffix(";base64"), data=data, name=name)


def _user_parts(content: Any) -> tuple[UserPart, ...]:
    """What a person said, in Chat Completions or Responses."""
    if isinstance(content, str):
        return (TextPart(text=content),)
    return tuple(_user_part(part) for part in content or [])


def _user_part(part: Json) -> UserPart:
    match part.get("type"):
        case "text" | "input_text" | None if "text" in part:
            return TextPart(text=part["text"])
        case "image_url":
            return _picture(part["image_url"]["url"])
        case "input_image" if part.get("image_url"):
            return _picture(part["image_url"])
        case "file" if part["file"].get("file_data"):
            return _picture(part["file"]["file_data"], name=part["file"].get("filename", ""))
        case "input_file" if part.get("file_data") or part.get("file_url"):
            url = part.get("file_data") or part["file_url"]
            return _picture(url, name=part.get("filename", ""), media_type="application/pdf")
    raise Unsupported(f"a part of the kind {part.get('type')!r}")


def _arguments(text: str) -> Json:
    """Broken arguments go back as an empty object: docs/models.md."""
    try:
        value = json.loads(text or "{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _tools(specs: list[Json], schema: str) -> tuple[ToolSpec, ...]:
    return tuple(
        ToolSpec(
            name=one["name"],
            description=one.get("description") or "",
            parameters=one.get(schema) or one.get("parametersJsonSchema") or {},
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
            case "system" | "developer":
                if messages:
                    raise Unsupported("a system message inside the thread")
                system.append(_text(one["content"]))
            case "user":
                messages.append(UserMessage(parts=_user_parts(one["content"])))
            case "tool":
                call_id = one["tool_call_id"]
                messages.append(_result(call_id, names.get(call_id, ""), _text(one["content"])))
            case "assistant":
                messages.append(_chat_reply(one, exchange, names))
            case other:
                raise Unsupported(f"a message of the role {other!r}")
    choice = _chat_choice(body)
    format_ = body.get("response_format") or {}
    schema = body.pop("response_format")["json_schema"] if format_.get("type") == "json_schema" else None
    effort = body.pop("reasoning_effort", None) or ""
    if exchange.service == "openrouter" and set(body.get("reasoning", {})) == {"effort"}:
        effort = body.pop("reasoning")["effort"]
    if exchange.service == "deepseek" and (effort or body.get("thinking") == {"type": "disabled"}):
        effort = "none" if (body.pop("thinking", None) or {}).get("type") == "disabled" else effort
    stop = body.pop("stop", None) or []
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
        stop=(stop,) if isinstance(stop, str) else tuple(stop),
        reasoning_effort=effort,
        extra={name: value for name, value in body.items() if value is not None},
    )


def _chat_choice(body: Json) -> Any:
    choice = body.pop("tool_choice", None)
    if any("function" not in one for one in body.get("tools") or []):
        raise Unsupported("a tool of the service's own")
    if not isinstance(choice, dict):
        return choice
    if "function" not in choice:
        raise Unsupported("a choice among tools of another form")
    return choice["function"]["name"]


def _chat_reply(one: Json, exchange: Exchange, names: dict[str, str]) -> AssistantMessage:
    parts: list[AssistantPart] = []
    if thoughts := one.get("reasoning_content") or one.get("reasoning"):
        parts.append(ReasoningPart(text=thoughts))
    if one.get("reasoning_details"):
        parts.append(ReasoningPart(opaque={"reasoning_details": one["reasoning_details"]}))
    if _text(one.get("content")):
        parts.append(TextPart(text=_text(one["content"])))
    for call in one.get("tool_calls") or []:
        names[call["id"]] = call["function"]["name"]
        arguments = _arguments(call["function"]["arguments"])
        parts.append(ToolCall(call_id=call["id"], tool=call["function"]["name"], arguments=arguments))
    return AssistantMessage(parts=tuple(parts), model=f"{exchange.provider}:{exchange.model}")


def _result(
    call_id: str, tool: str, text: str, images: tuple[ImagePart, ...] = (), *, failed: bool = False
) -> ToolMessage:
    outcome: Outcome = "failed" if failed else "ok"
    return ToolMessage(
        result=ToolResult(call_id=call_id, tool=tool, outcome=outcome, text=text, images=images)
    )


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
        messages.extend(_anthropic_said(block, names) for block in blocks)
    tools = body.pop("tools", None) or []
    if any("input_schema" not in tool for tool in tools):
        raise Unsupported("a tool of the service's own")
    choice = body.pop("tool_choice", None) or {"type": "auto"}
    kind = {"any": "required", "tool": choice.get("name")}.get(choice["type"], choice["type"])
    config = body.get("output_config") or {}
    schema = config.pop("format", {}).get("schema")
    if not config:
        body.pop("output_config", None)
    for name in ("model", "stream", "cache_control"):
        body.pop(name, None)
    system = body.pop("system", None) or []
    return ModelRequest(
        system=system if isinstance(system, str) else "\n".join(block["text"] for block in system),
        messages=tuple(messages),
        tools=_tools(tools, "input_schema"),
        tool_choice=kind,
        parallel_tool_calls=False if choice.get("disable_parallel_tool_use") else None,
        output_schema=schema,
        max_output_tokens=body.pop("max_tokens"),
        temperature=body.pop("temperature", None),
        stop=tuple(body.pop("stop_sequences", None) or []),
        extra={name: value for name, value in body.items() if value is not None},
    )


def _anthropic_said(block: Json, names: dict[str, str]) -> Message:
    if block["type"] != "tool_result":
        return UserMessage(parts=(_anthropic_user_part(block),))
    call_id = block["tool_use_id"]
    content = block.get("content") or ""
    inner = [] if isinstance(content, str) else [_anthropic_user_part(one) for one in content]
    text = content if isinstance(content, str) else "".join(p.text for p in inner if isinstance(p, TextPart))
    images = tuple(part for part in inner if isinstance(part, ImagePart))
    return _result(call_id, names.get(call_id, ""), text, images, failed=block.get("is_error") is True)


def _anthropic_user_part(block: Json) -> UserPart:
    source = block.get("source") or {}
    match block["type"], source.get("type"):
        case "text", _:
            return TextPart(text=block["text"])
        case "image" | "document", "base64":
            return ImagePart(media_type=source["media_type"], data=source["data"])
        case "image", "url":
            return ImagePart(media_type="image/png", url=source["url"])
        case "document", "url":
            return ImagePart(media_type="application/pdf", url=source["url"])
    raise Unsupported(f"a block of the kind {block['type']!r} from {source.get('type')!r}")


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
    told = body.pop("input")
    for item in [{"role": "user", "content": told}] if isinstance(told, str) else told:
        thread.take(item)
    thread.end_reply()
    choice = body.pop("tool_choice", None) or "auto"
    if any(tool["type"] != "function" for tool in body.get("tools") or []):
        raise Unsupported("a tool of the service's own")
    if isinstance(choice, dict):
        if choice["type"] != "function":
            body["tool_choice"] = choice
        choice = choice.get("name", "auto")
    text = body.get("text") or {}
    schema = text.pop("format") if (text.get("format") or {}).get("type") == "json_schema" else None
    if not text:
        body.pop("text", None)
    plain_effort = set(body.get("reasoning") or {}) == {"effort"}
    effort = body.pop("reasoning")["effort"] if plain_effort else ""
    for name in ("model", "stream"):
        body.pop(name, None)
    return ModelRequest(
        system="\n".join(one for one in [body.pop("instructions", ""), *thread.system] if one),
        messages=tuple(thread.messages),
        tools=_tools(body.pop("tools", None) or [], "parameters"),
        tool_choice=choice,
        parallel_tool_calls=body.pop("parallel_tool_calls", None),
        output_schema=schema["schema"] if schema else None,
        output_name=schema["name"] if schema else "output",
        max_output_tokens=body.pop("max_output_tokens", None),
        temperature=body.pop("temperature", None),
        reasoning_effort=effort,
        extra={name: value for name, value in body.items() if value is not None},
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
            case "message", "system" | "developer":
                if self.messages or self.reply:
                    raise Unsupported("a system message inside the thread")
                self.system.append(_text(item["content"]))
            case "message", _:
                self.end_reply()
                self.messages.append(UserMessage(parts=_user_parts(item["content"])))
            case "function_call", _:
                call_id, name = item["call_id"], item["name"]
                self.names[call_id] = name
                arguments = _arguments(item["arguments"])
                self.reply.append(ToolCall(call_id=call_id, tool=name, arguments=arguments, opaque=opaque))
            case "function_call_output", _:
                self.end_reply()
                call_id, output = item["call_id"], _user_parts(item["output"])
                text = "".join(part.text for part in output if isinstance(part, TextPart))
                images = tuple(part for part in output if isinstance(part, ImagePart))
                self.messages.append(_result(call_id, self.names.get(call_id, ""), text, images))
            case _:
                self.reply.append(ReasoningPart(opaque={k: v for k, v in item.items() if k != "type"}))

    def end_reply(self) -> None:
        if self.reply:
            self.messages.append(AssistantMessage(parts=tuple(self.reply), model=self.model))
            self.reply = []


def _gemini(body: Json, exchange: Exchange) -> ModelRequest:
    messages: list[Message] = []
    for turn in body.pop("contents"):
        if turn.get("role") == "model":
            parts = tuple(_gemini_part(part, number) for number, part in enumerate(turn["parts"]))
            messages.append(AssistantMessage(parts=parts, model=f"gemini:{exchange.model}"))
            continue
        messages.extend(_gemini_said(part) for part in turn["parts"])
    tools = [one for entry in body.get("tools") or [] for one in entry.get("functionDeclarations") or []]
    own = [name for entry in body.get("tools") or [] for name in entry if entry[name] is not None]
    if set(own) - {"functionDeclarations"}:
        raise Unsupported("a tool of the service's own")
    body.pop("tools", None)
    config = body.get("generationConfig") or {}
    calling = (body.pop("toolConfig", None) or {}).get("functionCallingConfig") or {}
    named = calling.get("allowed_function_names") or calling.get("allowedFunctionNames") or []
    if len(named) > 1 or calling.get("mode") == "VALIDATED":
        raise Unsupported("a choice among tools of another form")
    choice = {"ANY": "required", "NONE": "none"}.get(calling.get("mode", ""), "auto")
    system = body.pop("systemInstruction", None) or {"parts": []}
    if "responseJsonSchema" in config:
        config.pop("responseMimeType", None)
    config = {name: value for name, value in config.items() if value is not None}
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
    rest = ("safetySettings", "model")
    request.extra.update({name: value for name, value in body.items() if value and name not in rest})
    request.extra.pop("generationConfig", None) if not config else None
    return request


def _gemini_said(part: Json) -> Message:
    answer, inline, file = (part.get(name) for name in ("functionResponse", "inlineData", "fileData"))
    if answer:
        told = answer["response"]
        return _result(answer.get("id") or "call", answer["name"], str(told.get("result", told)))
    if inline:
        image = ImagePart(media_type=inline["mimeType"], data=inline["data"])
        return UserMessage(parts=(image,))
    if file:
        return UserMessage(parts=(ImagePart(media_type=file.get("mimeType", ""), url=file["fileUri"]),))
    if "text" not in part:
        raise Unsupported(f"a part with {', '.join(part)}")
    return UserMessage(parts=(TextPart(text=part["text"]),))


def _gemini_part(part: Json, number: int) -> AssistantPart:
    signed = {"thoughtSignature": part["thoughtSignature"]} if part.get("thoughtSignature") else {}
    if "functionCall" in part:
        call = part["functionCall"]
        own = {**signed, "id": True} if call.get("id") else signed
        call_id, arguments = call.get("id") or f"call{number}", call.get("args") or {}
        return ToolCall(call_id=call_id, tool=call["name"], arguments=arguments, opaque=own)
    if part.get("thought"):
        return ReasoningPart(text=part.get("text", ""))
    if "text" not in part:
        return ReasoningPart(opaque=part)
    return TextPart(text=part["text"], opaque=signed)


def _ollama(body: Json, exchange: Exchange) -> ModelRequest:
    system, messages = [], list[Message]()
    for one in body.pop("messages"):
        match one["role"]:
            case "system":
                system.append(one["content"])
            case "user":
                shown = (ImagePart(media_type="image/png", data=data) for data in one.get("images") or [])
                messages.append(UserMessage(parts=(TextPart(text=one["content"]), *shown)))
            case "tool":
                messages.append(_result("call", one.get("tool_name") or one.get("name", ""), one["content"]))
            case _:
                thinking = one.get("thinking")
                parts: list[AssistantPart] = [ReasoningPart(text=thinking)] if thinking else []
                parts.append(TextPart(text=one.get("content") or ""))
                for call in one.get("tool_calls") or []:
                    told = call["function"]
                    parts.append(ToolCall(call_id="call", tool=told["name"], arguments=told["arguments"]))
                messages.append(AssistantMessage(parts=tuple(parts), model=f"ollama:{exchange.model}"))
    options = body.get("options") or {}
    most, heat, stop = (options.pop(name, None) for name in ("num_predict", "temperature", "stop"))
    if not options:
        body.pop("options", None)
    for name in ("model", "stream"):
        body.pop(name, None)
    return ModelRequest(
        system="\n".join(system),
        messages=tuple(messages),
        tools=_tools([one["function"] for one in body.pop("tools", None) or []], "parameters"),
        output_schema=body.pop("format", None),
        max_output_tokens=most,
        temperature=heat,
        stop=tuple(stop or []),
        extra={name: value for name, value in body.items() if value is not None},
    )
