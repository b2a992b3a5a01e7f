"""OpenAI Responses: the request. Stateless: the thread is sent each time, reasoning included.

Source: https://platform.openai.com/docs/api-reference/responses
"""

from agentctl.llm.assemble import Assembler
from agentctl.llm.base import ModelRequest
from agentctl.llm.identifiers import plain_id, plain_name
from agentctl.llm.openai_responses_reply import ResponsesAssembler
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
    ToolResult,
    ToolSpec,
    UserMessage,
)
from agentctl.protocol.values import JsonObject, JsonValue, compact_json

_ENCRYPTED = "reasoning.encrypted_content"


class OpenAiResponses:
    """The protocol of `POST {base}/responses`."""

    lines = False

    def path(self, target: Target) -> str:
        """Return the path, the same for every model."""
        del target
        return "/responses"

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
        items: list[JsonValue] = []
        if request.system and target.says("system_as_input"):
            items.append(_message_item("system", [{"type": "input_text", "text": request.system}]))
        elif request.system:
            body["instructions"] = request.system
        if request.tools:
            body["tools"] = [_tool(tool) for tool in request.tools]
            body.update(_choice(request))
            if request.parallel_tool_calls is not None:
                body["parallel_tool_calls"] = request.parallel_tool_calls
        for message in request.messages:
            items.extend(_items(message, target))
        body["input"] = items
        body.update(_settings(request, target))
        if target.says("stateless"):
            body["store"] = False
            if target.facts.thinking not in {"", "none"}:
                body["include"] = [_ENCRYPTED]
        if target.stream:
            body["stream"] = True
        return body

    def assembler(self, context: ReplyContext) -> Assembler:
        """Return an assembler for one reply."""
        return ResponsesAssembler(context)


def _settings(request: ModelRequest, target: Target) -> JsonObject:
    found: JsonObject = {}
    if request.output_schema is not None:
        found["text"] = {
            "format": {
                "type": "json_schema",
                "name": request.output_name,
                "schema": request.output_schema,
                "strict": True,
            }
        }
    if request.reasoning_effort and target.facts.thinking != "none":
        found["reasoning"] = {"effort": target.effort(request.reasoning_effort)}
    if request.max_output_tokens is not None and not target.says("no_max_tokens"):
        found["max_output_tokens"] = request.max_output_tokens
    if request.temperature is not None and target.facts.sampling is not False:
        found["temperature"] = request.temperature
    if request.cache_key and target.says("prompt_cache_key"):
        found["prompt_cache_key"] = request.cache_key
    return found


def _choice(request: ModelRequest) -> JsonObject:
    match request.tool_choice:
        case "auto":
            return {}
        case "none" | "required" as word:
            return {"tool_choice": word}
        case name:
            return {"tool_choice": {"type": "function", "name": name}}


def _tool(tool: ToolSpec) -> JsonObject:
    found: JsonObject = {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
    }
    if tool.strict is not None:
        found["strict"] = tool.strict
    return found


def _items(message: Message, target: Target) -> list[JsonValue]:
    match message:
        case UserMessage(parts=parts):
            return [_message_item("user", [_input(part) for part in parts])]
        case ToolMessage(result=result):
            return [_output(result)]
        case AssistantMessage(parts=said, model=model):
            mine = model.partition(":")[0] == target.provider
            if mine and _unwelcome(message, target):
                said, mine = tuple(part for part in said if not isinstance(part, ReasoningPart)), False
            return [item for part in said for item in _said(part, mine=mine)]


def _unwelcome(message: AssistantMessage, target: Target) -> bool:
    """Whether the thoughts of a reply would be refused, and with them the ids of what they led to.

    Where items are not kept, thoughts without their encrypted content name nothing; a model that does not
    think takes none at all.
    """
    thoughts = [
        part.opaque
        for part in message.parts
        if isinstance(part, ReasoningPart) and part.opaque.get("type", "reasoning") == "reasoning"
    ]
    if not thoughts or not target.says("stateless"):
        return False
    return target.facts.thinking == "none" or not all(one.get("encrypted_content") for one in thoughts)


def _message_item(role: str, content: list[JsonObject]) -> JsonObject:
    return {"type": "message", "role": role, "content": [*content]}


def _input(part: TextPart | ImagePart) -> JsonObject:
    if isinstance(part, TextPart):
        return {"type": "input_text", "text": part.text}
    url = part.url or f"data:{part.media_type};base64,{part.data}"
    if part.media_type.startswith("image/"):
        return {"type": "input_image", "image_url": url}
    if part.url:
        return {"type": "input_file", "file_url": url}
    return {"type": "input_file", "filename": part.name or "file", "file_data": url}


def _output(result: ToolResult) -> JsonObject:
    output: JsonValue = result.text
    if result.images:
        output = [{"type": "input_text", "text": result.text}, *(_input(image) for image in result.images)]
    return {"type": "function_call_output", "call_id": plain_id(result.call_id), "output": output}


def _said(part: TextPart | ReasoningPart | RefusalPart | ToolCall, *, mine: bool) -> list[JsonObject]:
    match part:
        case TextPart(text=text, opaque=opaque):
            own: JsonObject = {**opaque} if mine else {}
            return (
                [{**_message_item("assistant", [{"type": "output_text", "text": text}]), **own}]
                if text
                else []
            )
        case RefusalPart(text=text):
            return [_message_item("assistant", [{"type": "refusal", "refusal": text}])]
        case ReasoningPart(opaque=opaque):
            return [{"type": "reasoning", **opaque}] if mine and opaque else []
        case ToolCall():
            item: JsonObject = {
                "type": "function_call",
                "call_id": plain_id(part.call_id),
                "name": plain_name(part.tool),
                "arguments": compact_json(part.arguments),
            }
            return [{**item, **part.opaque} if mine else item]
