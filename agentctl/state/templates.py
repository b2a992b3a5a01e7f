"""`{name}` in text: the templates of effects, machine keys and their messages."""

import json
import re
from collections.abc import Mapping

from agentctl.protocol.values import JsonValue

_FIELD = re.compile(r"\{\{|\}\}|\{([A-Za-z_][A-Za-z0-9_.-]*)\}")


def fill(value: JsonValue, members: Mapping[str, JsonValue], *, in_pointer: bool = False) -> JsonValue:
    """Return `value` with every `{name}` in its texts replaced by that member; dots lead inwards. Pure.

    A text that is nothing but one `{name}` becomes the member itself, whatever its type. `{{` and `}}` stand
    for braces. With `in_pointer` members are escaped as parts of a JSON Pointer.

    Raises:
        KeyError: there is no such member.
    """
    if isinstance(value, str):
        whole = _FIELD.fullmatch(value)
        if whole and whole[1] and not in_pointer:
            return member(whole[1], members)
        return fill_text(value, members, in_pointer=in_pointer)
    if isinstance(value, list):
        return [fill(item, members) for item in value]
    if isinstance(value, dict):
        return {str(fill_text(name, members)): fill(item, members) for name, item in value.items()}
    return value


def fill_text(text: str, members: Mapping[str, JsonValue], *, in_pointer: bool = False) -> str:
    """Return `text` with every `{name}` replaced by the member as text; other JSON than text as JSON.

    Raises:
        KeyError: there is no such member.
    """

    def replaced(match: re.Match[str]) -> str:
        if match[1] is None:
            return match[0][0]
        found = member(match[1], members)
        written = found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)
        return written.replace("~", "~0").replace("/", "~1") if in_pointer else written

    return _FIELD.sub(replaced, text)


def member(name: str, members: Mapping[str, JsonValue]) -> JsonValue:
    """Return the member `name`: as it is written, else along its dots.

    Raises:
        KeyError: there is none.
    """
    if name in members:
        return members[name]
    value: JsonValue = dict(members)
    for part in name.split("."):
        if not isinstance(value, dict) or part not in value:
            raise KeyError(name)
        value = value[part]
    return value


def fields_of(text: str) -> tuple[str, ...]:
    """Return the names that a template asks for, in order."""
    return tuple(match[1] for match in _FIELD.finditer(text) if match[1])
