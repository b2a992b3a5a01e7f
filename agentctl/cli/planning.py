"""What would hold in a run of a blueprint, stage by stage, worked out before a token is spent."""

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from agentctl.blueprint.model import Blueprint, StageTable
from agentctl.blueprint.tool_rules import tool_names
from agentctl.blueprint.trust import Trust, trust_needed
from agentctl.errors import Position
from agentctl.executor.sandbox_policy import SandboxPolicy
from agentctl.policy.ceilings import Ceilings
from agentctl.policy.decide import decide_as_a_whole
from agentctl.policy.layers import Launch, Layers, Saying
from agentctl.policy.paths import Place
from agentctl.policy.rules import ToolNames
from agentctl.policy.way_out import with_flags
from agentctl.protocol.decisions import Decision, Verdict
from agentctl.protocol.tool_names import (
    BUILT_IN_TOOLS,
    CHILD_TOOLS,
    SCRIPT_ONLY_TOOLS,
    TOOL_ALIASES,
    WAITING_TOOLS,
)
from agentctl.records import dataclass
from agentctl.run.agent_kind import ceilings_in, choose
from agentctl.run.policy_layers import in_stage, layers_of
from agentctl.run.sandboxing import sandbox_of
from agentctl.settings.model_choice import ModelChoice
from agentctl.settings.settings import Settings
from agentctl.tables.declared import HookTable, McpServerTable


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolPlan:
    """What holds for one tool in one stage, before anything is known of a call."""

    tool: str
    """Its name, or a glob for tools that are known only when their server is there."""
    decision: Decision
    patterns: tuple[tuple[Saying, str], ...]
    """What the layers say about particular calls: denies, asks, then allows, each with what becomes of it."""
    under_yolo: Verdict
    waits_for_person: bool
    required: bool
    """It stays offered although nobody is there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StagePlan:
    """One stage."""

    stage: StageTable
    entry: bool
    model: ModelChoice
    tools: tuple[ToolPlan, ...]
    layers: Layers
    """All rules that hold in it."""
    ceilings: Ceilings
    sandbox: SandboxPolicy
    still_asks: tuple[tuple[str, Position], ...]
    """What stops for a person under `--yolo` as well, and where that is written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """A whole run."""

    blueprint: Blueprint
    stages: tuple[StagePlan, ...]
    ceilings: Ceilings
    hooks: tuple[HookTable, ...]
    """The user's, then the blueprint's, in the order they are called."""
    servers: tuple[McpServerTable, ...]
    trust: Trust
    always_asks: tuple[str, ...]
    """What asks in every stage, whatever the flags."""


def plan_of(settings: Settings, blueprint: Blueprint, workdir: Path, launch: Launch) -> RunPlan:
    """Return the plan of a run in `workdir`. May block: reads the shipped policy, hashes code; runs nothing.

    Raises:
        InvalidInput: a rule names an unknown tool.
    """
    names = tool_names(blueprint)
    place = Place(workdir=str(workdir), home=str(Path.home().resolve()))
    layers = layers_of(settings, blueprint, place, launch=launch)
    stages = {stage.name: in_stage(layers, blueprint, stage.name, names) for stage in blueprint.in_order}
    return RunPlan(
        blueprint=blueprint,
        stages=tuple(
            _stage_plan(settings, blueprint, stage, stages[stage.name]) for stage in blueprint.in_order
        ),
        ceilings=ceilings_in(settings, blueprint, names),
        hooks=(*settings.config.hooks, *blueprint.hooks),
        servers=(*settings.config.mcp_servers, *blueprint.mcp_servers),
        trust=trust_needed(blueprint),
        always_asks=tuple(_always(tuple(stages.values()))),
    )


def _stage_plan(settings: Settings, blueprint: Blueprint, stage: StageTable, layers: Layers) -> StagePlan:
    names = tool_names(blueprint)
    return StagePlan(
        stage=stage,
        entry=stage is blueprint.entry,
        model=choose(settings, blueprint, stage),
        tools=tuple(_tool_plan(tool, stage, layers) for tool in offered_tools(stage, names)),
        layers=layers,
        ceilings=ceilings_in(settings, blueprint, names, stage),
        sandbox=sandbox_of(settings, blueprint, stage),
        still_asks=tuple(_still_asks(blueprint, stage)),
    )


def offered_tools(stage: StageTable, names: ToolNames) -> list[str]:
    """Return the tools that the stage offers: built-in ones in their order, others by name, servers' last."""
    shipped = (*BUILT_IN_TOOLS, *CHILD_TOOLS)
    own = {"transition": len(_open_edges(stage)) > 1, "submit_output": stage.output is not None}
    found = [
        tool
        for tool in (*shipped, *sorted(names.known - {*shipped, *SCRIPT_ONLY_TOOLS, "network"}))
        if own.get(tool, any(_fits(pattern, tool) for pattern in stage.offers))
    ]
    later = [pattern for pattern in stage.available_tools if "__" in pattern and pattern not in found]
    return [*found, *later, *(f"{server}__*" for server in stage.available_connectors)]


def _fits(pattern: str, tool: str) -> bool:
    aliases = (alias for alias, canonical in TOOL_ALIASES.items() if canonical == tool)
    return any(fnmatchcase(name, pattern) for name in (tool, *aliases))


def _open_edges(stage: StageTable) -> list[str]:
    return [edge.to for edge in stage.transitions.values() if edge.condition is None]


def _tool_plan(tool: str, stage: StageTable, layers: Layers) -> ToolPlan:
    entry = layers.follows.get(tool, tool)
    speakers = layers.speakers(entry)
    limits = [saying for speaker in speakers for _, saying in speaker.limits]
    allows = [saying for speaker in speakers for _, saying in speaker.allows]
    silent = not any(speaker.layer in {"user", "user-for-agent"} for speaker in speakers)
    loosens = layers.allow_blueprint_permissions or entry in layers.loosenable
    clamped = "" if loosens or not silent else f"asks all the same: your config says nothing about {entry}"
    return ToolPlan(
        tool=tool,
        decision=decide_as_a_whole(tool, layers),
        patterns=(
            *((saying, "") for saying in sorted(limits, key=lambda saying: -saying.verdict)),
            *((saying, clamped if saying.layer in {"stage", "blueprint"} else "") for saying in allows),
        ),
        under_yolo=decide_as_a_whole(tool, with_flags(layers, yolo=True)).verdict,
        waits_for_person=tool in WAITING_TOOLS,
        required=tool in stage.required_tools,
    )


def _still_asks(blueprint: Blueprint, stage: StageTable) -> Iterator[tuple[str, Position]]:
    table = blueprint.source.table
    for index, point in enumerate(stage.interaction_points):
        if point.unattended == "ask":
            where = table.position("stages", stage.name, "interaction_points", index)
            yield f"the checkpoint {point.name!r}", where
    for index, tool in enumerate(stage.required_tools):
        yield (
            f"{tool}, which the stage requires",
            table.value_position("stages", stage.name, "required_tools", index),
        )


def _always(stages: Sequence[Layers]) -> Iterator[str]:
    yield "writes to protected paths: each time, and only an answer lets them through"
    yield "files that a command line is seen to read outside the workdir"
    for rule in stages[0].launch.ask:
        yield f"what --ask {rule} names"
    if any(layers.shell_word_denied() for layers in stages):
        yield "command lines that cannot be told before they run, since some of what one could do is denied"


def ceiling_rows(ceilings: Ceilings) -> tuple[tuple[str, float | str], ...]:
    """Return each limit that is set, by its dotted key; bytes and seconds as numbers."""
    values: tuple[tuple[str, float | str | None], ...] = (
        ("write_budget.per_call", ceilings.per_call_bytes),
        ("write_budget.per_run", ceilings.per_run_bytes),
        ("write_budget.files", ceilings.files),
        ("limits.steps", ceilings.steps),
        ("limits.tokens", ceilings.tokens),
        ("limits.cost_usd", ceilings.cost_usd),
        ("limits.unknown_price", ceilings.unknown_price if ceilings.cost_usd is not None else None),
        ("limits.wall_time", ceilings.wall_time_s),
        ("limits.subagents", ceilings.subagents),
        ("limits.depth", ceilings.depth),
        *((f'limits.calls."{rule}"', number) for rule, number in ceilings.calls),
    )
    return tuple((key, value) for key, value in values if value is not None)
