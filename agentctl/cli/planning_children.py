"""What the sub-agents of a run could do: their own blueprint's rules, under what comes down from the run."""

from collections.abc import Iterator
from dataclasses import replace

from agentctl.blueprint.catalogue import entries
from agentctl.blueprint.load import load_blueprint
from agentctl.blueprint.model import Blueprint, StageTable
from agentctl.blueprint.tool_rules import tool_names
from agentctl.cli.planning import RunPlan, offered_tools
from agentctl.errors import AgentctlError
from agentctl.policy.decide import decide, decide_as_a_whole
from agentctl.policy.layers import Launch, Layers, Saying, Voice
from agentctl.protocol.decisions import Decision, Verdict
from agentctl.protocol.effects import SpawnAgent
from agentctl.protocol.values import JsonObject, JsonValue
from agentctl.records import dataclass
from agentctl.run.family import SPAWNING, with_output, worker_blueprint
from agentctl.run.policy_layers import in_stage, layers_of
from agentctl.settings.settings import Settings
from agentctl.terminal.visible import one_line


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildTool:
    """One tool of a sub-agent."""

    tool: str
    alone: Verdict
    """What its own blueprint and the user's config come to, were it a run of its own."""
    decision: Decision
    """What holds below this run: never looser than what the run itself would be allowed."""
    comes_down: tuple[Saying, ...]
    """Denies and asks about particular calls that it takes from above."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildPlan:
    """One sub-agent that a stage may start, in one of its stages."""

    spawned_by: str
    agent: str
    stage: str
    start: Decision
    """What holds for starting it."""
    tools: tuple[ChildTool, ...] = ()
    invalid: str = ""
    """Why its blueprint cannot be read."""


def children_of(settings: Settings, found: RunPlan, launch: Launch) -> tuple[ChildPlan, ...]:
    """Return the sub-agents that each stage may start, those left out whose start is denied. May block."""
    return tuple(_children(settings, found, launch))


def _children(settings: Settings, found: RunPlan, launch: Launch) -> Iterator[ChildPlan]:
    for stage in found.stages:
        names = _startable(found.blueprint, stage.stage, {tool.tool for tool in stage.tools})
        for name in names:
            spawn = "fan_out" if stage.stage.mode == "fan_out" else "spawn_agent"
            start = decide(spawn, (SpawnAgent(agent=name),), stage.layers)
            if start.verdict is Verdict.DENY:
                continue
            yield from _child(settings, found, launch, stage.layers, (stage.stage.name, name, start))


def _startable(blueprint: Blueprint, stage: StageTable, offered: set[str]) -> list[str]:
    if stage.mode == "fan_out" and stage.fan_out is not None and not offered & set(SPAWNING):
        return [stage.fan_out.worker]
    if stage.mode != "fan_out" and not offered & set(SPAWNING):
        return []
    workers = [one.name for one in blueprint.in_order if one.allow_as_worker]
    return [*workers, *(entry.name for entry in entries() if entry.name not in workers)]


def _child(
    settings: Settings, found: RunPlan, launch: Launch, above: Layers, who: tuple[str, str, Decision]
) -> Iterator[ChildPlan]:
    spawned_by, name, start = who
    try:
        blueprint = _blueprint(found.blueprint, name)
    except AgentctlError as error:
        yield ChildPlan(
            spawned_by=spawned_by, agent=name, stage="", start=start, invalid=one_line(error.message)
        )
        return
    spawner = found.blueprint.stages[spawned_by].fan_out
    if spawner is not None and spawner.worker == name and spawner.output_schema:
        blueprint = with_output(blueprint, spawner.output_schema)
    names = tool_names(blueprint)
    alone = layers_of(settings, blueprint, above.place, launch=launch)
    stages = blueprint.in_order[:1] if name in found.blueprint.stages else blueprint.in_order
    for stage in stages:
        own = in_stage(alone, blueprint, stage.name, names)
        below = replace(own, parent=above.for_children())
        yield ChildPlan(
            spawned_by=spawned_by,
            agent=name,
            stage=stage.name,
            start=start,
            tools=tuple(_tool(tool, own, below) for tool in offered_tools(stage, names)),
        )


def _tool(tool: str, own: Layers, below: Layers) -> ChildTool:
    above = below.parent
    entry = below.follows.get(tool, tool)
    limits: list[Voice] = []
    while above is not None:
        limits += [voice for speaker in above.speakers(entry) for voice in speaker.limits]
        limits += above.launch_speaker(entry).limits
        above = above.parent
    return ChildTool(
        tool=tool,
        alone=decide_as_a_whole(tool, own).verdict,
        decision=decide_as_a_whole(tool, below),
        comes_down=tuple(saying for pattern, saying in limits if pattern is not None),
    )


def _blueprint(parent: Blueprint, name: str) -> Blueprint:
    if name in parent.stages and parent.stages[name].allow_as_worker:
        return worker_blueprint(parent, name)
    entry = next(one for one in entries() if one.name == name)
    return load_blueprint(entry.path, found_by=entry.found_by)


def child_lines(children: tuple[ChildPlan, ...]) -> Iterator[str]:
    """Return the tables for a person: what holds alone, what holds here, and what decides."""
    for child in children:
        start = f"{child.start.verdict.word}  {one_line(child.start.rule)} · {child.start.layer}"
        part = f"/{child.stage}" if child.stage not in {"", child.agent} else ""
        yield ""
        yield f"child {child.agent}{part} of {child.spawned_by}  (to start it: {start})"
        if child.invalid:
            yield f"  its blueprint is invalid: {child.invalid}"
            continue
        width = max((len(tool.tool) for tool in child.tools), default=4)
        yield f"  {'tool':<{width}}  alone  here   decided by"
        for tool in child.tools:
            decision = tool.decision
            why = f"{one_line(decision.rule)} · {decision.layer} · {decision.position}"
            yield f"  {tool.tool:<{width}}  {tool.alone.word:<5}  {decision.verdict.word:<5}  {why}"
            for saying in tool.comes_down:
                said = f"{one_line(saying.rule)} · {saying.layer} · {saying.position}"
                yield f"  {'':<{width}}         {saying.verdict.word:<5}  {said}"


def child_record(child: ChildPlan) -> JsonObject:
    """Return one child as JSON."""
    tools: list[JsonValue] = [
        {
            "tool": tool.tool,
            "alone": tool.alone.word,
            "verdict": tool.decision.verdict.word,
            "reason": tool.decision.reason,
            "rule": tool.decision.rule,
            "layer": tool.decision.layer,
            "position": str(tool.decision.position),
            "comes_down": [
                {"verdict": saying.verdict.word, "rule": saying.rule, "layer": saying.layer}
                for saying in tool.comes_down
            ],
        }
        for tool in child.tools
    ]
    return {
        "agent": child.agent,
        "stage": child.stage,
        "spawned_by": child.spawned_by,
        "start": child.start.verdict.word,
        "tools": tools,
        "invalid": child.invalid or None,
    }
