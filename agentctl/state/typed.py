"""Values of a person's own types as JSON and back, strictly."""

import dataclasses
import math
from enum import Enum
from types import UnionType
from typing import TypeVar, Union, cast, get_args, get_origin

from agentctl.protocol.codec import Malformed, UnknownType, decode
from agentctl.protocol.values import JsonObject, JsonValue

Value = TypeVar("Value")


class NotJson(ValueError):
    """A value has no form in JSON; the text says which part."""


class Drifted(ValueError):
    """Stored JSON does not have the shape of the type; the text says what was expected."""


def to_json(value: object) -> JsonValue:
    """Return `value` as JSON: dataclasses as objects of all their fields, sets as sorted lists.

    Raises:
        NotJson: a part has no form in JSON: NaN, a key that is not text, an object of a class.
    """
    if isinstance(value, Enum):
        return to_json(value.value)
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise NotJson(f"{value!r} has no form in JSON")
        return value
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted((to_json(item) for item in value), key=repr)
    if isinstance(value, dict):
        return _object(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {item.name: to_json(getattr(value, item.name)) for item in dataclasses.fields(value)}
    raise NotJson(f"a {type(value).__name__} has no form in JSON")


def from_json(kind: type[Value], value: JsonValue) -> Value:
    """Return `value` read as `kind`: a dataclass, a built-in type, an enum, or a list or dict of these.

    Raises:
        Drifted: it does not have that shape.
    """
    try:
        return cast("Value", decode(kind, value))  # decode is untyped: the one codec serves all types
    except (Malformed, UnknownType, ValueError) as error:
        raise Drifted(str(error)) from error


def argument_of(cls: type, generic: type, index: int) -> object | None:
    """Return the type that `cls` gives for a parameter of its base `generic`; None when it gives none."""
    for base in cls.__mro__:
        for alias in getattr(base, "__orig_bases__", ()):
            origin, arguments = get_origin(alias), get_args(alias)
            if not (isinstance(origin, type) and issubclass(origin, generic)) or len(arguments) <= index:
                continue
            if not isinstance(arguments[index], TypeVar):
                found: object = arguments[index]
                return found
    return None


def empty(kind: type[Value]) -> Value:
    """Return what a type gives when called without arguments; None where None is one of its kinds.

    Raises:
        TypeError: it gives nothing without arguments.
    """
    origin = get_origin(kind)
    if origin in {Union, UnionType}:
        if type(None) in get_args(kind):
            return cast("Value", None)
        raise TypeError(f"{kind} names several types, and None is not one of them")
    return cast("Value", origin()) if isinstance(origin, type) else kind()  # list[int]() is a list


def same(left: JsonValue, right: JsonValue) -> bool:
    """Whether two JSON values are equal as JSON: true is not 1, 1 is 1.0, members have no order."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(item, right[key]) for key, item in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    return left == right


def _object(value: dict[object, object]) -> JsonObject:
    wrong = [key for key in value if not isinstance(key, str)]
    if wrong:
        raise NotJson(f"the key {wrong[0]!r} is not text")
    return {str(key): to_json(item) for key, item in value.items()}
