"""Pages of text files: by lines, with true totals, in bounded memory also from a file of many gigabytes."""

import codecs
import os
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from threading import Lock

from agentctl.errors import ToolError
from agentctl.executor.file_types import Page, PageRequest, ResolvedPath
from agentctl.executor.paths import explain, open_file
from agentctl.executor.text import Encoding, cut_end, show_text, sniff

BLOCK = 1 << 20
_SAMPLE = 1 << 16
_REMEMBERED_FILES = 16
# Below this a scan costs less than the doubt whether two writes within one clock tick look the same.
_WORTH_REMEMBERING = 8 << 20


@dataclass(frozen=True, slots=True)
class _Index:
    """Where lines begin, to within a block, of one content of one file."""

    encoding: Encoding
    total_bytes: int
    line_ends_before: tuple[int, ...]
    """Line ends before each block, and at last those of the whole file."""
    ends_open: bool
    """The last line has no line end."""

    @property
    def total_lines(self) -> int:
        return self.line_ends_before[-1] + self.ends_open


@dataclass(slots=True)
class _Line:
    number: int
    kept: bytearray
    length: int = 0
    """Bytes of the line, kept or not, without its line feed."""
    closed: bool = False


class PageReader:
    """Reads pages of files; remembers where lines begin in those last read. Thread-safe; blocks."""

    def __init__(self) -> None:
        self._indexes: OrderedDict[tuple[int, int, int, int, int], _Index] = OrderedDict()
        self._lock = Lock()

    def read_page(self, path: ResolvedPath, request: PageRequest, checkpoint: Callable[[], None]) -> Page:
        """Return the lines asked for; `checkpoint` is called between blocks and may raise to stop.

        Raises:
            ToolError: as `Files.read_page`.
        """
        require_readable(path)
        try:
            held = open_file(path.path, root=path.root)
        except OSError as error:
            raise explain(error, path) from error
        try:
            index = self._index(held, path, checkpoint)
            return _page(held, index, request, path)
        except OSError as error:
            raise explain(error, path) from error
        finally:
            os.close(held)

    def _index(self, held: int, path: ResolvedPath, checkpoint: Callable[[], None]) -> _Index:
        now = os.fstat(held)
        key = (now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns)
        with self._lock:
            known = self._indexes.get(key)
            if known is not None:
                self._indexes.move_to_end(key)
                return known
        index = _scan(held, path, checkpoint)
        if index.total_bytes < _WORTH_REMEMBERING:
            return index
        with self._lock:
            self._indexes[key] = index
            if len(self._indexes) > _REMEMBERED_FILES:
                self._indexes.popitem(last=False)
        return index


def require_readable(path: ResolvedPath) -> None:
    """Refuse what containment refuses; the policy has no say in it.

    Raises:
        ToolError: outside the workdir and of every granted read path.
    """
    if not path.readable:
        raise ToolError(
            f"{path.shown!r} is outside the working directory and every granted read path; it was not read. "
            "A blueprint has to declare such a path under [read_paths], and the user to grant it."
        )


def read_whole(path: ResolvedPath, limit_bytes: int) -> bytes:
    """Return a file's bytes. Blocks.

    Raises:
        ToolError: not readable, not a regular file, or larger than the limit.
    """
    require_readable(path)
    try:
        held = open_file(path.path, root=path.root)
        try:
            return read_open(held, path, limit_bytes)
        finally:
            os.close(held)
    except OSError as error:
        raise explain(error, path) from error


def read_open(held: int, path: ResolvedPath, limit_bytes: int) -> bytes:
    """Return all bytes behind a descriptor, from the start. Blocks.

    Raises:
        ToolError: larger than the limit.
    """
    pieces: list[bytes] = []
    size = 0
    while piece := os.pread(held, BLOCK, size):
        size += len(piece)
        if size > limit_bytes:
            raise ToolError(f"{path.shown!r} is larger than {limit_bytes} bytes; use a shell command on it.")
        pieces.append(piece)
    return b"".join(pieces)


def _scan(held: int, path: ResolvedPath, checkpoint: Callable[[], None]) -> _Index:
    encoding = sniff(os.pread(held, _SAMPLE, 0))
    if encoding is None:
        size = os.fstat(held).st_size
        raise ToolError(f"{path.shown!r} is a binary file of {size} bytes; its content is not shown as text.")
    before = [0]
    total = 0
    last = b""
    for block in _blocks(held, encoding, 0):
        checkpoint()
        before.append(before[-1] + block.count(b"\n"))
        total += len(block)
        last = block[-1:]
    size = os.fstat(held).st_size if encoding.wide else total + len(encoding.mark)
    return _Index(encoding, size, tuple(before), last not in (b"", b"\n"))


def _blocks(held: int, encoding: Encoding, start: int) -> Iterator[bytes]:
    """Yield a file from block `start` on: as it is, or as UTF-8 where its characters are wide."""
    position = start * BLOCK + len(encoding.mark)
    if not encoding.wide:
        while block := os.pread(held, BLOCK, position):
            position += len(block)
            yield block
        return
    # Wide text has line feeds only after decoding, so its blocks are not of equal size and are read from the
    # first one; `start` is then counted off.
    decoder = codecs.getincrementaldecoder(encoding.name)("replace")
    number = 0
    while block := os.pread(held, BLOCK, position):
        position += len(block)
        text = decoder.decode(block)
        if number >= start:
            yield text.encode("utf-8", "replace")
        number += 1
    if tail := decoder.decode(b"", final=True):
        yield tail.encode("utf-8", "replace")


def _page(held: int, index: _Index, request: PageRequest, path: ResolvedPath) -> Page:
    total = index.total_lines
    first = request.offset_line if request.offset_line > 0 else max(1, total + request.offset_line + 1)
    if first > max(total, 1):
        raise ToolError(f"{path.shown!r} has {total} lines; there is no line {first}.")
    keep = request.limit_line_chars * 4
    lines: list[str] = []
    cut: list[int] = []
    ends: set[str] = set()
    used = 0
    encoding = index.encoding if not index.encoding.wide else Encoding(name="utf-8")
    for line in _lines(held, index, first, keep):
        if line.closed:
            ends.add("crlf" if line.kept[-1:] == b"\r" and line.length <= keep else "lf")
        text, whole = _line_text(line, encoding, request.limit_line_chars)
        used += len(text.encode("utf-8")) + 1
        if lines and used > request.limit_bytes:
            break
        lines.append(text)
        if not whole:
            cut.append(line.number)
        if len(lines) == max(1, request.limit_lines):
            break
    following = first + len(lines)
    return Page(
        lines=tuple(lines),
        first_line=first,
        total_lines=total,
        total_bytes=index.total_bytes,
        next_line=following if following <= total else None,
        encoding=index.encoding.shown,
        line_ends="mixed" if len(ends) > 1 else next(iter(ends), "none"),
        cut_lines=tuple(cut),
    )


def _line_text(line: _Line, encoding: Encoding, limit_chars: int) -> tuple[str, bool]:
    data = bytes(line.kept)
    whole = line.length == len(data)
    if whole and line.closed and data.endswith(b"\r"):
        data = data[:-1]
    if not whole:
        data = data[: len(data) - cut_end(data)]
    text = _decoded(data, encoding)
    if whole and len(text) <= limit_chars:
        return text, True
    shown = text[:limit_chars]
    left = line.length - len(shown.encode("utf-8", "replace"))
    return f"{shown} [… {max(left, 0)} more bytes in this line]", False


def _decoded(data: bytes, encoding: Encoding) -> str:
    """Decode a line; one that is no UTF-8 in a file whose beginning was is looked at by itself."""
    if encoding.name == "utf-8" and not data.isascii():
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            encoding = sniff(data) or encoding
    return show_text(encoding.decode(data)).replace("\0", "\\x00")


def _lines(held: int, index: _Index, first: int, keep: int) -> Iterator[_Line]:
    """Yield lines from number `first` on, each with at most `keep` of its bytes."""
    ends_before = first - 1
    start = max(bisect_left(index.line_ends_before, ends_before) - 1, 0)
    skip = ends_before - index.line_ends_before[start]
    line = _Line(first, bytearray())
    for block in _blocks(held, index.encoding, start):
        position = 0
        if skip:
            if (held_here := block.count(b"\n")) < skip:
                skip -= held_here
                continue
            position = _after_line_end(block, skip)
            skip = 0
        while (end := block.find(b"\n", position)) >= 0:
            _extend(line, block, (position, end), keep)
            line.closed = True
            yield line
            line = _Line(line.number + 1, bytearray())
            position = end + 1
        _extend(line, block, (position, len(block)), keep)
    if line.length:
        yield line


def _extend(line: _Line, block: bytes, span: tuple[int, int], keep: int) -> None:
    start, end = span
    line.length += end - start
    room = keep - len(line.kept)
    if room > 0:
        line.kept += block[start : min(end, start + room)]


def _after_line_end(block: bytes, count: int) -> int:
    """Return the position after the `count`-th line end, by halving: a block may hold a million of them."""
    low, high = 0, len(block)
    while high - low > 1:
        middle = (low + high) // 2
        here = block.count(b"\n", low, middle)
        if here >= count:
            high = middle
        else:
            count -= here
            low = middle
    return high
