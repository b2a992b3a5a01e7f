"""Edits on bytes: only the span that matched changes, in the line ends it stands in. Pure."""

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import field
from itertools import accumulate, islice
from unicodedata import normalize

from agentctl.errors import ToolError
from agentctl.executor.file_types import Edit
from agentctl.executor.text import Encoding, sniff
from agentctl.records import dataclass

_LINE_END = re.compile("\r\n|\n")
_LIKE = str.maketrans(
    {0x2018: "'", 0x2019: "'", 0x201C: '"', 0x201D: '"', 0xA0: " ", 0x2013: "-", 0x2014: "-", 0x2212: "-"}
)
_MOST_QUOTED = 800
_MOST_NAMED = 5
_MOST_COUNTED = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Edited:
    """The bytes after all edits."""

    new_bytes: bytes = field(repr=False)
    replacements: int


def edit_bytes(data: bytes, edits: tuple[Edit, ...], *, name: str) -> Edited:
    """Return a file's bytes after edits made in order, all or none.

    A line feed in `old` matches the file's own line end, and the new text takes the line ends of the span it
    replaces. Everything outside the spans, the byte order mark and bytes that are no text included, is kept.

    Raises:
        ToolError: binary; an old text not found, found more than once without `every`, or equal to the new
            one; a new text that the file's encoding can't hold.
    """
    encoding = sniff(data)
    if encoding is None or (b"\0" in data and not encoding.wide):
        raise ToolError(f"{name!r} is a binary file (it contains NUL bytes); edit_file works on text only.")
    if not edits:
        raise ToolError("No edit was given.")
    body = data[len(encoding.mark) :]
    try:
        text = encoding.decode(body)
    except UnicodeDecodeError as error:
        raise ToolError(f"{name!r} is no whole {encoding.name} text: {error.reason}.") from error
    count = 0
    for edit in edits:
        text, made = _edited(text, edit, name=name)
        count += made
    try:
        new_body = encoding.encode(text)
    except UnicodeEncodeError as error:
        raise ToolError(
            f"{name!r} is written in {encoding.name}, which has no character {error.object[error.start]!r}."
        ) from error
    return Edited(new_bytes=encoding.mark + new_body, replacements=count)


def _edited(text: str, edit: Edit, *, name: str) -> tuple[str, int]:
    old, new = _unified(edit.old.removeprefix("\ufeff")), _unified(edit.new.removeprefix("\ufeff"))
    _check(old, new)
    unified = _Unified(text)
    starts = [*_places(unified.text, old, step=len(old))] if edit.every else _few_places(unified.text, old)
    if not starts:
        raise ToolError(f"The old text was not found in {name!r}{_near(text, old)}. The file is unchanged.")
    if not edit.every:
        _require_one(unified.text, old, starts, name=name)
    pieces: list[str] = []
    position = 0
    for at in starts:
        start, end = unified.original(at), unified.original(at + len(old))
        pieces += (text[position:start], _with_line_ends(new, text, (start, end)))
        position = end
    pieces.append(text[position:])
    return "".join(pieces), len(starts)


class _Unified:
    """A text with every CRLF as one line feed, and the way back to positions in the original."""

    def __init__(self, text: str) -> None:
        self.text = _unified(text)
        self._removed: list[int] = []
        if len(self.text) != len(text):
            ends = (found.start() for found in re.finditer("\r\n", text))
            self._removed = [at - count for count, at in enumerate(ends)]

    def original(self, position: int) -> int:
        """Return where a position was: a line feed that was CRLF begins at its carriage return."""
        return position + bisect_left(self._removed, position)


def _places(text: str, old: str, *, step: int) -> Iterator[int]:
    """Yield where a text stands, looking on `step` after each."""
    at = text.find(old)
    while at >= 0:
        yield at
        at = text.find(old, at + step)


def _few_places(text: str, old: str) -> list[int]:
    """Return where a text stands, overlapping places too, as many as are worth counting."""
    return [*islice(_places(text, old, step=1), _MOST_COUNTED)]


def _check(old: str, new: str) -> None:
    if not old:
        raise ToolError("The old text is empty; give the text to replace, or use write_file.")
    if old == new:
        raise ToolError("The old and the new text are equal; there is nothing to change.")
    if "\0" in new:
        raise ToolError("The new text contains a NUL character; text files have none.")
    if any("\ud800" <= character <= "\udfff" for character in new):
        raise ToolError("The new text contains half a character (a lone surrogate).")


def _require_one(text: str, old: str, starts: list[int], *, name: str) -> None:
    """Refuse an old text that could mean more than one place, overlapping ones and other indents included."""
    if len(starts) == 1:
        starts = _other_indents(text, old, starts[0]) or starts
    if len(starts) == 1:
        return
    numbers = ", ".join(str(text.count("\n", 0, start) + 1) for start in starts[:_MOST_NAMED])
    more = ", …" if len(starts) > _MOST_NAMED else ""
    count = f"{len(starts)} or more" if len(starts) == _MOST_COUNTED else str(len(starts))
    raise ToolError(
        f"The old text is ambiguous in {name!r}: {count} occurrences, at lines {numbers}{more}. "
        "Give more of the lines around it, or set replace_all. The file is unchanged."
    )


def _other_indents(text: str, old: str, start: int) -> list[int]:
    """Return all places that differ in indentation only, if the match began amid a line's indentation.

    Then the old text did not quote the indent whole, and the one exact match may not be the place meant.
    """
    before = text[text.rfind("\n", 0, start) + 1 : start]
    if not before or before.strip(" \t") or old[0] not in " \t":
        return []
    lines = text.split("\n")
    bare = "\n".join(line.lstrip(" \t") for line in lines)
    wanted = "\n".join(line.lstrip(" \t") for line in old.split("\n"))
    begins = [at for at in _few_places(bare, wanted) if at == 0 or bare[at - 1] == "\n"]
    line_starts = [0, *accumulate(len(line) + 1 for line in lines)]
    return [line_starts[bare.count("\n", 0, at)] for at in begins]


def _near(text: str, old: str) -> str:
    """Return a hint where something alike stands, for the model's next try; empty if nowhere."""
    lines, wanted = text.split("\n"), [_plain(line) for line in old.strip("\n").split("\n")]
    if not any(wanted):
        return ""
    first = next(at for at, line in enumerate(wanted) if line)
    plain = [_plain(line) for line in lines]
    begun = [number for number, line in enumerate(plain) if wanted[first] in line]
    for number in begun:
        start, end = number - first, number - first + len(wanted)
        if start >= 0 and _alike(plain[start:end], wanted):
            where = f"line {start + 1} differs" if end == start + 1 else f"lines {start + 1}-{end} differ"
            stands = "\n".join(line.removesuffix("\r") for line in lines[start:end])
            quoted = f": {stands!r}" if len(stands) <= _MOST_QUOTED else ""
            return f"; {where} in blanks, quotes, dashes or the spelling of letters only{quoted}"
    if begun:
        return (
            f"; its line {lines[begun[0]].strip()!r} stands at line {begun[0] + 1}, but what follows differs"
        )
    return ""


def _plain(line: str) -> str:
    """Return a line without what is often mistaken: kinds of blanks, quotes, dashes, and composed letters."""
    if not line.isascii():
        line = normalize("NFC", line).translate(_LIKE)
    return " ".join(line.split())


def _alike(lines: list[str], wanted: list[str]) -> bool:
    """Tell whether lines are the wanted ones, the first and the last of which may be parts of lines."""
    if len(lines) != len(wanted):
        return False
    if len(lines) == 1:
        return wanted[0] in lines[0]
    return lines[0].endswith(wanted[0]) and lines[1:-1] == wanted[1:-1] and lines[-1].startswith(wanted[-1])


def _unified(text: str) -> str:
    return text.replace("\r\n", "\n")


def _with_line_ends(new: str, text: str, span: tuple[int, int]) -> str:
    if "\n" not in new:
        return new
    inside = _LINE_END.findall(text, *span)
    lines = new.split("\n")
    if len(set(inside)) > 1 and len(inside) == len(lines) - 1:
        return "".join(line + end for line, end in zip(lines, [*inside, ""], strict=True))
    return _line_end_at(text, span, inside).join(lines)


def _line_end_at(text: str, span: tuple[int, int], inside: list[str]) -> str:
    """Return the line end to use in a span: the commonest in it, else its line's, else the one before it."""
    if inside:
        return max(set(inside), key=inside.count)
    after = _LINE_END.search(text, span[1])
    if after is not None:
        return after[0]
    end = text.rfind("\n", 0, span[0])
    return "\r\n" if end > 0 and text[end - 1] == "\r" else "\n"


def whole_text_bytes(text: str, old: bytes | None) -> tuple[bytes, tuple[str, ...]]:
    """Return the bytes of a file that is written whole, and what of the old one was kept.

    A new file is UTF-8. Over an old one its byte order mark and encoding stay, and CRLF where it had nothing
    else and the text has none.

    Raises:
        ToolError: NUL, or half a character.
    """
    if "\0" in text:
        raise ToolError("The content contains a NUL character; text files have none.")
    encoding = sniff(old) if old else None
    notes: list[str] = []
    if old and encoding and "\r\n" not in text and b"\n" in old:
        before = _body(old, encoding)
        if before is not None and before.count("\n") == before.count("\r\n"):
            text = text.replace("\n", "\r\n")
            notes.append("kept CRLF line ends")
    chosen = encoding or Encoding(name="utf-8")
    try:
        data = chosen.encode(text.removeprefix("\ufeff") if chosen.mark else text)
    except UnicodeEncodeError:
        chosen = Encoding(name="utf-8")
        data = _utf8(text)
    if any("\ud800" <= character <= "\udfff" for character in text):
        data = _utf8(text)
    if chosen.mark:
        notes.append("kept the byte order mark")
    if chosen.name != "utf-8":
        notes.append(f"kept the encoding {chosen.name}")
    return chosen.mark + data, tuple(notes)


def _utf8(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ToolError("The text contains half a character (a lone surrogate).") from error


def _body(old: bytes, encoding: Encoding) -> str | None:
    try:
        return encoding.decode(old[len(encoding.mark) :])
    except UnicodeDecodeError:
        return None
