"""Starts a run: everything that can be wrong is said before the first fact is written."""

from dataclasses import dataclass
from pathlib import Path

import anyio

from agentctl import __version__
from agentctl.agent.snapshot import RunSnapshot
from agentctl.blueprint.catalogue import load
from agentctl.blueprint.model import Blueprint
from agentctl.cli.agent_kind import AgentKind, agent_kind
from agentctl.cli.family import catalogue_hashes, family_run, spawns
from agentctl.cli.house import House, open_house
from agentctl.cli.inputs import checked_inputs, checked_workdir
from agentctl.cli.options import Output
from agentctl.cli.show import show_run
from agentctl.cli.wiring import RunSeed
from agentctl.ids import new_run_id, new_thread_id
from agentctl.protocol.events import LaunchFlags, MessageAdded, RunStarted
from agentctl.protocol.messages import user_text
from agentctl.run.resume import thread_messages
from agentctl.settings.load import limit_overrides, load_settings
from agentctl.settings.settings import Override


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchOptions:
    """What the command line of `run` says."""

    blueprint: str
    task: str
    inputs: dict[str, str]
    context: dict[str, str]
    workdir: Path
    thread: str
    model: str
    flags: LaunchFlags
    trust: str
    output: Output


def start(options: LaunchOptions) -> int:
    """Run a blueprint to its end and return the exit code.

    Raises:
        UsageError: the blueprint, the workdir or an input is missing or of the wrong kind.
        InvalidInput: the blueprint, the config or a rule is invalid.
    """
    workdir = checked_workdir(options.workdir)
    blueprint = load(options.blueprint)
    inputs = checked_inputs(blueprint, options.inputs)
    settings = load_settings(overrides(options.flags.limits, options.model))

    async def main() -> int:
        async with open_house(settings, blueprint) as house:
            return await _start(house, blueprint, options, workdir, inputs)

    return anyio.run(main)


async def _start(
    house: House, blueprint: Blueprint, options: LaunchOptions, workdir: Path, inputs: dict[str, str]
) -> int:
    kind = agent_kind(house, blueprint, workdir, options.flags)
    house.catalogue_sha256 = catalogue_hashes() if spawns(blueprint) else {}
    thread_id = options.thread or new_thread_id()
    lease = await house.journal.acquire(thread_id)
    seed = RunSeed(run_id=new_run_id(), thread_id=thread_id, workdir=workdir, launch=options.flags)
    earlier = await thread_messages(house.journal, thread_id) if options.thread else []
    try:
        async with show_run(house, options.output) as view:
            parts = family_run(house, kind, seed, RunSnapshot(messages=earlier, run_from=len(earlier)))
            task = options.task or blueprint.agent.description
            await parts.recorder.commit(
                _started(kind, seed, options, inputs, house.catalogue_sha256),
                MessageAdded(message=user_text(task, source="task")),
            )
            return await view.drive(parts)
    finally:
        await lease.release()


def _started(
    kind: AgentKind,
    seed: RunSeed,
    options: LaunchOptions,
    inputs: dict[str, str],
    catalogue_sha256: dict[str, str],
) -> RunStarted:
    blueprint, source = kind.blueprint, kind.blueprint.source
    return RunStarted(
        run_id=seed.run_id,
        thread_id=seed.thread_id,
        agent=blueprint.name,
        task=options.task,
        inputs=inputs,
        context=options.context,
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


def overrides(limits: tuple[str, ...], model: str) -> tuple[Override, ...]:
    """Return what `--limit` and `--model` set for this invocation.

    Raises:
        UsageError: a limit is not KEY=VALUE with a known key.
    """
    chosen = (Override(path=("model", "use"), text=model, source="--model"),) if model else ()
    return (*limit_overrides(limits), *chosen)
