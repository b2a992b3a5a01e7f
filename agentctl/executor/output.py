"""What a program writes, taken in bounded memory: its beginning and end, and all of it in a file."""

import codecs
import os
import select
from collections.abc import Callable
from pathlib import Path
from time import monotonic

from agentctl.executor.prepare import open_new
from agentctl.executor.process_types import Output
from agentctl.executor.text import cut_end, cut_start, first_lines, last_lines, looks_binary, show

PIECE = 1 << 20
_LIVE_BYTES = 1 << 20
"""Of one command shown while it runs; beyond it, pieces go to the file without being looked at."""
_AT_ONCE = 64 << 20
"""Moved to the file before others get a turn."""
_WORTH_WAITING_MS = 5
_WAITING_S = 0.05
"""Of such waits, before others get a turn."""


class Spill:
    """The file that takes what does not fit in memory, up to a cap."""

    def __init__(self, directory: Path, name: str, cap: Callable[[], int]) -> None:
        self.path = directory / name
        self.size = 0
        self._cap = cap
        self._cap_bytes = 0
        self._held = -1

    def open(self) -> None:
        """Make the file, private, in its directory; replaces nothing. Blocks.

        Raises:
            OSError: it can't be made; output beyond memory is then only counted.
        """
        self._held = open_new(self.path.parent, self.path.name)
        self._cap_bytes = self._cap()

    @property
    def room(self) -> int:
        """Bytes that it still takes; 0 when it could not be made."""
        return max(0, self._cap_bytes - self.size)

    def write(self, data: bytes | memoryview) -> None:
        """Append what there is room for. Blocks."""
        view = memoryview(data)[: self.room]
        try:
            while view:
                count = os.write(self._held, view)
                self.size += count
                view = view[count:]
        except OSError:
            self._cap_bytes = self.size

    def last(self, count: int) -> bytes:
        """Return the last bytes of the file."""
        return os.pread(self._held, count, max(0, self.size - count))

    def close(self) -> None:
        """Close the file; it stays. Idempotent."""
        if self._held >= 0:
            os.close(self._held)
            self._held = -1


class Collector:
    """Takes one stream of a command."""

    def __init__(
        self,
        *,
        head_bytes: int,
        tail_bytes: int,
        end_lines: int = 0,
        spill: Spill,
        on_output: Callable[[str], None] | None,
    ) -> None:
        self._head_bytes = max(0, head_bytes)
        self._tail_bytes = max(0, tail_bytes)
        self._end_lines = end_lines
        self._spill = spill
        self._on_output = on_output
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        self._memory = bytearray()
        """All of it, until that is more than head and tail; then the head only."""
        self._end = bytearray()
        """The last bytes that did not go to the file."""
        self._total = 0
        self._spilling = False

    @property
    def unseen(self) -> bool:
        """Whether pieces may go to the file without being looked at."""
        shown = self._on_output is None or self._total >= _LIVE_BYTES
        return self._spilling and shown and self._spill.room > 0

    @property
    def goes_to_disk(self) -> bool:
        """Whether the next piece may be written to the file."""
        return self._spilling and self._spill.room > 0

    def take(self, pipe: int) -> int | None:
        """Move bytes from a pipe into the file without looking at them. Blocks on the disk only.

        Returns how many; 0 at the end of the pipe; None when it is empty for now. Only while `unseen`.
        """
        # They are copied, not spliced: a splice holds the pipe while it writes to the file, and the command
        # would stand still meanwhile.
        piece = memoryview(bytearray(PIECE))
        more = select.poll()
        more.register(pipe, select.POLLIN)
        moved, until = 0, monotonic() + _WAITING_S
        while moved < _AT_ONCE and self._spill.room:
            try:
                count = os.readv(pipe, [piece])
            except BlockingIOError:
                # A program that writes much writes on at once; to wait here is cheaper than to come back.
                # One that drips must not keep us here: a cancellation waits for this thread.
                if monotonic() < until and more.poll(_WORTH_WAITING_MS):
                    continue
                return moved or None
            if not count:
                return moved
            moved += count
            self._total += count
            self._store(piece[:count])
        return moved or None

    def add(self, data: bytes) -> None:
        """Take a piece that was read. Blocks on the disk where it is long."""
        self._total += len(data)
        if (
            self._on_output is not None
            and self._total <= _LIVE_BYTES
            and (text := self._decoder.decode(data))
        ):
            self._on_output(text.replace("\0", "\\x00"))
        if not self._spilling:
            self._memory += data
            if len(self._memory) > self._head_bytes + self._tail_bytes:
                self._begin_spill()
            return
        self._store(data)

    def _store(self, data: bytes | memoryview) -> None:
        before = self._spill.size
        self._spill.write(data)
        self._keep_end(data[self._spill.size - before :])

    def _begin_spill(self) -> None:
        self._spilling = True
        try:
            self._spill.open()
        except OSError:
            self._keep_end(bytes(self._memory[self._head_bytes :]))
        else:
            self._spill.write(bytes(self._memory))
            self._keep_end(bytes(self._memory[max(self._spill.size, self._head_bytes) :]))
        del self._memory[self._head_bytes :]

    def _keep_end(self, data: bytes | memoryview) -> None:
        self._end += data
        if len(self._end) > 2 * self._tail_bytes + PIECE:
            del self._end[: len(self._end) - self._tail_bytes]

    def finish(self) -> Output:
        """Return what came. The collector is of no use afterwards."""
        try:
            return self._output()
        finally:
            self._spill.close()

    def _output(self) -> Output:
        head, tail = self._ends()
        spilled = self._spill.size > 0
        spill = self._spill.path if spilled else None
        if looks_binary(head[:PIECE]) or looks_binary(tail):
            return Output(
                head="",
                tail="",
                total_bytes=self._total,
                omitted_bytes=self._total,
                binary=True,
                spill=spill,
                spill_bytes=self._spill.size,
            )
        return Output(
            head=show(head),
            tail=show(tail),
            total_bytes=self._total,
            omitted_bytes=self._total - len(head) - len(tail),
            spill=spill,
            spill_bytes=self._spill.size,
        )

    def _ends(self) -> tuple[bytes, bytes]:
        """Return head and tail within the bounds, cut between characters; the whole is then in the file."""
        if not self._spilling:
            whole = bytes(self._memory)
            head, tail = self._within(whole, b"")
            if head != whole:
                self._begin_spill()
            return head, tail
        head = bytes(self._memory)
        tail = bytes(self._end[max(0, len(self._end) - self._tail_bytes) :])
        missing = self._tail_bytes - len(tail)
        if missing > 0 and self._spill.size:
            kept = min(missing, max(0, self._spill.size - len(head)))
            tail = self._spill.last(kept) + tail
        return self._within(head[: len(head) - cut_end(head)], tail[cut_start(tail) :])

    def _within(self, head: bytes, tail: bytes) -> tuple[bytes, bytes]:
        """Return the ends of a head and a tail (or of a head that is all) that are within the bounds."""
        whole = not tail
        lines = self._end_lines or len(head) + len(tail) + 1
        room = self._head_bytes + self._tail_bytes
        if whole and head.count(b"\n") <= 2 * lines and len(show(head).encode()) <= room:
            return head, b""
        first = _clipped(first_lines(head, lines), self._head_bytes, end=False)
        last = last_lines(head[len(first) :] if whole else tail, lines)
        return first, _clipped(last, self._tail_bytes, end=True)


def _clipped(data: bytes, room: int, *, end: bool) -> bytes:
    """Return the beginning or the end that fits as it is shown, where a byte that is no text takes four."""
    whole = len(data)
    while (size := len(show(data).encode())) > room:
        count = len(data) * room // size
        data = data[len(data) - count :] if end else data[:count]
    if len(data) == whole:
        return data
    return data[cut_start(data) :] if end else data[: len(data) - cut_end(data)]
