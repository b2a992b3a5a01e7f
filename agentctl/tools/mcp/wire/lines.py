"""Lines of a server's output as messages; a broken answer fails its own call at once. Pure."""

import json
import re

from mcp_types import (
    INTERNAL_ERROR,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    jsonrpc_message_adapter,
)

from agentctl.protocol.values import JsonObject, JsonValue
from agentctl.tools.mcp.wire.plain import TooDeep, plain

_ID = re.compile(rb'"id"\s*:\s*(\d{1,18}|"[^"\\]{1,200}")')


def messages_of(line: bytes) -> list[JSONRPCMessage]:
    """Return the messages of a line: one, or several in an array, as the protocol of March 2025 had it.

    What is no valid message but plainly the answer to a request becomes one where it can be read (text with
    half a character in it, an error without words), and an error in its place where it cannot: the call must
    not wait for its time to be up.

    Raises:
        ValueError: there is no message in it.
    """
    if not line.startswith((b"{", b"[")):
        raise ValueError("no object")
    if line.startswith(b"{"):
        try:
            return [jsonrpc_message_adapter.validate_json(line, by_name=False)]
        except ValueError:
            pass
    try:
        value = json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return [_unreadable(line)]
    if isinstance(value, list):
        return [_message(one) for one in value]
    return [_message(value)]


def _unreadable(line: bytes) -> JSONRPCMessage:
    found = _ID.search(line) if b'"jsonrpc"' in line and b'"method"' not in line[:1000] else None
    if found is None:
        raise ValueError("no message")
    request: int | str = json.loads(found[1])
    return _error(request, PARSE_ERROR, "its answer is no JSON, or nested without end")


def _message(value: JsonValue) -> JSONRPCMessage:
    if not isinstance(value, dict):
        raise ValueError("no object")  # noqa: TRY004 - what callers expect of a stray line
    try:
        tidy = plain(value)
    except TooDeep as deep:
        return _error(_request_of(value), INTERNAL_ERROR, f"its answer is {deep}")
    assert isinstance(tidy, dict), "an object stays one"  # noqa: S101
    if "method" in value:
        return jsonrpc_message_adapter.validate_python({**tidy, "jsonrpc": "2.0"}, by_name=False)
    request = _request_of(value)
    error, result = tidy.get("error"), tidy.get("result")
    if error is not None:
        return _told_error(request, error)
    if not isinstance(result, dict):
        return _error(request, INTERNAL_ERROR, "its answer holds no result")
    answer: JsonObject = {"jsonrpc": "2.0", "id": request, "result": result}
    return jsonrpc_message_adapter.validate_python(answer, by_name=False)


def _request_of(value: JsonObject) -> int | str:
    request = value.get("id")
    if isinstance(request, bool) or not isinstance(request, int | str):
        raise ValueError("no message: it answers nothing")  # noqa: TRY004 - what callers expect of a stray line
    return request


def _told_error(request: int | str, error: JsonValue) -> JSONRPCMessage:
    """Return a server's error with whatever it has of a code and of words."""
    if not isinstance(error, dict):
        return _error(request, INTERNAL_ERROR, error if isinstance(error, str) else json.dumps(error))
    code, words = error.get("code"), error.get("message")
    whole = isinstance(code, int) and not isinstance(code, bool) and isinstance(words, str)
    text = words if whole and isinstance(words, str) else json.dumps(error, ensure_ascii=False)
    return _error(request, code if isinstance(code, int) else INTERNAL_ERROR, text)


def _error(request: int | str, code: int, message: str) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=request, error=ErrorData(code=code, message=message))
