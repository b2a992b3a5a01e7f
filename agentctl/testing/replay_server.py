"""A model service on loopback that answers what a test tells it to, in whatever pieces the test asks for.

For tests of adapters and of whole runs: recorded answers, error pages, streams that stall or are cut.
"""

import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import field
from typing import TypeAlias

import anyio
from anyio.abc import SocketAttribute, SocketStream
from anyio.from_thread import start_blocking_portal

from agentctl.protocol.values import JsonValue
from agentctl.records import dataclass

_HEADER_END = b"\r\n\r\n"
_MOST_HEADERS = 65536
_REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 429: "Too Many Requests"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A request that came."""

    method: str
    path: str
    """With its query."""
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes

    def json(self) -> JsonValue:
        """Return the body as JSON."""
        value: JsonValue = json.loads(self.body)
        return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What to answer, and how it goes over the wire."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: {"content-type": "application/json"})
    body: bytes = b""
    pieces: Sequence[bytes] | None = None
    """The body in pieces, each written and flushed for itself; None writes `body` at once."""
    pause_s: float = 0.0
    """Seconds between pieces."""
    cut: bool = False
    """Drop the connection after the last piece, without the end that HTTP wants."""
    stall: bool = False
    """Keep the connection open after the last piece and say nothing more."""
    late_s: float = 0.0
    """Seconds before the headers."""
    silent: bool = False
    """Do not even send headers; keep the connection open."""


Answers: TypeAlias = Callable[[Received], Answer] | Sequence[Answer]
"""A function of the request, or answers in order; after the last one the server says 500."""


class ReplayServer:
    """The running server: where it is, what it was asked, and whether clients hung up."""

    def __init__(self, answers: Answers, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.received: list[Received] = []
        self.connections = 0
        """Connections that were made."""
        self._open: set[SocketStream] = set()
        self.under_way = 0
        """Requests that are being answered now."""
        self.hung_up = 0
        """Connections that the client closed while an answer was still under way."""
        self._left = anyio.Event()
        self._answers = answers

    async def wait_hung_up(self) -> None:
        """Return when a client has closed a connection in the middle of an answer."""
        await self._left.wait()

    async def hang_up(self) -> None:
        """Close the connections that are open, as a service does that has waited long enough."""
        for stream in tuple(self._open):
            await stream.aclose()

    async def serve(self, stream: SocketStream) -> None:
        """Answer the requests of one connection."""
        self.connections += 1
        self._open.add(stream)
        try:
            await self._serve(stream)
        finally:
            self._open.discard(stream)

    async def _serve(self, stream: SocketStream) -> None:
        async with stream:
            rest = b""
            while True:
                request, rest = await _read_request(stream, rest)
                if request is None:
                    return
                self.received.append(request)
                answer = self._answer(request)
                self.under_way += 1
                try:
                    open_still = await self._send(stream, answer)
                except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                    self._gone()
                    return
                finally:
                    self.under_way -= 1
                if not open_still:
                    return

    def _answer(self, request: Received) -> Answer:
        if callable(self._answers):
            return self._answers(request)
        at = len(self.received) - 1
        if at < len(self._answers):
            return self._answers[at]
        return Answer(status=500, body=b'{"error":{"message":"the test has no further answer"}}')

    async def _send(self, stream: SocketStream, answer: Answer) -> bool:
        if answer.silent:
            await self._until_gone(stream)
            return False
        if answer.late_s:
            await anyio.sleep(answer.late_s)
        reason = _REASONS.get(answer.status, "Status")
        lines = [f"HTTP/1.1 {answer.status} {reason}", "transfer-encoding: chunked"]
        lines += [f"{name}: {value}" for name, value in answer.headers.items()]
        await stream.send("\r\n".join(lines).encode() + _HEADER_END)
        for piece in [answer.body] if answer.pieces is None else answer.pieces:
            if piece:
                await stream.send(b"%x\r\n%b\r\n" % (len(piece), piece))
            if answer.pause_s:
                await anyio.sleep(answer.pause_s)
        if answer.cut:
            return False
        if answer.stall:
            await self._until_gone(stream)
            return False
        await stream.send(b"0\r\n\r\n")
        return True

    async def _until_gone(self, stream: SocketStream) -> None:
        try:
            while True:
                await stream.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            self._gone()

    def _gone(self) -> None:
        self.hung_up += 1
        self._left.set()


@asynccontextmanager
async def replay_server(answers: Answers) -> AsyncIterator[ReplayServer]:
    """Run a server inside this event loop until the block is left."""
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0)
    failure: Exception | None = None
    async with listener, anyio.create_task_group() as group:
        server = ReplayServer(answers, listener.extra(SocketAttribute.local_port))  # noqa: S610 - anyio, no query
        group.start_soon(listener.serve, server.serve)
        try:
            yield server
        except Exception as error:  # noqa: BLE001 - raised again below, outside the group that would wrap it
            failure = error
        finally:
            group.cancel_scope.cancel()
    if failure is not None:
        raise failure


@contextmanager
def replay_server_in_thread(answers: Answers) -> Iterator[ReplayServer]:
    """Run a server in a thread of its own, for tests that start `agentctl` as a process."""
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(replay_server(answers)) as server,
    ):
        yield server


async def _read_request(stream: SocketStream, rest: bytes) -> tuple[Received | None, bytes]:
    try:
        while _HEADER_END not in rest and len(rest) < _MOST_HEADERS:
            rest += await stream.receive()
        head, _, rest = rest.partition(_HEADER_END)
        lines = head.decode("latin-1").split("\r\n")
        headers = {
            name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])
        }
        length = int(headers.get("content-length", "0"))
        while len(rest) < length:
            rest += await stream.receive()
    except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
        return None, b""
    method, path, *_ = lines[0].split(" ")
    return Received(method=method, path=path, headers=headers, body=rest[:length]), rest[length:]
