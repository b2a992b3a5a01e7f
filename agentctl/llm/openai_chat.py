"""OpenAI Chat Completions, and the dialects of the many services that speak it: the request.

What a dialect may set is described in docs/models.md. Source: https://platform.openai.com/docs/api-reference/chat
"""

import json
from collections.abc import Mapping

from agentctl.llm.assemble import Assembler
from agentctl.llm.base import ModelRequest, ToolChoice
from agentctl.llm.identifiers import foreign_ids, plain_name
from agentctl.llm.openai_chat_reply import ChatAssembler
from agentctl.llm.wire import ReplyContext, Target
from agentctl.protocol.messages import (
    AssistantMessage,
    ImagePart,
    Message,
    ReasoningPart,
    RefusalPart,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolSpec,
    UserMessage,
)
from agentctl.protocol.values import JsonObject, JsonValue, compact_json
from agentctl.records import dataclass


class OpenAiChat:
    """The protocol of `POST {base}/chat/completions`."""

    lines = False

    def path(self, target: Target) -> str:
        """Return the path, the same for every model."""
        del target
        return "/chat/completions"

    def key_headers(self, key: str) -> dict[str, str]:
        """Return a bearer token."""
        return {"authorization": f"Bearer {key}"}

    def fixed_headers(self, target: Target) -> dict[str, str]:
        """Return none."""
        del target
        return {}

    def body(self, request: ModelRequest, target: Target) -> JsonObject:
        """Return the body; the parts that stay the same from call to call come first."""
        body: JsonObject = {"model": target.model}
        if request.tools:
            body["tools"] = [_tool(tool) for tool in request.tools]
            body.update(_choice(request.tool_choice, target))
            if request.parallel_tool_calls is not None:
                body["parallel_tool_calls"] = request.parallel_tool_calls
        body["messages"] = _messages(request, target)
        if request.output_schema is not None:
            body["response_format"] = _response_format(request, request.output_schema, target)
        body.update(_sampling(request, target))
        if target.stream:
            body["stream"] = True
            if not target.says("no_stream_options"):
                body["stream_options"] = {"include_usage": True}
        return body

    def assembler(self, context: ReplyContext) -> Assembler:
        """Return an assembler for one reply."""
        return ChatAssembler(context)


def _sampling(request: ModelRequest, target: Target) -> JsonObject:
    found: JsonObject = {}
    if request.max_output_tokens is not None:
        # OpenAI's models that think refuse the older name wherever they are served.
        name = "max_completion_tokens" if target.facts.thinking == "effort" else "max_tokens"
        found[target.word("max_tokens") or name] = request.max_output_tokens
    if request.temperature is not None and target.facts.sampling is not False:
        found["temperature"] = request.temperature
    if request.stop:
        found["stop"] = list(request.stop)
    if request.cache_key and target.says("prompt_cache_key"):
        found["prompt_cache_key"] = request.cache_key
    found.update(_reasoning(request, target))
    return found


def _reasoning(request: ModelRequest, target: Target) -> JsonObject:
    effort = request.reasoning_effort
    if not effort:
        return {}
    match target.word("reasoning"):
        case "object":
            # OpenRouter: one object for all models behind it.
            return {"reasoning": {"enabled": False} if effort == "none" else {"effort": effort}}
        case "thinking":
            # DeepSeek: a switch, and an effort that it reads loosely.
            if effort == "none":
                return {"thinking": {"type": "disabled"}}
            return {"thinking": {"type": "enabled"}, "reasoning_effort": effort}
        case "template":
            # llama.cpp and vLLM: a switch of the chat template.
            return {"chat_template_kwargs": {"enable_thinking": effort != "none"}}
        case "ignored" if target.facts.thinking != "effort":
            return {}
        case _ if target.facts.thinking == "none":
            return {}
        case _:
            return {"reasoning_effort": target.effort(effort)}


def _choice(choice: ToolChoice, target: Target) -> JsonObject:
    match choice:
        case "auto":
            return {}
        case "none":
            return {"tool_choice": "none"}
        case "required":
            return {"tool_choice": target.word("required_choice") or "required"}
        case name:
            return {"tool_choice": {"type": "function", "function": {"name": name}}}


def _response_format(request: ModelRequest, schema: JsonObject, target: Target) -> JsonObject:
    if target.word("output_schema") == "json_object":
        return {"type": "json_object"}
    return {
        "type": "json_schema",
        "json_schema": {"name": request.output_name, "schema": schema, "strict": True},
    }


def _tool(tool: ToolSpec) -> JsonObject:
    function: JsonObject = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
    }
    if tool.strict is not None:
        function["strict"] = tool.strict
    return {"type": "function", "function": function}


def _messages(request: ModelRequest, target: Target) -> list[JsonValue]:
    found: list[JsonValue] = []
    system = request.system
    if request.output_schema is not None and target.word("output_schema") == "json_object":
        # The service checks that the reply is JSON, not which: the schema stands in the prompt.
        schema = json.dumps(request.output_schema, ensure_ascii=False)
        system = (
            f"{system}\n\nAnswer with one JSON object that is valid against this schema:\n{schema}".lstrip()
        )
    if system:
        found.append({"role": "system", "content": system})
    thread = _Thread(
        target=target,
        ids=foreign_ids(request.messages, target.provider, target.word("call_ids")),
        thinks=request.reasoning_effort != "none",
    )
    pictures: list[ImagePart] = []
    for message in request.messages:
        if pictures and not isinstance(message, ToolMessage):
            found.append(_shown(pictures))
            pictures = []
        if isinstance(message, ToolMessage):
            # The protocol has no pictures in a tool's answer, and nothing may stand between the answers of a
            # turn: they follow the last one in the user's name.
            pictures.extend(message.result.images)
        found.extend(_message(message, thread))
    return [*found, _shown(pictures)] if pictures else found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Thread:
    """What a message's form depends on besides itself."""

    target: Target
    ids: Mapping[str, str]
    thinks: bool

    def id_of(self, call_id: str) -> str:
        return self.ids.get(call_id, call_id)


def _message(message: Message, thread: _Thread) -> list[JsonValue]:
    match message:
        case UserMessage(parts=parts):
            return [{"role": "user", "content": _user_content(parts)}]
        case ToolMessage(result=result):
            call_id = thread.id_of(result.call_id)
            return [{"role": "tool", "tool_call_id": call_id, "content": result.text}]
        case AssistantMessage():
            found = _assistant(message, thread)
            return [found] if found else []


def _shown(pictures: list[ImagePart]) -> JsonObject:
    return {"role": "user", "content": [_image(image) for image in pictures]}


def _user_content(parts: tuple[TextPart | ImagePart, ...]) -> JsonValue:
    if all(isinstance(part, TextPart) for part in parts):
        return "".join(part.text for part in parts if isinstance(part, TextPart))
    return [
        {"type": "text", "text": part.text} if isinstance(part, TextPart) else _image(part) for part in parts
    ]


def _image(image: ImagePart) -> JsonObject:
    url = image.url or f"data:{image.media_type};base64,{image.data}"
    if image.media_type.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": url}}
    return {"type": "file", "file": {"filename": image.name or "file", "file_data": url}}


def _assistant(message: AssistantMessage, thread: _Thread) -> JsonObject:
    """One reply as it goes back. An empty object where nothing of it can be said again."""
    target = thread.target
    mine = message.model.partition(":")[0] == target.provider
    found: JsonObject = {"role": "assistant"}
    text = "".join(part.text for part in message.parts if isinstance(part, TextPart | RefusalPart))
    calls: list[JsonValue] = [_call(part, thread, mine=mine) for part in message.tool_calls]
    if text or target.says("empty_content"):
        found["content"] = text
    thinks = mine and target.facts.thinking != "none"
    thoughts = [part for part in message.parts if isinstance(part, ReasoningPart)] if thinks else []
    found.update(_thoughts(thoughts, thread, text, calls=bool(calls)))
    if calls:
        found["tool_calls"] = calls
    return found if text or calls else {}


def _thoughts(parts: list[ReasoningPart], thread: _Thread, said: str, *, calls: bool) -> JsonObject:
    text = "".join(part.text for part in parts)
    match thread.target.word("reasoning_back"):
        case "content":
            # Mistral: a part of the content, and only for models that think.
            if not text or thread.target.facts.thinking != "effort":
                return {}
            thought: JsonObject = {"type": "thinking", "thinking": [{"type": "text", "text": text}]}
            return {"content": [thought, {"type": "text", "text": said}] if said else [thought]}
        case "reasoning_details":
            details = [block for part in parts for block in _details(part)]
            return {"reasoning_details": details} if details else {}
        case "":
            return {}
        case name:
            # DeepSeek, thinking, refuses a call without its thoughts; those of another model's call are none.
            bare = calls and thread.thinks and thread.target.word("reasoning") == "thinking"
            return {name: text} if text or bare else {}


def _details(part: ReasoningPart) -> list[JsonValue]:
    details = part.opaque.get("reasoning_details")
    return details if isinstance(details, list) else []


def _call(call: ToolCall, thread: _Thread, *, mine: bool) -> JsonObject:
    # What was no JSON stands in the call's answer; here it would break services that parse their own threads.
    arguments = compact_json(call.arguments)
    found: JsonObject = {
        "id": thread.id_of(call.call_id),
        "type": "function",
        "function": {"name": plain_name(call.tool), "arguments": arguments},
    }
    extra = call.opaque.get("extra_content")
    if extra is not None and mine:
        # Gemini's OpenAI door puts its thought signature here.
        found["extra_content"] = extra
    return found
