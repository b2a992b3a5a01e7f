"""Bytes to text without loss or surprise: a file's encoding, and how bytes that are no text are shown."""

import codecs
import re

from agentctl.records import dataclass

_BOMS = (
    # UTF-32 first: its little-endian mark begins with UTF-16's.
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
    (codecs.BOM_UTF8, "utf-8"),
)
_MULTIBYTE = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
_HIGH = re.compile(rb"[\x80-\xff]")
_CONTROL = re.compile(rb"[\x01-\x07\x0b\x0e-\x1a\x1c-\x1f\x7f]")
_CONTINUED = re.compile(rb"[\x80-\xbf]{1,3}")
_UNFINISHED = re.compile(rb"(?:[\xc2-\xdf]|[\xe0-\xef][\x80-\xbf]?|[\xf0-\xf4][\x80-\xbf]{0,2})\Z")
_SEQUENCE = re.compile(
    "\x1b\\][^\x07\x1b]*(?:\x07|\x1b\\\\)"  # OSC: titles, links, the clipboard
    "|\x1b[PX^_][^\x1b]*\x1b\\\\"  # DCS, SOS, PM, APC
    "|(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor moves
    "|\x1b[ -/]*[0-~]"  # two-byte ones: character sets, save and restore
)
_ESCAPED = re.compile("[\udc80-\udcff]")
# Bytes that windows-1252 leaves undefined stand for themselves: every byte has one character, and back.
_LEGACY_DECODE = "".join(bytes([byte]).decode("cp1252", "replace") for byte in range(256))
_LEGACY_TABLE = "".join(
    chr(byte) if character == "\ufffd" else character for byte, character in enumerate(_LEGACY_DECODE)
)
_LEGACY_ENCODE = codecs.charmap_build(_LEGACY_TABLE)
LEGACY = "windows-1252"
_TOO_SHORT_TO_TELL = 64
_REDRAWS = 8
"""Of one line that are shown."""


def without_sequences(text: str) -> str:
    """Return `text` without what steers a terminal: colours, links (their text stays), titles, cursor moves.

    Pure, total. Source: ECMA-48 §5.4, https://ecma-international.org/publications-and-standards/standards/ecma-48
    """
    return _SEQUENCE.sub("", text) if "\x1b" in text or "\x9b" in text else text


def without_redraws(text: str) -> str:
    """Return `text` with the middle left out of lines that were drawn over again and again, as progress is.

    Pure, total. What is left out is counted.
    """
    if text.count("\r") <= _REDRAWS:
        return text
    return "\n".join(_drawn_once(line) for line in text.split("\n"))


def _drawn_once(line: str) -> str:
    parts = [part for part in line.split("\r") if part]
    if len(parts) <= _REDRAWS:
        return line
    left_out = len(parts) - 2
    return f"{parts[0]}\n[… {left_out} parts between carriage returns left out …]\n{parts[-1]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoding:
    """How a file's bytes stand for text; every byte sequence survives decode and encode unchanged."""

    name: str
    """`utf-8`, `utf-16-le`, … or `windows-1252`."""
    mark: bytes = b""
    """The byte order mark that begins the file."""

    @property
    def shown(self) -> str:
        """The name for a person, with `-sig` where a UTF-8 file begins with a mark."""
        return "utf-8-sig" if self.mark and self.name == "utf-8" else self.name

    @property
    def wide(self) -> bool:
        """Each character takes two or four bytes, NULs among them."""
        return self.name.startswith(("utf-16", "utf-32"))

    def decode(self, data: bytes) -> str:
        """Return the text of bytes after the mark; what UTF-8 can't say becomes lone surrogates."""
        if self.name == LEGACY:
            return codecs.charmap_decode(data, "strict", _LEGACY_TABLE)[0]
        return data.decode(self.name, "surrogateescape" if self.name == "utf-8" else "strict")

    def encode(self, text: str) -> bytes:
        """Return the bytes of a text.

        Raises:
            UnicodeEncodeError: the encoding has no such character.
        """
        if self.name == LEGACY:
            return codecs.charmap_encode(text, "strict", _LEGACY_ENCODE)[0]
        return text.encode(self.name, "surrogateescape" if self.name == "utf-8" else "strict")


def sniff(data: bytes) -> Encoding | None:
    """Return the encoding that a file or its beginning is in, or None for binary. Pure, total.

    A byte order mark decides. Else NUL means binary; UTF-8 that is cut at the end or damaged in places is
    still UTF-8; anything else is read as windows-1252, in which every byte is one character.
    """
    for mark, name in _BOMS:
        if data.startswith(mark):
            return Encoding(name=name, mark=mark)
    if b"\0" in data:
        return None
    if looks_binary(data):
        return None
    try:
        data[: len(data) - cut_end(data)].decode("utf-8")
    except UnicodeDecodeError:
        whole = sum(len(found) for found in _MULTIBYTE.findall(data))
        damaged = len(_HIGH.findall(data)) - whole
        return Encoding(name="utf-8" if whole > damaged else LEGACY)
    return Encoding(name="utf-8")


def looks_binary(data: bytes) -> bool:
    """Tell output of a program that is no text: many NULs or control characters. Pure, total.

    A few NULs (`find -print0`), colour codes and text in an old code page are not binary.
    """
    if len(data) < _TOO_SHORT_TO_TELL:
        return False
    controls = len(_CONTROL.findall(data))
    return data.count(b"\0") * 4 > len(data) or controls * 33 > len(data)


def show(data: bytes) -> str:
    r"""Return bytes as text for a model: UTF-8, other bytes and NUL as `\xNN`. Pure, total."""
    return data.decode("utf-8", "backslashreplace").replace("\0", "\\x00")


def show_text(text: str) -> str:
    r"""Return decoded text with the lone surrogates of damaged UTF-8 as `\xNN`. Pure, total."""
    return _ESCAPED.sub(lambda found: f"\\x{ord(found[0]) - 0xDC00:02x}", text)


def cut_start(data: bytes) -> int:
    """Return how many bytes at the start belong to a character that began before. Pure, total."""
    found = _CONTINUED.match(data)
    return found.end() if found else 0


def cut_end(data: bytes) -> int:
    """Return how many bytes at the end belong to a character that goes on after. Pure, total."""
    found = _UNFINISHED.search(data, max(0, len(data) - 3))
    return len(data) - found.start() if found else 0


def first_lines(data: bytes, count: int) -> bytes:
    """Return at most the first `count` lines. Pure, total."""
    at = -1
    for _ in range(count):
        at = data.find(b"\n", at + 1)
        if at < 0:
            return data
    return data[: at + 1]


def last_lines(data: bytes, count: int) -> bytes:
    """Return at most the last `count` lines. Pure, total."""
    at = len(data) - data.endswith(b"\n")
    for _ in range(count):
        at = data.rfind(b"\n", 0, at)
        if at < 0:
            return data
    return data[at + 1 :]
