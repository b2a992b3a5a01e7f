"""The state document: JSON Patch by path copying, and the text form that views show.

Only the containers on a patch's paths are copied; the rest is shared between the document before and after.
So a document is never changed in place, and one from before stays what it was.

Source: RFC 6902, https://www.rfc-editor.org/rfc/rfc6902
"""

import copy
from collections.abc import Iterable, Sequence

from agentctl.protocol.values import JsonObject, JsonValue, compact_json
from agentctl.state.pointer import PointerError, child, index_of, parse
from agentctl.state.typed import same

MAX_DEPTH = 200
"""Nesting that a patch's value may have; far below what the recursion of any reader bears."""


class PatchError(ValueError):
    """A patch cannot be applied; the document is as it was. The text names the operation."""


def apply_patch(document: JsonValue, patch: object) -> JsonValue:
    """Return the document after `patch`, a list of RFC 6902 operations, in order, all or none.

    `document` is not changed, and shares with the result what the patch does not touch. Values are copied
    in. Members of an operation that RFC 6902 does not know are ignored. Pure, atomic.

    Raises:
        PatchError: it is not a list of operations, a place does not exist, or a `test` does not hold.
    """
    if not isinstance(patch, list | tuple):
        raise PatchError("a patch is a list of operations")
    for number, operation in enumerate(patch):
        if not isinstance(operation, dict):
            raise PatchError(f"operation {number} is not an object")
        try:
            document = _apply(document, operation)
        except PointerError as error:
            where = operation.get("path")
            raise PatchError(f"operation {number} ({operation.get('op')} {where!r}): {error}") from error
    return document


def places_of(operation: JsonObject) -> tuple[str, ...]:
    """Return the pointers that an operation changes: its path, and what `move` takes away. Pure.

    Raises:
        PatchError: it has no path.
    """
    path = operation.get("path")
    if not isinstance(path, str):
        raise PatchError("an operation has no path")
    if operation.get("op") == "test":
        return ()
    origin = operation.get("from")
    return (path, origin) if operation.get("op") == "move" and isinstance(origin, str) else (path,)


def size_bytes(value: JsonValue) -> int:
    """Return the bytes of a value's compact JSON."""
    return len(compact_json(value).encode("utf-8", "replace"))


def add_with_parents(document: JsonValue, pointer: str, value: JsonValue) -> list[JsonValue]:
    """Return operations that put `value` at `pointer`, making the objects on the way that are missing.

    What a last `-` shall be added to is made as a list.

    Raises:
        PatchError: something on the way is there and has no members.
    """
    parts = parse(pointer)
    operations: list[JsonValue] = []
    here, built = document, ""
    for number, part in enumerate(parts[:-1]):
        built += "/" + part.replace("~", "~0").replace("/", "~1")
        made: JsonValue = [] if parts[number + 1 :] == ("-",) else {}
        if operations:
            operations.append(_add(built, made))
            continue
        try:
            here = child(here, part)
        except PointerError as error:
            if not isinstance(here, dict):
                raise PatchError(f"{pointer!r}: part {number} stands in a value without members") from error
            operations.append(_add(built, made))
    operations.append(_add(pointer, value))
    return operations


def depth_of(value: JsonValue, limit: int = MAX_DEPTH) -> int:
    """Return how deep `value` nests, counting no further than `limit` + 1. Total: does not recurse."""
    level: list[JsonValue] = [value]
    depth = 0
    while level and depth <= limit:
        level = [inner for outer in level for inner in _inside(outer)]
        depth += 1
    return depth


def _add(path: str, value: JsonValue) -> JsonObject:
    return {"op": "add", "path": path, "value": value}


def _inside(value: JsonValue) -> Iterable[JsonValue]:
    match value:
        case dict():
            return value.values()
        case list():
            return value
        case _:
            return ()


def _apply(document: JsonValue, operation: JsonObject) -> JsonValue:
    path = parse(_text(operation, "path"))
    match operation.get("op"):
        case "add":
            return _put(document, path, _value(operation), insert=True)
        case "replace":
            return _put(document, path, _value(operation), insert=False)
        case "remove":
            return _take(document, path)
        case "test":
            if not same(_at(document, path), _value(operation)):
                raise PointerError("the test does not hold")
            return document
        case "copy":
            found = copy.deepcopy(_at(document, parse(_text(operation, "from"))))
            return _put(document, path, found, insert=True)
        case "move":
            return _move(document, parse(_text(operation, "from")), path)
        case other:
            raise PointerError(f"{other!r} is no operation")


def _move(document: JsonValue, origin: tuple[str, ...], path: tuple[str, ...]) -> JsonValue:
    found = _at(document, origin)
    if origin == path:
        return document
    if path[: len(origin)] == origin:
        raise PointerError("a value cannot move into itself")
    return _put(_take(document, origin), path, found, insert=True)


def _text(operation: JsonObject, name: str) -> str:
    value = operation.get(name)
    if not isinstance(value, str):
        raise PointerError(f"{name!r} is missing or not text")
    return value


def _value(operation: JsonObject) -> JsonValue:
    if "value" not in operation:
        raise PointerError("'value' is missing")
    value = operation["value"]
    if isinstance(value, dict | list):
        if depth_of(value) > MAX_DEPTH:
            raise PointerError(f"the value nests deeper than {MAX_DEPTH}")
        return copy.deepcopy(value)
    return value


def _at(document: JsonValue, parts: Sequence[str]) -> JsonValue:
    for part in parts:
        document = child(document, part)
    return document


def _put(document: JsonValue, parts: Sequence[str], value: JsonValue, *, insert: bool) -> JsonValue:
    if not parts:
        return value
    part, rest = parts[0], parts[1:]
    if isinstance(document, dict):
        if rest or not insert:
            value = _put(child(document, part), rest, value, insert=insert)
        return {**document, part: value}
    if isinstance(document, list):
        if rest or not insert:
            index = index_of(part, len(document))
            changed = _put(document[index], rest, value, insert=insert)
            return [*document[:index], changed, *document[index + 1 :]]
        index = len(document) if part == "-" else index_of(part, len(document) + 1)
        return [*document[:index], value, *document[index:]]
    raise PointerError(f"{part!r} is looked for in a value that has no parts")


def _take(document: JsonValue, parts: Sequence[str]) -> JsonValue:
    if not parts:
        raise PointerError("the whole document cannot be removed")
    part, rest = parts[0], parts[1:]
    inner = child(document, part)
    if isinstance(document, dict):
        if rest:
            return {**document, part: _take(inner, rest)}
        return {name: value for name, value in document.items() if name != part}
    if isinstance(document, list):
        index = index_of(part, len(document))
        kept = [_take(inner, rest)] if rest else []
        return [*document[:index], *kept, *document[index + 1 :]]
    raise PointerError(f"{part!r} is looked for in a value that has no parts")
