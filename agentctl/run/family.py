"""Builds the runs of sub-agents: which agents may be started, and a child's parts from its parent's."""

import hashlib
import json
import tomllib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TypeAlias

import anyio.to_thread

from agentctl import __version__
from agentctl.agent.snapshot import RunSnapshot
from agentctl.agent.tool_state_parts import StageRules
from agentctl.blueprint.catalogue import Entry, entries
from agentctl.blueprint.load import load_blueprint, parse_blueprint
from agentctl.blueprint.model import Blueprint
from agentctl.errors import AgentctlError, InvalidInput, ProviderError, StateConflict, ToolError, UsageError
from agentctl.executor.sandbox_policy import within
from agentctl.protocol.children import ChildStarted
from agentctl.protocol.events import Event, MessageAdded, RunEnded, RunResumed, RunStarted, RunSuspended
from agentctl.protocol.messages import user_text
from agentctl.protocol.values import JsonObject
from agentctl.records import dataclass
from agentctl.run.agent_kind import AgentKind, agent_kind
from agentctl.run.build import RunSeed, build_run
from agentctl.run.child import ChildSeed
from agentctl.run.house import House
from agentctl.run.inputs import checked_inputs
from agentctl.run.read_paths import both_allow
from agentctl.run.recorder import RunRecorder
from agentctl.run.resume import answered_by, read_snapshot, with_sub_agents
from agentctl.run.runner import RunParts, run_or_fail
from agentctl.state.shared_backend import InvalidKey
from agentctl.state.shared_state import SharedState

SPAWNING = ("spawn_agent", "fan_out")

Kinds: TypeAlias = dict[str, AgentKind]
"""What the sub-agents of one run share, by what tells them apart: a thousand workers are read once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedChild:
    """A sub-agent's run, ready to go."""

    house: House
    parts: RunParts
    opening: tuple[Event, ...]
    """What its first commit in this process says: that it began, or that it goes on."""

    @property
    def recorder(self) -> RunRecorder:
        """Where its facts are."""
        return self.parts.recorder

    async def go(self) -> RunEnded | RunSuspended:
        """Begin it or go on with it, to its end; committed."""
        async with self._leased():
            await self.recorder.commit(*self.opening)
            return await run_or_fail(self.parts)

    async def end(self, ended: RunEnded) -> None:
        """Commit the end of a run that is not at work, and of all below it; one that never began has none."""
        await self.parts.children.end_all()
        snapshot = self.recorder.snapshot
        if snapshot.started is not None and snapshot.ended is None:
            async with self._leased():
                await self.recorder.commit(ended)

    @asynccontextmanager
    async def _leased(self) -> AsyncIterator[None]:
        lease = await self.house.journal.acquire(self.recorder.thread_id)
        try:
            yield
        finally:
            with anyio.CancelScope(shield=True):
                await lease.release()


def spawns(blueprint: Blueprint) -> bool:
    """Tell whether any stage offers a tool that starts sub-agents."""
    return any(
        stage.mode == "fan_out" or fnmatchcase(tool, pattern)
        for stage in blueprint.in_order
        for pattern in (*stage.available_tools, "")
        for tool in SPAWNING
    )


def agents_of(blueprint: Blueprint) -> tuple[tuple[str, str], ...]:
    """Return the agents that a blueprint's run may start: its own worker stages, then the catalogue's."""
    workers = [(stage.name, stage.description) for stage in blueprint.in_order if stage.allow_as_worker]
    named = {name for name, _ in workers} | {blueprint.name}
    return (
        *workers,
        *((entry.name, _description(entry)) for entry in entries() if entry.name not in named),
    )


def catalogue_hashes() -> dict[str, str]:
    """Return path → SHA-256 of every blueprint of the catalogue as it is now. May block."""
    return {str(entry.path): _digest(entry.path) for entry in entries()}


def family_run(house: House, kind: AgentKind, seed: RunSeed, snapshot: RunSnapshot) -> RunParts:
    """Return a run that can start sub-agents where its blueprint offers the tools for it."""
    if not spawns(kind.blueprint):
        return build_run(house, kind, seed, snapshot)
    family: list[RunParts] = []
    kinds: Kinds = {}

    async def open_own(child: ChildSeed) -> OpenedChild:
        return await open_child(house, family[0], child, kinds)

    able = replace(seed, open_child=open_own, agents=agents_of(kind.blueprint))
    family.append(build_run(house, kind, able, snapshot))
    return family[0]


async def open_child(house: House, parent: RunParts, seed: ChildSeed, kinds: Kinds) -> OpenedChild:
    """Return a sub-agent's run; nothing is written before it goes.

    Raises:
        ToolError: no such agent, one that changed since the root run began, or wrong inputs.
    """
    started = seed.started
    snapshot = await _snapshot(house, parent, started) if seed.resumed else RunSnapshot()
    blueprint = await anyio.to_thread.run_sync(_blueprint_of, house, parent, started.agent, snapshot.started)
    if started.output_schema:
        blueprint = with_output(blueprint, started.output_schema)
    own = RunSeed(
        run_id=started.child_run,
        thread_id=started.child_thread,
        workdir=parent.tools.place.workdir,
        launch=parent.recorder.snapshot.launch,
        agent=started.agent,
        name=started.name,
        parent=parent,
        parent_stage=_stage_of(parent, started.stage),
        live=parent.tools.state.live,
        store=_child_store(parent, started),
        context=above.context if (above := parent.recorder.snapshot.started) else {},
    )
    form = json.dumps(started.output_schema)
    key = f"{blueprint.source.sha256} {blueprint.entry.name} {started.stage} {form}"
    if key not in kinds:
        kinds[key] = await anyio.to_thread.run_sync(_kind, house, blueprint, own)
    parts = family_run(house, kinds[key], own, snapshot)
    opening = (RunResumed(launch=own.launch, version=__version__),)
    if snapshot.started is None:
        return OpenedChild(house=house, parts=parts, opening=_beginning(parts, parent, started))
    return OpenedChild(house=house, parts=parts, opening=opening)


def _kind(house: House, blueprint: Blueprint, seed: RunSeed) -> AgentKind:
    """What its runs share, narrowed to what its parent may do. May block."""
    parent, stage = seed.parent, seed.parent_stage
    if parent is None or stage is None:
        raise AssertionError("a sub-agent has a parent")
    try:
        kind = agent_kind(house, blueprint, seed.workdir, seed.launch)
        state = kind.state.within(parent.tools.state.plan)
    except StateConflict as error:
        raise ToolError(f"{blueprint.name!r} cannot run below this agent: {error.message}") from error
    except (InvalidInput, ProviderError) as error:
        raise ToolError(f"{blueprint.name!r} cannot be started: {error.message}") from error
    # What the runs above it are made of stays out of its reach as it is out of theirs.
    kept = (*kind.kept, *parent.tools.place.kept)
    return replace(
        kind,
        kept=kept,
        servers=tuple(
            replace(plan, roots=replace(plan.roots, kept=kept)) if plan.roots.kept else plan
            for plan in kind.servers
        ),
        protected=kind.protected.plus(kept, "a run that goes on is made of it"),
        state=state,
        stages=tuple(replace(own, sandbox=within(own.sandbox, stage.sandbox)) for own in kind.stages),
        read_paths=both_allow(kind.read_paths, parent.tools.place.read_paths),
    )


def _stage_of(parent: RunParts, name: str) -> StageRules:
    for stage in parent.tools.parts.stages:
        if stage.name == name:
            return stage
    raise ToolError(f"the stage {name!r} that started it is not there any more")


async def _snapshot(house: House, parent: RunParts, started: ChildStarted) -> RunSnapshot:
    """What is known of a sub-agent that its parent started; nothing when it died before its first commit."""
    if await house.journal.run(started.child_run) is None:
        return RunSnapshot()
    snapshot = await read_snapshot(house.journal, started.child_run)
    await with_sub_agents(house.journal, started.child_run, snapshot)
    house.providers.already_answered(answered_by(snapshot), run=parent.root_run)
    return snapshot


def _child_store(parent: RunParts, started: ChildStarted) -> SharedState | None:
    """A child sees its own scope of what the stage that started it sees, and the keys it was lent."""
    if parent.tools.state.store is None:
        return None
    view = parent.tools.state.store_of(started.stage)
    try:
        return view.scoped(started.scope or started.name).granting(view.as_grants(started.read))
    except InvalidKey as error:
        raise ToolError(str(error)) from error


def _beginning(parts: RunParts, parent: RunParts, child: ChildStarted) -> tuple[Event, ...]:
    blueprint, above = parts.blueprint, parent.recorder.snapshot
    is_own = child.agent in _workers(parent.blueprint)
    inherited = above.started.inputs if is_own and above.started else {}
    told = {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in child.inputs.items()
    }
    try:
        inputs = checked_inputs(blueprint, {**inherited, **told})
    except UsageError as error:
        raise ToolError(error.message) from error
    started = RunStarted(
        run_id=child.child_run,
        thread_id=child.child_thread,
        agent=child.name,
        task=child.task,
        inputs=inputs,
        context=above.started.context if above.started else {},
        workdir=str(parts.tools.place.workdir),
        blueprint_path=str(blueprint.source.path),
        blueprint_source=blueprint.source.text,
        blueprint_sha256=blueprint.source.sha256,
        found_by=blueprint.source.found_by,
        policy_sha256="",
        model=parts.model_of(blueprint.entry).model.name,
        launch=above.launch,
        parent_run=parent.recorder.run_id,
        parent_call=child.call_id,
        version=__version__,
        worker_stage=child.agent if is_own else "",
    )
    return started, MessageAdded(message=user_text(child.task, source="task"))


def _workers(blueprint: Blueprint) -> set[str]:
    return {stage.name for stage in blueprint.in_order if stage.allow_as_worker}


def _blueprint_of(house: House, parent: RunParts, name: str, recorded: RunStarted | None) -> Blueprint:
    """The agent's blueprint; for one that goes on, as its journal has it."""
    if name in _workers(parent.blueprint):
        return worker_blueprint(parent.blueprint, name)
    if recorded is not None and not recorded.worker_stage:
        path = Path(recorded.blueprint_path)
        source = recorded.blueprint_source.encode()
        return parse_blueprint(source, path=path, found_by=recorded.found_by)
    entry = next((one for one in entries() if one.name == name), None)
    if entry is None:
        known = ", ".join(one for one, _ in agents_of(parent.blueprint)) or "none"
        raise ToolError(f"There is no agent {name!r}. Agents: {known}.")
    _refuse_if_changed(house, entry)
    try:
        return load_blueprint(entry.path, found_by=entry.found_by)
    except AgentctlError as error:
        raise ToolError(f"The blueprint {name!r} is invalid: {error.message}") from error


def _refuse_if_changed(house: House, entry: Entry) -> None:
    """A run must not start what it wrote itself: only what stood there when the root run began."""
    if house.catalogue_sha256.get(str(entry.path)) != _digest(entry.path):
        raise ToolError(
            f"The blueprint {entry.name!r} has changed since this run began and can't be started in it."
        )


def worker_blueprint(blueprint: Blueprint, stage_name: str) -> Blueprint:
    """Return the blueprint of a worker: that one stage, without a way out but its answer.

    The other worker stages stay beside it, so that a worker can start workers.
    """
    workers = [stage_name, *(name for name in sorted(_workers(blueprint)) if name != stage_name)]
    stages = {
        name: replace(blueprint.stages[name], transitions={}, index=index, mode="agent", fan_out=None)
        for index, name in enumerate(workers)
    }
    return replace(blueprint, agent=replace(blueprint.agent, entry_stage=stage_name), stages=stages)


def with_output(blueprint: Blueprint, schema: JsonObject) -> Blueprint:
    """Return the blueprint with an answer of that form from every stage that ends the run."""
    stages = {
        name: stage
        if stage.transitions or (stage.allow_as_worker and stage is not blueprint.entry)
        else replace(stage, output=schema)
        for name, stage in blueprint.stages.items()
    }
    return replace(blueprint, stages=stages)


def _description(entry: Entry) -> str:
    """The blueprint's own line about itself; empty where the file cannot be read: starting it will tell."""
    try:
        agent = tomllib.loads(entry.path.read_text(encoding="utf-8")).get("agent", {})
    except (OSError, ValueError):
        return ""
    return str(agent.get("description", "")) if isinstance(agent, dict) else ""


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
