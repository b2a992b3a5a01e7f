"""The JSON Schema of a TOML file, from the dataclass that it is loaded into, for editors.

Draft 7, which is what TOML language servers read. The words come from the texts below the fields.
"""

import ast
import dataclasses
import inspect
import textwrap
from functools import cache
from itertools import pairwise
from typing import Literal, get_args, get_origin

from agentctl.toml.fields import fields_of, is_table_class, members_of, parts_of
from agentctl.toml.shapes import Duration, OneOrMore, Range, Rules, Shorthand, Size, Text
from agentctl.toml.table import Table, TomlValue

Schema = dict[str, TomlValue]

_VERDICT: Schema = {"enum": ["allow", "ask", "deny"]}
_PATTERNS: Schema = {"type": "array", "items": {"type": "string"}}
_RULES: Schema = {
    "type": "object",
    "additionalProperties": {
        "anyOf": [
            _VERDICT,
            {
                "type": "object",
                "properties": {"default": _VERDICT, "allow": _PATTERNS, "ask": _PATTERNS, "deny": _PATTERNS},
                "additionalProperties": False,
            },
        ]
    },
}
_SIZE: Schema = {
    "anyOf": [
        {"type": "integer", "minimum": 0},
        {"type": "string", "pattern": r"^ *[0-9][0-9_]*(\.[0-9]+)? ?([KMGTkmgt]i?)?[Bb]? *$"},
    ]
}
_DURATION: Schema = {
    "anyOf": [
        {"type": "number", "minimum": 0},
        {"type": "string", "pattern": r"^ *([0-9]+(\.[0-9]+)? *(d|h|m|min|s|ms) *)+$"},
    ]
}


def schema_of(kind: type, *, title: str) -> Schema:
    """Return the schema of the file whose top table is loaded into `kind`. May block: reads source files."""
    definitions: Schema = {}
    _define(kind, definitions)
    top = definitions.pop(kind.__name__)
    rest = top if isinstance(top, dict) else {}
    ordered: Schema = {name: definitions[name] for name in sorted(definitions)}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": title,
        **rest,
        "definitions": ordered,
    }


def _define(kind: type, definitions: Schema) -> None:
    if kind.__name__ in definitions:
        return
    definitions[kind.__name__] = {}  # stands for itself while its fields are looked at
    words = field_words(kind)
    properties: Schema = {}
    required: list[TomlValue] = []
    for key, field in fields_of(kind).items():
        shape = _shape(field.hint, definitions)
        says: Schema = {"description": words[field.name]} if field.name in words else {}
        default = field.default
        if isinstance(default, str | int | float) and default != "":
            says["default"] = default
        properties[key] = {**says, **({"allOf": [shape]} if "$ref" in shape else shape)}
        if field.required:
            required.append(key)
    shape = {"type": "object", "description": _sentence(kind), "properties": properties}
    if required:
        shape["required"] = required
    definitions[kind.__name__] = {**shape, "additionalProperties": False}


def _shape(hint: object, definitions: Schema) -> Schema:
    plain, marks = parts_of(hint)
    if isinstance(plain, str):
        return {}
    if members := members_of(plain):
        return {"anyOf": [_shape(member, definitions) for member in members]}
    if plain is Table:
        return _RULES if any(isinstance(mark, Rules) for mark in marks) else {"type": "object"}
    if is_table_class(plain):
        return _table(plain, marks, definitions)
    origin = get_origin(plain)
    if origin is tuple:
        item = _shape(get_args(plain)[0], definitions)
        array: Schema = {"type": "array", "items": item}
        return {"anyOf": [item, array]} if any(isinstance(mark, OneOrMore) for mark in marks) else array
    if origin is dict:
        return _mapping(plain, definitions)
    if origin is Literal:
        return {"enum": [word for word in get_args(plain) if word != ""]}
    return _scalar(plain, marks)


def _table(kind: type, marks: tuple[object, ...], definitions: Schema) -> Schema:
    _define(kind, definitions)
    reference: Schema = {"$ref": f"#/definitions/{kind.__name__}"}
    for mark in marks:
        if isinstance(mark, Shorthand):
            return {"anyOf": [_shape(fields_of(kind)[mark.name].hint, definitions), reference]}
    return reference


def _mapping(hint: object, definitions: Schema) -> Schema:
    key_hint, item_hint = get_args(hint)
    item = _shape(item_hint, definitions)
    plain, marks = parts_of(key_hint)
    if get_origin(plain) is Literal:
        words: Schema = dict.fromkeys(get_args(plain), item)
        return {"type": "object", "properties": words, "additionalProperties": False}
    shape: Schema = {"type": "object", "additionalProperties": item or True}
    for mark in marks:
        if isinstance(mark, Text):
            shape["propertyNames"] = {"pattern": f"^({mark.pattern})$"}
    return shape


def _scalar(plain: object, marks: tuple[object, ...]) -> Schema:
    if any(isinstance(mark, Size) for mark in marks):
        return _SIZE
    if any(isinstance(mark, Duration) for mark in marks):
        return _DURATION
    names: dict[object, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}
    shape: Schema = {"type": names[plain]}
    for mark in marks:
        if isinstance(mark, Text):
            shape["pattern"] = f"^({mark.pattern})$"
        elif isinstance(mark, Range):
            bounds = {"minimum": mark.minimum, "maximum": mark.maximum}
            shape.update({name: bound for name, bound in bounds.items() if bound is not None})
    return shape


@cache
def field_words(kind: type) -> dict[str, str]:
    """Return what the text below each field says, by field name. May block: reads the source."""
    found: dict[str, str] = {}
    for part in reversed(kind.__mro__):
        if dataclasses.is_dataclass(part):
            found |= _words_in(part)
    return found


def _words_in(kind: type) -> dict[str, str]:
    [tree] = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    body = tree.body if isinstance(tree, ast.ClassDef) else []
    found: dict[str, str] = {}
    for field, text in pairwise(body):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(text, ast.Expr)
            and isinstance(text.value, ast.Constant)
            and isinstance(text.value.value, str)
        ):
            found[field.target.id] = " ".join(text.value.value.split())
    return found


def _sentence(kind: type) -> str:
    return " ".join((kind.__doc__ or "").split())
