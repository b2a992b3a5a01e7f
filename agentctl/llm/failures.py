"""What a failed try means: the kind of failure, whether the same or the next model may be tried."""

from agentctl.llm.base import FailureDetails, FailureKind, ModelCallFailed

_UNAUTHORISED = frozenset({401, 402, 403})
_RETRYABLE = frozenset({408, 409, 425, 429})
_MISSING = 404
_TOO_LARGE = 413
_TOO_MANY = 429
_SERVER = 500
_OVERLOADED = frozenset({503, 529})

_CONTEXT_WORDS = (
    "context_length", "context length", "context window", "maximum context", "prompt is too long",
    "too many tokens", "exceeds the maximum number of tokens", "exceed_context_size",
    "input length and `max_tokens` exceed", "request too large for model", "input token count",
)  # fmt: skip


def kind_of_status(status: int, *, text: str = "", code: str = "") -> FailureKind:
    """Return what an HTTP status means, looking at the service's words where the status says too little."""
    lowered = f"{code} {text}".lower()
    if status in _UNAUTHORISED:
        return "auth"
    if status == _TOO_MANY:
        return "rate_limit"
    if status in _OVERLOADED or "overloaded" in code.lower():
        return "overloaded"
    if status >= _SERVER or status in _RETRYABLE:
        return "server"
    if status == _TOO_LARGE or any(word in lowered for word in _CONTEXT_WORDS):
        return "context_length"
    return "invalid"


def status_failure(
    status: int,
    message: str,
    *,
    code: str = "",
    request_id: str = "",
    retry_after_s: float | None = None,
) -> ModelCallFailed:
    """Return the failure for an HTTP status other than success."""
    kind = kind_of_status(status, text=message, code=code)
    return ModelCallFailed(
        message,
        details=FailureDetails(
            kind=kind,
            retryable=status in _RETRYABLE or status >= _SERVER,
            next_model=status in _UNAUTHORISED or status == _MISSING,
            status=status,
            retry_after_s=retry_after_s,
            request_id=request_id,
            code=code,
        ),
    )


def plain_failure(
    kind: FailureKind, message: str, *, code: str = "", request_id: str = ""
) -> ModelCallFailed:
    """Return a failure that has no HTTP status of its own: a dead connection, an error inside a stream."""
    retryable = kind in {"rate_limit", "overloaded", "server", "transport", "stalled"}
    details = FailureDetails(
        kind=kind, retryable=retryable, next_model=kind == "auth", code=code, request_id=request_id
    )
    return ModelCallFailed(message, details=details)
