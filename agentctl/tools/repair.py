"""Mends what models get wrong in the shape of arguments, where only one reading is possible.

Services hand over a list as the text of a list, a number as text, null for "not given". Each is mended only
where the schema rules out what came and allows exactly what it plainly stands for; anything else is left for
validation to name.
"""

import json
import re

from agentctl.protocol.messages import ToolCall
from agentctl.protocol.values import JsonObject, JsonValue

_INTEGER = re.compile(r"\s*[+-]?\d{1,18}\s*", re.ASCII)
_NUMBER = re.compile(r"\s*[+-]?\d{1,18}(\.\d{1,18})?([eE][+-]?\d{1,3})?\s*", re.ASCII)
_BOOLEANS: dict[str, bool] = {"true": True, "false": False}


def object_of(call: ToolCall) -> JsonObject | None:
    """Return the arguments of `call` as an object, or None when what came cannot be read as one.

    Nothing, blanks and null mean no arguments; an object that was encoded twice is decoded twice.
    """
    text = call.invalid_arguments
    if not text:
        return call.arguments
    if not text.strip():
        return {}
    value = _decoded(text)
    if isinstance(value, str):
        value = _decoded(value)
    if value is None and text.strip() in {"null", '"null"', '""'}:
        return {}
    return value if isinstance(value, dict) else None


def repaired(arguments: JsonObject, schema: JsonObject) -> JsonObject:
    """Return `arguments` with the shape faults mended that `schema` leaves one reading for.

    `arguments` is unchanged; equal arguments are returned where nothing needs mending. Pure, total.
    """
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return dict(arguments)
    required = schema.get("required")
    needed = required if isinstance(required, list) else []
    mended: JsonObject = {}
    for name, value in arguments.items():
        shape = properties.get(name)
        if not isinstance(shape, dict):
            mended[name] = value
        elif value is None and name not in needed and "null" not in _types(shape) and _types(shape):
            continue
        else:
            mended[name] = _mended(value, shape)
    return mended


def _mended(value: JsonValue, shape: JsonObject) -> JsonValue:
    types = _types(shape)
    if isinstance(value, str) and types and "string" not in types:
        value = _from_text(value, types)
    if isinstance(value, float) and types == {"integer"} and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return repaired(value, shape)
    items = shape.get("items")
    if isinstance(value, list) and isinstance(items, dict):
        return [_mended(item, items) for item in value]
    return value


def _from_text(text: str, types: set[str]) -> JsonValue:
    if "integer" in types and _INTEGER.fullmatch(text):
        return int(text)
    if "number" in types and _NUMBER.fullmatch(text):
        return int(text) if _INTEGER.fullmatch(text) else float(text)
    if "boolean" in types and text.strip().lower() in _BOOLEANS:
        return _BOOLEANS[text.strip().lower()]
    value = _decoded(text)
    if (isinstance(value, list) and "array" in types) or (isinstance(value, dict) and "object" in types):
        return value
    return text


def _types(shape: JsonObject) -> set[str]:
    """Return the JSON types that `shape` names; empty when it names none and so rules nothing out."""
    named = shape.get("type")
    if isinstance(named, str):
        return {named}
    if isinstance(named, list):
        return {item for item in named if isinstance(item, str)}
    return set()


def _decoded(text: str) -> JsonValue:
    try:
        value: JsonValue = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return None
    return value


def _refuse_constant(name: str) -> JsonValue:
    raise ValueError(f"{name} is not JSON")
