"""State keys as Python classes: typed reads, and the commands that write."""

from typing import ClassVar, Generic, TypeAlias, TypeVar, cast

from agentctl.errors import StateConflict
from agentctl.protocol.commands import Command, FoldValue, Merge, RemoveValue, Scope, SetValue
from agentctl.protocol.values import JsonValue
from agentctl.state.keys import CellReader, KeyDefinition, KeyTable, drifted
from agentctl.state.typed import Drifted, NotJson, argument_of, empty, from_json, to_json

Value = TypeVar("Value")
Update = TypeVar("Update")
Kind: TypeAlias = type[Value]
"""Said so, because `type` means a class attribute inside `StateKey`."""


class StateKey(Generic[Value]):
    """A typed cell. Subclass it with the value's type and class attributes; there are no instances.

    ::

        @dataclass
        class Review:
            approved: bool = False

        class ReviewKey(StateKey[Review]):
            name = "review"
            scope = "thread"

        ReviewKey.load(cells)                      # Review(approved=False)
        command = ReviewKey.write(Review(True))    # goes into a commit
    """

    name: ClassVar[str]
    """A part of the stored format."""
    scope: ClassVar[Scope] = "run"
    merge: ClassVar[Merge | str] = Merge.DISJOINT
    version: ClassVar[int] = 1
    type: ClassVar[object] = None
    """The value's type, where it is not given as `StateKey[Type]`."""
    default: ClassVar[object] = None
    """The value of an absent cell; where None, the type called without arguments."""

    @classmethod
    def load(cls, cells: CellReader) -> Value:
        """Return the cell's value, or the default when it is absent.

        Raises:
            StateConflict: the stored value does not have the declared shape or version.
        """
        cell = cells.cell(cls.scope, cls.name)
        if cell is None:
            return cls._default()
        if cell.version != cls.version:
            raise drifted(
                cls.definition(), f"it was stored by version {cell.version}, the key is at {cls.version}"
            )
        try:
            return cls._read(cell.value)
        except Drifted as error:
            raise drifted(cls.definition(), str(error)) from error

    @classmethod
    def load_or_default(cls, cells: CellReader) -> Value:
        """Return the cell's value, or the default when it is absent or has another shape."""
        try:
            return cls.load(cells)
        except StateConflict:
            return cls._default()

    @classmethod
    def write(cls, value: Value) -> Command:
        """Return the command that stores `value`.

        Raises:
            TypeError: the value has no form in JSON: a bug of the caller.
        """
        try:
            return cls._command(SetValue(value=to_json(value)))
        except NotJson as error:
            raise TypeError(f"state key {cls.name!r}: {error}") from error

    @classmethod
    def try_write(cls, value: Value) -> Command:
        """Return the command that stores `value`.

        Raises:
            StateConflict: the value has no form in JSON.
        """
        try:
            return cls._command(SetValue(value=to_json(value)))
        except NotJson as error:
            raise StateConflict(
                f"State key {cls.name!r} in scope {cls.scope!r} cannot store the value: {error}.",
                hint="Store text, numbers, lists, dicts with text keys, or dataclasses of these.",
            ) from error

    @classmethod
    def remove(cls) -> Command:
        """Return the command that makes the cell absent."""
        return cls._command(RemoveValue())

    @classmethod
    def definition(cls) -> KeyDefinition:
        """Return what the class declares, for a `KeyTable`."""
        return KeyDefinition(
            name=cls.name,
            scope=cls.scope,
            merge=Merge(cls.merge),
            default=to_json(cls._default()),
            version=cls.version,
            type_name=repr(cls._type()),
            shape=cls._problem,
        )

    @classmethod
    def _command(cls, action: SetValue | RemoveValue | FoldValue) -> Command:
        return Command(
            scope=cls.scope, key=cls.name, action=action, merge=Merge(cls.merge), version=cls.version
        )

    @classmethod
    def _type(cls) -> Kind[Value]:
        kind = cls.type if cls.type is not None else argument_of(cls, StateKey, 0)
        if kind is None:
            raise TypeError(f"{cls.__name__} does not say its value's type: write StateKey[TYPE]")
        return cast("Kind[Value]", kind)  # the subclass says what it holds

    @classmethod
    def _default(cls) -> Value:
        if cls.default is not None:
            # By way of JSON: a caller that changes what it got must not change the default.
            return cls._read(to_json(cls.default))
        try:
            return empty(cls._type())
        except TypeError as error:
            raise TypeError(f"{cls.__name__} needs a default: {error}") from error

    @classmethod
    def _read(cls, value: JsonValue) -> Value:
        return from_json(cls._type(), value)

    @classmethod
    def _problem(cls, value: JsonValue) -> str:
        try:
            cls._read(value)
        except Drifted as error:
            return str(error)
        return ""


class FoldStateKey(StateKey[Value], Generic[Value, Update]):
    """A cell that takes updates: each is folded into the value that is there when the commit is made.

    Give `fold`, one of `sum`, `max`, `min`, `append`, `union`, or override `apply`, which must be total
    and deterministic. Several updates in one commit, of parallel calls too, are all folded, in call order.
    """

    merge: ClassVar[Merge | str] = Merge.FOLD
    fold: ClassVar[str] = ""

    @classmethod
    def apply(cls, value: Value, update: Update) -> Value:
        """Return the value after `update`; must not change `value` in place."""
        raise TypeError(f"{cls.__name__} needs fold or apply(value, update); got {update!r} on {value!r}")

    @classmethod
    def commit(cls, update: Update) -> Command:
        """Return the command that folds `update` in.

        Raises:
            StateConflict: the update has no form in JSON.
        """
        try:
            return cls._command(FoldValue(value=to_json(update), fold=cls._fold_id()))
        except NotJson as error:
            raise StateConflict(f"State key {cls.name!r} cannot take the update: {error}.") from error

    @classmethod
    def definition(cls) -> KeyDefinition:
        """Return what the class declares, for a `KeyTable`."""
        plain = super().definition()
        return KeyDefinition(
            name=plain.name,
            scope=plain.scope,
            merge=Merge.FOLD,
            fold=cls._fold_id(),
            fold_function=None if cls.fold else cls._apply_json,
            default=plain.default,
            version=plain.version,
            type_name=plain.type_name,
            shape=plain.shape,
        )

    @classmethod
    def _fold_id(cls) -> str:
        return cls.fold or f"{cls.__module__}:{cls.__qualname__}"

    @classmethod
    def _apply_json(cls, value: JsonValue, update: JsonValue) -> JsonValue:
        current = cls._default() if value is None else cls._read(value)
        return to_json(cls.apply(current, cls._read_update(update)))

    @classmethod
    def _read_update(cls, update: JsonValue) -> Update:
        kind = argument_of(cls, FoldStateKey, 1)
        if kind is None:
            raise TypeError(f"{cls.__name__} does not say its types: write FoldStateKey[TYPE, UPDATE]")
        return from_json(cast("Kind[Update]", kind), update)  # the subclass says what it takes


def table_of(*keys: type[StateKey[Value]] | KeyDefinition) -> KeyTable:
    """Return the table of key classes and definitions."""
    return KeyTable(key if isinstance(key, KeyDefinition) else key.definition() for key in keys)
