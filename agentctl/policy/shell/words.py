"""What a word of the shell is worth before it runs, and how quotes and braces make it."""

import re


class Refused(Exception):
    """The strict grammar does not cover the line; `reason` says which part, in words for the prompt."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Word:
    """A word that is more than plain unquoted text (those are a bare `str`)."""

    __slots__ = (
        "alts",
        "below",
        "firm",
        "glob",
        "lead",
        "literal",
        "numeric",
        "path",
        "quoted",
        "spread",
        "text",
    )

    def __init__(self, text: str, *, literal: bool = False, quoted: bool = False) -> None:
        self.text = text
        """The value when `literal`, else as written."""
        self.literal = literal
        self.quoted = quoted
        """Some of it was quoted: never a keyword or an assignment."""
        self.spread = False
        """May become any number of words, none included."""
        self.glob = False
        """Only wildcards make it unknown."""
        self.lead = ""
        """The literal text in front of the first unknown part."""
        self.numeric = False
        """Whatever it becomes, it is a number."""
        self.firm = False
        """Whatever it becomes, it does not begin with a dash."""
        self.path = ""
        """With `$HOME` and `$PWD` put in, when nothing but wildcards is unknown then."""
        self.below = ""
        """It names something below this directory, however deep (what `find` finds)."""
        self.alts: tuple[str, ...] = ()
        """The words that braces make of it, all literal."""

    @property
    def dashed(self) -> bool:
        """Whether it could turn into an option."""
        if self.literal or self.numeric or self.firm:
            return False
        return not self.lead or self.lead.startswith("-")


AnyWord = str | Word

_ANSI = re.compile(
    r"\\(?:x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|([0-7]{1,3})|c(.)|([\s\S]))"
)
_ANSI_SINGLE = {
    "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "'": "'", '"': '"', "?": "?",
}  # fmt: skip
_ASCII_END = 0x7F


def ansi_c(body: str) -> str | None:
    """Return what bash makes of `$'body'`, or None where it depends on the locale or ends early."""
    out: list[str] = []
    at = 0
    for match in _ANSI.finditer(body):
        out.append(body[at : match.start()])
        at = match.end()
        hexa, short, long, octal, control, single = match.groups()
        if control is not None:
            return None
        if single is not None:
            if single in "xuU":
                return None
            out.append(_ANSI_SINGLE.get(single, "\\" + single))
            continue
        code = int(octal, 8) if octal is not None else int(hexa or short or long, 16)
        if not 0 < code <= _ASCII_END:
            return None
        out.append(chr(code))
    out.append(body[at:])
    return "".join(out)


_MAX_BRACES = 512
_BRACE_PLAIN = re.compile(r"[A-Za-z0-9_./:@%+,=^{}#!-]+")
_RANGE = re.compile(r"(-?\d{1,6})\.\.(-?\d{1,6})")
_PADDED = re.compile(r"-?0[0-9]+")
_LETTERS = re.compile(r"([a-z])\.\.([a-z])|([A-Z])\.\.([A-Z])")


def may_expand_braces(raw: str) -> bool:
    """Whether bash could make several words of `raw`'s braces; false only when it surely does not."""
    opened = raw.find("{")
    return opened >= 0 and max(raw.rfind(","), raw.rfind("..")) > opened


def expand_braces(raw: str) -> tuple[str, ...]:
    """Return the words bash makes of the braces in `raw`; empty where this is not sure to know them.

    Only unquoted plain text with well-paired, unnested braces, each a list or a range without padding.
    """
    if not _BRACE_PLAIN.fullmatch(raw):
        return ()
    words = [""]
    rest = raw
    while rest:
        before, brace, after = rest.partition("{")
        if "}" in before:
            return ()
        if not brace:
            # An empty unquoted word vanishes.
            words = [word + before for word in words]
            break
        inside, brace, rest = after.partition("}")
        parts = _brace_parts(inside) if brace and "{" not in inside else []
        if not parts or len(words) * len(parts) > _MAX_BRACES:
            return ()
        words = [word + before + part for word in words for part in parts]
    return tuple(word for word in words if word)


def _brace_parts(inside: str) -> list[str]:
    if not inside:
        return ["{}"]
    if "," in inside:
        return inside.split(",")
    match = _RANGE.fullmatch(inside)
    if match:
        first, last = match.groups()
        if any(_PADDED.fullmatch(number) for number in (first, last)):
            return []
        low, high = int(first), int(last)
        if abs(high - low) > _MAX_BRACES or "-0" in (first, last):
            return []
        return [str(n) for n in (range(low, high + 1) if low <= high else range(low, high - 1, -1))]
    match = _LETTERS.fullmatch(inside)
    if match:
        start, end = (ord(letter) for letter in match.groups() if letter)
        return [chr(n) for n in (range(start, end + 1) if start <= end else range(start, end - 1, -1))]
    return [] if ".." in inside else ["{" + inside + "}"]
