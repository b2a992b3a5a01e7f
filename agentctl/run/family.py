"""Builds the runs of sub-agents: which agents may be started, and a child's parts from its parent's."""

import hashlib
import tomllib
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

import anyio.to_thread

from agentctl import __version__
from agentctl.agent.snapshot import RunSnapshot
from agentctl.blueprint.catalogue import Entry, entries
from agentctl.blueprint.load import load_blueprint
from agentctl.blueprint.model import Blueprint
from agentctl.errors import AgentctlError, ToolError, UsageError
from agentctl.protocol.events import MessageAdded, RunEnded, RunResumed, RunStarted, RunSuspended
from agentctl.protocol.messages import user_text
from agentctl.protocol.values import JsonObject
from agentctl.records import dataclass
from agentctl.run.agent_kind import AgentKind, agent_kind
from agentctl.run.build import RunSeed, build_run
from agentctl.run.children import ChildSeed
from agentctl.run.house import House
from agentctl.run.inputs import checked_inputs
from agentctl.run.recorder import RunRecorder
from agentctl.run.resume import answered_by, read_snapshot, with_sub_agents
from agentctl.run.runner import RunParts, run_or_fail
from agentctl.state.shared_backend import InvalidKey
from agentctl.state.shared_state import SharedState

SPAWNING = ("spawn_agent", "fan_out")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedChild:
    """A sub-agent's run, ready to go."""

    house: House
    parts: RunParts

    @property
    def recorder(self) -> RunRecorder:
        """Where its facts are."""
        return self.parts.recorder

    async def go(self) -> RunEnded | RunSuspended:
        """Run to the end; committed."""
        lease = await self.house.journal.acquire(self.recorder.thread_id)
        try:
            return await run_or_fail(self.parts)
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

    async def open_own(child: ChildSeed) -> OpenedChild:
        return await open_child(house, family[0], child)

    able = replace(seed, open_child=open_own, agents=agents_of(kind.blueprint))
    family.append(build_run(house, kind, able, snapshot))
    return family[0]


async def open_child(house: House, parent: RunParts, seed: ChildSeed) -> OpenedChild:
    """Return a sub-agent's run; a fresh one has its first commit.

    Raises:
        ToolError: no such agent, one that changed since the root run began, or wrong inputs.
    """
    blueprint = await anyio.to_thread.run_sync(_blueprint_of, house, parent, seed)
    request = seed.request
    if request.output_schema is not None:
        blueprint = _with_output(blueprint, request.output_schema)
    snapshot = RunSnapshot()
    if seed.resumed:
        snapshot = await read_snapshot(house.journal, seed.run_id)
        await with_sub_agents(house.journal, seed.run_id, snapshot)
        house.providers.already_answered(answered_by(snapshot), run=parent.root_run)
    workdir, launch = parent.tools.place.workdir, parent.recorder.snapshot.launch
    kind = await anyio.to_thread.run_sync(agent_kind, house, blueprint, workdir, launch)
    parts = family_run(
        house,
        kind,
        RunSeed(
            run_id=seed.run_id,
            thread_id=seed.thread_id,
            workdir=workdir,
            launch=launch,
            agent=seed.request.agent,
            name=seed.name,
            parent=parent,
            live=parent.tools.state.live,
            store=_child_store(parent, seed),
            context=started.context if (started := parent.recorder.snapshot.started) else {},
        ),
        snapshot,
    )
    lease = await house.journal.acquire(seed.thread_id)
    try:
        if snapshot.started is None:
            await _begin(parts, parent, seed)
        else:
            await parts.recorder.commit(RunResumed(launch=launch, version=__version__))
    finally:
        await lease.release()
    return OpenedChild(house=house, parts=parts)


def _child_store(parent: RunParts, seed: ChildSeed) -> SharedState | None:
    """A child sees its own scope of what its parent sees."""
    store = parent.tools.state.store
    try:
        return store.scoped(seed.request.scope or seed.name) if store is not None else None
    except InvalidKey as error:
        raise ToolError(str(error)) from error


async def _begin(parts: RunParts, parent: RunParts, seed: ChildSeed) -> None:
    blueprint, request = parts.blueprint, seed.request
    given = {name: str(value) for name, value in request.inputs.items()}
    try:
        inputs = checked_inputs(blueprint, given)
    except UsageError as error:
        raise ToolError(error.message) from error
    started = RunStarted(
        run_id=seed.run_id,
        thread_id=seed.thread_id,
        agent=seed.name,
        task=request.task,
        inputs=inputs,
        context=parent.recorder.snapshot.started.context if parent.recorder.snapshot.started else {},
        workdir=str(parts.tools.place.workdir),
        blueprint_path=str(blueprint.source.path),
        blueprint_source=blueprint.source.text,
        blueprint_sha256=blueprint.source.sha256,
        found_by=blueprint.source.found_by,
        policy_sha256="",
        model=parts.model_of(blueprint.entry).model.name,
        launch=parent.recorder.snapshot.launch,
        parent_run=parent.recorder.run_id,
        parent_call=request.call_id,
        version=__version__,
        worker_stage=request.agent if request.agent in _workers(parent.blueprint) else "",
    )
    await parts.recorder.commit(started, MessageAdded(message=user_text(request.task, source="task")))


def _workers(blueprint: Blueprint) -> set[str]:
    return {stage.name for stage in blueprint.in_order if stage.allow_as_worker}


def _blueprint_of(house: House, parent: RunParts, seed: ChildSeed) -> Blueprint:
    name = seed.request.agent
    if name in _workers(parent.blueprint):
        return worker_blueprint(parent.blueprint, name)
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
    """Return the blueprint of a worker: that one stage alone, without a way out but its answer."""
    stage = replace(blueprint.stages[stage_name], transitions={}, index=0, mode="agent", fan_out=None)
    agent = replace(blueprint.agent, entry_stage=stage_name)
    return replace(blueprint, agent=agent, stages={stage_name: stage})


def _with_output(blueprint: Blueprint, schema: JsonObject) -> Blueprint:
    """Return the blueprint with an answer of that form from every stage that ends the run."""
    stages = {
        name: stage if stage.transitions else replace(stage, output=schema)
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
