"""Events and commands become one commit, or an error: nothing is half done.

Read after `protocol/commands.py`. Commands are bound to their run, held against their keys, and applied to
the cells one after the other; only a batch in which all of that went well comes out.
"""

from collections.abc import Sequence
from dataclasses import replace

from agentctl.errors import StateConflict
from agentctl.protocol.commands import Command, Commit, FoldValue, Merge, RemoveValue, SetValue
from agentctl.protocol.events import Event, Noted
from agentctl.protocol.values import JsonValue
from agentctl.records import dataclass
from agentctl.state.cells import Address, Cells, CellsDraft, address_of, value_after
from agentctl.state.folds import BUILT_IN
from agentctl.state.keys import NO_KEYS, KeyDefinition, KeyTable, drifted


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Whose commit it is."""

    run_id: str
    thread_id: str
    state_thread: str = ""
    """The root run's thread, for a sub-agent; empty means `thread_id`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembled:
    """A commit that can be appended, and what the cells are after it."""

    commit: Commit
    cells: Cells
    warnings: tuple[str, ...] = ()
    """What a person should know: two writers of a disjoint cell. Each is a `Noted` event of it, too."""


def assemble(
    origin: Origin,
    events: Sequence[Event],
    commands: Sequence[Command] = (),
    *,
    keys: KeyTable = NO_KEYS,
    cells: Cells | None = None,
) -> Assembled:
    """Return one commit of `events` and `commands`, and the cells after it. Pure, all or nothing.

    Commands take effect in order: each sees what those before it left. Events keep their order; warnings
    follow them.

    Raises:
        StateConflict: an id is empty, an exclusive cell is set twice, a command does not follow its key's
            policy, or a value or update does not fit the key.
    """
    for name, value in (("thread_id", origin.thread_id), ("run_id", origin.run_id)):
        if not value:
            raise StateConflict(f"Invalid commit: {name} must not be empty.")
    batch = _Batch(cells or Cells(), keys)
    bound = tuple(batch.take(_bind(command, origin.run_id)) for command in commands)
    warnings = tuple(batch.warnings)
    noted = tuple(Noted(level="warning", text=text, source="state") for text in warnings)
    commit = Commit(
        run_id=origin.run_id,
        thread_id=origin.thread_id,
        events=(*events, *noted),
        commands=bound,
        state_thread=origin.state_thread,
    )
    return Assembled(commit=commit, cells=batch.cells(), warnings=warnings)


def _bind(command: Command, run_id: str) -> Command:
    return replace(command, run_id=run_id if command.scope == "run" else "")


class _Batch:
    """The commands of one commit so far."""

    def __init__(self, cells: Cells, keys: KeyTable) -> None:
        self.warnings: list[str] = []
        self._draft = CellsDraft(cells)
        self._keys = keys
        self._setters: dict[Address, Command] = {}
        self._first: dict[Address, Command] = {}

    def cells(self) -> Cells:
        """Return the cells after the commands taken so far."""
        return self._draft.freeze()

    def take(self, command: Command) -> Command:
        """Hold a command against its key, apply it, and return it as it is stored."""
        address = address_of(command)
        definition = self._keys.get(command.scope, command.key)
        if definition is not None:
            command = self._follow(command, definition)
        self._one_policy(address, command)
        match command.action:
            case SetValue():
                self._one_setter(address, command)
            case FoldValue():
                command = replace(command, action=self._resolved(address, command, definition))
            case RemoveValue():
                pass
        self._check_value(address, command, definition)
        self._draft.apply(command)
        return command

    def _follow(self, command: Command, definition: KeyDefinition) -> Command:
        if command.merge is not definition.merge:
            raise StateConflict(
                f"State key {command.key!r} in scope {command.scope!r} is declared {definition.merge}, and"
                f" {_who(command)} writes it as {command.merge}.",
                hint="The policy belongs to the key; leave it out of the command.",
            )
        if isinstance(command.action, RemoveValue):
            return command
        cell = self._draft.at(address_of(command))
        builds_on = isinstance(command.action, FoldValue) or command.merge is Merge.COMMUTATIVE
        if builds_on and cell is not None and cell.version != definition.version:
            raise drifted(
                definition, f"it was stored by version {cell.version}, the key is at {definition.version}"
            )
        action = command.action
        if isinstance(action, FoldValue) and not action.fold:
            action = replace(action, fold=definition.fold)
        return replace(command, action=action, version=definition.version)

    def _one_policy(self, address: Address, command: Command) -> None:
        first = self._first.setdefault(address, command)
        if first.merge is not command.merge:
            raise StateConflict(
                f"State key {address.key!r} in scope {address.scope!r} is written under two policies in one"
                f" commit: {first.merge} by {_who(first)}, {command.merge} by {_who(command)}.",
                hint="Declare the key once in [[state_keys]] and write it under that policy.",
            )

    def _one_setter(self, address: Address, command: Command) -> None:
        before = self._setters.get(address)
        self._setters[address] = command
        if before is None:
            return
        if command.merge is Merge.EXCLUSIVE:
            raise StateConflict(
                f"Exclusive state key {address.key!r} in scope {address.scope!r} is written more than once in"
                f" one commit: by {_who(before)} and by {_who(command)}; a remove between does not count.",
                hint="Let one writer claim it, or declare the key disjoint.",
            )
        if command.merge is Merge.DISJOINT:
            self.warnings.append(
                f"state key {address.key!r} in scope {address.scope!r} was set by {_who(before)} and then by"
                f" {_who(command)} in one commit; the last value stands"
            )

    def _resolved(self, address: Address, command: Command, definition: KeyDefinition | None) -> FoldValue:
        action = command.action
        if not isinstance(action, FoldValue):
            raise TypeError("only a fold is resolved")
        cell = self._draft.at(address)
        value = cell.value if cell else definition.default if definition else None
        function = BUILT_IN.get(action.fold) or (definition.fold_function if definition else None)
        if function is None:
            raise StateConflict(
                f"State key {address.key!r} folds with {action.fold!r}, which is not known here.",
                hint="Declare the key in [[state_keys]], or give its class to the run.",
            )
        try:
            result = function(value, action.value)
        except Exception as error:
            raise StateConflict(
                f"State key {address.key!r} in scope {address.scope!r} cannot take the update of"
                f" {_who(command)}: {error}.",
                hint=f"The key folds with {action.fold!r}.",
            ) from error
        # Replay knows the built-in folds, and neither a person's functions nor a key's default.
        if action.fold in BUILT_IN and (cell is not None or value is None):
            return replace(action, resolved=False, result=None)
        return replace(action, resolved=True, result=result)

    def _check_value(self, address: Address, command: Command, definition: KeyDefinition | None) -> None:
        if definition is None or isinstance(command.action, RemoveValue):
            return
        if definition.shape is None and not isinstance(command.action, SetValue):
            return  # a fold that could take its update left what it can go on from
        cell = self._draft.at(address)
        after: JsonValue = value_after(None if cell is None else cell.value, command.action, command.merge)
        problem = definition.problem_with(after)
        if problem:
            raise StateConflict(
                f"State key {address.key!r} in scope {address.scope!r} does not take the value of"
                f" {_who(command)}: {problem}.",
                hint="Write a value that fits the key's type.",
            )


def _who(command: Command) -> str:
    return command.writer or "a writer without a name"
