"""Edits on bytes: only the span that matched changes, in the line ends it stands in. Pure."""

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import accumulate

from agentctl.errors import ToolError
from agentctl.executor.file_types import Edit
from agentctl.executor.text import Encoding, sniff

_LINE_END = re.compile("\r\n|\n")
_QUOTES = str.maketrans({0x2018: "'", 0x2019: "'", 0x201C: '"', 0x201D: '"', 0xA0: " "})
_MOST_NAMED = 5


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
    pattern = re.compile(_any_line_end(old))
    spans = [found.span() for found in pattern.finditer(text)]
    if not spans:
        raise ToolError(f"The old text was not found in {name!r}{_near(text, old)}. The file is unchanged.")
    if not edit.every:
        _require_one(text, old, spans, name=name)
    pieces: list[str] = []
    position = 0
    for start, end in spans:
        pieces += (text[position:start], _with_line_ends(new, text, (start, end)))
        position = end
    pieces.append(text[position:])
    return "".join(pieces), len(spans)


def _check(old: str, new: str) -> None:
    if not old:
        raise ToolError("The old text is empty; give the text to replace, or use write_file.")
    if old == new:
        raise ToolError("The old and the new text are equal; there is nothing to change.")
    if "\0" in new:
        raise ToolError("The new text contains a NUL character; text files have none.")
    if any("\ud800" <= character <= "\udfff" for character in new):
        raise ToolError("The new text contains half a character (a lone surrogate).")


def _require_one(text: str, old: str, spans: list[tuple[int, int]], *, name: str) -> None:
    """Refuse an old text that could mean more than one place, overlapping ones and other indents included."""
    starts = [found.start() for found in re.finditer(f"(?={_any_line_end(old)})", text)]
    if len(starts) == 1:
        starts = _other_indents(text, old, spans[0][0]) or starts
    if len(starts) == 1:
        return
    numbers = _line_numbers(text, starts[:_MOST_NAMED])
    more = ", …" if len(starts) > _MOST_NAMED else ""
    raise ToolError(
        f"The old text is ambiguous in {name!r}: {len(starts)} occurrences, at lines "
        f"{', '.join(str(number) for number in numbers)}{more}. Give more of the lines around it, or set "
        "replace_all. The file is unchanged."
    )


def _other_indents(text: str, old: str, start: int) -> list[int]:
    """Return all places that differ in indentation only, if the match began amid a line's indentation.

    Then the old text did not quote the indent whole, and the one exact match may not be the place meant.
    """
    before = text[text.rfind("\n", 0, start) + 1 : start]
    if not before or before.strip(" \t") or old[0] not in " \t":
        return []
    lines = ["[ \t]*" + re.escape(line.lstrip(" \t")) for line in old.split("\n")]
    return [found.start() for found in re.finditer("^" + "\r?\n".join(lines), text, re.MULTILINE)]


def _near(text: str, old: str) -> str:
    """Return a hint where something alike stands, for the model's next try; empty if nowhere."""
    first = next((line for line in old.split("\n") if line.strip()), "")
    wanted = " ".join(first.translate(_QUOTES).split())
    if not wanted:
        return ""
    for number, line in enumerate(text.split("\n"), 1):
        if first in line:
            return f"; its line {first.strip()!r} stands at line {number}, but what follows differs"
        if wanted in " ".join(line.translate(_QUOTES).split()):
            return f"; line {number} differs in blanks or quotes only: {line.rstrip()!r}"
    return ""


def _unified(text: str) -> str:
    return text.replace("\r\n", "\n")


def _any_line_end(old: str) -> str:
    return "\r?\n".join(re.escape(line) for line in old.split("\n"))


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


def _line_numbers(text: str, starts: list[int]) -> list[int]:
    ends = list(accumulate(len(line) + 1 for line in text.split("\n")))
    return [bisect_right(ends, start) + 1 for start in starts]


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
