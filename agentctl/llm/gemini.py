"""Gemini's `generateContent`: the request.

Source: https://ai.google.dev/api/generate-content
"""

from urllib.parse import quote

from agentctl.llm.assemble import Assembler
from agentctl.llm.base import ModelRequest
from agentctl.llm.gemini_reply import GeminiAssembler
from agentctl.llm.identifiers import plain_name
from agentctl.llm.wire import ReplyContext, Target
from agentctl.protocol.messages import (
    AssistantMessage,
    AssistantPart,
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
from agentctl.protocol.values import JsonObject, JsonValue

_BUDGETS = {"none": 0, "low": 1024, "medium": 8192, "high": 24576}
_UNSIGNED = "skip_thought_signature_validator"
"""What the service takes for the signature of a call that it did not make.

Source: https://ai.google.dev/gemini-api/docs/thought-signatures
"""


class Gemini:
    """The protocol of `POST {base}/v1beta/models/MODEL:streamGenerateContent`."""

    lines = False

    def path(self, target: Target) -> str:
        """Return the path; the model and the way to answer stand in it."""
        verb = "streamGenerateContent?alt=sse" if target.stream else "generateContent"
        return f"/v1beta/models/{quote(target.model, safe='/')}:{verb}"

    def key_headers(self, key: str) -> dict[str, str]:
        """Return the key's header; never the URL, which ends up in logs."""
        return {"x-goog-api-key": key}

    def fixed_headers(self, target: Target) -> dict[str, str]:
        """Return none."""
        del target
        return {}

    def body(self, request: ModelRequest, target: Target) -> JsonObject:
        """Return the body; the parts that stay the same from call to call come first."""
        body: JsonObject = {}
        if request.system:
            body["systemInstruction"] = {"parts": [{"text": request.system}]}
        if request.tools:
            body["tools"] = [{"functionDeclarations": [_tool(tool) for tool in request.tools]}]
            body.update(_choice(request))
        body["contents"] = _contents(request.messages, target)
        config = _generation(request, target)
        if config:
            body["generationConfig"] = config
        return body

    def assembler(self, context: ReplyContext) -> Assembler:
        """Return an assembler for one reply."""
        return GeminiAssembler(context)


def _generation(request: ModelRequest, target: Target) -> JsonObject:
    config: JsonObject = {}
    if request.max_output_tokens is not None:
        config["maxOutputTokens"] = request.max_output_tokens
    if request.temperature is not None:
        config["temperature"] = request.temperature
    if request.stop:
        config["stopSequences"] = list(request.stop)
    if request.output_schema is not None:
        config["responseMimeType"] = "application/json"
        config["responseJsonSchema"] = request.output_schema
    effort = request.reasoning_effort
    if effort and target.facts.thinking != "none":
        if target.facts.thinking == "level":
            config["thinkingConfig"] = {"thinkingLevel": "low" if effort == "none" else effort}
        else:
            budget = max(_BUDGETS[effort], target.facts.least_thinking or 0)
            config["thinkingConfig"] = {"thinkingBudget": budget, "includeThoughts": effort != "none"}
    return config


def _choice(request: ModelRequest) -> JsonObject:
    match request.tool_choice:
        case "auto":
            return {}
        case "none":
            config: JsonObject = {"mode": "NONE"}
        case "required":
            config = {"mode": "ANY"}
        case name:
            config = {"mode": "ANY", "allowedFunctionNames": [name]}
    return {"toolConfig": {"functionCallingConfig": config}}


def _tool(tool: ToolSpec) -> JsonObject:
    found: JsonObject = {"name": tool.name, "description": tool.description}
    if tool.parameters.get("properties") or tool.parameters.get("additionalProperties"):
        # Full JSON Schema; the older `parameters` takes a subset and refuses the rest.
        found["parametersJsonSchema"] = tool.parameters
    return found


def _contents(messages: tuple[Message, ...], target: Target) -> list[JsonValue]:
    named = {
        call.call_id
        for message in messages
        if isinstance(message, AssistantMessage) and message.model.partition(":")[0] == target.provider
        for call in message.tool_calls
        if call.opaque.get("id")
    }
    turns: list[tuple[str, list[JsonObject]]] = []
    for message in messages:
        role = "model" if isinstance(message, AssistantMessage) else "user"
        found = _content(message, target, named)
        if not found:
            continue
        if turns and turns[-1][0] == role:
            turns[-1][1].extend(found)
        else:
            turns.append((role, found))
    return [{"role": role, "parts": [*parts]} for role, parts in turns]


def _content(message: Message, target: Target, named: set[str]) -> list[JsonObject]:
    match message:
        case UserMessage(parts=parts):
            return [_user_part(part) for part in parts]
        case ToolMessage(result=result):
            return _response(result, named=result.call_id in named)
        case AssistantMessage(parts=said, model=model):
            mine = model.partition(":")[0] == target.provider
            found = [one for part in said for one in _said(part, mine=mine)]
            if target.facts.thinking == "level":
                _sign(found)
            return found


def _sign(parts: list[JsonObject]) -> None:
    """Models of the third generation refuse a turn whose first call has no signature."""
    calls = [part for part in parts if "functionCall" in part]
    if calls and not any(part.get("thoughtSignature") for part in calls):
        calls[0]["thoughtSignature"] = _UNSIGNED


def _user_part(part: TextPart | ImagePart) -> JsonObject:
    if isinstance(part, TextPart):
        return {"text": part.text}
    if part.url:
        return {"fileData": {"mimeType": part.media_type, "fileUri": part.url}}
    return {"inlineData": {"mimeType": part.media_type, "data": part.data}}


def _response(result: ToolResult, *, named: bool) -> list[JsonObject]:
    response: JsonObject = {"name": plain_name(result.tool), "response": {"result": result.text}}
    if named:
        response["id"] = result.call_id
    return [{"functionResponse": response}, *(_user_part(image) for image in result.images)]


def _said(part: AssistantPart, *, mine: bool) -> list[JsonObject]:
    match part:
        case TextPart(text=text, opaque=opaque):
            signed: JsonObject = {**opaque} if mine else {}
            return [{"text": text, **signed}] if text or signed else []
        case RefusalPart(text=text):
            return [{"text": text}] if text else []
        case ReasoningPart(opaque=opaque):
            # Thoughts in words are not asked back; signed ones, and the service's own blocks, are.
            return [{**opaque}] if mine and opaque else []
        case ToolCall():
            call: JsonObject = {"name": plain_name(part.tool), "args": part.arguments}
            if mine and part.opaque.get("id"):
                call["id"] = part.call_id
            found: JsonObject = {"functionCall": call}
            signature = part.opaque.get("thoughtSignature")
            if mine and signature:
                found["thoughtSignature"] = signature
            return [found]
