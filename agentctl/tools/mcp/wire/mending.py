"""Lists of tools as servers really send them, made such that one bad entry does not hide all the others."""

from contextlib import AbstractAsyncContextManager
from contextvars import Context
from types import TracebackType
from typing import Self

import anyio
from mcp.client import Transport
from mcp.client._transport import ReadStream, WriteStream
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCResponse

from agentctl.protocol.values import JsonObject, JsonValue

Reading = ReadStream[SessionMessage | Exception]
Streams = tuple[Reading, WriteStream[SessionMessage]]


def mended(tool: JsonValue) -> JsonObject | None:
    """Return a listed tool as the protocol wants it; None for one without a name.

    The schema of its results is left out: the SDK would fail a call that was made because of it. Pure.
    """
    if not isinstance(tool, dict) or not isinstance(tool.get("name"), str):
        return None
    given = tool.get("inputSchema")
    schema: JsonObject = {**given, "type": "object"} if isinstance(given, dict) else {"type": "object"}
    if not isinstance(schema.get("properties", {}), dict):
        del schema["properties"]
    return {key: value for key, value in tool.items() if key != "outputSchema"} | {"inputSchema": schema}


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
