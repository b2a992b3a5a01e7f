"""What a cell may hold and how writes to it combine: definitions, and the table a commit is checked against.

A definition comes from a key class (`key_classes.py`) or from a blueprint's `[[state_keys]]`.
"""

from collections.abc import Callable, Iterable
from dataclasses import field
from typing import Protocol, TypeAlias

from agentctl.errors import StateConflict
from agentctl.protocol.commands import Merge, Scope
from agentctl.protocol.values import JsonObject, JsonValue
from agentctl.records import dataclass
from agentctl.state.cells import Cell
from agentctl.state.folds import FoldFunction, problem_with
from agentctl.state.typed import same


class CellReader(Protocol):
    """Committed cells as one run sees them: `CellView`, or `Cells` for scopes other than `run`."""

    def cell(self, scope: Scope, key: str, /) -> Cell | None:
        """Return a cell, or None when it is absent."""


Shape: TypeAlias = Callable[[JsonValue], str]
"""Says what is wrong with a value; empty when it fits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyDefinition:
    """What a key is, however it was written down."""

    name: str
    scope: Scope = "run"
    merge: Merge = Merge.DISJOINT
    fold: str = ""
    """A built-in fold, or `module:function`; empty unless `merge` is fold."""
    fold_function: FoldFunction | None = field(default=None, compare=False)
    """The function behind `module:function`."""
    default: JsonValue = None
    version: int = 1
    schema: JsonObject = field(default_factory=dict)
    """JSON Schema of the value; anything where empty."""
    type_name: str = ""
    """The Python type, for keys that are classes."""
    shape: Shape | None = field(default=None, compare=False)
    """Checks a value against the schema or type; None takes anything."""
    description: str = ""

    def agrees_with(self, other: "KeyDefinition") -> bool:
        """Whether both say the same; a class and a schema for one cell are not compared by type."""
        policies = [(one.scope, one.merge, one.fold, one.version) for one in (self, other)]
        if policies[0] != policies[1]:
            return False
        if bool(self.type_name) != bool(other.type_name):
            return True
        types = [(one.type_name, one.schema) for one in (self, other)]
        return types[0] == types[1] and same(self.default, other.default)

    def problem_with(self, value: JsonValue) -> str:
        """Return what is wrong with a value of this key, or empty."""
        problem = "" if self.shape is None else self.shape(value)
        return problem or problem_with(self.fold, value)

    def load(self, cells: CellReader) -> JsonValue:
        """Return the cell's value, or the default when it is absent.

        Raises:
            StateConflict: the stored value follows another version, or does not fit.
        """
        cell = cells.cell(self.scope, self.name)
        if cell is None:
            return self.default
        if cell.version != self.version:
            raise drifted(self, f"it was stored by version {cell.version}, the key is at {self.version}")
        problem = self.problem_with(cell.value)
        if problem:
            raise drifted(self, problem)
        return cell.value


def drifted(definition: KeyDefinition, detail: str) -> StateConflict:
    """Return the error for a stored value that is not what the key says."""
    return StateConflict(
        f"State key {definition.name!r} in scope {definition.scope!r} does not match its declared shape:"
        f" {detail}.",
        hint=f"agentctl state migrate RUN {definition.name}",
    )


class KeyTable:
    """All keys of a run, by scope and name."""

    def __init__(self, definitions: Iterable[KeyDefinition] = ()) -> None:
        """Take in definitions.

        Raises:
            StateConflict: two with one scope and name differ in policy, type or version.
        """
        self._keys: dict[tuple[Scope, str], KeyDefinition] = {}
        for definition in definitions:
            address = (definition.scope, definition.name)
            known = self._keys.setdefault(address, definition)
            if not known.agrees_with(definition):
                raise StateConflict(
                    f"State key {definition.name!r} in scope {definition.scope!r} is defined twice, and the"
                    " definitions differ.",
                    hint="Give both the same merge, type, default and version, or one of them another name.",
                )

    def get(self, scope: Scope, name: str) -> KeyDefinition | None:
        """Return a key's definition, or None."""
        return self._keys.get((scope, name))

    def named(self, name: str) -> KeyDefinition | None:
        """Return the key of that name, whatever its scope; the narrowest scope first."""
        for scope in SCOPES:
            if (scope, name) in self._keys:
                return self._keys[scope, name]
        return None

    @property
    def definitions(self) -> tuple[KeyDefinition, ...]:
        """All definitions, in the order they were given."""
        return tuple(self._keys.values())


SCOPES: tuple[Scope, ...] = ("run", "thread", "shared", "profile")
NO_KEYS = KeyTable()
