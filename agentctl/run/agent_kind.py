"""What all runs of one blueprint share: its rules, ceilings, tools and models. Built once a process."""

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from agentctl.agent.agent_state import StatePlan
from agentctl.agent.script_reach import Permission
from agentctl.agent.state_plan import plan_state
from agentctl.agent.tool_state_parts import StageRules
from agentctl.blueprint.code import CodeLoader
from agentctl.blueprint.model import Blueprint, StageTable
from agentctl.blueprint.tool_rules import tool_names
from agentctl.blueprint.trust import trust_needed
from agentctl.errors import ProviderError
from agentctl.llm.endpoints import ModelPlace
from agentctl.locations import config_dir, data_dir
from agentctl.policy.ceilings import Ceilings, ceilings_in_effect
from agentctl.policy.layers import BoundRule, Launch, Layers, bind_rules
from agentctl.policy.paths import Place
from agentctl.policy.protected import ProtectedPaths, protected_paths
from agentctl.policy.rules import ToolNames, parse_permissions, parse_rules
from agentctl.policy.safe_data import safe_list
from agentctl.policy.safe_list import SafeList
from agentctl.protocol.events import LaunchFlags
from agentctl.records import dataclass
from agentctl.run.house import House
from agentctl.run.policy_layers import layers_of
from agentctl.run.read_paths import granted_read_paths
from agentctl.run.sandboxing import sandbox_of
from agentctl.run.script_tools import outside_tools, script_permissions
from agentctl.run.stages import StageModel, request_parameters
from agentctl.run.tool_servers import server_plans
from agentctl.run.trusted_code import trusted_code
from agentctl.settings.ceilings import ceilings_of
from agentctl.settings.model_choice import ModelChoice, WrittenModel, choose_model
from agentctl.settings.rules import remembered_rules, shipped_table
from agentctl.settings.settings import Settings
from agentctl.tables.declared import WriteBudgetTable
from agentctl.tools.built_in import built_in_tools
from agentctl.tools.definition import Tool
from agentctl.tools.mcp.server import ServerPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentKind:
    """One blueprint, ready for any number of runs in one workdir under one set of flags."""

    blueprint: Blueprint
    place: Place
    layers: Layers
    """Without those of a stage."""
    stages: tuple[StageRules, ...]
    ceilings: Ceilings
    remembered: tuple[BoundRule, ...]
    safe_list: SafeList
    protected: ProtectedPaths
    tools: tuple[Tool, ...]
    """The built-in ones, and the script and plugin tools that somebody trusted."""
    notices: tuple[str, ...] = ()
    """What the user should know before the first step."""
    host_tools: tuple[Tool, ...] = ()
    """What script tools may call."""
    script_permissions: Mapping[str, Permission] = field(default_factory=dict)
    servers: tuple[ServerPlan, ...] = ()
    """The MCP servers that its stages want."""
    read_paths: tuple[Path, ...]
    kept: tuple[Path, ...]
    """Files that no command in a sandbox can change, whatever it may write."""
    models: dict[str, StageModel]
    """By stage."""
    state: StatePlan = field(default_factory=StatePlan)
    """What the blueprint says about state, its code loaded."""
    code: CodeLoader
    """Loads what else of its code is needed; all of it is trusted."""


def agent_kind(house: House, blueprint: Blueprint, workdir: Path, launch: LaunchFlags) -> AgentKind:
    """Return what runs of `blueprint` share. May block: reads the shipped policy.

    Raises:
        InvalidInput: a rule or a model name is invalid, or code of the blueprint is not trusted.
        ProviderError: no key for a model.
    """
    settings = house.settings
    place = Place(workdir=str(workdir), home=str(Path.home().resolve()))
    names = tool_names(blueprint)
    code = trusted_code(blueprint, house.trust)
    built_in = built_in_tools(house.executor, house.clock)
    outside = outside_tools(house, blueprint, code)
    flags = (*launch.allow, *launch.ask, *launch.deny) if blueprint.agent.dynamic_tools else ()
    flag_names = names.plus(flag.partition("(")[0] for flag in flags)  # a tool may be there only later
    return AgentKind(
        blueprint=blueprint,
        place=place,
        layers=layers_of(settings, blueprint, place, launch=launch_rules(launch, flag_names)),
        stages=tuple(_stage_rules(settings, blueprint, stage, names) for stage in blueprint.in_order),
        ceilings=ceilings_in(settings, blueprint, names),
        remembered=bind_rules(remembered_rules(settings, names.known), place),
        safe_list=safe_list(
            shipped_table("safe_commands.toml"), settings.table.table("safe_commands"), names=names
        ),
        protected=protected_paths(place, own_places(blueprint)),
        tools=(*built_in, *outside.tools),
        notices=outside.notices,
        host_tools=house.workshop.host_tools(house.executor, built_in),
        script_permissions=script_permissions(settings, blueprint),
        servers=server_plans(house, blueprint, workdir),
        read_paths=granted_read_paths(settings, blueprint, place),
        kept=kept_files(blueprint),
        models={stage.name: open_model(house, blueprint, stage) for stage in blueprint.in_order},
        code=code,
        state=plan_state(blueprint, lambda reference, position: code.load(reference, position=position)),
    )


def launch_rules(flags: LaunchFlags, names: ToolNames) -> Launch:
    """Return the rules of the command line.

    Raises:
        InvalidInput: one names an unknown tool or is no rule.
    """
    return Launch(
        allow=parse_rules(flags.allow, names=names, source="--allow"),
        ask=parse_rules(flags.ask, names=names, source="--ask"),
        deny=parse_rules(flags.deny, names=names, source="--deny"),
        yolo=flags.yolo,
    )


def choose(settings: Settings, blueprint: Blueprint, stage: StageTable) -> ModelChoice:
    """Return the stage's models, how to call them, and who chose them."""
    source = blueprint.source.table
    written = [WrittenModel(table=blueprint.model, source=str(source.position("model")))]
    if stage.model is not None:
        where = str(source.position("stages", stage.name, "model"))
        written.insert(0, WrittenModel(table=stage.model, source=where))
    return choose_model(settings, agent=blueprint.name, written=written)


def open_model(house: House, blueprint: Blueprint, stage: StageTable) -> StageModel:
    """Return the stage's model with the parameters of its requests.

    Raises:
        InvalidInput: an unknown provider.
        ProviderError: no key for it.
    """
    choice = choose(house.settings, blueprint, stage)
    names, notice = _to_be_had(house, choice)
    place = ModelPlace(
        base_url=choice.table.base_url,
        origin="blueprint" if choice.from_blueprint else "user",
        context_window=choice.table.context_window,
    )
    models = house.providers.open(names, place)
    return StageModel(model=models, prices=models, request=request_parameters(choice.table), notice=notice)


def _to_be_had(house: House, choice: ModelChoice) -> tuple[tuple[str, ...], str]:
    """The models, or the blueprint's script where nobody asked for the embedded one and it cannot be had."""
    first = choice.table.use[0]
    if not first.startswith("local:") or not (choice.from_blueprint or choice.source == "built-in"):
        return choice.table.use, ""
    obstacle = house.local_obstacle(first.removeprefix("local:"))
    if not obstacle:
        return choice.table.use, ""
    if not house.has_script:
        hint = "agentctl models install, or take another model: --model PROVIDER:NAME"
        raise ProviderError(f"The model {first} cannot be had here: {obstacle}.", hint=hint)
    return ("scripted:",), f"{first} cannot be had here ({obstacle}): the blueprint's script answers instead."


def _stage_rules(settings: Settings, blueprint: Blueprint, stage: StageTable, names: ToolNames) -> StageRules:
    return StageRules(
        name=stage.name,
        index=stage.index,
        available=(*stage.offers, "fan_out") if stage.mode == "fan_out" else stage.offers,
        connectors=stage.available_connectors,
        required=frozenset(stage.required_tools),
        permissions=parse_permissions(stage.tool_permissions, names=names),
        sandbox=sandbox_of(settings, blueprint, stage),
        ceilings=ceilings_in(settings, blueprint, names, stage),
    )


def kept_files(blueprint: Blueprint) -> tuple[Path, ...]:
    """Return the running blueprint and the files of it that were trusted. May block."""
    return tuple(path.resolve() for path in (blueprint.source.path, *trust_needed(blueprint).files))


def own_places(blueprint: Blueprint) -> tuple[tuple[str, str], ...]:
    """Return what of agentctl's own is protected while this blueprint runs, and why."""
    return (
        (str(config_dir().resolve()), "agentctl's own config is there"),
        (str(data_dir().resolve()), "agentctl's journal and data are there"),
        (str(blueprint.source.path.resolve()), "it is the blueprint that is running"),
        *((str(file.resolve()), "it is code that was trusted") for file in trust_needed(blueprint).files),
    )


def ceilings_in(
    settings: Settings, blueprint: Blueprint, names: ToolNames, stage: StageTable | None = None
) -> Ceilings:
    """Return what holds: the user's ceilings, lowered by the blueprint's and the stage's."""
    config, own = settings.config, blueprint.source.table
    narrower = [ceilings_of(blueprint.limits, blueprint.write_budget, names=names, table=own.table("limits"))]
    if stage is not None:
        table = own.table("stages").table(stage.name).table("limits")
        narrower.append(ceilings_of(stage.limits, WriteBudgetTable(), names=names, table=table))
    user = settings.table.table("limits")
    return ceilings_in_effect(
        user=ceilings_of(config.limits, config.write_budget, names=names, table=user), narrower=narrower
    )
