"""JSON as types: what tools, state and the journal exchange."""

import json
from typing import TypeAlias

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"
"""Any JSON value. Never shared between owners: take a copy before changing one."""

JsonObject: TypeAlias = dict[str, JsonValue]
"""A JSON object."""

_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def compact_json(value: object) -> str:
    """Return JSON without a needless blank.

    One encoder serves all calls, since making one costs more than to encode a short value.

    Raises:
        TypeError: something in it is not JSON.
    """
    return _COMPACT.encode(value)
