"""JSON Pointers (RFC 6901): places in a JSON document.

Source: https://www.rfc-editor.org/rfc/rfc6901
"""

import re
from collections.abc import Sequence

from agentctl.protocol.values import JsonValue

_INDEX = re.compile(r"0|[1-9][0-9]*", re.ASCII)
_BAD_ESCAPE = re.compile(r"~(?![01])")


class PointerError(ValueError):
    """Text that is no JSON Pointer, or a place that is not there."""


def parse(pointer: str) -> tuple[str, ...]:
    """Return the parts of a pointer, unescaped; empty for the whole document. Pure.

    Raises:
        PointerError: it does not begin with a slash, or has a `~` that is not `~0` or `~1`.
    """
    if pointer == "":
        return ()
    if not pointer.startswith("/"):
        raise PointerError(f"{pointer!r} must be empty or begin with '/'")
    if _BAD_ESCAPE.search(pointer):
        raise PointerError(f"{pointer!r}: write '~' as '~0' and '/' as '~1'")
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in pointer[1:].split("/"))


def write(parts: Sequence[str]) -> str:
    """Return the pointer of unescaped parts; the inverse of `parse`. Pure, total."""
    return "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in parts)


def index_of(part: str, length: int) -> int:
    """Return the list position that `part` means, below `length`.

    Raises:
        PointerError: it is no position (`-`, `01`, `-1`, a name), or not below `length`.
    """
    if not _INDEX.fullmatch(part):
        raise PointerError(f"{part!r} is no position in a list")
    # Digits beyond any list are refused before they are read: int() of a long text is slow.
    if len(part) > 15 or int(part) >= length:  # noqa: PLR2004 - digits of the longest possible list
        raise PointerError(f"position {part[:20]} is beyond the list of {length}")
    return int(part)


def child(value: JsonValue, part: str) -> JsonValue:
    """Return the member or item of `value` that `part` names.

    Raises:
        PointerError: there is none.
    """
    if isinstance(value, dict):
        if part not in value:
            raise PointerError(f"there is no member {part!r}")
        return value[part]
    if isinstance(value, list):
        return value[index_of(part, len(value))]
    raise PointerError(f"{part!r} is looked for in a value that has no parts")


def resolve(document: JsonValue, pointer: str) -> JsonValue:
    """Return what stands at `pointer`. The result is shared with the document: copy before changing it.

    Raises:
        PointerError: the pointer is malformed, or nothing stands there.
    """
    value = document
    for part in parse(pointer):
        value = child(value, part)
    return value


def covers(outer: str, inner: str) -> bool:
    """Whether `inner` is `outer` or a place below it. Pure; both must be pointers."""
    around, within = parse(outer), parse(inner)
    return within[: len(around)] == around
