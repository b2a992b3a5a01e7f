"""What is left out of a request, in sight, when a service refuses it for that alone."""

from dataclasses import replace

from agentctl.llm.base import ModelCallFailed, ModelRequest
from agentctl.protocol.messages import AssistantMessage, RefusalPart

_THOUGHTS = (
    # OpenAI: made under another key, organisation or model, or cut apart from what they led to
    "invalid_encrypted_content", "encrypted content could not be", "could not be verified",
    "without its required", "items are not persisted",
    # Anthropic: another model's, or changed on their way
    "signature in thinking", "blocks in the latest assistant message cannot be modified",
    "expected thinking or redacted_thinking", "first block must be thinking",
    # Gemini
    "thought signature is not valid", "thought_signature is not valid", "corrupted thought signature",
    "invalid thought signature",
)  # fmt: skip
_NAMED = {
    "temperature": ("temperature",),
    "parallel_tool_calls": ("parallel_tool_calls",),
    "reasoning_effort": (
        "reasoning_effort", "reasoning.effort", "effort parameter", "output_config", "thinking",
    ),
    "stop": ("'stop'", "`stop`", "stop_sequences"),
}  # fmt: skip
"""What refusals call the settings that can be left to the service."""
_UNSUPPORTED = (
    "unsupported",
    "not support",
    "deprecated",
    "not permitted",
    "unrecognized",
    "unknown parameter",
)
_REFUSING = frozenset({None, 400, 404, 422})


def refused_thoughts(request: ModelRequest, failure: ModelCallFailed) -> ModelRequest | None:
    """Return the request with replies as if another provider had made them: words and calls alone. Pure.

    None where the service did not refuse what replies carry besides, or none carries any.
    """
    words = _words(failure).replace("`", "").replace("'", "")
    if not any(refusal in words for refusal in _THOUGHTS):
        return None
    if not any(
        not isinstance(part, RefusalPart) and part.opaque
        for message in request.messages
        if isinstance(message, AssistantMessage) and message.model
        for part in message.parts
    ):
        return None
    messages = (
        replace(message, model="") if isinstance(message, AssistantMessage) else message
        for message in request.messages
    )
    return replace(request, messages=tuple(messages))


def refused_setting(request: ModelRequest, failure: ModelCallFailed) -> str:
    """Return the name of a setting of the request that the model does not have, or empty. Pure."""
    words = _words(failure)
    if not any(word in words for word in _UNSUPPORTED):
        return ""
    named = (name for name, needles in _NAMED.items() if any(needle in words for needle in needles))
    return next((name for name in named if without_settings(request, {name}) != request), "")


def without_settings(request: ModelRequest, names: set[str]) -> ModelRequest:
    """Return the request with these settings left to the service. Pure."""
    return replace(
        request,
        temperature=None if "temperature" in names else request.temperature,
        parallel_tool_calls=None if "parallel_tool_calls" in names else request.parallel_tool_calls,
        reasoning_effort="" if "reasoning_effort" in names else request.reasoning_effort,
        stop=() if "stop" in names else request.stop,
    )


def _words(failure: ModelCallFailed) -> str:
    details = failure.details
    if details.kind != "invalid" or details.status not in _REFUSING:
        return ""
    return f"{details.code} {failure.message}".lower()
