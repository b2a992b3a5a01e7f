"""Typed notes of one run, shared by its hooks: one value a type."""

import copy
import dataclasses
import threading
from collections.abc import Callable
from typing import TypeVar, cast

from agentctl.protocol.values import JsonObject, JsonValue
from agentctl.state.typed import Drifted, NotJson, empty, from_json, to_json

Value = TypeVar("Value")
Result = TypeVar("Result")


class ScratchpadBusy(RuntimeError):
    """The scratchpad was used from inside a function given to `update`; it would wait for itself."""


class Scratchpad:
    """One value a type. Synchronous, atomic, usable from threads; handles that are copied share the notes.

    Values that are dataclasses of JSON types are saved with the run, and a resumed run finds them again.
    No order is promised between hooks that run at once: keep what commutes, or key it by the call's id.
    """

    def __init__(self) -> None:
        self._values: dict[type, object] = {}
        self._saved: JsonObject = {}
        self._lock = threading.RLock()
        self._updating: list[int] = []

    def insert(self, value: Value) -> Value | None:
        """Store a copy of a value under its type; return the one that was there, or None."""
        with self._held():
            kind, kept = type(value), copy.deepcopy(value)
            before = self._take(kind)
            self._values[kind] = kept
            return before

    def get(self, kind: type[Value]) -> Value | None:
        """Return a copy of the value of a type, or None."""
        with self._held():
            value = self._find(kind)
            return None if value is None else copy.deepcopy(value)

    def contains(self, kind: type[Value]) -> bool:
        """Whether there is a value of a type."""
        with self._held():
            return self._find(kind) is not None

    def remove(self, kind: type[Value]) -> Value | None:
        """Take out the value of a type and return it, or None."""
        with self._held():
            return self._take(kind)

    def update(self, kind: type[Value], change: Callable[[Value], Result]) -> Result:
        """Let `change` work on a copy of the value, or on `kind()`, and store it if it returns. Atomic.

        Returns what `change` returned. When it raises, the value stays what it was.

        Raises:
            ScratchpadBusy: `change` used the scratchpad itself.
        """
        with self._held():
            found = self._find(kind)
            value = empty(kind) if found is None else copy.deepcopy(found)
            self._updating.append(threading.get_ident())
            try:
                result = change(value)
            finally:
                self._updating.pop()
            self._values[kind] = value
            return result

    def dump(self) -> JsonObject:
        """Return what is saved with the run: dataclasses of JSON types, by the name of their type."""
        with self._held():
            saved = dict(self._saved)
            for kind, value in self._values.items():
                if dataclasses.is_dataclass(kind):
                    try:
                        saved[_name(kind)] = to_json(value)
                    except NotJson:
                        saved.pop(_name(kind), None)
            return saved

    def restore(self, saved: JsonObject) -> None:
        """Take in what `dump` gave; each value is read when its type is first asked for."""
        with self._held():
            self._saved = dict(saved)

    def _held(self) -> threading.RLock:
        if threading.get_ident() in self._updating:
            raise ScratchpadBusy(
                "the scratchpad was used inside the function given to update(); work on its argument"
            )
        return self._lock

    def _find(self, kind: type[Value]) -> Value | None:
        if kind not in self._values and _name(kind) in self._saved:
            stored: JsonValue = self._saved.pop(_name(kind))
            try:
                self._values[kind] = from_json(kind, stored)
            except Drifted:
                return None  # the type has changed since: the hook starts over, as in a fresh run
        return cast("Value | None", self._values.get(kind))  # stored under its own type only

    def _take(self, kind: type[Value]) -> Value | None:
        value = self._find(kind)
        self._values.pop(kind, None)
        return value


def _name(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"
