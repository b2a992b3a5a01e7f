"""Ids and names of calls as a service takes them back, whoever made them up."""

import re
from collections.abc import Mapping, Sequence
from hashlib import sha256

from agentctl.protocol.messages import AssistantMessage, Message

_PLAIN = re.compile(r"[A-Za-z0-9_-]+")
_OTHER = re.compile(r"[^A-Za-z0-9_-]")
_MARK = 8
_NINE = 9
_MOST_NAME = 128


def plain_id(call_id: str, *, most: int = 64) -> str:
    """Return the id in letters, digits, `_` and `-`, cut to `most`. Equal ids stay equal, others apart. Pure.

    Kimi calls its calls `functions.NAME:0`, which Anthropic refuses; a gateway's may be too long for OpenAI.
    """
    if _PLAIN.fullmatch(call_id) and len(call_id) <= most:
        return call_id
    start = _OTHER.sub("_", call_id)[: most - _MARK - 1]
    return f"{start}_{sha256(call_id.encode()).hexdigest()[:_MARK]}"


def plain_name(tool: str) -> str:
    """Return a tool's name as every service takes it back; a model may have made up another. Pure."""
    if _PLAIN.fullmatch(tool) and len(tool) <= _MOST_NAME:
        return tool
    return _OTHER.sub("_", tool)[:_MOST_NAME] or "unknown"


def foreign_ids(messages: Sequence[Message], provider: str, rule: str) -> Mapping[str, str]:
    """Return how the ids of calls that other providers made are written for this one. Pure.

    `rule` is a dialect's: `nine` letters or digits (Mistral), at most `forty` characters (OpenAI), or empty.
    """
    if not rule:
        return {}
    foreign = (
        call.call_id
        for message in messages
        if isinstance(message, AssistantMessage) and message.model.partition(":")[0] != provider
        for call in message.tool_calls
    )
    return {call_id: _written(call_id, rule) for call_id in foreign}


def _written(call_id: str, rule: str) -> str:
    if rule == "nine":
        fits = len(call_id) == _NINE and call_id.isascii() and call_id.isalnum()
        return call_id if fits else sha256(call_id.encode()).hexdigest()[:_NINE]
    return plain_id(call_id, most=40)
