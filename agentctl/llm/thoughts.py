"""Thoughts of earlier replies that a service no longer takes, though it made them."""

from dataclasses import replace

from agentctl.llm.base import ModelCallFailed, ModelRequest
from agentctl.protocol.messages import AssistantMessage, RefusalPart

_REFUSALS = (
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
_REFUSING = frozenset({None, 400, 404, 422})


def refuses_thoughts(failure: ModelCallFailed) -> bool:
    """Return whether the service refused what earlier replies carry besides words and calls. Pure."""
    details = failure.details
    words = f"{details.code} {failure.message}".lower().replace("`", "").replace("'", "")
    return (
        details.kind == "invalid"
        and details.status in _REFUSING
        and any(refusal in words for refusal in _REFUSALS)
    )


def without_thoughts(request: ModelRequest) -> ModelRequest | None:
    """Return the request with replies as if another provider had made them: words and calls alone. Pure.

    None where no reply carries more than that, so that it would be the same request again.
    """
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
