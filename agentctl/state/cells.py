"""Cells: what the commands of a thread's commits amount to. Replay applies commands and judges nothing."""

from collections.abc import ItemsView, Iterable, Iterator, Mapping

from agentctl.protocol.commands import Command, FoldValue, Merge, RemoveValue, Scope, SetValue
from agentctl.protocol.values import JsonObject, JsonValue
from agentctl.records import dataclass
from agentctl.state.folds import fold
from agentctl.state.typed import from_json, to_json


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a cell is. `run_id` is empty for every scope but `run`."""

    scope: Scope
    key: str
    run_id: str = ""

    def __str__(self) -> str:
        return f"{self.scope}/{self.key}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A value and where it came from. Not to be changed: cells are shared between versions of the state."""

    value: JsonValue
    version: int = 1
    """Version of the key's definition that the value follows."""
    writer: str = ""


class Cells:
    """All cells of a thread at one point of its journal. Immutable: `after` returns the next ones."""

    __slots__ = ("_cells",)

    def __init__(self, cells: Mapping[Address, Cell] | None = None) -> None:
        self._cells: dict[Address, Cell] = dict(cells or {})

    def after(self, commands: Iterable[Command]) -> "Cells":
        """Return the cells after `commands`, in order. Pure; judges nothing, since a commit did.

        Raises:
            ValueError: a fold does not fit the value that is there; no commit of ours holds such a one.
        """
        draft = CellsDraft(self)
        for command in commands:
            draft.apply(command)
        return draft.freeze()

    def at(self, address: Address) -> Cell | None:
        """Return the cell at an address, or None when it is absent."""
        return self._cells.get(address)

    def cell(self, scope: Scope, key: str, *, run_id: str = "") -> Cell | None:
        """Return a cell, or None when it is absent. `run_id` is needed for scope `run`."""
        return self._cells.get(Address(scope=scope, key=key, run_id=run_id if scope == "run" else ""))

    def get(self, scope: Scope, key: str, *, run_id: str = "") -> JsonValue:
        """Return a cell's value, or None when it is absent."""
        cell = self.cell(scope, key, run_id=run_id)
        return None if cell is None else cell.value

    def view(self, run_id: str) -> "CellView":
        """Return what one run sees: its own run cells, and all others of the thread."""
        return CellView(self, run_id)

    def scan(self, scope: Scope, prefix: str, *, run_id: str = "") -> dict[str, JsonValue]:
        """Return the cells of a scope whose key begins with exactly `prefix`, by key."""
        run = run_id if scope == "run" else ""
        found = {
            address.key: cell.value
            for address, cell in self._cells.items()
            if address.scope == scope and address.run_id == run and address.key.startswith(prefix)
        }
        return dict(sorted(found.items()))

    def project(self, names: Iterable[str]) -> "Cells":
        """Return only the cells whose key is in `names`; a last `*` in a name is any further characters."""
        wanted = tuple(names)
        return Cells(
            {
                address: cell
                for address, cell in self._cells.items()
                if any(_fits(name, address.key) for name in wanted)
            }
        )

    def dump(self) -> JsonValue:
        """Return all cells as JSON, in a fixed order; `Cells.restore` reads it."""
        rows: list[JsonValue] = []
        for address, cell in sorted(self._cells.items(), key=lambda item: _order(item[0])):
            row = to_json(cell)
            place = to_json(address)
            if isinstance(row, dict) and isinstance(place, dict):
                rows.append({**place, **row})
        return rows

    @classmethod
    def restore(cls, dumped: JsonValue) -> "Cells":
        """Return the cells that `dump` wrote.

        Raises:
            Drifted: it is not what `dump` writes.
        """
        rows = from_json(list[JsonObject], dumped)
        return cls({from_json(Address, row): from_json(Cell, row) for row in rows})

    def items(self) -> ItemsView[Address, Cell]:
        """Return addresses with their cells, in no order."""
        return self._cells.items()

    def __iter__(self) -> Iterator[Address]:
        return iter(sorted(self._cells, key=_order))

    def __len__(self) -> int:
        return len(self._cells)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cells) and self.dump() == other.dump()

    __hash__ = None  # type: ignore[assignment]


class CellsDraft:
    """The next cells while commands are applied one by one."""

    __slots__ = ("_cells",)

    def __init__(self, cells: Cells) -> None:
        self._cells = dict(cells.items())

    def at(self, address: Address) -> Cell | None:
        """Return the cell at an address, or None when it is absent."""
        return self._cells.get(address)

    def apply(self, command: Command) -> None:
        """Apply one command.

        Raises:
            ValueError: a fold does not fit the value that is there.
        """
        address = address_of(command)
        if isinstance(command.action, RemoveValue):
            self._cells.pop(address, None)
            return
        before = self._cells.get(address)
        value = value_after(None if before is None else before.value, command.action, command.merge)
        self._cells[address] = Cell(value=value, version=command.version, writer=command.writer)

    def freeze(self) -> Cells:
        """Return the cells as they are now."""
        return Cells(self._cells)


class CellView:
    """The cells as one run sees them."""

    __slots__ = ("_cells", "run_id")

    def __init__(self, cells: Cells, run_id: str) -> None:
        self._cells = cells
        self.run_id = run_id

    def cell(self, scope: Scope, key: str) -> Cell | None:
        """Return a cell, or None when it is absent."""
        return self._cells.cell(scope, key, run_id=self.run_id)

    def get(self, scope: Scope, key: str) -> JsonValue:
        """Return a cell's value, or None when it is absent."""
        return self._cells.get(scope, key, run_id=self.run_id)

    def scan(self, scope: Scope, prefix: str) -> dict[str, JsonValue]:
        """Return the cells of a scope whose key begins with exactly `prefix`, by key."""
        return self._cells.scan(scope, prefix, run_id=self.run_id)


def value_after(value: JsonValue, action: SetValue | FoldValue, merge: Merge) -> JsonValue:
    """Return a cell's value after an action; `value` is None when it was absent. Pure.

    Raises:
        ValueError: a fold does not fit the value.
    """
    match action:
        case SetValue(value=new):
            if merge is Merge.COMMUTATIVE and isinstance(value, dict) and isinstance(new, dict):
                return {**value, **new}
            return new
        case FoldValue(resolved=True, result=result):
            return result
        case FoldValue(value=update, fold=name):
            return fold(name, value, update)


def address_of(command: Command) -> Address:
    """Return the cell that a command is about."""
    return Address(
        scope=command.scope, key=command.key, run_id=command.run_id if command.scope == "run" else ""
    )


def _order(address: Address) -> tuple[str, str, str]:
    return (address.scope, address.key, address.run_id)


def _fits(name: str, key: str) -> bool:
    return key.startswith(name[:-1]) if name.endswith("*") else key == name
