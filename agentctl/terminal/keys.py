"""Bytes from a terminal as keys: characters whole, escape sequences whole, pastes told from typing."""

import codecs
import re
from typing import Literal, TypeAlias

from agentctl.records import dataclass

KeyKind: TypeAlias = Literal[
    "char",  # `text` is one printable character
    "enter",
    "escape",
    "backspace",
    "control",  # `text` is the letter, as in `u` for Ctrl-U
    "special",  # `text` is `up`, `down`, `pageup`, `pagedown`, `home`, `end`, `left`, `right`
    "paste",  # `text` is what was pasted, as the terminal marked it
    "other",  # a sequence nobody typed or nobody needs: focus, mouse, reports
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One key press, or one paste."""

    kind: KeyKind
    text: str = ""


_STRING = r"[\]PX^_][^\x07\x1b]{0,4096}"
"""What a terminal answers when some output asked it for a colour, a clipboard or its name."""
_SEQUENCE = re.compile(rf"\x1b(?:\[[0-?]*[ -/]*[@-~]|O[@-~]|{_STRING}(?:\x07|\x1b\\)|[^\[O\]PX^_\x1b])")
_UNFINISHED = re.compile(rf"\x1b(?:\[[0-?]*[ -/]*|O|{_STRING}\x1b?)?$")
_PASTE_BEGINS, _PASTE_ENDS = "\x1b[200~", "\x1b[201~"
_SPECIAL = {
    "A": "up", "B": "down", "C": "right", "D": "left", "H": "home", "F": "end",
    "1~": "home", "4~": "end", "5~": "pageup", "6~": "pagedown", "7~": "home", "8~": "end",
}  # fmt: skip
_PASTE_LIMIT = 1_000_000
_CODE = re.compile(r"\x1b\[(\d+)(?::\d*)*(?:;(\d+)(?::(\d+))?)?u")
"""A key as the newer keyboard protocols write it, which a program that crashed can leave switched on."""
_CONTROL, _RELEASED = 4, "3"
_TYPES_NOTHING = 0xE000


class KeyDecoder:
    """Turns reads of any size into keys; what is not complete yet waits for the next read."""

    def __init__(self) -> None:
        self._utf8 = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._text = ""
        self._pasting = False

    def feed(self, data: bytes) -> tuple[Key, ...]:
        """Return the keys that `data` completes, in order."""
        self._text += self._utf8.decode(data)
        keys: list[Key] = []
        while self._text:
            taken = self._take_paste() if self._pasting else self._take_key()
            if taken is None:
                break
            keys += taken
        return tuple(keys)

    @property
    def unfinished(self) -> bool:
        """Whether a sequence has begun and not ended: more bytes are about to come, or Escape was typed."""
        return bool(self._text) or self._pasting

    def settle(self) -> tuple[Key, ...]:
        """Return what stands now that nothing more came: a lone ESC was the Escape key; the rest is dropped.

        A paste that was begun stays open.
        """
        if self._pasting:
            return ()
        text, self._text = self._text, ""
        return (Key(kind="escape"),) if text == "\x1b" else (Key(kind="other"),) if text else ()

    def forget(self) -> None:
        """Drop what is not complete: typed-ahead input was thrown away."""
        self._utf8.reset()
        self._text, self._pasting = "", False

    def _take_paste(self) -> list[Key] | None:
        end = self._text.find(_PASTE_ENDS)
        if end < 0:
            if len(self._text) > _PASTE_LIMIT:  # no end in sight: what a broken terminal began is dropped
                self._text, self._pasting = "", False
                return [Key(kind="other")]
            return None
        pasted, self._text = self._text[:end], self._text[end + len(_PASTE_ENDS) :]
        self._pasting = False
        return [Key(kind="paste", text=pasted.replace("\r\n", "\n").replace("\r", "\n"))]

    def _take_key(self) -> list[Key] | None:
        if self._text.startswith(_PASTE_BEGINS):
            self._text, self._pasting = self._text[len(_PASTE_BEGINS) :], True
            return []
        if self._text[0] == "\x1b":
            return self._take_sequence()
        letter, self._text = self._text[0], self._text[1:]
        return [_typed(letter)]

    def _take_sequence(self) -> list[Key] | None:
        found = _SEQUENCE.match(self._text)
        if found is None:
            if _UNFINISHED.match(self._text):
                return None
            self._text = self._text[1:]
            return [Key(kind="escape")]
        self._text = self._text[found.end() :]
        if coded := _CODE.fullmatch(found[0]):
            return [_coded(coded)]
        name = _SPECIAL.get(found[0][2:])
        return [Key(kind="special", text=name) if name else Key(kind="other")]


def _coded(found: re.Match[str]) -> Key:
    number, modifiers = int(found[1]), int(found[2] or 1) - 1
    if found[3] == _RELEASED or number >= _TYPES_NOTHING or modifiers & ~1 & ~_CONTROL:
        return Key(kind="other")
    if number == ord("\x1b"):
        return Key(kind="escape")
    if modifiers & _CONTROL:
        return Key(kind="control", text=chr(number).lower())
    return _typed(chr(number))


def _typed(letter: str) -> Key:
    if letter in "\r\n":
        return Key(kind="enter")
    if letter in "\x7f\b":
        return Key(kind="backspace")
    if letter < " ":
        return Key(kind="control", text=chr(ord(letter) + 96))
    return Key(kind="char", text=letter) if letter.isprintable() else Key(kind="other")
