"""The keys of a TOML file as Markdown tables, from the dataclass that it is loaded into, for docs/."""

from collections.abc import Iterator
from typing import Literal, get_args, get_origin

from agentctl.toml.fields import Field, fields_of, is_table_class, members_of, parts_of
from agentctl.toml.json_schema import field_words
from agentctl.toml.shapes import Duration, JsonSchema, OneOrMore, Range, Rules, Shorthand, Size, Text
from agentctl.toml.table import Table

_MARKS: dict[type, str] = {
    Size: "bytes",
    Duration: "seconds",
    JsonSchema: "JSON Schema",
    Rules: "rules",
    Shorthand: "text, array or table",
}
_HEAD = "| key | value | default | |\n|---|---|---|---|"


def reference_of(kind: type) -> str:
    """Return a section for each table, in the order of the file's keys. Ends with a newline."""
    return "\n".join(_sections(kind, "", {}))


def _sections(kind: type, header: str, seen: dict[type, str]) -> Iterator[str]:
    if kind in seen:
        yield f"### `{header}`\n\nThe keys of `{seen[kind]}`.\n"
        return
    seen[kind] = header
    words = field_words(kind)
    plain: list[str] = []
    below: list[tuple[type, str]] = []
    for key, field in fields_of(kind).items():
        inner, place = _inner_table(field.hint, key, header)
        if inner is None or _has_short_form(field.hint):
            plain.append(_row(key, field, words.get(field.name, "")))
        if inner is not None:
            below.append((inner, place))
    if header:
        yield f"### `{header}`\n\n{' '.join((kind.__doc__ or '').split())}\n"
    if plain:
        yield f"{_HEAD}\n" + "\n".join(plain) + "\n"
    for inner, place in below:
        yield from _sections(inner, place, seen)


def _inner_table(hint: object, key: str, header: str) -> tuple[type | None, str]:
    """Return the class of the table or tables that a key holds, and how their header is written."""
    plain, _ = parts_of(hint)
    path = f"{header.strip('[]')}.{key}" if header else key
    if is_table_class(plain):
        return plain, f"[{path}]"
    if get_origin(plain) is dict:
        item, _ = parts_of(get_args(plain)[1])
        name = "OTHER" if ".NAME" in path else "NAME"
        return (item, f"[{path}.{name}]") if is_table_class(item) else (None, "")
    if get_origin(plain) is tuple:
        item, _ = parts_of(get_args(plain)[0])
        return (item, f"[[{path}]]") if is_table_class(item) else (None, "")
    return None, ""


def _has_short_form(hint: object) -> bool:
    return any(isinstance(mark, Shorthand) for mark in parts_of(hint)[1])


def _row(key: str, field: Field, words: str) -> str:
    default = "required" if field.required else _default(field.default)
    return f"| `{key}` | {_type(field.hint)} | {default} | {words.replace('|', chr(92) + '|')} |"


def _default(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str() if value:
            return f"`{value}`"
        case int() | float():
            return f"{value:,}" if isinstance(value, int) else f"{value:g}"
        case tuple() if value and all(isinstance(item, str) for item in value):
            return ", ".join(f"`{item}`" for item in value)
        case _:
            return ""


def _type(hint: object) -> str:
    plain, marks = parts_of(hint)
    for mark in marks:
        if type(mark) in _MARKS:
            return _MARKS[type(mark)]
    if isinstance(plain, str):
        return "any"
    if members := members_of(plain):
        return " or ".join(_type(member) for member in members)
    if plain is Table or is_table_class(plain):
        return "table"
    origin, inside = get_origin(plain), get_args(plain)
    if origin is Literal:
        return ", ".join(f"`{word}`" for word in inside if word)
    if origin is tuple:
        item = _type(inside[0])
        return (
            f"{item} or array" if any(isinstance(mark, OneOrMore) for mark in marks) else f"array of {item}"
        )
    return f"table of {_type(inside[1])}" if origin is dict else _scalar(plain, marks)


def _scalar(plain: object, marks: tuple[object, ...]) -> str:
    names: dict[object, str] = {str: "text", int: "whole number", float: "number", bool: "true or false"}
    for mark in marks:
        if isinstance(mark, Text):
            return mark.what.replace("|", "\\|")
        if isinstance(mark, Range) and mark.maximum is not None:
            return f"{names[plain]}, {mark.minimum:g} to {mark.maximum:g}"
    return names[plain]
