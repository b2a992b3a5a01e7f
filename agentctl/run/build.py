"""Builds a run from what its blueprint's runs share and what is its own. The only place that does."""

from dataclasses import field, replace
from functools import partial
from pathlib import Path

from anyio import to_thread

from agentctl.agent.agent_state import AgentState, LiveState
from agentctl.agent.hook_stack import Member
from agentctl.agent.showing import StateShowing
from agentctl.agent.snapshot import RunSnapshot
from agentctl.agent.state_fold import StateFold
from agentctl.agent.tool_state import ToolState, build_tool_state
from agentctl.agent.tool_state_parts import StageRules, ToolStateParts
from agentctl.blueprint.model import Blueprint
from agentctl.executor.api import Roots
from agentctl.executor.sandbox_policy import SandboxKind, SandboxPolicy
from agentctl.policy.budgets import Budgets
from agentctl.policy.grants import GrantBook, restore
from agentctl.protocol.events import LaunchFlags
from agentctl.protocol.tool_names import RULE_NAMES
from agentctl.records import dataclass
from agentctl.run.active_time import ActiveTime
from agentctl.run.agent_kind import AgentKind
from agentctl.run.child import OpenChild
from agentctl.run.children import Children
from agentctl.run.hook_parts import hook_members, run_hooks
from agentctl.run.house import House
from agentctl.run.inbox import JournalInbox
from agentctl.run.person import HubPerson
from agentctl.run.recorder import RunRecorder
from agentctl.run.runner import RunParts
from agentctl.run.state_parts import tools_of
from agentctl.run.tool_servers import server_sources
from agentctl.settings.edit import remember
from agentctl.state.pages import Bounds
from agentctl.state.shared_state import SharedState
from agentctl.tools.definition import ToolPlace
from agentctl.tools.outside import Sources, ToolSource
from agentctl.tools.script.written import WrittenTools
from agentctl.tools.subagents import subagent_tools


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSeed:
    """What tells one run from another of the same kind."""

    run_id: str
    thread_id: str
    launch: LaunchFlags
    workdir: Path
    agent: str = ""
    """What the agent is: the blueprint's name where empty; a worker stage has its own."""
    name: str = ""
    """Tells it from its siblings: `researcher-2`; what it is where empty."""
    parent: RunParts | None = None
    """The run that started it, when it is a sub-agent's."""
    parent_stage: StageRules | None = None
    """The parent's stage that started it: of its rules the denies come down, and its sandbox."""
    open_child: OpenChild | None = None
    """Builds its own sub-agents; None when it may start none."""
    agents: tuple[tuple[str, str], ...] = ()
    """The agents it may start, with their descriptions."""
    live: LiveState
    """The cells of the root run's thread."""
    store: SharedState | None = None
    """The agent's view of shared state."""
    context: dict[str, str] = field(default_factory=dict)
    """The run context, by name."""


def build_run(house: House, kind: AgentKind, seed: RunSeed, snapshot: RunSnapshot) -> RunParts:
    """Return a run that is ready to go on from `snapshot`, an empty one for a new run."""
    parent = seed.parent
    inbox = JournalInbox(journal=house.journal, run_id=seed.run_id, clock=house.clock)
    recorder = RunRecorder(
        journal=house.journal,
        run_id=seed.run_id,
        thread_id=seed.thread_id,
        agent=seed.name or seed.agent or kind.blueprint.name,
        parent_run=parent.recorder.run_id if parent else "",
        watchers=(house.watch,),
        snapshot=snapshot,
        live=seed.live,
        keys=kind.state.keys,
        saw=inbox.saw,
    )
    state = AgentState(
        run_id=seed.run_id,
        thread_id=seed.thread_id,
        agent=recorder.agent,
        live=seed.live,
        plan=kind.state,
        store=seed.store,
        made_by=snapshot.made_by,
        workdir=str(seed.workdir),
    )
    active = ActiveTime(house.clock)
    person = HubPerson(hub=house.hub, yolo=seed.launch.yolo, active=active, someone_there=house.someone_there)
    budgets = parent.tools.budgets.child(kind.ceilings) if parent else Budgets(kind.ceilings, kind.place)
    budgets.restore(snapshot.spent, snapshot.own)
    children = Children(recorder=recorder, budgets=budgets, open_child=seed.open_child, known=seed.agents)
    return RunParts(
        root_run=parent.root_run if parent else seed.run_id,
        agent=seed.agent or kind.blueprint.name,
        blueprint=kind.blueprint,
        recorder=recorder,
        tools=build_tools(house, kind, seed, children, state),
        open_model=lambda name: house.providers.open((name,)),
        showing=StateShowing(state=state, context=seed.context),
        model_of=lambda stage: kind.models[stage.name],
        person=person,
        active=active,
        inbox=inbox,
        children=children,
        sandboxed=lambda stage: _sandboxed(house, kind.stages[stage.index].sandbox),
        clock=house.clock,
    )


def _servers(house: House, kind: AgentKind) -> tuple[ToolSource, ...]:
    """The MCP servers' tools; a run waits and is warned for what its own stages list."""
    connectors = [name for stage in kind.stages for name in stage.connectors]
    return server_sources(house, kind.servers, connectors)


def build_tools(
    house: House, kind: AgentKind, seed: RunSeed, children: Children, state: AgentState
) -> ToolState:
    """Return the agent's tool state."""
    snapshot = children.recorder.snapshot
    bounds = Bounds(
        lines=kind.blueprint.context.tool_output_max_lines,
        size_bytes=kind.blueprint.context.tool_output_max_bytes,
    )
    parent, context = seed.parent, kind.blueprint.context
    layers = kind.layers
    if parent and seed.parent_stage:
        above = parent.tools.parts.layers.in_stage(seed.parent_stage.permissions)
        layers = replace(layers, parent=above.for_children())
    grants = GrantBook(kind.place)
    restore(grants, snapshot.grants)
    own = subagent_tools(children, state.store_of, bounds) if seed.open_child else ()
    attended = not seed.launch.yolo and house.someone_there()
    return build_tool_state(
        ToolStateParts(
            agent=seed.name or kind.blueprint.name,
            run_id=seed.run_id,
            parent_run=parent.recorder.run_id if parent else "",
            tools=(*kind.tools, *tools_of(state, bounds), *own),
            host_tools=kind.host_tools,
            script_permissions=kind.script_permissions,
            outside=Sources(each=(*_servers(house, kind), *written_tools(house, kind, seed))),
            stages=kind.stages,
            layers=layers,
            safe_list=kind.safe_list,
            remembered=kind.remembered,
            grants=grants,
            budgets=children.budgets,
            place=ToolPlace(
                workdir=seed.workdir,
                temp=house.temp_of(seed.run_id),
                why_protected=kind.protected.why,
                read_paths=kind.read_paths,
                kept=kind.kept,
                home=Path(kind.place.home),
                run_id=seed.run_id,
                agent=kind.blueprint.name,
                shown_lines=bounds.lines,
                shown_bytes=bounds.size_bytes,
            ),
            hooks=run_hooks(_members(house, kind, seed), children.recorder, state.cells),
            fold=StateFold(state=state, snapshot=snapshot, bounds=bounds, stash=context.stash),
            state=state,
            unattended=not attended,
            on_ask=seed.launch.on_ask,
            interaction_timeout_s=_timeout(house, kind.blueprint),
            free_bytes=house.executor.free_bytes,
            store_rule=_remember,
        )
    )


def written_tools(house: House, kind: AgentKind, seed: RunSeed) -> tuple[ToolSource, ...]:
    """Return where script tools come from that are written while the run lasts, where it may have any."""
    if not kind.blueprint.agent.dynamic_tools:
        return ()
    roots = Roots(workdir=seed.workdir, temp=house.temp_of(seed.run_id), home=Path(kind.place.home))
    named = {name for tool in kind.tools for name in (tool.spec.name, *tool.aliases)}
    taken = RULE_NAMES | named
    return (WrittenTools(executor=house.executor, roots=roots, workshop=house.workshop, taken=taken),)


async def _sandboxed(house: House, policy: SandboxPolicy) -> bool:
    """Whether a sandbox is in force; looked at only where it could lift an ask."""
    if not policy.auto_allow:
        return False
    return await house.executor.sandbox_in_force(policy) is not SandboxKind.NONE


def _members(house: House, kind: AgentKind, seed: RunSeed) -> tuple[Member, ...]:
    roots = Roots(workdir=seed.workdir, temp=house.temp_of(seed.run_id), home=Path(kind.place.home))
    return hook_members(kind.blueprint, house.settings, kind.code, house.executor, roots)


def _timeout(house: House, blueprint: Blueprint) -> float:
    """Return seconds until a question answers itself: the shorter of what user and blueprint set; 0 waits."""
    user, own = house.settings.config.limits.interaction_timeout, blueprint.limits.interaction_timeout
    said = [seconds for seconds in (3600.0 if user is None else user, own) if seconds]
    return min(said, default=0.0)


async def _remember(rule: str, described: str) -> None:
    # A call of the tool was approved just now, so it is there, whoever brought it.
    tool = rule.partition("(")[0]
    await to_thread.run_sync(partial(remember, rule, described=described, tools=(tool,)))
