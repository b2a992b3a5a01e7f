"""Begins a run: its lease, its first commit, and the parts to drive it with."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import field
from pathlib import Path

import anyio

from agentctl import __version__
from agentctl.agent.snapshot import RunSnapshot
from agentctl.blueprint.model import Blueprint
from agentctl.errors import InvalidInput, Position, Problem
from agentctl.ids import new_run_id, new_thread_id
from agentctl.protocol.events import LaunchFlags, MessageAdded, Noted, RunResumed, RunStarted
from agentctl.protocol.messages import user_text
from agentctl.records import dataclass
from agentctl.run.agent_kind import AgentKind, agent_kind
from agentctl.run.build import RunSeed
from agentctl.run.family import catalogue_hashes, family_run, spawns
from agentctl.run.house import House
from agentctl.run.inputs import checked_inputs, checked_workdir
from agentctl.run.resume import (
    answered_by,
    brought_up_to_date,
    check_is_last,
    left_open_by_the_last,
    thread_messages,
    with_sub_agents,
)
from agentctl.run.runner import RunParts
from agentctl.run.state_parts import open_live_state, open_store


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What a run is to do."""

    task: str = ""
    inputs: dict[str, str] = field(default_factory=dict)
    context: dict[str, str] = field(default_factory=dict)
    workdir: Path
    """Absolute and resolved."""
    flags: LaunchFlags = field(default_factory=LaunchFlags)
    thread_id: str = ""
    """The conversation to continue; empty begins one."""


@asynccontextmanager
async def begun(
    house: House, blueprint: Blueprint, order: Order, kind: AgentKind | None = None
) -> AsyncIterator[RunParts]:
    """Give the parts of a run whose beginning is in the journal; the thread is let go at the end.

    `kind` is what earlier runs of the same blueprint, workdir and flags were built from.

    Raises:
        UsageError: an input is missing or wrong.
        InvalidInput: a rule or a model name is invalid.
        ProviderError: no key for a model.
        StateConflict: another process has the thread.
    """
    inputs = checked_inputs(blueprint, order.inputs)
    kind = kind or agent_kind(house, blueprint, order.workdir, order.flags)
    if spawns(blueprint) and not house.catalogue_sha256:
        house.catalogue_sha256 = catalogue_hashes()
    thread_id = order.thread_id or new_thread_id()
    lease = await house.journal.acquire(thread_id)
    try:
        earlier = await thread_messages(house.journal, thread_id) if order.thread_id else []
        unanswered = await left_open_by_the_last(house.journal, thread_id, earlier)
        live = await open_live_state(house.journal, thread_id)
        seed = RunSeed(
            run_id=new_run_id(),
            thread_id=thread_id,
            workdir=order.workdir,
            launch=order.flags,
            live=live,
            store=open_store(house, blueprint, thread_id),
            context=order.context,
        )
        parts = family_run(house, kind, seed, RunSnapshot(messages=earlier, run_from=len(earlier)))
        task = order.task or blueprint.agent.description
        await parts.recorder.commit(
            _started(kind, seed, order, inputs, house.catalogue_sha256),
            *(MessageAdded(message=message) for message in unanswered),
            MessageAdded(message=user_text(task, source="task")),
        )
        models = (model.notice for model in kind.models.values() if model.notice)
        notices = dict.fromkeys((*kind.notices, *models))
        await parts.recorder.commit(*(Noted(level="warning", text=text) for text in notices))
        yield parts
    finally:
        with anyio.CancelScope(shield=True):
            await lease.release()


@asynccontextmanager
async def resumed(
    house: House, blueprint: Blueprint, snapshot: RunSnapshot, launch: LaunchFlags
) -> AsyncIterator[RunParts]:
    """Give the parts of a run that goes on from where its journal stands; the thread is let go at the end.

    `snapshot` is what `read_snapshot` gave for a run that began and has not ended.

    Raises:
        UsageError: the workdir is gone, the run ended meanwhile, or another run went on with the thread.
        InvalidInput: a rule or a model name is invalid, code is not trusted, or the stage is gone.
        StateConflict: another process has the thread.
    """
    started = snapshot.started
    assert started is not None, "the caller looked"  # noqa: S101
    workdir = checked_workdir(Path(started.workdir), otherwise="make it again: the run goes on in no other")
    kind = agent_kind(house, blueprint, workdir, launch)
    house.catalogue_sha256 = started.catalogue_sha256
    lease = await house.journal.acquire(started.thread_id)
    try:
        snapshot = await brought_up_to_date(house.journal, started.run_id, snapshot)
        _check_stage(blueprint, snapshot)
        await with_sub_agents(house.journal, started.run_id, snapshot)
        house.providers.already_answered(answered_by(snapshot), run=started.run_id)
        await check_is_last(house.journal, started.run_id, started.thread_id)
        seed = RunSeed(
            run_id=started.run_id,
            thread_id=started.thread_id,
            workdir=workdir,
            launch=launch,
            live=await open_live_state(house.journal, started.thread_id),
            store=open_store(house, blueprint, started.thread_id),
            context=started.context,
        )
        parts = family_run(house, kind, seed, snapshot)
        going_on = RunResumed(
            launch=launch,
            version=__version__,
            blueprint_sha256=blueprint.source.sha256,
            thread_id=started.thread_id,
            model=started.model,
            spent=dict(snapshot.spent),
        )
        notices = (Noted(level="warning", text=text, source="resume") for text in snapshot.left_out)
        await parts.recorder.commit(*notices, going_on)
        yield parts
    finally:
        with anyio.CancelScope(shield=True):
            await lease.release()


def _check_stage(blueprint: Blueprint, snapshot: RunSnapshot) -> None:
    """Raise InvalidInput where the blueprint lacks the stage that the run stands in: no other's rules fit."""
    if snapshot.stage and snapshot.stage not in blueprint.stages:
        there = ", ".join(blueprint.stages)
        problem = Problem(
            position=Position(file=str(blueprint.source.path)),
            message=f"the run stands in the stage {snapshot.stage!r}, and there is none; there are {there}",
            key="stages",
        )
        raise InvalidInput(
            (problem,), hint="Resume without --blueprint current, or give it that stage again."
        )


def _started(
    kind: AgentKind,
    seed: RunSeed,
    order: Order,
    inputs: dict[str, str],
    catalogue_sha256: dict[str, str],
) -> RunStarted:
    blueprint, source = kind.blueprint, kind.blueprint.source
    return RunStarted(
        run_id=seed.run_id,
        thread_id=seed.thread_id,
        agent=blueprint.name,
        task=order.task,
        inputs=inputs,
        context=order.context,
        workdir=str(seed.workdir),
        blueprint_path=str(source.path),
        blueprint_source=source.text,
        blueprint_sha256=source.sha256,
        found_by=source.found_by,
        policy_sha256="",
        model=kind.models[blueprint.entry.name].model.name,
        launch=seed.launch,
        version=__version__,
        catalogue_sha256=catalogue_sha256,
    )
