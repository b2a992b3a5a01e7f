"""HTTP/1.1 responses from bytes: the head, and the body in whatever framing. Pure: no sockets.

Source: RFC 9112, https://www.rfc-editor.org/rfc/rfc9112
"""

import re
import zlib
from typing import Literal, Protocol

from agentctl.records import dataclass

_MOST_HEAD_BYTES = 64 * 1024
_MOST_CHUNK_LINE = 1024
_STATUS_LINE = re.compile(rb"HTTP/1\.([01]) ([1-5][0-9]{2})(?: .*)?")
_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)[ \t]*")
_LINE_END = re.compile(rb"\r?\n")
"""A bare LF is let pass, as RFC 9112 §2.2 allows."""
_HEAD_END = re.compile(rb"\r?\n\r?\n")
_GZIP = b"\x1f"
_HEX = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;.*)?")
_WITHOUT_BODY = frozenset({204, 304})


class BadResponse(Exception):
    """The bytes are no HTTP response, or end inside one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseHead:
    """Status and headers. Names are in lower case; of a repeated header the first value stands."""

    status: int
    headers: dict[str, str]
    keeps_alive: bool
    """Whether the service lets the connection be used again, as far as its head says."""


class HeadReader:
    """Collects bytes until a final head is whole. Interim answers (1xx) are passed over."""

    def __init__(self) -> None:
        self._buffer = b""

    @property
    def touched(self) -> bool:
        """Whether any byte has come."""
        return bool(self._buffer)

    def feed(self, data: bytes) -> tuple[ResponseHead, bytes] | None:
        """Return the head and what followed it, once it is whole.

        Raises:
            BadResponse: this is no HTTP/1 response, or its head has no end.
        """
        self._buffer += data
        while True:
            end = _HEAD_END.search(self._buffer)
            if end is None:
                if len(self._buffer) > _MOST_HEAD_BYTES or not b"HTTP/1.".startswith(self._buffer[:7]):
                    raise BadResponse("no HTTP response")
                return None
            head, rest = _parse_head(self._buffer[: end.start()]), self._buffer[end.end() :]
            if head.status >= 200:  # noqa: PLR2004 - what is below is interim
                return head, rest
            self._buffer = rest


class BodyReader(Protocol):
    """Takes a body out of its framing."""

    @property
    def ended(self) -> bool:
        """Whether the whole body was seen."""

    @property
    def reusable(self) -> bool:
        """Whether the connection stands at the beginning of a next response."""

    def feed(self, data: bytes) -> bytes:
        """Return the body's bytes in `data`.

        Raises:
            BadResponse: the framing is broken.
        """

    def eof(self) -> None:
        """Take the end of the connection.

        Raises:
            BadResponse: the body has not ended.
        """


def body_reader(head: ResponseHead) -> BodyReader:
    """Return the reader for the framing that the head names.

    Raises:
        BadResponse: the framing is unknown or contradicts itself.
    """
    coding = head.headers.get("transfer-encoding", "").lower().removeprefix("identity")
    length = head.headers.get("content-length", "")
    framed: BodyReader
    if head.status in _WITHOUT_BODY:
        framed = _Counted(0)
    elif coding == "chunked":
        framed = _Chunked()
    elif coding:
        raise BadResponse(f"unknown transfer encoding {coding!r}")
    elif length:
        if not length.isdigit():
            raise BadResponse(f"content length {length!r}")
        framed = _Counted(int(length))
    else:
        framed = _UntilClose()
    packed = head.headers.get("content-encoding", "identity").lower()
    if packed in {"identity", ""}:
        return framed
    if packed in {"gzip", "x-gzip", "deflate"}:
        return _Unpacked(framed)
    raise BadResponse(f"content encoding {packed!r}, though none was asked for")


class _Counted:
    def __init__(self, size: int) -> None:
        self._left = size
        self.reusable = False
        self.ended = False
        self._settle(b"")

    def feed(self, data: bytes) -> bytes:
        taken, rest = data[: self._left], data[self._left :]
        self._left -= len(taken)
        self._settle(rest)
        return taken

    def eof(self) -> None:
        if not self.ended:
            raise BadResponse("the connection ended inside the body")

    def _settle(self, rest: bytes) -> None:
        if self._left == 0:
            self.ended = True
            # Bytes that nobody asked for: this connection is not used again.
            self.reusable = not rest


class _UntilClose:
    ended: bool = False
    reusable: bool = False

    def feed(self, data: bytes) -> bytes:
        return data

    def eof(self) -> None:
        self.ended = True


class _Chunked:
    def __init__(self) -> None:
        self._buffer = b""
        self._left = 0
        self._state: Literal["size", "data", "data_end", "trailer"] = "size"
        self.ended = False
        self.reusable = False

    def feed(self, data: bytes) -> bytes:
        buffer = self._buffer + data if self._buffer else data
        at, found = 0, []
        while not self.ended:
            if self._state == "data":
                piece = buffer[at : at + self._left]
                found.append(piece)
                at += len(piece)
                self._left -= len(piece)
                if self._left:
                    break
                self._state = "data_end"
            end = buffer.find(b"\r\n", at)
            if end < 0:
                if len(buffer) - at > _MOST_CHUNK_LINE:
                    raise BadResponse("a chunk without its size")
                break
            self._line(buffer[at:end])
            at = end + 2
        self._buffer = buffer[at:]
        if self.ended:
            self.reusable = not self._buffer
        return found[0] if len(found) == 1 else b"".join(found)

    def eof(self) -> None:
        if not self.ended:
            raise BadResponse("the connection ended inside the body")

    def _line(self, line: bytes) -> None:
        if self._state == "data_end":
            if line:
                raise BadResponse("a chunk longer than its size")
            self._state = "size"
        elif self._state == "trailer":
            self.ended = not line
        else:
            size = _HEX.fullmatch(line)
            if size is None:
                raise BadResponse("a chunk without its size")
            self._left = int(size[1], 16)
            self._state = "data" if self._left else "trailer"


class _Unpacked:
    """Undoes a compression that a gateway applied though none was accepted."""

    def __init__(self, framed: BodyReader) -> None:
        self._framed = framed
        self._inflate = zlib.decompressobj(zlib.MAX_WBITS | 32)
        self._start: bytes | None = b""
        """What came before the first unpacked byte; None after it."""

    @property
    def ended(self) -> bool:
        return self._framed.ended

    @property
    def reusable(self) -> bool:
        return self._framed.reusable

    def feed(self, data: bytes) -> bytes:
        packed = self._framed.feed(data)
        try:
            return self._unpacked(packed)
        except zlib.error as error:
            raise BadResponse(f"broken compression: {error}") from error

    def _unpacked(self, packed: bytes) -> bytes:
        """One member after another, as some gateways pack each piece; `deflate` with a header or without."""
        found = []
        while packed:
            if self._inflate.eof:
                if not packed.startswith(_GZIP):
                    break  # padding after the end
                self._inflate = zlib.decompressobj(zlib.MAX_WBITS | 32)
            found.append(self._piece(packed))
            packed = self._inflate.unused_data
        return b"".join(found)

    def _piece(self, packed: bytes) -> bytes:
        if self._start is None:
            return self._inflate.decompress(packed)
        self._start += packed
        try:
            piece = self._inflate.decompress(packed)
        except zlib.error:
            self._inflate = zlib.decompressobj(-zlib.MAX_WBITS)
            piece = self._inflate.decompress(self._start)
        self._start = self._start if not piece else None
        return piece

    def eof(self) -> None:
        self._framed.eof()


def _parse_head(raw: bytes) -> ResponseHead:
    lines = _LINE_END.split(raw)
    status = _STATUS_LINE.fullmatch(lines[0])
    if status is None:
        raise BadResponse("no HTTP response")
    headers: dict[str, str] = {}
    for line in lines[1:]:
        header = _HEADER.fullmatch(line)
        if header is None:
            raise BadResponse("a broken header")
        name, value = header[1].decode("ascii").lower(), header[2].decode("latin-1")
        if name == "content-length" and headers.get(name, value) != value:
            raise BadResponse("two content lengths")
        headers.setdefault(name, value)
    connection = headers.get("connection", "").lower()
    alive = "close" not in connection if status[1] == b"1" else "keep-alive" in connection
    return ResponseHead(status=int(status[2]), headers=headers, keeps_alive=alive)
