"""What a failed try means: its kind, the service's words, and who may be tried next."""

import json
import re
from contextlib import suppress

from agentctl.llm.base import FailureDetails, FailureKind, ModelCallFailed
from agentctl.llm.retry_after import delay_of
from agentctl.protocol.values import JsonObject, JsonValue
from agentctl.records import dataclass

_UNAUTHORISED = frozenset({401, 402, 403})
_RETRYABLE_STATUS = frozenset({408, 409, 425, 429, 498, 499})
_MISSING = 404
_TOO_LARGE = 413
_TOO_MANY = 429
_BAD = 400
_SERVER = 500
_OVERLOADED = frozenset({498, 503, 529})
_EXCERPT = 300

_RETRYABLE_KINDS = frozenset({"rate_limit", "overloaded", "server", "transport", "stalled"})

_WORDS: tuple[tuple[FailureKind, tuple[str, ...]], ...] = (
    ("context_length", (
        "context_length", "context length", "context window", "maximum context", "prompt is too long",
        "maximum number of tokens", "exceed_context_size", "available context size",
        "request too large for model", "input is too long", "context limit", "maximum prompt length",
        "maximum model length", "exceeded model token limit", "exceeds max length", "prompt too long",
        "range of input length", "max_prompt_tokens_exceeded", "tokens_limit_reached",
        "inputs tokens + max_new_tokens", "`inputs` tokens + `max_new_tokens`", "inputs must have less than",
        "too many tokens: total", "total_tokens_exceeded",
    )),
    # After the service's own wording for threads that are too long: AWS says "too many tokens, please wait".
    ("rate_limit", ("throttl", "please wait")),
    ("context_length", ("too many tokens",)),
    ("auth", (
        "insufficient_quota", "billing", "credit balance", "api_key_invalid", "invalid_api_key",
        "api key not valid", "authentication", "unauthorized", "unauthenticated", "permission", "payment",
        "insufficient_balance",
    )),
    ("overloaded", (
        "overloaded", "unavailable", "no capacity", "insufficient_system_resource", "capacity exceeded",
        "engine_overloaded", "model is busy",
    )),
    ("rate_limit", ("rate_limit", "rate limit", "resource_exhausted", "too many requests", "quota")),
    ("invalid", ("invalid_request", "invalid_argument", "not_found", "invalid_prompt", "unsupported")),
)  # fmt: skip

_SPENT = (
    "insufficient_quota", "insufficient balance", "insufficient_balance", "exceeded_current_quota",
    "credit balance", "recharge", "available credits", "credit_limit",
)  # fmt: skip
"""Words of a 429 for which waiting is no use. Some services say "billing" for every kind of it."""

_UNLUCKY = frozenset({"tool_use_failed", "json_validate_failed", "output_parse_failed"})
"""Groq's codes, with status 400, for what the model wrote: another try writes another thing."""

_NO_MODEL = frozenset(
    {"invalid_model", "model_not_found", "model_not_supported", "model_not_available", "deploymentnotfound"}
)
"""Codes that mean the same as a 404, whatever status they come with."""

REQUEST_ID_HEADERS = (
    "request-id", "x-request-id", "mistral-correlation-id", "x-goog-request-id", "apim-request-id",
    "x-amzn-requestid", "cf-ray",
)  # fmt: skip


def status_failure(
    status: int,
    message: str,
    *,
    code: str = "",
    request_id: str = "",
    retry_after_s: float | None = None,
) -> ModelCallFailed:
    """Return the failure for an HTTP status other than success."""
    kind: FailureKind = "server"
    if code not in _UNLUCKY:
        kind = _kind_of_status(status, f"{code} {message}".lower())
    unauthorised = kind == "auth"
    return ModelCallFailed(
        message,
        details=FailureDetails(
            kind=kind,
            retryable=kind in _RETRYABLE_KINDS,
            next_model=unauthorised or status == _MISSING or code.lower() in _NO_MODEL,
            status=status,
            retry_after_s=retry_after_s,
            request_id=request_id,
            code=code,
        ),
    )


def plain_failure(
    kind: FailureKind, message: str, *, code: str = "", request_id: str = ""
) -> ModelCallFailed:
    """Return a failure that has no HTTP status of its own: a dead connection, a reply that makes no sense."""
    details = FailureDetails(
        kind=kind,
        retryable=kind in _RETRYABLE_KINDS,
        next_model=kind == "auth",
        code=code,
        request_id=request_id,
    )
    return ModelCallFailed(message, details=details)


def connect_failure(message: str) -> ModelCallFailed:
    """Return the failure of a connection that could not be made; tried less often than one that died."""
    return plain_failure("transport", message, code="connect")


def refused_redirect(message: str) -> ModelCallFailed:
    """Return the failure of a redirect that is not followed."""
    return plain_failure("invalid", message, code="redirect")


def in_band_failure(error: JsonValue, *, where: str, request_id: str = "") -> ModelCallFailed:
    """Return the failure that a service reports inside a stream, or in a body with status 200."""
    told = read_error({"error": error})
    message = f"{where}: {told.message}"
    if told.status >= _BAD:
        return status_failure(
            told.status,
            message,
            code=told.code,
            request_id=told.request_id or request_id,
            retry_after_s=told.retry_after_s,
        )
    kind: FailureKind = "server"
    if told.code not in _UNLUCKY:
        kind = _kind_of_words(f"{told.code} {told.message}".lower()) or "server"
    return plain_failure(kind, message, code=told.code, request_id=told.request_id or request_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorBody:
    """What an error envelope says, whatever its shape."""

    message: str
    code: str
    """The service's own; empty where it says none."""
    status: int
    """The HTTP status that it names; 0 for none."""
    request_id: str
    retry_after_s: float | None


def read_error(body: JsonValue) -> ErrorBody:
    """Return message, code, status and request id of any known envelope. Total."""
    if isinstance(body, list):
        body = body[0] if body else {}
    outer: JsonObject = body if isinstance(body, dict) else {"error": str(body)}
    error = outer.get("error", outer)
    inner: JsonObject = error if isinstance(error, dict) else {}
    message = (
        error if isinstance(error, str) else _first_text(inner, ("message", "detail", "error_description"))
    )
    if not message:
        message = (
            _first_text(outer, ("message", "detail")) or json.dumps(error, ensure_ascii=False)[:_EXCERPT]
        )
    codes = [inner.get("code"), inner.get("type"), inner.get("status"), outer.get("type")]
    reasons = inner.get("details")
    if isinstance(reasons, list):
        codes = [*(one.get("reason") for one in reasons if isinstance(one, dict)), *codes]
    message = _with_cause(message, inner)
    words = [one for one in codes if isinstance(one, str) and one and one != "error" and not one.isdigit()]
    status = next((n for one in (*codes, outer.get("raw_status_code")) if (n := _status(one))), 0)
    return ErrorBody(
        message=message,
        code=words[0] if words else "",
        status=status,
        request_id=_first_text(outer, ("request_id",)) or _first_text(inner, ("request_id",)),
        retry_after_s=delay_of(reasons),
    )


def _with_cause(message: str, inner: JsonObject) -> str:
    """OpenRouter hides the words of the service behind it: "Provider returned error" alone helps nobody."""
    metadata = inner.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    if isinstance(raw, str):
        with suppress(ValueError, RecursionError):
            raw = json.loads(raw)
    cause = read_error(raw).message if isinstance(raw, dict) else raw
    return (
        f"{message}: {cause[:_EXCERPT]}" if isinstance(cause, str) and cause not in {"", message} else message
    )


def unreadable(body: bytes, *, content_type: str) -> str:
    """Return a sentence for a body that is not what was asked for: its content type and how it begins."""
    text = re.sub(r"\s+", " ", body.decode("utf-8", errors="replace")).strip()
    if not text:
        return "an empty response"
    return f"{content_type or 'no content type'}: {text[:_EXCERPT]}"


def _kind_of_status(status: int, words: str) -> FailureKind:
    told = _kind_of_words(words)
    if status in _UNAUTHORISED:
        return "auth"
    if status == _TOO_MANY:
        return "auth" if any(word in words for word in _SPENT) else "rate_limit"
    if told == "context_length" or (told == "auth" and status < _SERVER and status != _MISSING):
        return told
    if status in _OVERLOADED or (status >= _SERVER and told == "overloaded"):
        return "overloaded"
    if status >= _SERVER or status in _RETRYABLE_STATUS:
        return "server"
    return "context_length" if status == _TOO_LARGE else "invalid"


def _kind_of_words(words: str) -> FailureKind | None:
    for kind, known in _WORDS:
        if any(word in words for word in known):
            return kind
    return None


def _first_text(body: JsonObject, names: tuple[str, ...]) -> str:
    for name in names:
        value = body.get(name)
        if isinstance(value, str) and value:
            return value
        if isinstance(value, list) and value:
            return json.dumps(value, ensure_ascii=False)[:_EXCERPT]
    return ""


def _status(value: JsonValue) -> int:
    if isinstance(value, str) and value.isdigit():
        value = int(value)
    most = 600
    return value if isinstance(value, int) and _BAD <= value < most else 0
