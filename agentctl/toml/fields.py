"""What a dataclass says about the keys of its TOML table."""

import dataclasses
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType, NoneType, UnionType
from typing import Annotated, TypeGuard, Union, get_args, get_origin

from agentctl.toml.table import Table


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One key of a table."""

    name: str
    """The dataclass field's name."""
    hint: object
    """Its type as written, marks included. A text stands for any JSON value."""
    required: bool
    default: object = None
    """None where the key is required or has no default worth showing."""


@cache
def fields_of(kind: type) -> Mapping[str, Field]:
    """Return the fields that a table may set, by TOML key, in the order of the dataclass."""
    found = {}
    for field in dataclasses.fields(kind):
        key = field.metadata.get("toml", field.name)
        if not key:
            continue
        default = field.default
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        required = default is dataclasses.MISSING
        found[key] = Field(
            name=field.name, hint=field.type, required=required, default=None if required else default
        )
    return MappingProxyType(found)


def parts_of(hint: object) -> tuple[object, tuple[object, ...]]:
    """Return a type without its marks and without `| None`, and the marks."""
    marks: tuple[object, ...] = ()
    while True:
        if get_origin(hint) is Annotated:
            hint, *found = get_args(hint)
            marks = (*marks, *found)
        elif get_origin(hint) in {Union, UnionType} and len(members_of(hint)) == 1:
            hint = members_of(hint)[0]
        else:
            return hint, marks


def members_of(hint: object) -> tuple[object, ...]:
    """Return the members of a union without None; nothing for any other type."""
    if get_origin(hint) not in {Union, UnionType}:
        return ()
    return tuple(member for member in get_args(hint) if member is not NoneType)


def is_table_class(hint: object) -> TypeGuard[type]:
    """Tell whether a type is a dataclass that describes a TOML table."""
    return isinstance(hint, type) and dataclasses.is_dataclass(hint) and hint is not Table
