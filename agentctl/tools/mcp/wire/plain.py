"""JSON of a server as every reader of ours can take it. Pure."""

import math

from agentctl.protocol.values import JsonValue

DEEPEST = 100
"""Levels of lists and objects; more is no data that anybody means to send."""


class TooDeep(ValueError):
    """A value is nested deeper than `DEEPEST`."""


def plain(value: object, depth: int = 0) -> JsonValue:
    """Return a value without what JSON does not have: no NaN, no infinity, no half of a character.

    Raises:
        TooDeep: it is nested deeper than anybody means to.
    """
    if depth > DEEPEST:
        raise TooDeep(f"nested more than {DEEPEST} levels deep")
    match value:
        case str():
            return value if value.isascii() else value.encode("utf-8", "replace").decode()
        case float():
            return value if math.isfinite(value) else None
        case None | bool() | int():
            return value
        case list() | tuple():
            return [plain(one, depth + 1) for one in value]
        case dict():
            return {str(plain(str(name))): plain(one, depth + 1) for name, one in value.items()}
        case _:
            return str(value)
