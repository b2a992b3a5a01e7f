"""A second, plain reading of recorded replies, written without the adapters: what they have to agree with."""

import json
from dataclasses import dataclass, field
from typing import Any

from cassettes import Exchange

Json = dict[str, Any]


@dataclass
class Reading:
    text: str = ""
    calls: list[tuple[str, str]] = field(default_factory=list)
    """Name and arguments as text, or as sorted JSON where they are an object."""
    output_tokens: int = 0
    input_tokens: int = 0
    finish: str = ""
    ids: list[str] = field(default_factory=list)
    """The ids of calls seen so far."""
    open: int | None = None
    """The place of the block that is a call of ours."""


def documents(exchange: Exchange) -> list[Json]:
    raw = exchange.body.decode()
    try:
        return [json.loads(raw)]
    except ValueError:
        pass
    lines = [line.removeprefix("data:").strip() for line in raw.splitlines() if not line.startswith("event")]
    return [json.loads(line) for line in lines if line.startswith("{")]


def read(exchange: Exchange) -> Reading:
    reading = Reading()
    for document in documents(exchange):
        match exchange.wire:
            case "openai-chat":
                _chat(document, reading)
            case "anthropic":
                _anthropic(document, reading)
            case "gemini":
                _gemini(document, reading)
            case "ollama":
                _ollama(document, reading)
            case "openai-responses":
                _responses(document, reading)
    return reading


def failed(exchange: Exchange) -> bool:
    """Whether the service reports an error inside what its status calls a success."""
    finish = ""
    for document in documents(exchange):
        error = document.get("error") or (document.get("response") or {}).get("error")
        if (error or document.get("type") == "error") and not finish:
            return True
        for choice in document.get("choices") or []:
            finish = choice.get("finish_reason") or finish
    return finish in {"error", "network_error", "insufficient_system_resource"}


def canonical(arguments: str) -> str:
    try:
        return json.dumps(json.loads(arguments or "{}") or {}, sort_keys=True)
    except ValueError:
        return arguments


def _chat(document: Json, reading: Reading) -> None:
    usage = document.get("usage") or {}
    reading.output_tokens = usage.get("completion_tokens", reading.output_tokens)
    reading.input_tokens = usage.get("prompt_tokens", reading.input_tokens)
    for choice in (document.get("choices") or [])[:1]:
        if choice.get("index", 0) != 0:
            continue
        said = choice.get("message") or choice.get("delta") or {}
        if choice.get("message") and "delta" in choice:
            reading.text = ""  # Perplexity repeats all of it
        reading.text += _words(said.get("content"))
        for call in said.get("tool_calls") or []:
            at = call.get("index", -1)
            function = call.get("function") or {}
            if call.get("id") and call["id"] not in reading.ids:
                reading.calls.append((function["name"], ""))
                reading.ids.append(call["id"])
                at = -1
            name, arguments = reading.calls[at]
            reading.calls[at] = (name, arguments + (function.get("arguments") or ""))
        reading.finish = choice.get("finish_reason") or reading.finish


def _words(content: Any) -> str:
    if isinstance(content, list):
        return "".join(part.get("text") or "" for part in content if part.get("type") == "text")
    return content or ""


def _anthropic(document: Json, reading: Reading) -> None:
    usage = document.get("usage") or document.get("message", {}).get("usage") or {}
    reading.output_tokens = usage.get("output_tokens", reading.output_tokens)
    if "input_tokens" in usage:
        parts = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        reading.input_tokens = sum(usage.get(part) or 0 for part in parts)
    for block in document.get("content", []) or [document.get("content_block") or {}]:
        if block.get("type") == "text":
            reading.text += block.get("text") or ""
        if block.get("type") == "tool_use":
            reading.calls.append((block["name"], json.dumps(block["input"]) if block["input"] else ""))
            reading.open = document.get("index")
    delta = document.get("delta", {})
    reading.text += delta.get("text", "")
    if delta.get("partial_json") and document.get("index") == reading.open:
        name, arguments = reading.calls[-1]
        reading.calls[-1] = (name, arguments + delta["partial_json"])
    reading.finish = delta.get("stop_reason") or document.get("stop_reason") or reading.finish


def _gemini(document: Json, reading: Reading) -> None:
    usage = document.get("usageMetadata")
    if usage:
        reading.output_tokens = usage.get("candidatesTokenCount", 0) + usage.get("thoughtsTokenCount", 0)
        reading.input_tokens = usage.get("promptTokenCount", 0) + usage.get("toolUsePromptTokenCount", 0)
    for candidate in (document.get("candidates") or [])[:1]:
        for part in (candidate.get("content") or {}).get("parts") or []:
            if "functionCall" in part:
                call = part["functionCall"]
                reading.calls.append((call["name"], json.dumps(call.get("args") or {})))
            elif not part.get("thought"):
                reading.text += part.get("text", "")
        reading.finish = candidate.get("finishReason") or reading.finish


def _ollama(document: Json, reading: Reading) -> None:
    message = document.get("message") or {}
    reading.text += message.get("content") or ""
    for call in message.get("tool_calls") or []:
        reading.calls.append((call["function"]["name"], json.dumps(call["function"]["arguments"])))
    reading.output_tokens = document.get("eval_count", 0)
    reading.input_tokens = document.get("prompt_eval_count", 0)
    reading.finish = document.get("done_reason", "")


def _responses(document: Json, reading: Reading) -> None:
    response = document.get("response", document)
    usage = response.get("usage") or {}
    reading.output_tokens = usage.get("output_tokens", reading.output_tokens)
    reading.input_tokens = usage.get("input_tokens", reading.input_tokens)
    reading.finish = response.get("status") or reading.finish
    kind = document.get("type", "")
    items = (response.get("output") or []) if not kind else []
    if kind == "response.output_item.done":
        items = [document["item"]]
    for item in items:
        if item["type"] == "function_call":
            reading.calls.append((item["name"], item["arguments"]))
        if item["type"] == "message":
            reading.text += "".join(part.get("text") or "" for part in item.get("content") or [])
