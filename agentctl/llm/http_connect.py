"""Connections: TCP, TLS, and the way through a proxy."""

import os
import ssl
from contextlib import suppress
from pathlib import Path

import anyio
from anyio.abc import ByteStream
from anyio.streams.tls import TLSStream

from agentctl.llm.http_body import BadResponse, HeadReader
from agentctl.llm.http_proxy import HttpProxy
from agentctl.records import dataclass

_READ_BYTES = 65_536
_OK = 200

CONNECT_FAILURES = (
    OSError, ssl.SSLError, anyio.EndOfStream, anyio.BrokenResourceError, BadResponse, TimeoutError,
)  # fmt: skip
"""What `connect` raises."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Where a connection leads and how. Equal routes share connections."""

    host: str
    port: int
    tls: bool
    proxy: HttpProxy | None = None
    ca_file: Path | None = None
    timeout_s: float = 15.0


class Connection:
    """A stream that is let go of without waiting."""

    __slots__ = ("_stream",)

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream

    async def send(self, data: bytes) -> None:
        """Send all of `data`."""
        await self._stream.send(data)

    async def receive(self, limit: int) -> bytes:
        """Return what has come, at most `limit` bytes."""
        return await self._stream.receive(limit)

    async def aclose(self) -> None:
        """Close at once, without a farewell to the other side; not itself cancelled."""
        await _close(self._stream)


async def connect(route: Route) -> Connection:
    """Return a new connection. Safe to cancel.

    Raises:
        OSError, ssl.SSLError, EndOfStream, BadResponse: one of CONNECT_FAILURES.
    """
    with anyio.fail_after(route.timeout_s):
        proxy = route.proxy
        if proxy is None:
            stream: ByteStream = await anyio.connect_tcp(route.host, route.port)
        else:
            stream = await anyio.connect_tcp(proxy.host, proxy.port)
        try:
            if proxy is not None and proxy.tls:
                stream = await _over_tls(stream, proxy.host, route.ca_file)
            if proxy is not None and route.tls:
                await _tunnel(stream, route, proxy)
            if route.tls:
                stream = await _over_tls(stream, route.host, route.ca_file)
        except BaseException:
            await _close(stream)
            raise
        return Connection(stream)


async def _close(stream: ByteStream) -> None:
    """`aclose_forcefully` would leave the socket to the next turn of a loop that may have ended by then."""
    with anyio.CancelScope(shield=True), suppress(OSError, anyio.BrokenResourceError):
        await stream.aclose()


def reason_of(error: Exception) -> str:
    """Return the innermost cause of a failure in words, without addresses of ours. Total."""
    inner: BaseException = error
    while inner.__cause__ is not None:
        inner = inner.__cause__
    while isinstance(inner, BaseExceptionGroup):
        inner = inner.exceptions[-1]
    if isinstance(inner, ssl.SSLCertVerificationError):
        return f"its certificate is not valid: {inner.verify_message}"
    if isinstance(inner, TimeoutError):
        return "it takes too long"
    if isinstance(inner, anyio.EndOfStream):
        return "closed by the other side"
    if isinstance(inner, OSError) and inner.errno is not None and inner.errno > 0:
        return os.strerror(inner.errno)
    return str(inner) or type(inner).__name__


_contexts: dict[Path | None, ssl.SSLContext] = {}


def _context(ca_file: Path | None) -> ssl.SSLContext:
    """One a set of authorities: loading the system's takes a hundredth of a second."""
    if ca_file not in _contexts:
        context = ssl.create_default_context()
        if not context.cert_store_stats()["x509_ca"] and not ssl.get_default_verify_paths().capath:
            # A Python without the system's authorities, as on macOS.
            from certifi import where  # noqa: PLC0415 - needed there alone

            context.load_verify_locations(where())
        if ca_file is not None:
            context.load_verify_locations(ca_file)
        context.set_alpn_protocols(["http/1.1"])
        _contexts[ca_file] = context
    return _contexts[ca_file]


async def _over_tls(stream: ByteStream, host: str, ca_file: Path | None) -> ByteStream:
    return await TLSStream.wrap(
        stream, hostname=host, ssl_context=_context(ca_file), standard_compatible=False
    )


async def _tunnel(stream: ByteStream, route: Route, proxy: HttpProxy) -> None:
    target = f"[{route.host}]:{route.port}" if ":" in route.host else f"{route.host}:{route.port}"
    lines = [f"CONNECT {target} HTTP/1.1", f"host: {target}"]
    if proxy.authorization:
        lines.append(f"proxy-authorization: {proxy.authorization}")
    await stream.send("\r\n".join(lines).encode("ascii") + b"\r\n\r\n")
    reader = HeadReader()
    while True:
        found = reader.feed(await stream.receive(_READ_BYTES))
        if found is not None:
            head, _ = found
            if head.status != _OK:
                raise BadResponse(f"the proxy answers {head.status}")
            return
