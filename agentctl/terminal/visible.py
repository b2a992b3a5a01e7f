r"""Text from models, tools and files, made safe and honest to show: nothing in it moves, hides or reorders.

Everything that a terminal would obey or not show is written out as `\x1b` or `\u{202e}`. All functions
are pure and total.
"""

import re
import unicodedata
from functools import lru_cache

from agentctl.executor.text import without_sequences

_TAB = "⇥   "
_LATIN_1 = 0xFF
_BLANKS_SHOWN = 24
"""Runs of spaces up to this long are shown as they are; longer ones are padding and are counted."""
_BLANK_LINES_SHOWN = 3
_SAME_SHOWN = 3
_COMBINING_SHOWN = 3
# Drawn as nothing or as a blank, though their category says otherwise (Unicode's Default_Ignorable_Code_Point
# and the blank letters); what is drawn as nothing can hide a command's tail.
_INVISIBLE = frozenset(
    map(ord, "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"),
) | frozenset([*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0000, 0xE1000)])
_JOINERS = dict.fromkeys([0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF, *range(0xFE00, 0xFE10)])
_PADDING = re.compile(rf" {{{_BLANKS_SHOWN + 1},}}")
_GAP = re.compile(rf"\n(?:[ \t]*\n){{{_BLANK_LINES_SHOWN + 1},}}")
_NEEDS_CARE = re.compile(rf"[^\x20-\x7e\n]|{_PADDING.pattern}|{_GAP.pattern}")


def exact(text: str) -> str:
    """Return `text` with every character accounted for, for what a person is about to approve.

    Line ends stay; nothing else that is not drawn does. Padding is counted: `⟨200 blanks⟩`.
    """
    if _NEEDS_CARE.search(text) is None:
        return text
    text = _GAP.sub(_counted_lines, text)
    text = _PADDING.sub(lambda found: f" ⟨{len(found[0])} blanks⟩ ", text)
    return _escaped(text)


def prose(text: str) -> str:
    """Return `text` for reading along: joiners that only shape letters are dropped, the rest written out."""
    if _NEEDS_CARE.search(text) is None:
        return text
    return _escaped(text.translate(_JOINERS).replace("\r\n", "\n").replace("\t", "    "))


def one_line(text: str, *, width: int = 100) -> str:
    """Return the first line of `text` that says something, at most `width` cells; `…` where more was."""
    lines = [line.strip() for line in without_sequences(text).splitlines() if line.strip()]
    if not lines:
        return ""
    first = prose(lines[0])
    return cut(first, width) if len(lines) == 1 else f"{cut(first, width - 2)} …"


def mixed_scripts(text: str) -> tuple[str, ...]:
    """Return the words of `text` that mix Latin letters with look-alikes from Cyrillic or Greek."""
    if text.isascii():
        return ()
    found = []
    for word in re.findall(r"\w+", text):
        scripts = {unicodedata.name(letter, "?").split(" ")[0] for letter in word if letter.isalpha()}
        if "LATIN" in scripts and scripts & {"CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE"}:
            found.append(word)
    return tuple(dict.fromkeys(found))


def right_to_left(text: str) -> tuple[str, ...]:
    """Return the words of `text` that many terminals reorder, with what stands next to them."""
    if text.isascii():
        return ()
    found = [
        word for word in text.split() if any(unicodedata.bidirectional(one) in ("R", "AL") for one in word)
    ]
    return tuple(dict.fromkeys(found))


def _counted_lines(found: re.Match[str]) -> str:
    return f"\n⟨{found[0].count(chr(10)) - 1} blank lines⟩\n"


def _escaped(text: str) -> str:
    pieces: list[str] = []
    combining = _COMBINING_SHOWN  # a combining mark needs a letter before it
    last, repeated = "", 0
    for letter in text:
        piece = _piece(letter)
        if unicodedata.combining(letter) and piece == letter:
            combining += 1
            piece = letter if combining <= _COMBINING_SHOWN else _written_out(letter)
        else:
            combining = 0 if letter != "\n" else _COMBINING_SHOWN
        if piece != letter and piece == last:
            repeated += 1
            if repeated >= _SAME_SHOWN:
                continue
        else:
            pieces.append(_repeats(repeated))
            last, repeated = piece if piece != letter else "", 0
        pieces.append(piece)
    pieces.append(_repeats(repeated))
    return "".join(pieces)


def _repeats(repeated: int) -> str:
    return f"⟨and {repeated - _SAME_SHOWN + 1} more⟩" if repeated >= _SAME_SHOWN else ""


@lru_cache(maxsize=4096)
def _piece(letter: str) -> str:
    if letter == "\n" or " " <= letter <= "~":
        return letter
    if letter == "\t":
        return _TAB
    category = unicodedata.category(letter)
    if category[0] in "CZ" or ord(letter) in _INVISIBLE:
        return _written_out(letter)
    return letter


def _written_out(letter: str) -> str:
    short = {"\r": "\\r", "\b": "\\b", "\f": "\\f", "\v": "\\v"}.get(letter)
    number = ord(letter)
    return short or (f"\\x{number:02x}" if number <= _LATIN_1 else f"\\u{{{number:04x}}}")


@lru_cache(maxsize=4096)
def _letter_cells(letter: str) -> int:
    if unicodedata.combining(letter) or unicodedata.category(letter) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def cells(text: str) -> int:
    """Return how many columns `text`, made visible before, takes on a terminal."""
    return len(text) if text.isascii() else sum(map(_letter_cells, text))


def wrap(line: str, width: int) -> tuple[str, ...]:
    """Return `line` broken into rows of at most `width` cells; nothing is dropped, an empty line is one row.

    A wide character in a terminal one column wide gets a row to itself.
    """
    width = max(width, 1)
    if cells(line) <= width:
        return (line,)
    rows: list[str] = []
    start, used = 0, 0
    for index, letter in enumerate(line):
        size = _letter_cells(letter)
        if used + size > width and index > start:
            rows.append(line[start:index])
            start, used = index, 0
        used += size
    rows.append(line[start:])
    return tuple(rows)


def cut(line: str, width: int) -> str:
    """Return `line` in at most `width` cells, with `…` at the end where it was longer."""
    if cells(line) <= width:
        return line
    return wrap(line, max(width - 1, 1))[0] + "…" if width > 1 else "…"[: max(width, 0)]
