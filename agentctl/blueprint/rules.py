"""What must hold between the keys of a blueprint, beyond the shape of each."""

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from agentctl.blueprint.machines import machine_of
from agentctl.blueprint.model import Blueprint, InteractionPointTable, StageTable
from agentctl.blueprint.schemas import schema_findings
from agentctl.blueprint.state_tables import MachineTable, StateEffectTable, StateKeyTable
from agentctl.protocol.tool_names import canonical_tool
from agentctl.state.folds import problem_with
from agentctl.state.machine_check import check_machines
from agentctl.tables.rules import choose, exactly_one, hook_findings, server_findings, store_findings, unique
from agentctl.toml.positions import Path
from agentctl.toml.validate import Finding
from agentctl.toml.words import nearest, one_of

FOLDS = ("sum", "max", "min", "append", "union")
"""Folds that need no code."""


def findings_of(blueprint: Blueprint) -> tuple[Finding, ...]:
    """Return what makes the blueprint unusable although each of its tables is well formed. May block."""
    return (
        *_graph(blueprint),
        *(finding for stage in blueprint.in_order for finding in _stage(blueprint, stage)),
        *hook_findings(blueprint.hooks),
        *server_findings(blueprint.mcp_servers),
        *_server_secrets(blueprint),
        *store_findings(blueprint.shared_state),
        *_state_keys(blueprint.state_keys),
        *_effects(blueprint.state_effects),
        *unique(("machines",), [machine.name for machine in blueprint.machines]),
        *(found for index, machine in enumerate(blueprint.machines) for found in _machine(index, machine)),
        *_policy_tests(blueprint),
        *_script(blueprint),
        *schema_findings(blueprint),
    )


def _graph(blueprint: Blueprint) -> Iterator[Finding]:
    names = list(blueprint.stages)
    entry = blueprint.agent.entry_stage
    if not names:
        message = "a blueprint needs at least one stage, [stages.NAME]"
        yield Finding(path=("stages",), message=message, needs=(("stages",),))
    elif entry and entry not in names:
        yield choose(("agent", "entry_stage"), "stage", entry, names, needs=[("stages", entry)])
    for stage in blueprint.in_order:
        for target in stage.transitions:
            if target not in names:
                path = ("stages", stage.name, "transitions", target)
                yield choose(path, "stage", target, names, needs=[("stages", target)])


def _stage(blueprint: Blueprint, stage: StageTable) -> Iterator[Finding]:
    at: Path = ("stages", stage.name)
    offered = [canonical_tool(tool) for tool in stage.available_tools]
    for index, tool in enumerate(stage.required_tools):
        if not any(fnmatchcase(canonical_tool(tool), one) for one in offered):
            yield Finding(
                path=(*at, "required_tools", index),
                message=f"{tool!r} is not among the stage's available_tools",
                suggestion=nearest(tool, stage.available_tools),
                at_value=True,
                needs=(at,),
            )
    yield from _fan_out(blueprint, stage)
    yield from unique((*at, "interaction_points"), [point.name for point in stage.interaction_points])
    for index, point in enumerate(stage.interaction_points):
        yield from _point((*at, "interaction_points", index), point)
    keys = sorted({key.name for key in blueprint.state_keys})
    for side, names in (("read", stage.state.read), ("write", stage.state.write)):
        for index, name in enumerate(names):
            if name not in keys:
                yield choose((*at, "state", side, index), "state key", name, keys, needs=[("state_keys",)])


def _fan_out(blueprint: Blueprint, stage: StageTable) -> Iterator[Finding]:
    at: Path = ("stages", stage.name)
    if stage.mode == "fan_out" and stage.fan_out is None:
        message = 'mode = "fan_out" needs the table [stages.NAME.fan_out] with its worker'
        yield Finding(path=(*at, "mode"), message=message, needs=(at,))
    if stage.fan_out is None:
        return
    if stage.mode != "fan_out":
        message = 'only a stage with mode = "fan_out" has workers'
        yield Finding(path=(*at, "fan_out"), message=message, needs=(at,))
    worker = blueprint.stages.get(stage.fan_out.worker)
    if worker is not None and not worker.allow_as_worker:
        yield Finding(
            path=(*at, "fan_out", "worker"),
            message=f"stage {worker.name!r} needs allow_as_worker = true to be a worker",
            at_value=True,
            needs=(("stages", worker.name),),
        )


def _point(at: Path, point: InteractionPointTable) -> Iterator[Finding]:
    for key, options in (("abort_options", point.abort_options), ("edit_options", point.edit_options)):
        for index, option in enumerate(options):
            if option not in point.options:
                yield choose((*at, key, index), "option", option, point.options, needs=[at])
    for option in point.directives:
        if option not in point.options:
            yield choose((*at, "directives", option), "option", option, point.options, needs=[at])
    if point.edit_options and not point.document:
        yield Finding(path=(*at, "edit_options"), message="editing needs a document to edit", needs=(at,))


def _server_secrets(blueprint: Blueprint) -> Iterator[Finding]:
    message = "variables of the environment are filled in for servers of the user's config only"
    for index, server in enumerate(blueprint.mcp_servers):
        if server.oauth is not None:
            about = "logins are used for servers of the user's config only"
            yield Finding(
                path=("mcp_servers", index, "oauth"), message=about, needs=(("mcp_servers", index),)
            )
        for key, values in (("env", server.env), ("headers", server.headers)):
            for name, value in values.items():
                if "${" in value:
                    yield Finding(path=("mcp_servers", index, key, name), message=message, at_value=True)


def _state_keys(keys: Sequence[StateKeyTable]) -> Iterator[Finding]:
    cells: dict[tuple[str, str], StateKeyTable] = {}
    for index, key in enumerate(keys):
        at: Path = ("state_keys", index)
        first = cells.setdefault((key.scope, key.name), key)
        if first != key:
            message = f"the cell {key.name!r} of scope {key.scope!r} has another definition above"
            yield Finding(path=(*at, "name"), message=message, at_value=True, needs=(("state_keys",),))
        if key.merge == "fold" and not key.fold:
            message = f'merge = "fold" needs fold = {one_of(FOLDS)}, or "module:function"'
            yield Finding(path=(*at, "merge"), message=message, needs=(at,))
        if problem := problem_with(key.fold, key.default):
            where = (*at, "default")
            yield Finding(path=where, message=f"the default {problem}", at_value=True, needs=(at,))
        if key.fold and key.merge != "fold":
            message = 'fold is used only with merge = "fold"'
            yield Finding(path=(*at, "fold"), message=message, needs=(at,))
        if key.fold and key.fold not in FOLDS and ":" not in key.fold:
            yield choose((*at, "fold"), "fold", key.fold, [*FOLDS, "module:function"])


def _effects(effects: Sequence[StateEffectTable]) -> Iterator[Finding]:
    for index, effect in enumerate(effects):
        at: Path = ("state_effects", index)
        kinds = (("path", effect.path), ("mapper", effect.mapper), ("ops", effect.ops))
        yield from exactly_one(at, kinds)
        if effect.each and not effect.ops:
            yield Finding(path=(*at, "each"), message="each is used only with ops", needs=(at,))
        for place, operation in enumerate(effect.ops):
            if operation.op in {"move", "copy"} and not operation.from_:
                message = f'op = "{operation.op}" needs from'
                yield Finding(path=(*at, "ops", place), message=message, needs=((*at, "ops", place),))


def _machine(index: int, machine: MachineTable) -> Iterator[Finding]:
    at: Path = ("machines", index)
    states = {machine.initial, *(move.to for move in machine.transitions)}
    words = [("terminal", place, state) for place, state in enumerate(machine.terminal)]
    for key, place, state in words:
        if state not in states:
            yield choose((*at, key, place), "state", state, sorted(states), needs=[at])
    if machine.on_unmatched and machine.on_unmatched not in states:
        path = (*at, "on_unmatched")
        yield choose(path, "state", machine.on_unmatched, sorted(states), needs=[at])
    for place, move in enumerate(machine.transitions):
        for state_place, state in enumerate(move.from_):
            if state not in states:
                path = (*at, "transitions", place, "from", state_place)
                yield choose(path, "state", state, sorted(states), needs=[at])
    for problem in check_machines((machine_of(machine),)):
        if problem.level == "error":
            yield Finding(path=(*at, *problem.path), message=problem.text)


def _policy_tests(blueprint: Blueprint) -> Iterator[Finding]:
    for index, test in enumerate(blueprint.policy_tests):
        if test.stage and test.stage not in blueprint.stages:
            path = ("policy_tests", index, "stage")
            yield choose(path, "stage", test.stage, blueprint.stages, needs=[("stages", test.stage)])


def _script(blueprint: Blueprint) -> Iterator[Finding]:
    script = blueprint.script
    if script is not None and bool(script.file) == bool(script.replies):
        message = "exactly one of file and replies is needed"
        yield Finding(path=("script",), message=message, needs=(("script",),))
