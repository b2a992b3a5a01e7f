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
        if choice["index"] != 0:
            continue
        said = choice.get("message") or choice["delta"]
        if choice.get("message") and "delta" in choice:
            reading.text = ""  # Perplexity repeats all of it
        reading.text += said.get("content") or ""
        for call in said.get("tool_calls") or []:
            at = call.get("index", -1)
            if call.get("id"):
                reading.calls.append((call["function"]["name"], ""))
                at = -1
            name, arguments = reading.calls[at]
            reading.calls[at] = (name, arguments + (call["function"].get("arguments") or ""))
        reading.finish = choice.get("finish_reason") or reading.finish


def _anthropic(document: Json, reading: Reading) -> None:
    usage = document.get("usage") or document.get("message", {}).get("usage") or {}
    reading.output_tokens = usage.get("output_tokens", reading.output_tokens)
    if "input_tokens" in usage:
        parts = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        reading.input_tokens = sum(usage.get(part, 0) for part in parts)
    for block in document.get("content", []) or [document.get("content_block") or {}]:
        reading.text += block.get("text", "")
        if block.get("type") == "tool_use":
            reading.calls.append((block["name"], json.dumps(block["input"]) if block["input"] else ""))
    delta = document.get("delta", {})
    reading.text += delta.get("text", "")
    if delta.get("partial_json"):
        name, arguments = reading.calls[-1]
        reading.calls[-1] = (name, arguments + delta["partial_json"])
    reading.finish = delta.get("stop_reason") or document.get("stop_reason") or reading.finish


def _gemini(document: Json, reading: Reading) -> None:
    usage = document["usageMetadata"]
    reading.output_tokens = usage.get("candidatesTokenCount", 0) + usage.get("thoughtsTokenCount", 0)
    reading.input_tokens = usage["promptTokenCount"] + usage.get("toolUsePromptTokenCount", 0)
    for candidate in document.get("candidates", [])[:1]:
        for part in candidate.get("content", {}).get("parts", []):
            if "functionCall" in part:
                reading.calls.append((part["functionCall"]["name"], json.dumps(part["functionCall"]["args"])))
            elif not part.get("thought"):
                reading.text += part.get("text", "")
        reading.finish = candidate.get("finishReason") or reading.finish


def _ollama(document: Json, reading: Reading) -> None:
    reading.text += document["message"]["content"]
    for call in document["message"].get("tool_calls", []):
        reading.calls.append((call["function"]["name"], json.dumps(call["function"]["arguments"])))
    reading.output_tokens = document.get("eval_count", 0)
    reading.input_tokens = document.get("prompt_eval_count", 0)
    reading.finish = document.get("done_reason", "")


def _responses(document: Json, reading: Reading) -> None:
    response = document.get("response", document)
    usage = response.get("usage") or {}
    reading.output_tokens = usage.get("output_tokens", reading.output_tokens)
    reading.input_tokens = usage.get("input_tokens", reading.input_tokens)
    reading.finish = response.get("status", reading.finish)
    kind = document.get("type", "")
    items = response.get("output", []) if not kind else []
    if kind == "response.output_item.done":
        items = [document["item"]]
    for item in items:
        if item["type"] == "function_call":
            reading.calls.append((item["name"], item["arguments"]))
        if item["type"] == "message":
            reading.text += "".join(part.get("text", "") for part in item["content"])
