"""`agentctl plan`: what every tool may do in every stage, before a token is spent."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from agentctl.blueprint.catalogue import load
from agentctl.blueprint.model import FanOutTable
from agentctl.blueprint.tool_rules import tool_names
from agentctl.cli.command_app import command_app
from agentctl.cli.launch import overrides
from agentctl.cli.options import Allow, Ask, BlueprintName, Deny, Limit, Model, Yolo, launch_flags
from agentctl.cli.planning import RunPlan, StagePlan, ToolPlan, ceiling_rows, plan_of
from agentctl.cli.planning_children import child_lines, child_record, children_of
from agentctl.policy.ceilings import DISK_FLOOR_BYTES, Ceilings
from agentctl.policy.layers import Saying
from agentctl.policy.refusals import number, sized
from agentctl.protocol.values import JsonObject, JsonValue
from agentctl.run.agent_kind import launch_rules
from agentctl.run.inputs import checked_workdir
from agentctl.settings.load import load_settings
from agentctl.terminal.visible import one_line

app = command_app()


@app.command()
def plan(  # noqa: PLR0913 - one parameter an option of the command line
    blueprint: BlueprintName,
    *,
    workdir: Annotated[Path, typer.Option("--workdir", metavar="DIR", help="Where it would work.")] = Path(),
    model: Model = "",
    yolo: Yolo = False,
    allow: Allow = None,
    ask: Ask = None,
    deny: Deny = None,
    limit: Limit = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Show what holds in a run: tools with the rule that decides, by stage; limits, models, hooks, servers.

    For each sub-agent that it may start: what its own blueprint allows, and what is left of it here. Nothing
    of the blueprint is run or imported, and no model is called. Takes the flags of `run`.

    Examples: agentctl plan coder · agentctl plan coder --yolo --deny 'shell(git push *)'
    """
    flags = launch_flags(yolo=yolo, allow=allow, ask=ask, deny=deny, on_ask="deny", limit=limit)
    loaded = load(blueprint)
    settings = load_settings(overrides(flags.limits, model))
    launch = launch_rules(flags, tool_names(loaded))
    found = plan_of(settings, loaded, checked_workdir(workdir), launch)
    children = children_of(settings, found, launch)
    if as_json:
        record = _record(found) | {"children": [child_record(child) for child in children]}
        sys.stdout.write(json.dumps(record) + "\n")
        return
    for line in (*_lines(found), *child_lines(children)):
        sys.stdout.write(f"{line}\n")


def _lines(found: RunPlan) -> Iterator[str]:
    source = found.blueprint.source
    yield f"{found.blueprint.name}  {source.path}  (found by {source.found_by})"
    yield f"limits   {_limits(found.ceilings)}"
    yield f"disk     {sized(DISK_FLOOR_BYTES)} must stay free"
    if found.hooks:
        yield f"hooks    {', '.join(hook.name for hook in found.hooks)}"
    if found.servers:
        yield f"servers  {', '.join(server.name for server in found.servers)}"
    for machine in found.blueprint.machines:
        each = f" for each {machine.key}" if machine.key else ""
        yield f"machine  {machine.name}{each}, first {machine.initial}"
        for move in machine.transitions:
            yield f"         {move.on} while {' or '.join(move.from_)} → {move.to}; else {move.on_violation}"
    for item in found.trust.items:
        yield f"code     {item.kind} {item.reference}  {item.position}"
    for stage in found.stages:
        yield ""
        yield from _stage_lines(stage, found)
    yield ""
    yield "asks a person under --yolo as well, and is refused where nobody is there:"
    yield from (f"  {text}" for text in found.always_asks)
    for stage in found.stages:
        yield from (f"  {stage.stage.name}: {text}  {where}" for text, where in stage.still_asks)


def _stage_lines(stage: StagePlan, found: RunPlan) -> Iterator[str]:
    entry = "  (the run begins here)" if stage.entry else ""
    yield f"stage {stage.stage.name}{entry}"
    yield f"  model    {', '.join(stage.model.table.use)}  {stage.model.source}"
    box = stage.sandbox
    network = "network" if box.network else "no network"
    yield f"  sandbox  {box.kind.value}, {network}{', shell asks nothing' if box.auto_allow else ''}"
    if stage.ceilings != found.ceilings:
        yield f"  limits   {_limits(stage.ceilings)}"
    if stage.stage.fan_out is not None:
        yield f"  workers  {_workers(stage.stage.fan_out)}"
    width = max((len(tool.tool) for tool in stage.tools), default=0)
    for tool in stage.tools:
        yield from (f"  {line}" for line in _tool_lines(tool, width))
    if not stage.tools:
        yield "  no tools"


def _workers(table: FanOutTable) -> str:
    most = f" of at most {table.max_items}" if table.max_items is not None else ""
    keys = f", may read {', '.join(table.read)}" if table.read else ""
    form = ", answers by output_schema" if table.output_schema else ""
    return one_line(f"{table.worker}, {table.max_workers} at a time{most}{keys}{form}")


def _tool_lines(tool: ToolPlan, width: int) -> Iterator[str]:
    decision = tool.decision
    waits = "  needs a person" + (", stays offered unattended" if tool.required else "")
    person = waits if tool.waits_for_person else ""
    why = f"{one_line(decision.rule)} · {decision.layer} · {decision.position}"
    yield f"{decision.verdict.word:<5}  {tool.tool:<{width}}  {why}{person}"
    for saying, note in tool.patterns:
        said = f"{saying.verdict.word:<5}  {one_line(saying.rule)}"
        yield f"         {said} · {saying.layer} · {saying.position}" + (f"  ({note})" if note else "")


def _limits(ceilings: Ceilings) -> str:
    texts = []
    for key, value in ceiling_rows(ceilings):
        name = key.partition(".")[2]
        in_bytes = key in {"write_budget.per_call", "write_budget.per_run"}
        shown = value if isinstance(value, str) else sized(value) if in_bytes else number(value)
        texts.append(f"{name} {shown}")
    return ", ".join(texts)


def _record(found: RunPlan) -> JsonObject:
    source = found.blueprint.source
    return {
        "blueprint": found.blueprint.name,
        "path": str(source.path),
        "found_by": source.found_by,
        "sha256": source.sha256,
        "limits": dict(ceiling_rows(found.ceilings)),
        "disk_floor_bytes": DISK_FLOOR_BYTES,
        "hooks": [hook.name for hook in found.hooks],
        "servers": [server.name for server in found.servers],
        "machines": [
            {
                "name": machine.name,
                "key": machine.key,
                "initial": machine.initial,
                "moves": [
                    {"on": move.on, "from": list(move.from_), "to": move.to, "else": move.on_violation}
                    for move in machine.transitions
                ],
            }
            for machine in found.blueprint.machines
        ],
        "code": [
            {"kind": item.kind, "reference": item.reference, "position": str(item.position)}
            for item in found.trust.items
        ],
        "trust": found.trust.sha256,
        "stages": [_stage_record(stage) for stage in found.stages],
        "always_asks": list(found.always_asks),
    }


def _stage_record(stage: StagePlan) -> JsonObject:
    return {
        "stage": stage.stage.name,
        "index": stage.stage.index,
        "entry": stage.entry,
        "models": list(stage.model.table.use),
        "model_source": stage.model.source,
        "limits": dict(ceiling_rows(stage.ceilings)),
        "sandbox": {
            "kind": stage.sandbox.kind.value,
            "network": stage.sandbox.network,
            "read": list(stage.sandbox.read),
            "write": list(stage.sandbox.write),
            "hide": list(stage.sandbox.hide),
            "on_unavailable": stage.sandbox.on_unavailable.value,
            "auto_allow": stage.sandbox.auto_allow,
        },
        "tools": [_tool_record(tool) for tool in stage.tools],
        "still_asks": [{"what": text, "position": str(where)} for text, where in stage.still_asks],
        "workers": _workers_record(stage.stage.fan_out),
    }


def _workers_record(table: FanOutTable | None) -> JsonObject | None:
    if table is None:
        return None
    return {
        "worker": table.worker,
        "max_workers": table.max_workers,
        "max_items": table.max_items,
        "read": list(table.read),
        "output_schema": table.output_schema,
    }


def _tool_record(tool: ToolPlan) -> JsonObject:
    decision = tool.decision
    patterns: list[JsonValue] = [_saying(saying, note) for saying, note in tool.patterns]
    return {
        "tool": tool.tool,
        "verdict": decision.verdict.word,
        "reason": decision.reason,
        "rule": decision.rule,
        "layer": decision.layer,
        "position": str(decision.position),
        "patterns": patterns,
        "under_yolo": tool.under_yolo.word,
        "waits_for_person": tool.waits_for_person,
        "required": tool.required,
        "says": [
            {
                "layer": say.layer,
                "verdict": say.verdict.word,
                "rule": say.rule,
                "position": str(say.position),
                "note": say.note,
            }
            for judgement in decision.judgements
            for say in judgement.says
        ],
    }


def _saying(saying: Saying, note: str) -> JsonObject:
    return {
        "verdict": saying.verdict.word,
        "rule": saying.rule,
        "layer": saying.layer,
        "position": str(saying.position),
        "note": note,
    }
