"""The syntax of git's configuration files, read as git reads it. Pure.

Source: https://git-scm.com/docs/git-config#_syntax (read 2026-01)
"""

from collections.abc import Iterator
from dataclasses import dataclass


class NotAConfig(ValueError):
    """The text is not what git would accept; nothing can be said about it."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One key with its value."""

    key: str
    """`section.name` or `section.subsection.name`; section and name in lower case."""
    value: str
    """`true` where the key stands alone."""


_ESCAPES = {"n": "\n", "t": "\t", "b": "\b", "\\": "\\", '"': '"'}
_BLANK = " \t\r\v\f"


def read_settings(data: bytes) -> Iterator[Setting]:
    """Yield the settings of a configuration file in order.

    Raises:
        NotAConfig: git would not accept it.
    """
    text = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape").replace("\r\n", "\n")
    if "\0" in text:
        raise NotAConfig
    position, section = 0, ""
    while position < len(text):
        character = text[position]
        if character in _BLANK or character == "\n":
            position += 1
        elif character in "#;":
            position = _line_end(text, position)
        elif character == "[":
            section, position = _section(text, position + 1)
        elif character.isascii() and character.isalpha() and section:
            name, position = _name(text, position)
            value, position = _value(text, position)
            yield Setting(f"{section}.{name}", value)
        else:
            raise NotAConfig


def _line_end(text: str, position: int) -> int:
    end = text.find("\n", position)
    return len(text) if end < 0 else end


def _section(text: str, position: int) -> tuple[str, int]:
    end = position
    while end < len(text) and ((text[end].isascii() and text[end].isalnum()) or text[end] in "-."):
        end += 1
    name = text[position:end].lower()
    if end < len(text) and text[end] in " \t":
        while end < len(text) and text[end] in " \t":
            end += 1
        if text[end : end + 1] != '"':
            raise NotAConfig
        inner, end = _subsection(text, end + 1)
        name = f"{name}.{inner}"
    if text[end : end + 1] != "]" or not name:
        raise NotAConfig
    return name, end + 1


def _subsection(text: str, position: int) -> tuple[str, int]:
    pieces: list[str] = []
    while position < len(text):
        character = text[position]
        if character == "\n":
            break
        if character == '"':
            return "".join(pieces), position + 1
        if character == "\\":
            position += 1
            character = text[position : position + 1]
        pieces.append(character)
        position += 1
    raise NotAConfig


def _name(text: str, position: int) -> tuple[str, int]:
    end = position
    while end < len(text) and ((text[end].isascii() and text[end].isalnum()) or text[end] == "-"):
        end += 1
    return text[position:end].lower(), end


def _value(text: str, position: int) -> tuple[str, int]:
    while position < len(text) and text[position] in " \t":
        position += 1
    if position == len(text) or text[position] == "\n":
        return "true", position
    if text[position] != "=":
        raise NotAConfig
    value = ""
    blanks = ""
    quoted = False
    position += 1
    while position < len(text) and (text[position] != "\n" or quoted):
        character = text[position]
        if character == "\n":
            raise NotAConfig
        if character in "#;" and not quoted:
            position = _line_end(text, position)
            break
        if character in _BLANK and not quoted:
            # Blanks before a value's first character don't count; later ones do once anything follows,
            # be it an empty pair of quotes.
            blanks += character if value else ""
            position += 1
            continue
        value += blanks
        blanks = ""
        if character == '"':
            quoted = not quoted
        elif character == "\\":
            position += 1
            value += _escaped(text, position)
        else:
            value += character
        position += 1
    if quoted:
        raise NotAConfig
    return value, position


def _escaped(text: str, position: int) -> str:
    character = text[position : position + 1]
    if character == "\n":
        return ""
    if character not in _ESCAPES or not character:
        raise NotAConfig
    return _ESCAPES[character]
