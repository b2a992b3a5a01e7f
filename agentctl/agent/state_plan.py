"""A blueprint's tables about state, made ready: keys with schemas, effects and views with their code."""

from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import TypeAlias, cast

import jsonschema_rs

from agentctl.agent.agent_state import StageState, StatePlan
from agentctl.blueprint.machines import machine_of
from agentctl.blueprint.model import Blueprint, StageTable
from agentctl.blueprint.state_tables import (
    PatchOperationTable,
    StateEffectTable,
    StateKeyTable,
)
from agentctl.errors import InvalidInput, Position, Problem
from agentctl.protocol.commands import Merge
from agentctl.protocol.tool_names import canonical_tool
from agentctl.protocol.values import JsonObject, JsonValue
from agentctl.state.effects import Mapper, Ownership, StateEffect
from agentctl.state.folds import BUILT_IN, FoldFunction
from agentctl.state.keys import KeyDefinition, KeyTable, Shape
from agentctl.state.views import ViewFunction

LoadCode: TypeAlias = Callable[[str, Position], object]
"""Loads what a reference such as `effects.py:queries_saved` names, from trusted bytes."""


def plan_state(blueprint: Blueprint, load: LoadCode) -> StatePlan:
    """Return what the blueprint says about state, its code loaded. May block.

    Raises:
        InvalidInput: code cannot be loaded or is no function.
        StateConflict: two keys differ under one name.
    """
    code = _Code(blueprint, load)
    workspace = blueprint.workspace
    return StatePlan(
        keys=KeyTable(_key(key, index, code) for index, key in enumerate(blueprint.state_keys)),
        effects=tuple(_effect(one, index, code) for index, one in enumerate(blueprint.state_effects)),
        ownership=Ownership(pointers=workspace.owner or ("",), max_bytes=workspace.max_bytes),
        initial=workspace.initial,
        machines=tuple(machine_of(table) for table in blueprint.machines),
        stages={stage.name: _stage(blueprint, stage, code) for stage in blueprint.in_order},
        sources=frozenset({blueprint.source.sha256}),
    )


def key_of(table: StateKeyTable, fold_function: FoldFunction | None = None) -> KeyDefinition:
    """Return the key that a `[[state_keys]]` table declares."""
    return KeyDefinition(
        name=table.name,
        scope=table.scope,
        merge=Merge(table.merge),
        fold=table.fold,
        fold_function=fold_function,
        default=table.default,
        version=table.version,
        schema=table.schema,
        shape=shape_of(table.schema) if table.schema else None,
        description=table.description,
    )


def shape_of(schema: JsonObject) -> Shape:
    """Return what checks a value against a JSON Schema."""
    # SAFETY: offline, so that a `$ref` in a blueprint's schema reaches no host.
    validator = jsonschema_rs.validator_for(schema, offline=True)

    def problem(value: JsonValue) -> str:
        violation = next(iter(validator.iter_errors(value)), None)
        if violation is None:
            return ""
        where = "/".join(str(part) for part in violation.instance_path)
        return f"{violation.message} at /{where}" if where else str(violation.message)

    return problem


class _Code:
    """Loads the blueprint's functions, naming the place of each in errors."""

    def __init__(self, blueprint: Blueprint, load: LoadCode) -> None:
        self._table = blueprint.source.table
        self._load = load

    def function(self, reference: str, *path: str | int) -> Callable[..., object]:
        position = self._table.value_position(*path)
        found = self._load(reference, position)
        if not callable(found):
            key = self._table.key(*path)
            raise InvalidInput(
                (Problem(position=position, key=key, message=f"{reference!r} is no function"),)
            )
        return found


def _key(table: StateKeyTable, index: int, code: _Code) -> KeyDefinition:
    if not table.fold or table.fold in BUILT_IN:
        return key_of(table)
    function = code.function(table.fold, "state_keys", index, "fold")
    # A person's function: what it really takes shows when it is called, and is told then.
    return key_of(table, cast("FoldFunction", function))


def _effect(table: StateEffectTable, index: int, code: _Code) -> StateEffect:
    mapper = code.function(table.mapper, "state_effects", index, "mapper") if table.mapper else None
    return StateEffect(
        tool=canonical_tool(table.tool),
        path=None if table.mapper or table.ops else table.path,
        mapper=cast("Mapper | None", mapper),  # a person's function, checked when it is called
        ops=tuple(_operation(operation) for operation in table.ops),
        each=table.each,
        on_error=table.on_error,
        name=table.mapper,
    )


def _operation(table: PatchOperationTable) -> JsonObject:
    operation: JsonObject = {"op": table.op, "path": table.path}
    if table.op in ("move", "copy"):
        operation["from"] = table.from_
    elif table.op != "remove":
        operation["value"] = table.value
    return operation


def _stage(blueprint: Blueprint, stage: StageTable, code: _Code) -> StageState:
    own = stage.views is not None
    references = stage.views if stage.views is not None else blueprint.agent.views
    views: list[tuple[str, ViewFunction]] = []
    for index, reference in enumerate(references):
        path = ("stages", stage.name, "views", index) if own else ("agent", "views", index)
        function = code.function(reference, *path)
        views.append((reference, cast("ViewFunction", function)))  # checked when it is called
    return StageState(
        read=stage.state.read,
        write=stage.state.write,
        workspace=blueprint.agent.workspace if stage.workspace is None else stage.workspace,
        views=tuple(views),
        scope=stage.shared_state.scope,
        grants=stage.shared_state.read,
        offers_shared_state=any(fnmatchcase("shared_state", tool) for tool in stage.available_tools),
    )
