"""Builds a run from its blueprint, the user's settings and the command line. The only place that does."""

from dataclasses import dataclass
from pathlib import Path

from anyio import to_thread

from agentctl.agent.hooks import NoHooks
from agentctl.agent.results import CutOnly
from agentctl.agent.snapshot import RunSnapshot
from agentctl.agent.tool_state import StageRules, ToolState, ToolStateParts, build_tool_state
from agentctl.blueprint.model import Blueprint, StageTable
from agentctl.cli.house import House
from agentctl.policy.budgets import Budgets
from agentctl.policy.ceilings import Ceilings, ceilings_in_effect
from agentctl.policy.defaults import built_in_policy
from agentctl.policy.grants import GrantBook, restore
from agentctl.policy.layers import Launch, Layers, bind_rules
from agentctl.policy.paths import Place
from agentctl.policy.rules import ToolNames, parse_permissions, parse_rules
from agentctl.policy.safe_list import NO_SAFE_LIST
from agentctl.protocol.events import LaunchFlags
from agentctl.run.active_time import ActiveTime
from agentctl.run.inbox import JournalInbox
from agentctl.run.person import HubPerson
from agentctl.run.recorder import RunRecorder
from agentctl.run.runner import RunParts
from agentctl.run.stages import StageModel, request_parameters
from agentctl.settings.ceilings import ceilings_of
from agentctl.settings.edit import remember
from agentctl.settings.model_choice import ModelChoice, WrittenModel, choose_model
from agentctl.settings.rules import (
    agent_rules,
    names_for,
    remembered_rules,
    shipped_table,
    user_rules,
)
from agentctl.tools.built_in import built_in_tools
from agentctl.tools.definition import ToolPlace


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSeed:
    """What tells one run from another of the same blueprint."""

    run_id: str
    thread_id: str
    workdir: Path
    launch: LaunchFlags
    parent_run: str = ""


def build_run(house: House, blueprint: Blueprint, seed: RunSeed, snapshot: RunSnapshot) -> RunParts:
    """Return a run that is ready to go on from `snapshot`, an empty one for a new run."""
    recorder = RunRecorder(
        journal=house.journal,
        run_id=seed.run_id,
        thread_id=seed.thread_id,
        agent=blueprint.name,
        parent_run=seed.parent_run,
        watchers=(house.watch,),
        snapshot=snapshot,
    )
    active = ActiveTime(house.clock)
    person = HubPerson(hub=house.hub, yolo=seed.launch.yolo, active=active, someone_there=house.someone_there)
    return RunParts(
        blueprint=blueprint,
        recorder=recorder,
        tools=build_tools(house, blueprint, seed, snapshot, attended=person.attended()),
        model_of=lambda stage: open_model(house, blueprint, stage),
        person=person,
        active=active,
        inbox=JournalInbox(journal=house.journal, run_id=seed.run_id),
        clock=house.clock,
    )


def choose(house: House, blueprint: Blueprint, stage: StageTable) -> ModelChoice:
    """Return the stage's models, how to call them, and who chose them."""
    source = blueprint.source.table
    written = [WrittenModel(table=blueprint.model, source=str(source.position("model")))]
    if stage.model is not None:
        where = str(source.position("stages", stage.name, "model"))
        written.insert(0, WrittenModel(table=stage.model, source=where))
    return choose_model(house.settings, agent=blueprint.name, written=written)


def open_model(house: House, blueprint: Blueprint, stage: StageTable) -> StageModel:
    """Return the stage's model with the parameters of its requests.

    Raises:
        InvalidInput: an unknown provider.
        ProviderError: no key for it.
    """
    choice = choose(house, blueprint, stage)
    return StageModel(model=house.providers.open(choice.table.use), request=request_parameters(choice.table))


def build_layers(house: House, blueprint: Blueprint, launch: LaunchFlags, place: Place) -> Layers:
    """Return the policy layers of an agent, without those of a stage."""
    settings = house.settings
    built_in = built_in_policy(shipped_table("policy.toml"))
    names = names_for(blueprint.tool_permissions)
    return Layers(
        launch=Launch(
            allow=parse_rules(launch.allow, names=names, source="--allow"),
            ask=parse_rules(launch.ask, names=names, source="--ask"),
            deny=parse_rules(launch.deny, names=names, source="--deny"),
            yolo=launch.yolo,
        ),
        blueprint=parse_permissions(blueprint.tool_permissions, names=names),
        user_for_agent=agent_rules(settings, blueprint.name),
        user=user_rules(settings),
        built_in=built_in.rules,
        place=place,
        found_by_name=blueprint.source.found_by != "path",
        allow_blueprint_permissions=settings.config.security.allow_blueprint_permissions,
        loosenable=built_in.loosenable,
        follows=built_in.follows,
    )


def build_tools(
    house: House, blueprint: Blueprint, seed: RunSeed, snapshot: RunSnapshot, *, attended: bool
) -> ToolState:
    """Return the agent's tool state."""
    home = Path.home().resolve()
    place = Place(workdir=str(seed.workdir), home=str(home))
    temp = house.temp / seed.run_id
    temp.mkdir(mode=0o700, exist_ok=True)
    grants = GrantBook(place)
    restore(grants, snapshot.grants)
    names = names_for(blueprint.tool_permissions)
    budgets = Budgets(ceilings(house, blueprint, names), place)
    budgets.restore(snapshot.spent)
    return build_tool_state(
        ToolStateParts(
            agent=blueprint.name,
            run_id=seed.run_id,
            parent_run=seed.parent_run,
            tools=built_in_tools(house.executor, house.clock),
            stages=tuple(
                StageRules(
                    name=stage.name,
                    index=stage.index,
                    available=stage.available_tools,
                    required=frozenset(stage.required_tools),
                    permissions=parse_permissions(stage.tool_permissions, names=names),
                )
                for stage in blueprint.in_order
            ),
            layers=build_layers(house, blueprint, seed.launch, place),
            safe_list=NO_SAFE_LIST,
            remembered=bind_rules(remembered_rules(house.settings), place),
            grants=grants,
            budgets=budgets,
            place=ToolPlace(
                workdir=seed.workdir,
                temp=temp,
                why_protected=lambda _path: "",
                read_paths=read_paths_of(house, blueprint),
                home=home,
                run_id=seed.run_id,
                agent=blueprint.name,
            ),
            hooks=NoHooks(),
            fold=CutOnly(
                max_lines=blueprint.context.tool_output_max_lines,
                max_bytes=blueprint.context.tool_output_max_bytes,
            ),
            unattended=not attended,
            on_ask=seed.launch.on_ask,
            interaction_timeout_s=house.settings.config.limits.interaction_timeout or 3600.0,
            sandbox_auto_allow=False,
            price_known=lambda _model: True,
            free_bytes=house.executor.free_bytes,
            store_rule=_remember,
        )
    )


def read_paths_of(house: House, blueprint: Blueprint) -> tuple[Path, ...]:
    """Return the directories outside that may be read: declared by the blueprint and granted by the user."""
    declared = blueprint.read_paths.allow
    agent = house.settings.config.agents.get(blueprint.name)
    granted = (*house.settings.config.read_paths.allow, *(agent.read_paths.allow if agent else ()))
    grants = [Path(text).expanduser().resolve() for text in granted]
    wanted = [Path(text).expanduser().resolve() for text in declared]
    return tuple(path for path in wanted if any(path.is_relative_to(grant) for grant in grants))


def ceilings(house: House, blueprint: Blueprint, names: ToolNames) -> Ceilings:
    """Return what holds: the user's ceilings, lowered by the blueprint's."""
    config, user = house.settings.config, house.settings.table
    own = blueprint.source.table
    return ceilings_in_effect(
        user=ceilings_of(config.limits, config.write_budget, names=names, table=user.table("limits")),
        narrower=(
            ceilings_of(blueprint.limits, blueprint.write_budget, names=names, table=own.table("limits")),
        ),
    )


async def _remember(rule: str) -> None:
    await to_thread.run_sync(remember, rule)
