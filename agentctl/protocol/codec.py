"""Protocol dataclasses to JSON and back. The one place where `Any` is allowed.

A member of a union is written with its class name under `"type"`; a plain dataclass as an object of its
fields, those that equal their default left out. Unknown fields are ignored, so that an older version can
read what a newer one wrote; an unknown `"type"` raises `UnknownType`, which the journal turns into a warning.
"""

import dataclasses
import types
import typing
from collections.abc import Callable
from enum import Enum
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from agentctl.protocol.values import JsonObject, JsonValue


class UnknownType(ValueError):
    """A record names a type that this version does not know."""


class Malformed(ValueError):
    """A record does not have the shape of its type."""


def encode(value: object) -> JsonValue:
    """Return `value` as JSON; dataclasses carry their class name as `type`.

    Total for protocol dataclasses, enums, tuples, dicts with string keys and JSON values.

    Raises:
        Malformed: something in it is none of these.
    """
    if isinstance(value, Enum):
        return encode(value.value)
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, list | tuple):
        return [encode(item) for item in value]
    if isinstance(value, dict):
        return {str(key): encode(item) for key, item in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields: JsonObject = {"type": type(value).__name__}
        for name, default in _defaults(type(value)):
            item = getattr(value, name)
            if default is dataclasses.MISSING or item != default:
                fields[name] = encode(item)
        return fields
    raise Malformed(f"cannot write {type(value).__name__} as JSON")


def decode(kind: Any, value: JsonValue) -> Any:
    """Return `value` read as `kind`, a protocol dataclass or a union of them.

    Raises:
        UnknownType: the record names a type that is not a member of the union.
        Malformed: a field is missing or of the wrong type.
    """
    return _decoder(kind)(value)


def decoder(kind: Any) -> Callable[[JsonValue], Any]:
    """Return what `decode` does for one kind; kept by who decodes many: finding it hashes the whole union."""
    return _decoder(kind)


_PLAIN = (str, int, float, bool)


@cache
def _defaults(kind: type) -> tuple[tuple[str, Any], ...]:
    pairs = []
    for item in dataclasses.fields(kind):
        default = item.default
        if item.default_factory is not dataclasses.MISSING:
            default = item.default_factory()
        pairs.append((item.name, default))
    return tuple(pairs)


def _is_json_value(kind: Any) -> bool:
    return isinstance(kind, typing.ForwardRef) or (isinstance(kind, str) and "JsonValue" in kind)


@cache
def _decoder(kind: Any) -> Callable[[JsonValue], Any]:
    origin = get_origin(kind)
    if kind is JsonValue or _is_json_value(kind) or kind is JsonObject:
        return lambda value: value
    if dataclasses.is_dataclass(kind):
        return _dataclass_decoder(typing.cast("type", kind))
    if origin in (Union, types.UnionType):
        return _union_decoder(kind)
    if origin is tuple:
        item = _decoder(get_args(kind)[0])
        return lambda value: tuple(item(one) for one in _as_list(value))
    if origin in (list, set, frozenset):
        item = _decoder(get_args(kind)[0])
        return lambda value: origin(item(one) for one in _as_list(value))
    if kind is list:
        return _as_list
    if kind is dict:
        return _as_object
    if origin is dict:
        item = _decoder(get_args(kind)[1])
        return lambda value: {key: item(one) for key, one in _as_object(value).items()}
    if origin is Literal:
        return _literal_decoder(get_args(kind))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind
    if kind in (str, int, float, bool, type(None)):
        return _scalar_decoder(kind)
    return lambda value: value


def _dataclass_decoder(kind: type) -> Callable[[JsonValue], Any]:
    decoders: dict[str, Callable[[JsonValue], Any]] = {}
    # Most values pass through these fields as they are: opening a journal is this loop.
    plain: dict[str, type] = {}

    def read(value: JsonValue) -> Any:
        if not decoders:
            # A module that imports JsonObject alone has no JsonValue for the alias to find.
            hints = get_type_hints(kind, localns={"JsonValue": JsonValue})
            decoders.update({item.name: _decoder(hints[item.name]) for item in dataclasses.fields(kind)})
            plain.update({name: hints[name] for name in decoders if hints[name] in _PLAIN})
        given: dict[str, Any] = {}
        for name, item in _as_object(value).items():
            if type(item) is plain.get(name):
                given[name] = item
            elif (decode_one := decoders.get(name)) is not None:
                given[name] = decode_one(item)
        try:
            return kind(**given)
        except TypeError as error:
            raise Malformed(f"{kind.__name__}: {error}") from error

    return read


def _union_decoder(kind: Any) -> Callable[[JsonValue], Any]:
    readers: dict[str, Callable[[JsonValue], Any]] = {}
    for member in get_args(kind):
        if isinstance(member, type) and dataclasses.is_dataclass(member):
            readers[member.__name__] = _decoder(member)
    plain = [member for member in get_args(kind) if not dataclasses.is_dataclass(member)]
    takes_none = type(None) in plain
    scalars = [_decoder(member) for member in plain if member is not type(None)]

    def read(value: JsonValue) -> Any:
        if value is None and takes_none:
            return None
        if isinstance(value, dict) and readers:
            tag = value.get("type")
            reader = readers.get(tag) if isinstance(tag, str) else None
            if reader is None and len(readers) == 1 and tag is None:
                reader = next(iter(readers.values()))
            if reader is None:
                raise UnknownType(str(tag))
            return reader(value)
        return scalars[0](value) if len(scalars) == 1 else value

    return read


def _literal_decoder(words: tuple[Any, ...]) -> Callable[[JsonValue], Any]:
    def read(value: JsonValue) -> Any:
        if value not in words:
            raise Malformed(f"{value!r} is none of {', '.join(map(repr, words))}")
        return value

    return read


def _scalar_decoder(kind: Any) -> Callable[[JsonValue], Any]:
    def read(value: JsonValue) -> Any:
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            return float(value)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise Malformed(f"{value!r} is not {kind.__name__}")
        return value

    return read


def _as_list(value: JsonValue) -> list[JsonValue]:
    if not isinstance(value, list):
        raise Malformed(f"{value!r} is not a list")
    return value


def _as_object(value: JsonValue) -> JsonObject:
    if not isinstance(value, dict):
        raise Malformed(f"{value!r} is not an object")
    return value
