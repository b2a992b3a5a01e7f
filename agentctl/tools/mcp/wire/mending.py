"""What servers really send, made such that one bad entry or part does not hide all the others."""

from contextlib import AbstractAsyncContextManager
from contextvars import Context
from types import TracebackType
from typing import Self

import anyio
from mcp.client import Transport
from mcp.client._transport import ReadStream, WriteStream
from mcp.shared.message import SessionMessage
from mcp_types import ContentBlock, JSONRPCResponse
from pydantic import TypeAdapter, ValidationError

from agentctl.protocol.values import JsonObject, JsonValue

Reading = ReadStream[SessionMessage | Exception]
Streams = tuple[Reading, WriteStream[SessionMessage]]
RESULTS = "agentctl/outputSchema"
"""Where a listed tool keeps the schema of its results."""
STRUCTURED = "agentctl/structuredContent"
"""Where an answer keeps structured content that is no object."""
_PART: TypeAdapter[ContentBlock] = TypeAdapter(ContentBlock)


def mended(tool: JsonValue) -> JsonObject | None:
    """Return a listed tool as the protocol wants it; None for one without a name.

    The schema of its results is put aside: the SDK would fail a call that was made because of it. Pure.
    """
    if not isinstance(tool, dict) or not isinstance(tool.get("name"), str):
        return None
    given = tool.get("inputSchema")
    schema: JsonObject = {**given, "type": "object"} if isinstance(given, dict) else {"type": "object"}
    if not isinstance(schema.get("properties", {}), dict):
        del schema["properties"]
    kept: JsonObject = {key: value for key, value in tool.items() if key != "outputSchema"}
    return kept | {"inputSchema": schema} | _aside(tool, RESULTS, tool.get("outputSchema"))


def mend_answer(result: JsonObject) -> None:
    """Put a tool's answer into the form that the protocol wants, part by part.

    What cannot be read is named in its place; structured content that is no object, which only the newer
    protocol has, is put aside so that it reaches us under the older one, too.
    """
    given = result.get("content")
    if given is None or isinstance(given, str | dict | list):
        parts = given if isinstance(given, list) else [given] if given else []
        result["content"] = [_part(one) for one in parts]
    structured = result.get("structuredContent")
    if structured is not None and not isinstance(structured, dict):
        del result["structuredContent"]
        result.update(_aside(result, STRUCTURED, structured))
    if not isinstance(result.get("isError", False), bool):
        result["isError"] = bool(result["isError"])


def _may_be_an_answer(result: JsonObject) -> bool:
    """Whether a result may be that of a tool; one that says nothing else may be, and takes no harm."""
    return "content" in result or "structuredContent" in result or result.keys() <= {"_meta", "isError"}


def _aside(holder: JsonObject, key: str, value: JsonValue) -> JsonObject:
    meta = holder.get("_meta")
    return {"_meta": {**(meta if isinstance(meta, dict) else {}), key: value}} if value is not None else {}


def _part(part: JsonValue) -> JsonValue:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    try:
        _PART.validate_python(part, by_name=False)
    except ValidationError:
        kind = part.get("type") if isinstance(part, dict) else None
        text = (
            f"[a part of the answer is left out: {kind or 'something'!r} as it came is not of the protocol]"
        )
        return {"type": "text", "text": "" if kind == "text" else text}
    return part


class Mending(AbstractAsyncContextManager[Streams]):
    """An SDK `Transport` around another."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner

    async def __aenter__(self) -> Streams:
        reading, writing = await self._inner.__aenter__()
        return MendedReading(reading), writing

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        failure: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        return await self._inner.__aexit__(kind, failure, trace)


class MendedReading:
    """An SDK `ReadStream` around another; hands on what the other knows of a message's sender."""

    def __init__(self, inner: Reading) -> None:
        self._inner = inner

    @property
    def last_context(self) -> Context | None:
        """As the inner stream has it."""
        context = getattr(self._inner, "last_context", None)
        return context if isinstance(context, Context) else None

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message, mended."""
        item = await self._inner.receive()
        if isinstance(item, SessionMessage) and isinstance(item.message, JSONRPCResponse):
            tools = item.message.result.get("tools")
            if isinstance(tools, list):
                item.message.result["tools"] = [one for tool in tools if (one := mended(tool)) is not None]
            elif _may_be_an_answer(item.message.result):
                mend_answer(item.message.result)
        return item

    async def aclose(self) -> None:
        """Close the inner stream."""
        await self._inner.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        failure: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        await self.aclose()
        return None
