"""The folds that a key can name: how an update changes the value that is there."""

from collections.abc import Callable
from typing import TypeAlias

from agentctl.protocol.values import JsonValue
from agentctl.state.document import apply_patch
from agentctl.state.typed import same

FoldFunction: TypeAlias = Callable[[JsonValue, JsonValue], JsonValue]
"""(value or None when absent, update) → the new value. Total, deterministic, changes neither."""


def fold(name: str, value: JsonValue, update: JsonValue) -> JsonValue:
    """Return the value after the built-in fold `name`; `value` is None when the cell is absent. Pure.

    Raises:
        ValueError: there is no such fold, or the update does not fit.
    """
    function = BUILT_IN.get(name)
    if function is None:
        raise ValueError(f"there is no built-in fold {name!r}; there are {', '.join(BUILT_IN)}")
    return function(value, update)


def problem_with(name: str, value: JsonValue) -> str:
    """Return why the fold could not go on from `value`, or empty; one of your own takes anything. Pure."""
    try:
        if name in {"sum", "max", "min"} and value is not None:
            _number(value)
        elif name in {"append", "union"}:
            _items(value)
    except ValueError as error:
        return f"{error}, as its fold {name!r} wants it"
    return ""


def _sum(value: JsonValue, update: JsonValue) -> JsonValue:
    return _number(0 if value is None else value) + _number(update)


def _max(value: JsonValue, update: JsonValue) -> JsonValue:
    return _number(update) if value is None else max(_number(value), _number(update))


def _min(value: JsonValue, update: JsonValue) -> JsonValue:
    return _number(update) if value is None else min(_number(value), _number(update))


def _append(value: JsonValue, update: JsonValue) -> JsonValue:
    return [*_items(value), update]


def _union(value: JsonValue, update: JsonValue) -> JsonValue:
    found = list(_items(value))
    for item in update if isinstance(update, list) else [update]:
        if not any(same(item, one) for one in found):
            found.append(item)
    return found


def _last(value: JsonValue, update: JsonValue) -> JsonValue:
    del value
    return update


def _patch(value: JsonValue, update: JsonValue) -> JsonValue:
    return apply_patch({} if value is None else value, update)


def _number(value: JsonValue) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{value!r} is not a number")  # noqa: TRY004 - data, not a caller's mistake
    return value


def _items(value: JsonValue) -> list[JsonValue]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise ValueError(f"{value!r} is not a list")  # noqa: TRY004 - data, not a caller's mistake
    return value


BUILT_IN: dict[str, FoldFunction] = {
    "sum": _sum,
    "max": _max,
    "min": _min,
    "append": _append,
    "union": _union,
    "patch": _patch,
    "last": _last,
}
"""`append` adds the update as one item, `union` each item that is not there yet; `patch` is for documents,
`last` for the harness's own cells, where a later write is meant to stand."""
