"""Bytes to events: server-sent events, lines of JSON, or one JSON document. Chunks may be split anywhere."""

import json
from dataclasses import dataclass
from typing import Protocol

from agentctl.protocol.values import JsonValue

_KEPT = 2048
_BOM = b"\xef\xbb\xbf"
_JSON = json.JSONDecoder(strict=False)


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event: its name, empty where there is none, and its data as it stood."""

    name: str
    data: bytes


class SseDecoder:
    """Server-sent events from byte chunks. CR, LF and CRLF end lines, and nothing else does.

    Comments, `id` and `retry` are dropped; data lines of one event are joined with LF. The field `error`,
    which is not in the standard but which llama.cpp has sent, is taken as data of an event named `error`.

    Source: https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
    """

    __slots__ = ("_data", "_name", "_pieces", "_skip_lf", "_started")

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._skip_lf = False
        self._started = False
        self._name = ""
        self._data: list[bytes] = []

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """Return the events that `chunk` completes, in order."""
        if self._skip_lf and chunk:
            self._skip_lf = False
            if chunk[0] == 10:  # noqa: PLR2004 - LF, the second half of a CRLF that was split
                chunk = chunk[1:]
        if b"\r" in chunk:
            self._skip_lf = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if b"\n" not in chunk:
            if chunk:
                self._pieces.append(chunk)
            return []
        if self._pieces:
            self._pieces.append(chunk)
            chunk = b"".join(self._pieces)
        lines = chunk.split(b"\n")
        rest = lines.pop()
        self._pieces = [rest] if rest else []
        if not self._started:
            self._started = True
            lines[0] = lines[0].removeprefix(_BOM)
        return self._events(lines)

    def end(self) -> list[ServerEvent]:
        """Return the event that the end of the stream leaves without its blank line, if there is one."""
        lines = [b"".join(self._pieces), b""] if self._pieces else [b""]
        self._pieces = []
        return self._events(lines)

    def _events(self, lines: list[bytes]) -> list[ServerEvent]:
        events = []
        for line in lines:
            if not line:
                if self._data:
                    data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
                    events.append(ServerEvent(self._name, data))
                    self._data = []
                self._name = ""
            elif line.startswith(b"data:"):
                self._data.append(line[6:] if line[5:6] == b" " else line[5:])
            elif line.startswith(b"event:"):
                self._name = line[6:].strip().decode("utf-8", errors="replace")
            elif line == b"data":
                self._data.append(b"")
            elif line.startswith(b"error:"):
                self._name = "error"
                self._data.append(line[6:].strip())
        return events


class LineDecoder:
    """Lines of JSON, as Ollama streams them."""

    __slots__ = ("_pieces",)

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """Return the lines that `chunk` completes, in order."""
        if b"\n" not in chunk:
            self._pieces.append(chunk)
            return []
        lines = b"".join([*self._pieces, chunk]).split(b"\n")
        self._pieces = [lines.pop()]
        return [ServerEvent("", line) for line in lines if line.strip()]

    def end(self) -> list[ServerEvent]:
        """Return what stands after the last line end."""
        line = b"".join(self._pieces)
        self._pieces = []
        return [ServerEvent("", line)] if line.strip() else []


class WholeDecoder:
    """One JSON document; its only event comes at the end."""

    __slots__ = ("_pieces",)

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """Keep `chunk`; return nothing."""
        self._pieces.append(chunk)
        return []

    def end(self) -> list[ServerEvent]:
        """Return the document."""
        return [ServerEvent("whole", b"".join(self._pieces))]


class Decoder(Protocol):
    """Turns byte chunks into events."""

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """Return the events that `chunk` completes, in order."""

    def end(self) -> list[ServerEvent]:
        """Return what the end of the bytes completes."""


class BodyDecoder:
    """Finds out what a body is by its first byte: services mislabel streams, or do not stream."""

    __slots__ = ("_decoder", "_head", "_lines", "head")

    def __init__(self, *, lines: bool) -> None:
        self._lines = lines
        self._decoder: Decoder | None = None
        self._head = b""
        self.head = b""
        """The first bytes, for a message about a body that is none of these."""

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """Return the events that `chunk` completes; `whole` names a document."""
        if len(self.head) < _KEPT:
            self.head += chunk[: _KEPT - len(self.head)]
        if self._decoder is not None:
            return self._decoder.feed(chunk)
        self._head += chunk
        text = self._head.removeprefix(_BOM).lstrip()
        if not text or (len(self._head) < len(_BOM) and _BOM.startswith(self._head)):
            return []
        if text[:1] in {b"{", b"["}:
            self._decoder = LineDecoder() if self._lines else WholeDecoder()
        else:
            self._decoder = SseDecoder()
        return self._decoder.feed(self._head)

    def end(self) -> list[ServerEvent]:
        """Return what the end of the body completes."""
        return [] if self._decoder is None else self._decoder.end()


def parse_json(data: bytes) -> JsonValue:
    """Return the JSON value in `data`. Bytes that are no UTF-8, and bare control characters, are passed over.

    Raises:
        ValueError: it is not JSON.
    """
    text = data.removeprefix(_BOM).decode("utf-8", errors="replace")
    value: JsonValue = _JSON.decode(text)
    return value
