"""The form in which a recorded body and ours are compared.

It drops what docs/models.md lists as our own choice ("What we send"); everything else has to be equal.
"""

import copy
import json
from typing import Any

from cassettes import Exchange, target_of

from agentctl.llm.wire import Target

Json = dict[str, Any]


def comparable(exchange: Exchange, body: Json) -> Json:
    """Return the body without what is our own choice."""
    body = _without_nulls(copy.deepcopy(body))
    if body.get("stream") is False:
        body.pop("stream")
    form = {
        "openai-chat": _chat, "openai-responses": _responses, "anthropic": _anthropic,
        "gemini": _gemini, "ollama": _ollama,
    }[exchange.wire or ""]  # fmt: skip
    target = target_of(exchange)
    if target.facts.sampling is False:
        body.pop("temperature", None)
    form(body, target)
    found: Json = json.loads(json.dumps(body))
    return found


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(one) for name, one in value.items() if one is not None}
    return [_without_nulls(one) for one in value] if isinstance(value, list) else value


def _chat(body: Json, target: Target) -> None:
    if "max_completion_tokens" in body:
        body["max_tokens"] = body.pop("max_completion_tokens")
    if body.get("thinking") == {"type": "enabled"} and body.get("reasoning_effort"):
        body.pop("thinking")
    if body.get("tool_choice") == "auto":
        body.pop("tool_choice", None)
    if not body.get("tools"):
        body.pop("tools", None)
        body.pop("parallel_tool_calls", None)
    if isinstance(body.get("stop"), str):
        body["stop"] = [body["stop"]]
    messages: list[Json] = []
    for one in body["messages"]:
        _chat_message(one, target)
        if one["role"] == "assistant" and not one.get("content") and not one.get("tool_calls"):
            continue  # nothing of it can be said again
        if messages and one["role"] == messages[-1]["role"] == "system":
            messages[-1]["content"] += "\n" + one["content"]
        else:
            messages.append(one)
    body["messages"] = messages
    for tool in body.get("tools", []):
        _plain_tool(tool["function"])


def _chat_message(one: Json, target: Target) -> None:
    if one["role"] == "developer":
        one["role"] = "system"
    one["content"] = _joined(one.get("content"), "text")
    if not one["content"] and one.get("tool_calls"):
        one.pop("content")
    for name in ("reasoning", "reasoning_content", "reasoning_details"):
        if one.get(name) is None or target.word("reasoning_back") != name:
            one.pop(name, None)
    for name in ("prefix", "name", "refusal", "audio", "annotations", "function_call"):
        if not one.get(name):
            one.pop(name, None)
    for call in one.get("tool_calls") or []:
        call.pop("index", None)
        call["function"]["arguments"] = _arguments(call["function"]["arguments"])
    if not one.get("tool_calls"):
        one.pop("tool_calls", None)


def _joined(content: Any, kind: str) -> Any:
    """Texts as one string; a picture's `detail` of `auto` says nothing."""
    if not isinstance(content, list):
        return content or ""
    if all(kind in part and part.get("type", "text").endswith("text") for part in content):
        return "".join(part[kind] for part in content)
    for part in content:
        for place in (part, part.get("image_url")):
            if isinstance(place, dict) and place.get("detail") in (None, "auto"):
                place.pop("detail", None)
    return content


def _arguments(text: str) -> Any:
    try:
        value = json.loads(text or "{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _plain_tool(tool: Json) -> None:
    if not tool.get("strict"):
        tool.pop("strict", None)
    if not tool.get("description"):
        tool.pop("description", None)


def _anthropic(body: Json, target: Target) -> None:
    _without_markers(body)
    if target.facts.bound_thinking:
        body.pop("thinking", None)
    choice = body.get("tool_choice") or {"type": "auto"}
    if choice.get("disable_parallel_tool_use") is False:
        choice.pop("disable_parallel_tool_use")
    if choice == {"type": "auto"}:
        body.pop("tool_choice", None)
    if not body.get("tools"):
        body.pop("tools", None)
    if isinstance(body.get("system"), list):
        body["system"] = "\n".join(block["text"] for block in body["system"])
    for tool in body.get("tools", []):
        _plain_tool(tool)
    turns: list[Json] = []
    for turn in body["messages"]:
        content = turn["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        blocks = [one for one in map(_anthropic_block, blocks) if one]
        if turns and turns[-1]["role"] == turn["role"]:
            turns[-1]["content"] += blocks
        elif blocks:
            turns.append({"role": turn["role"], "content": blocks})
    body["messages"] = turns


def _anthropic_block(block: Json) -> Json:
    """One block; empty where it would be refused or where it was never whole."""
    if block["type"] == "text" and not block["text"].strip():
        return {}
    if block["type"] == "thinking" and not block.get("signature"):
        return {}
    if block["type"] == "tool_result":
        inner = block.get("content") or []
        inner = [{"type": "text", "text": inner}] if isinstance(inner, str) else inner
        texts = "".join(one["text"] for one in inner if one["type"] == "text")
        block["content"] = [texts, *(one for one in inner if one["type"] != "text")]
        if not block.get("is_error"):
            block.pop("is_error", None)
    return block


def _without_markers(value: Any) -> None:
    if isinstance(value, dict):
        value.pop("cache_control", None)
        for one in value.values():
            _without_markers(one)
    elif isinstance(value, list):
        for one in value:
            _without_markers(one)


def _responses(body: Json, target: Target) -> None:
    told = body["input"]
    system = [body.pop("instructions", "")]
    items = []
    stateless = target.says("stateless")
    for item in [{"role": "user", "content": told}] if isinstance(told, str) else told:
        _responses_item(item)
        if item["type"] == "reasoning" and stateless and not item.get("encrypted_content"):
            continue  # kept nowhere: an id alone names nothing
        if item.get("role") in {"system", "developer"}:
            system.append(item["content"])
        else:
            items.append(item)
    if stateless and not any(item["type"] == "reasoning" for item in items):
        for item in items:
            item.pop("id", None)
    body["input"], body["system"] = items, "\n".join(one for one in system if one)
    for name in ("store", "include"):
        body.pop(name, None)
    if body.get("tool_choice") == "auto":
        body.pop("tool_choice")
    body["tools"] = body.get("tools") or []
    for tool in body["tools"]:
        _plain_tool(tool)


def _responses_item(item: Json) -> None:
    item.pop("status", None)
    item.setdefault("type", "message")
    match item["type"]:
        case "message":
            item["content"] = _joined(item["content"], "text")
        case "function_call":
            item["arguments"] = _arguments(item["arguments"])
        case "function_call_output":
            item["output"] = _joined(item["output"], "text")


def _gemini(body: Json, target: Target) -> None:
    del target
    body.pop("safetySettings", None)
    body.pop("model", None)
    config = body.get("generationConfig") or {}
    body["generationConfig"] = {name: value for name, value in config.items() if value is not None}
    tools = [one for entry in body.pop("tools", []) for one in entry.get("functionDeclarations") or []]
    for tool in tools:
        schema = tool.pop("parameters", None) or tool.pop("parametersJsonSchema", None) or {}
        tool["schema"] = schema if schema.get("properties") else {}
        _plain_tool(tool)
    body["tools"] = tools
    calling = (body.pop("toolConfig", None) or {}).get("functionCallingConfig") or {}
    named = calling.get("allowedFunctionNames") or calling.get("allowed_function_names") or []
    mode = calling.get("mode") or "AUTO"
    body["choice"] = [mode, *named] if tools else []
    instruction = body.pop("systemInstruction", None) or {"parts": []}
    body["system"] = "\n".join(part["text"] for part in instruction["parts"])
    turns: list[Json] = []
    for turn in body["contents"]:
        role = turn.get("role") or "user"
        parts = [_gemini_part(part) for part in turn["parts"] if not part.get("thought")]
        parts = [part for part in parts if part and part != {"text": ""}]
        if turns and turns[-1]["role"] == role:
            turns[-1]["parts"] += parts
        elif parts:
            turns.append({"role": role, "parts": parts})
    body["contents"] = turns


def _gemini_part(part: Json) -> Json:
    part = {name: value for name, value in part.items() if value is not None and name != "thought"}
    answer = part.get("functionResponse", {}).get("response")
    if answer:
        part["functionResponse"]["response"] = str(answer.get("result", answer))
    if "functionCall" in part:
        part["functionCall"]["args"] = part["functionCall"].get("args") or {}
    return part


def _ollama(body: Json, target: Target) -> None:
    del target
    if not body.get("options"):
        body.pop("options", None)
    if not body.get("tools"):
        body.pop("tools", None)
    for one in body["messages"]:
        one["content"] = one.get("content") or ""
        calls = one.pop("tool_calls", None) or []
        one["tool_calls"] = [
            (call["function"]["name"], call["function"].get("arguments") or {}) for call in calls
        ]
        if "name" in one:
            one["tool_name"] = one.pop("name")
        if not one.get("images"):
            one.pop("images", None)
    for tool in body.get("tools", []):
        _plain_tool(tool["function"])
