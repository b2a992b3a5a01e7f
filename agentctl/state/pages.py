"""Pages of a long text: by lines, and by bytes where one line is longer than a page."""

from agentctl.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What a page or a tool result may have at most."""

    lines: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A part of a text, and where the rest begins."""

    text: str
    first_line: int
    """From 1; 0 where the page is empty."""
    last_line: int
    total_lines: int
    next_offset: int = 0
    """The line to go on with; 0 at the end."""
    next_byte_offset: int = 0
    """Where to go on inside that line; 0 for its beginning."""

    @property
    def whole(self) -> bool:
        """Whether the page is the whole text."""
        return self.first_line <= 1 and not self.next_offset


def page_of(text: str, *, offset: int = 1, byte_offset: int = 0, bounds: Bounds) -> Page:
    """Return the page that begins at line `offset`, from 1. Pure; never cuts a character.

    A line that is longer than a page is given in parts; `byte_offset` is counted in its UTF-8 bytes.
    """
    if not text:
        return Page(text="", first_line=0, last_line=0, total_lines=0)
    lines = text.split("\n")
    total = len(lines) - (1 if text.endswith("\n") else 0)
    start = max(offset, 1) - 1
    if start >= total:
        return Page(text="", first_line=start + 1, last_line=total, total_lines=total)
    if start == 0 and byte_offset == 0 and total <= bounds.lines and _size(text) <= bounds.size_bytes:
        return Page(text=text, first_line=1, last_line=total, total_lines=total)
    taken: list[str] = []
    room = bounds.size_bytes
    for index in range(start, min(start + bounds.lines, total)):
        line = lines[index].encode("utf-8", "replace")[byte_offset if index == start else 0 :]
        if len(line) > room and not taken:
            part = line[:room].decode("utf-8", "ignore") or line.decode("utf-8", "ignore")[:1]
            begun = (byte_offset if index == start else 0) + _size(part)
            return Page(
                text=part,
                first_line=index + 1,
                last_line=index + 1,
                total_lines=total,
                next_offset=index + 1,
                next_byte_offset=begun,
            )
        room -= len(line) + 1
        if room < -1:
            break
        taken.append(line.decode("utf-8", "ignore"))
    last = start + len(taken)
    return Page(
        text="\n".join(taken),
        first_line=start + 1,
        last_line=last,
        total_lines=total,
        next_offset=last + 1 if last < total else 0,
    )


def find_lines(text: str, pattern: str, *, start: int = 1) -> list[tuple[int, str]]:
    """Return the lines from `start` on that a pattern finds, with their numbers from 1. Pure.

    `a|b` finds a line with either text, `.*` between texts is any characters; everything else is taken as it
    is written, so that no pattern can take more than linear time.
    """
    wanted = [alternative.split(".*") for alternative in pattern.split("|") if alternative]
    return [
        (number, line)
        for number, line in enumerate(text.split("\n"), start=1)
        if number >= start and any(_has(line, pieces) for pieces in wanted)
    ]


def _has(line: str, pieces: list[str]) -> bool:
    position = 0
    for piece in pieces:
        found = line.find(piece, position)
        if found < 0:
            return False
        position = found + len(piece)
    return True


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))
