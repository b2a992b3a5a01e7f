"""What a person writes into cells: JSON or text, and functions that lift stored values."""

import json
from pathlib import Path
from typing import cast

from agentctl.blueprint.code import CodeLoader
from agentctl.blueprint.trust import Trust
from agentctl.errors import Position, StateConflict, UsageError
from agentctl.protocol.commands import Command, FoldValue, Merge, SetValue
from agentctl.protocol.values import JsonValue
from agentctl.state.cells import Cell
from agentctl.state.folds import FoldFunction
from agentctl.state.keys import KeyDefinition


def lifted(definition: KeyDefinition, value: JsonValue) -> Command:
    """Return what stores a lifted value.

    Raises:
        StateConflict: the key does not take it.
    """
    problem = definition.problem_with(value)
    if problem:
        raise StateConflict(
            f"State key {definition.name!r} does not take the lifted value: {problem}.",
            hint="Mend the function; nothing was written.",
        )
    fold = definition.merge is Merge.FOLD
    return Command(
        scope=definition.scope,
        key=definition.name,
        action=FoldValue(value=value, fold="last") if fold else SetValue(value=value),
        merge=definition.merge,
        version=definition.version,
        writer="migrate",
    )


def lifting(reference: str) -> FoldFunction:
    """Return the function that the user named on the command line.

    Raises:
        UsageError: it is none.
        InvalidInput: its file cannot be read, or lacks it.
    """
    place = Position(file="--with")  # named on the command line by the user: that is the trust
    if not all(reference.rpartition(":")[::2]):
        raise UsageError(f"--with takes FILE.py:FUNCTION, not {reference!r}.")
    found = CodeLoader(Path.cwd(), Trust()).load(reference, position=place)
    if not callable(found):
        raise UsageError(f"{reference!r} is no function.")
    return cast("FoldFunction", found)  # (value, version) → value, checked by the key when it is used


def lift(function: FoldFunction, cell: Cell) -> JsonValue:
    """Return a cell's value as the function lifts it.

    Raises:
        UsageError: the function fails.
    """
    try:
        return function(cell.value, cell.version)
    except Exception as error:
        raise UsageError(f"--with: the function failed: {type(error).__name__}: {error}") from error


def json_value(text: str) -> JsonValue:
    """Return what a person wrote: JSON, or text where it does not begin like it.

    Raises:
        UsageError: it begins like JSON and is none, or has a number that is none.
    """
    try:
        value: JsonValue = json.loads(text, parse_constant=str)  # NaN is no JSON, so it is text
    except ValueError as error:
        if text.lstrip()[:1] in {"{", "[", '"'}:
            problem = f"{text!r} begins like JSON and is none: {error}."
            raise UsageError(problem, hint="Text stands between double quotes: '\"…\"'") from error
        return text
    try:
        json.dumps(value, allow_nan=False)
    except ValueError as error:
        raise UsageError(f"{text!r} has a number that is too large for readers of JSON.") from error
    return value
