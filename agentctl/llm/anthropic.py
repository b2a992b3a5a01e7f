"""Anthropic Messages: the request and the reply.

Source: https://docs.anthropic.com/en/api/messages
"""

from dataclasses import replace

from agentctl.llm.anthropic_reply import MessagesAssembler
from agentctl.llm.assemble import Assembler
from agentctl.llm.base import ModelRequest
from agentctl.llm.identifiers import plain_id, plain_name
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
from agentctl.protocol.values import JsonObject, JsonValue

_VERSION = "2023-06-01"
_BINDING = "thinking-binding-controls-2026-08-01"
_DEFAULT_MAX_TOKENS = 8192
_THOUGHTS = ("thinking", "redacted_thinking")
_BUDGETS = {"low": 2048, "medium": 8192, "high": 24576}
_MARK: JsonObject = {"type": "ephemeral"}
_MARKED_MESSAGES = 2
"""The newest user messages that carry a marker: the newest to write, the one before to be found again."""


class AnthropicMessages:
    """The protocol of `POST {base}/v1/messages`."""

    lines = False

    def path(self, target: Target) -> str:
        """Return the path, the same for every model."""
        return "/messages" if target.says("no_version_in_path") else "/v1/messages"

    def key_headers(self, key: str) -> dict[str, str]:
        """Return the key and the protocol's version."""
        return {"x-api-key": key}

    def fixed_headers(self, target: Target) -> dict[str, str]:
        """Return the protocol's version, and the word that lets stale thoughts be dropped."""
        headers = {"anthropic-version": _VERSION}
        return {**headers, "anthropic-beta": _BINDING} if target.facts.bound_thinking else headers

    def body(self, request: ModelRequest, target: Target) -> JsonObject:
        """Return the body in the order of the cached prefix: tools, system, messages."""
        most = request.max_output_tokens or target.facts.max_output_tokens or _DEFAULT_MAX_TOKENS
        body: JsonObject = {"model": target.model, "max_tokens": most}
        marked = request.cache and not target.says("no_cache_markers")
        if request.tools:
            tools: list[JsonValue] = [_tool(tool) for tool in request.tools]
            if marked and not request.system:
                tools[-1] = {**_tool(request.tools[-1]), "cache_control": dict(_MARK)}
            body["tools"] = tools
            body.update(_choice(request, target))
        if request.system:
            system: JsonObject = {"type": "text", "text": request.system}
            body["system"] = [{**system, "cache_control": dict(_MARK)} if marked else system]
        turns = _turns(request.messages, target)
        if marked:
            _mark(turns)
        body["messages"] = [{"role": role, "content": [*blocks]} for role, blocks in turns]
        body.update(_thinking(request, target, most, midway=_thoughtless(turns)))
        if request.temperature is not None and "thinking" not in body and target.facts.sampling is not False:
            body["temperature"] = request.temperature
        if request.stop:
            body["stop_sequences"] = list(request.stop)
        if target.stream:
            body["stream"] = True
        return body

    def assembler(self, context: ReplyContext) -> Assembler:
        """Return an assembler for one reply."""
        return MessagesAssembler(context)


def _thinking(request: ModelRequest, target: Target, most: int, *, midway: bool) -> JsonObject:
    """How reasoning and a schema are asked for; both live in `output_config` on newer models."""
    body: JsonObject = {}
    config: JsonObject = {}
    effort = request.reasoning_effort
    if request.output_schema is not None:
        config["format"] = {"type": "json_schema", "schema": request.output_schema}
    if effort and effort != "none":
        match target.facts.thinking:
            case "adaptive":
                body["thinking"] = {"type": "adaptive"}
                config["effort"] = effort
            case "none":
                pass
            case _:
                # The service wants the budget below the whole, and at least 1024.
                budget = min(_BUDGETS[effort], most - 1024)
                # Nor does it take a budget together with a choice that forces a call, or amid a turn that was
                # begun without thinking.
                free = request.tool_choice in {"auto", "none"} and not midway
                if free and budget >= 1024:  # noqa: PLR2004 - the service's own floor
                    body["thinking"] = {"type": "enabled", "budget_tokens": budget}
    if target.facts.bound_thinking:
        # A stage's own prompt, other tools or a compaction change the prefix that thoughts are bound to.
        body["thinking"] = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    if config:
        body["output_config"] = config
    return body


def _choice(request: ModelRequest, target: Target) -> JsonObject:
    if target.facts.forced_calls is False and request.tool_choice != "none":
        request = replace(request, tool_choice="auto")
    alone: JsonObject = {"disable_parallel_tool_use": True} if request.parallel_tool_calls is False else {}
    match request.tool_choice:
        case "auto":
            return {"tool_choice": {"type": "auto", **alone}} if alone else {}
        case "none":
            return {"tool_choice": {"type": "none"}}
        case "required":
            return {"tool_choice": {"type": "any", **alone}}
        case name:
            return {"tool_choice": {"type": "tool", "name": name, **alone}}


def _tool(tool: ToolSpec) -> JsonObject:
    found: JsonObject = {
        "name": tool.name,
        "description": tool.description,
        "input_schema": tool.parameters,
    }
    if tool.strict is not None:
        found["strict"] = tool.strict
    return found


def _turns(messages: tuple[Message, ...], target: Target) -> list[tuple[str, list[JsonObject]]]:
    """Turns alternate: results of one step share a message with what a person said after them."""
    turns: list[tuple[str, list[JsonObject]]] = []
    for message in messages:
        role = "assistant" if isinstance(message, AssistantMessage) else "user"
        blocks = _blocks(message, target)
        if not blocks:
            continue
        if turns and turns[-1][0] == role:
            turns[-1][1].extend(blocks)
        else:
            turns.append((role, blocks))
    return turns


def _thoughtless(turns: list[tuple[str, list[JsonObject]]]) -> bool:
    """Return whether results are to be answered in a run of calls that did not begin with thoughts."""
    first: JsonObject = {}
    for role, blocks in reversed(turns):
        if role == "user" and not any(block.get("type") == "tool_result" for block in blocks):
            break
        if role == "assistant":
            first = blocks[0]
    return first.get("type", "thinking") not in _THOUGHTS


def _mark(turns: list[tuple[str, list[JsonObject]]]) -> None:
    places = [blocks for role, blocks in turns if role == "user"]
    for blocks in places[-_MARKED_MESSAGES:]:
        blocks[-1] = {**blocks[-1], "cache_control": dict(_MARK)}


def _blocks(message: Message, target: Target) -> list[JsonObject]:
    match message:
        case UserMessage(parts=parts):
            return [
                _user_block(part) for part in parts if not isinstance(part, TextPart) or part.text.strip()
            ]
        case ToolMessage(result=result):
            return [_result(result)]
        case AssistantMessage(parts=parts, model=model):
            mine = model.partition(":")[0] == target.provider
            blocks = [block for part in parts for block in _assistant_block(part, mine=mine)]
            # What another model thought has a signature that this one's check refuses.
            other = () if model == target.name else _THOUGHTS
            return [block for block in blocks if block.get("type") not in other]


def _assistant_block(
    part: TextPart | ReasoningPart | RefusalPart | ToolCall, *, mine: bool
) -> list[JsonObject]:
    match part:
        case TextPart(text=text) | RefusalPart(text=text):
            # The service refuses text that is only blanks.
            return [{"type": "text", "text": text}] if text.strip() else []
        case ReasoningPart():
            return _thought(part) if mine else []
        case ToolCall():
            return [
                {
                    "type": "tool_use",
                    "id": plain_id(part.call_id),
                    "name": plain_name(part.tool),
                    "input": part.arguments,
                    **({"caller": part.opaque["caller"]} if mine and "caller" in part.opaque else {}),
                }
            ]


def _thought(part: ReasoningPart) -> list[JsonObject]:
    """A thinking block without its signature was cut off, and would be refused."""
    if part.opaque.get("type") != "thinking":
        return [part.opaque] if part.opaque else []
    if not part.opaque.get("signature"):
        return []
    return [{**part.opaque, "thinking": part.text}]


def _user_block(part: TextPart | ImagePart) -> JsonObject:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    source: JsonObject = {"type": "base64", "media_type": part.media_type, "data": part.data}
    if part.url:
        source = {"type": "url", "url": part.url}
    return {"type": "image" if part.media_type.startswith("image/") else "document", "source": source}


def _result(result: ToolResult) -> JsonObject:
    content: list[JsonValue] = []
    if result.text.strip():
        content.append({"type": "text", "text": result.text})
    content.extend(_user_block(image) for image in result.images)
    found: JsonObject = {"type": "tool_result", "tool_use_id": plain_id(result.call_id)}
    if content:
        found["content"] = content
    if result.outcome != "ok":
        found["is_error"] = True
    return found
