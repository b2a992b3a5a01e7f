"""JSON Schema of a tool's parameters from a frozen dataclass, and its arguments back into that dataclass.

A field says what it is for the model with `Annotated[type, Says("…")]`: the words are data that goes out with
every request, so they stand in the type and not in a comment of ours.
"""

import dataclasses
from collections.abc import Callable
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from agentctl.protocol.values import JsonObject, JsonValue
from agentctl.records import dataclass

Arguments = TypeVar("Arguments")

_SCALARS: dict[object, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What a value may be at most and at least, both inclusive; None sets no bound."""

    minimum: int | None = None
    maximum: int | None = None
    min_length: int | None = None
    """Characters of a string, or items of a list."""


@dataclass(frozen=True, slots=True)
class Says:
    """What the model is told about a field."""

    text: str
    bounds: Bounds = Bounds()


def schema_of(kind: type) -> JsonObject:
    """Return the JSON Schema of a frozen dataclass: an object that allows no other members.

    Fields keep their order; those without a default are required. Understands str, int, float, bool, Literal,
    `tuple[X, ...]`, `X | None` and nested dataclasses.

    Raises:
        TypeError: a field has a type that is none of these.
    """
    properties: JsonObject = {}
    required: list[JsonValue] = []
    for name, hint, default in _fields(kind):
        shape = _shape(hint)
        if default is dataclasses.MISSING:
            required.append(name)
        elif isinstance(default, str | int | float) and default not in {"", False}:
            shape["default"] = default
        properties[name] = shape
    schema: JsonObject = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    schema["additionalProperties"] = False
    return schema


def read_arguments(kind: Callable[..., Arguments], arguments: JsonObject) -> Arguments:
    """Return `arguments`, valid against `schema_of(kind)`, as that dataclass. Null means the default."""
    values: dict[str, object] = {}
    for name, hint, _ in _fields(kind):
        if arguments.get(name) is not None:
            values[name] = _value(hint, arguments[name])
    return kind(**values)


@cache
def _fields(kind: object) -> tuple[tuple[str, object, object], ...]:
    if not isinstance(kind, type) or not dataclasses.is_dataclass(kind):
        raise TypeError(f"{kind!r} is not a dataclass")
    hints = get_type_hints(kind, include_extras=True)
    return tuple(
        (
            field.name,
            hints[field.name],
            field.default if field.default_factory is dataclasses.MISSING else None,
        )
        for field in dataclasses.fields(kind)
    )


def _unwrapped(hint: object) -> object:
    """Return `hint` without Annotated and without `| None`."""
    if get_origin(hint) is Annotated:
        return _unwrapped(get_args(hint)[0])
    if get_origin(hint) in {Union, UnionType}:
        members = [member for member in get_args(hint) if member is not NoneType]
        if len(members) == 1:
            return _unwrapped(members[0])
    return hint


def _shape(hint: object) -> JsonObject:
    plain = _unwrapped(hint)
    shape: JsonObject
    if plain in _SCALARS:
        shape = {"type": _SCALARS[plain]}
    elif get_origin(plain) is Literal:
        shape = {"type": "string", "enum": list(get_args(plain))}
    elif get_origin(plain) is tuple:
        shape = {"type": "array", "items": _shape(get_args(plain)[0])}
    elif get_origin(plain) is dict:
        shape = {"type": "object"}
    elif isinstance(plain, type) and dataclasses.is_dataclass(plain):
        shape = schema_of(plain)
    else:
        raise TypeError(f"no JSON Schema for {plain!r}")
    if get_origin(hint) is Annotated:
        for said in get_args(hint)[1:]:
            if isinstance(said, Says):
                shape |= _said(said, is_list=shape["type"] == "array")
    return shape


def _said(said: Says, *, is_list: bool) -> JsonObject:
    bounds = said.bounds
    shape: JsonObject = {"description": said.text} if said.text else {}
    if bounds.minimum is not None:
        shape["minimum"] = bounds.minimum
    if bounds.maximum is not None:
        shape["maximum"] = bounds.maximum
    if bounds.min_length is not None:
        shape["minItems" if is_list else "minLength"] = bounds.min_length
    return shape


def _value(hint: object, value: JsonValue) -> object:
    plain = _unwrapped(hint)
    if get_origin(plain) is tuple and isinstance(value, list):
        return tuple(_value(get_args(plain)[0], item) for item in value)
    if isinstance(plain, type) and dataclasses.is_dataclass(plain) and isinstance(value, dict):
        return read_arguments(plain, value)
    if plain is int and isinstance(value, float):
        return int(value)  # JSON Schema counts 3.0 as an integer
    return value
