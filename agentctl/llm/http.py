"""The one seam to the HTTP client: post a body, read what comes, chunk by chunk.

pyreqwest (Rust's reqwest) does the work, on asyncio alone. It was taken for its cost (docs/dependencies.md)
and because it does what users need; `tests/llm/test_http.py` shows each against a loopback server: proxies,
an own certificate authority, a limit on silence between chunks, and cancellation that closes the socket once
the answer has begun. A call that is cancelled before that is abandoned: pyreqwest 0.15 lets go of it without
aborting it, and its connection stays until the limit on silence.
"""

import math
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import SplitResult, urljoin, urlsplit

import anyio
from pyreqwest.client import Client, ClientBuilder
from pyreqwest.exceptions import ConnectError, DetailedPyreqwestError, PyreqwestError, RequestTimeoutError
from pyreqwest.proxy import ProxyBuilder
from pyreqwest.request import StreamRequest
from pyreqwest.response import Response

from agentctl.llm.base import ModelCallFailed
from agentctl.llm.failures import connect_failure, plain_failure, refused_redirect

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_KEEPING_METHOD = frozenset({307, 308})
_MOST_REDIRECTS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpOptions:
    """How connections are made. Equal options share one connection pool."""

    stall_timeout_s: float = 300.0
    """Seconds without a byte, headers included, until a call has stalled; comments count as bytes."""
    connect_timeout_s: float = 15.0
    proxy: str = ""
    """Empty: the environment's proxy variables. Loopback addresses never go through a proxy."""
    ca_file: Path | None = None
    """PEM file of certificate authorities trusted besides the system's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpCall:
    """One request."""

    url: str
    method: str = "POST"
    headers: Mapping[str, str] = field(default_factory=dict)
    secret_headers: Mapping[str, str] = field(default_factory=dict)
    """Headers that carry a key: masked in every representation, never sent to another origin."""
    body: bytes = b""


class HttpResponse:
    """A response whose body is still coming."""

    def __init__(self, response: Response, url: str) -> None:
        self._response = response
        self.url = url

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self._response.status

    def header(self, name: str) -> str:
        """Return a header's first value, or empty."""
        return self._response.get_header(name) or ""

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the body as it comes.

        Raises:
            ModelCallFailed: the connection died (`transport`) or was silent for too long (`stalled`).
        """
        read = self._response.body_reader.read_chunk
        while True:
            try:
                chunk = await read()
            except PyreqwestError as error:
                raise _failure(error, self.url) from None
            except anyio.get_cancelled_exc_class():
                await _own_cancellation()
                raise
            if chunk is None:
                return
            yield bytes(chunk)

    async def read(self, limit: int) -> bytes:
        """Return the body, cut after `limit` bytes.

        Raises:
            ModelCallFailed: as `chunks`.
        """
        pieces: list[bytes] = []
        size = 0
        async for chunk in self.chunks():
            pieces.append(chunk)
            size += len(chunk)
            if size >= limit:
                break
        return b"".join(pieces)[:limit]


class Http:
    """Shared connections of a process. Clients are built at first use."""

    def __init__(self) -> None:
        self._clients: dict[tuple[HttpOptions, bool], Client] = {}

    @asynccontextmanager
    async def send(self, call: HttpCall, options: HttpOptions) -> AsyncIterator[HttpResponse]:
        """Send a request and give its response; leaving closes the connection if the body was not read.

        A redirect is followed inside the origin alone, or anywhere if the call carries no key.

        Raises:
            ModelCallFailed: no connection (code `connect`), silence, or a redirect that would leak the key.
        """
        url = call.url
        for _ in range(_MOST_REDIRECTS + 1):
            async with _opened(self._request(call, url, options), url) as response:
                if response.status not in _REDIRECTS:
                    yield HttpResponse(response, url)
                    return
                url = _redirect(call, url, response)
        raise refused_redirect(f"{origin_of(call.url)} redirects more than {_MOST_REDIRECTS} times")

    async def aclose(self) -> None:
        """Close all connections. Idempotent."""
        clients, self._clients = self._clients, {}
        for client in clients.values():
            await client.close()

    def _request(self, call: HttpCall, url: str, options: HttpOptions) -> StreamRequest:
        request = self._client(url, options).request(call.method, url)
        for name, value in call.headers.items():
            request = request.header(name, value)
        for name, value in call.secret_headers.items():
            request = request.header(name, value, is_sensitive=True)
        # Hand over what came: by default the client fills 64 KB before it gives the first piece.
        request = request.streamed_read_buffer_limit(1)
        if call.body:
            request = request.body_bytes(call.body)
        return request.build_streamed()

    def _client(self, url: str, options: HttpOptions) -> Client:
        direct = is_loopback(url)
        key = (options, direct)
        if key not in self._clients:
            builder = (
                ClientBuilder()
                .follow_redirects(enable=False)
                .user_agent("agentctl")
                .read_timeout(timedelta(seconds=options.stall_timeout_s))
                .connect_timeout(timedelta(seconds=options.connect_timeout_s))
            )
            if direct:
                builder = builder.no_proxy()
            elif options.proxy:
                builder = builder.no_proxy().proxy(ProxyBuilder.all(options.proxy))
            if options.ca_file is not None:
                builder = builder.add_root_certificate_pem(options.ca_file.read_bytes())
            self._clients[key] = builder.build()
        return self._clients[key]


@asynccontextmanager
async def _opened(request: StreamRequest, url: str) -> AsyncIterator[Response]:
    try:
        response = await request.__aenter__()
    except PyreqwestError as error:
        raise _failure(error, url) from None
    except anyio.get_cancelled_exc_class():
        await _own_cancellation()
        raise
    try:
        yield response
    finally:
        with anyio.CancelScope(shield=True):
            await request.__aexit__(None, None, None)


async def _own_cancellation() -> None:
    """Raise the cancellation of the scope that was cancelled; return if none was.

    The client raises a cancellation of its own making, which anyio does not know as its scope's and would
    let escape. Waiting inside a cancelled scope raises the right one.
    """
    if anyio.current_effective_deadline() == -math.inf:
        await anyio.sleep_forever()


def origin_of(url: str) -> str:
    """Return scheme, host and port of a URL: what a key belongs to. Pure."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname or ''}:{_port(parts)}"


def is_loopback(url: str) -> bool:
    """Return whether the URL's host is this machine. Pure: names are not looked up."""
    host = urlsplit(url).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _port(parts: SplitResult) -> int:
    return parts.port or (443 if parts.scheme == "https" else 80)


def _redirect(call: HttpCall, url: str, response: Response) -> str:
    target = urljoin(url, response.get_header("location") or "")
    if response.status not in _KEEPING_METHOD:
        raise refused_redirect(
            f"{origin_of(url)} answers {response.status}, a redirect that drops the request"
        )
    if call.secret_headers and origin_of(target) != origin_of(call.url):
        raise refused_redirect(
            f"{origin_of(url)} redirects to {origin_of(target)}; the key is not sent to another origin"
        )
    return target


def _failure(error: PyreqwestError, url: str) -> ModelCallFailed:
    """The library's words hold the whole URL, so only the innermost cause is told."""
    causes = error.details["causes"] if isinstance(error, DetailedPyreqwestError) else None
    told = [cause["message"] for cause in causes or []]
    reason = told[-1] if told else type(error).__name__
    where = origin_of(url)
    if isinstance(error, ConnectError) or any("(Connect)" in one for one in told):
        return connect_failure(f"no connection to {where}: {reason}")
    if isinstance(error, RequestTimeoutError):
        return plain_failure("stalled", f"{where} sent nothing for too long")
    return plain_failure("transport", f"the connection to {where} died: {reason}")
