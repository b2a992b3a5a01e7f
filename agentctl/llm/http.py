"""HTTP/1.1 as model services need it: post a body, read what comes as it comes, let go at any moment.

Our own, on anyio's sockets and OpenSSL, since no client had all that is needed here: docs/dependencies.md
tells what was measured. What users need of it is shown against loopback servers in `tests/llm/test_http.py`:
proxies, an own certificate authority, a limit on silence, cancellation that closes the socket at any moment.
"""

import math
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import field
from pathlib import Path
from urllib.parse import SplitResult, urljoin, urlsplit

import anyio

from agentctl.llm.addresses import fault_of, host_name, target_of
from agentctl.llm.base import ModelCallFailed
from agentctl.llm.failures import connect_failure, plain_failure, refused_redirect
from agentctl.llm.http_body import BadResponse, BodyReader, HeadReader, ResponseHead, body_reader
from agentctl.llm.http_connect import CONNECT_FAILURES, Connection, Route, connect, reason_of
from agentctl.llm.http_proxy import BadProxy, is_loopback, proxy_for
from agentctl.records import dataclass

__all__ = ["Http", "HttpCall", "HttpOptions", "HttpResponse", "is_loopback", "origin_of"]

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_KEEPING_METHOD = frozenset({307, 308})
_MOST_REDIRECTS = 3
_READ_BYTES = 65_536
_IDLE_S = 30.0
_MOST_PLACES = 256
_BROKEN = (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError, OSError, ssl.SSLError)


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpOptions:
    """How connections are made."""

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
    secret_headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Headers that carry a key: never sent to another origin."""
    body: bytes = b""
    follow: bool = True
    """Follow redirects; else a redirect is the response."""


class HttpResponse:
    """A response whose body is still coming."""

    def __init__(self, head: ResponseHead, reading: "_Reading") -> None:
        self._head = head
        self._reading = reading

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self._head.status

    def header(self, name: str) -> str:
        """Return a header's first value, or empty."""
        return self._head.headers.get(name.lower(), "")

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the body as it comes.

        Raises:
            ModelCallFailed: the connection died (`transport`). Silence ends the whole `send` block.
        """
        reading = self._reading
        while not reading.body.ended:
            piece = await reading.next_piece()
            if piece:
                yield piece

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
    """Shared connections of a process. Connections are made at need and kept for a while."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        self._environment = environment or {}
        self._idle: dict[Route, list[tuple[float, Connection]]] = {}
        self._places: dict[tuple[str, HttpOptions], _Place] = {}
        self._closed = False

    @asynccontextmanager
    async def send(self, call: HttpCall, options: HttpOptions) -> AsyncIterator[HttpResponse]:
        """Send a request and give its response; leaving closes the connection if the body was not read.

        A redirect is followed inside the origin alone, or anywhere if the call carries no key. Safe to
        cancel: closes the connection.

        Raises:
            ModelCallFailed: no connection (code `connect`), silence, or a redirect that would leak the key.
        """
        url = call.url
        for _ in range(_MOST_REDIRECTS + 1):
            async with self._answered(call, url, options) as response:
                if response.status not in _REDIRECTS or not call.follow:
                    yield response
                    return
                url = _redirect(call, url, response)
        raise refused_redirect(f"{origin_of(call.url)} redirects more than {_MOST_REDIRECTS} times")

    async def aclose(self) -> None:
        """Close all connections. Idempotent."""
        self._closed = True
        idle, self._idle = self._idle, {}
        for _, connection in (pair for pairs in idle.values() for pair in pairs):
            await connection.aclose()

    @asynccontextmanager
    async def _answered(self, call: HttpCall, url: str, options: HttpOptions) -> AsyncIterator[HttpResponse]:
        """The deadline moves on with every byte; when it passes, the block is left: the call has stalled."""
        place = self._place(url, options)
        request = _request(call, place)
        with anyio.CancelScope() as scope:
            silence = _Silence(scope, options.stall_timeout_s)
            reading, head = await self._begin(request, place, silence)
            try:
                yield HttpResponse(head, reading)
            except BaseException:
                await reading.connection.aclose()
                raise
            await self._let_go(place.route, reading, head)
        if scope.cancelled_caught:
            raise plain_failure("stalled", f"{place.origin} sent nothing for {options.stall_timeout_s:g} s")

    async def _begin(
        self, request: bytes, place: "_Place", silence: "_Silence"
    ) -> "tuple[_Reading, ResponseHead]":
        """Send the request and read the head, once more on a new connection if a kept one turns out dead."""
        while True:
            kept = await self._kept(place.route)
            connection = kept or await _connected(place)
            silence.heard()
            head_reader = HeadReader()
            try:
                return await _exchange(connection, request, head_reader, silence, place.origin)
            except _BROKEN as error:
                await connection.aclose()
                if kept is None or head_reader.touched:
                    raise _died(place.origin, reason_of(error)) from None
            except BadResponse as error:
                await connection.aclose()
                raise _died(place.origin, str(error)) from None
            except BaseException:
                await connection.aclose()
                raise

    async def _let_go(self, route: Route, reading: "_Reading", head: ResponseHead) -> None:
        """Keep a connection that can be used again; close it, and those whose time is over."""
        body = reading.body
        if not (body.ended and body.reusable and head.keeps_alive) or self._closed:
            await reading.connection.aclose()
            return
        now = anyio.current_time()
        idle = self._idle.setdefault(route, [])
        idle.append((now, reading.connection))
        while now - idle[0][0] > _IDLE_S:
            await idle.pop(0)[1].aclose()

    async def _kept(self, route: Route) -> Connection | None:
        kept = self._idle.get(route)
        while kept:
            since, connection = kept.pop()
            if anyio.current_time() - since < _IDLE_S:
                return connection
            await connection.aclose()
        return None

    def _place(self, url: str, options: HttpOptions) -> "_Place":
        key = (url, options)
        if key not in self._places:
            if len(self._places) >= _MOST_PLACES:
                self._places.clear()
            self._places[key] = _place_of(url, options, self._environment)
        return self._places[key]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """A URL taken apart, and the way there."""

    origin: str
    route: Route
    host: str
    """The `host` header."""
    target: str
    """What the request line asks for."""


def _place_of(url: str, options: HttpOptions, environment: Mapping[str, str]) -> _Place:
    origin = origin_of(url)
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise connect_failure(f"{origin} is no http or https address")
    try:
        proxy = proxy_for(url, option=options.proxy, environment=environment)
    except BadProxy as error:
        raise connect_failure(f"no connection to {origin}: {error}") from None
    try:
        name = host_name(parts.hostname)
    except ValueError as error:
        raise connect_failure(f"no connection to {origin}: {error}") from None
    host = f"[{name}]" if ":" in name else name
    host = host if parts.port is None else f"{host}:{parts.port}"
    target = target_of(parts.path, parts.query)
    tls = parts.scheme == "https"
    return _Place(
        origin=origin,
        route=Route(
            host=name,
            port=_port(parts),
            tls=tls,
            proxy=proxy,
            ca_file=options.ca_file,
            timeout_s=options.connect_timeout_s,
        ),
        host=host,
        # A proxy of a plain address is asked for the whole of it.
        target=target if proxy is None or tls else f"http://{host}{target}",
    )


class _Silence:
    """Moves the deadline of a scope."""

    __slots__ = ("_limit_s", "_scope")

    def __init__(self, scope: anyio.CancelScope, limit_s: float) -> None:
        self._scope = scope
        self._limit_s = limit_s

    def heard(self) -> None:
        self._scope.deadline = anyio.current_time() + self._limit_s

    def off(self) -> None:
        self._scope.deadline = math.inf


class _Reading:
    """A body on its connection."""

    __slots__ = ("_first", "_origin", "_silence", "body", "connection")

    def __init__(
        self, connection: Connection, body: BodyReader, first: bytes, silence: _Silence, origin: str
    ) -> None:
        self.connection = connection
        self.body = body
        self._first = first
        self._silence = silence
        self._origin = origin

    async def next_piece(self) -> bytes:
        first, self._first = self._first, b""
        try:
            data = first or await self.connection.receive(_READ_BYTES)
            self._silence.heard()
            return self.body.feed(data)
        except anyio.EndOfStream:
            try:
                self.body.eof()
            except BadResponse as error:
                raise _died(self._origin, str(error)) from None
            return b""
        except BadResponse as error:
            raise _died(self._origin, str(error)) from None
        except _BROKEN as error:
            raise _died(self._origin, reason_of(error)) from None


async def _connected(place: _Place) -> Connection:
    try:
        return await connect(place.route)
    except CONNECT_FAILURES as error:
        raise connect_failure(f"no connection to {place.origin}: {reason_of(error)}") from None


async def _exchange(
    connection: Connection, request: bytes, head_reader: HeadReader, silence: _Silence, origin: str
) -> tuple[_Reading, ResponseHead]:
    broken: Exception | None = None
    try:
        await connection.send(request)
    except _BROKEN as error:
        # A service may refuse a body before it has read all of it: its answer still counts.
        broken = error
    while True:
        try:
            data = await connection.receive(_READ_BYTES)
        except _BROKEN as error:
            raise broken or error from None
        silence.heard()
        found = head_reader.feed(data)
        if found is not None:
            head, rest = found
            return _Reading(connection, body_reader(head), rest, silence, origin), head


def _request(call: HttpCall, place: _Place) -> bytes:
    headers = {"host": place.host, "user-agent": "agentctl", "accept-encoding": "identity"}
    headers.update({name.lower(): value for name, value in call.headers.items()})
    headers.update({name.lower(): value for name, value in call.secret_headers.items()})
    headers["content-length"] = str(len(call.body))
    proxy = place.route.proxy
    if proxy is not None and proxy.authorization and not place.route.tls:
        headers["proxy-authorization"] = proxy.authorization
    lines = [f"{call.method} {place.target} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    head = "\r\n".join(lines)
    if head.count("\n") != len(headers) or head.count("\r") != len(headers):
        raise plain_failure("invalid", "a header or address for the model service holds a line end")
    return head.encode("utf-8") + b"\r\n\r\n" + call.body


def origin_of(url: str) -> str:
    """Return scheme, host and port of a URL: what a key belongs to. Pure."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname or ''}:{_port(parts)}"


def _port(parts: SplitResult) -> int:
    return parts.port or (443 if parts.scheme == "https" else 80)


def _redirect(call: HttpCall, url: str, response: HttpResponse) -> str:
    target = urljoin(url, response.header("location"))
    if fault := fault_of(target):
        raise refused_redirect(f"{origin_of(url)} redirects to where nobody can follow: {fault}")
    if response.status not in _KEEPING_METHOD:
        raise refused_redirect(
            f"{origin_of(url)} answers {response.status}, a redirect that drops the request"
        )
    if call.secret_headers and origin_of(target) != origin_of(call.url):
        raise refused_redirect(
            f"{origin_of(url)} redirects to {origin_of(target)}; the key is not sent to another origin"
        )
    return target


def _died(origin: str, reason: str) -> ModelCallFailed:
    return plain_failure("transport", f"the connection to {origin} died: {reason}")
