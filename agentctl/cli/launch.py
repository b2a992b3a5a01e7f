"""Starts a run: everything that can be wrong is said before the first fact is written."""

from dataclasses import dataclass
from pathlib import Path

import anyio

from agentctl import __version__
from agentctl.agent.snapshot import RunSnapshot
from agentctl.blueprint.catalogue import load
from agentctl.blueprint.model import Blueprint
from agentctl.cli.house import House, open_house
from agentctl.cli.options import Output
from agentctl.cli.show import show_run
from agentctl.cli.wiring import RunSeed, build_run, open_model
from agentctl.errors import UsageError
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
    for stage in blueprint.in_order:
        open_model(house, blueprint, stage)
    thread_id = options.thread or new_thread_id()
    lease = await house.journal.acquire(thread_id)
    seed = RunSeed(
        run_id=new_run_id(),
        thread_id=thread_id,
        workdir=workdir,
        launch=options.flags,
    )
    earlier = await thread_messages(house.journal, thread_id) if options.thread else []
    snapshot = RunSnapshot(messages=earlier, run_from=len(earlier))

    async def begin_and_show() -> int:
        async with show_run(house, options.output) as view:
            parts = build_run(house, blueprint, seed, snapshot)
            model = open_model(house, blueprint, blueprint.entry).model.name
            started = _started(blueprint, seed, options, inputs, model)
            task = options.task or blueprint.agent.description
            await parts.recorder.commit(started, MessageAdded(message=user_text(task, source="task")))
            return await view.drive(parts)

    try:
        return await begin_and_show()
    finally:
        await lease.release()


def _started(
    blueprint: Blueprint, seed: RunSeed, options: LaunchOptions, inputs: dict[str, str], model: str
) -> RunStarted:
    source = blueprint.source
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
        model=model,
        launch=seed.launch,
        parent_run=seed.parent_run,
        version=__version__,
    )


def checked_workdir(path: Path) -> Path:
    """Return the workdir, absolute and resolved.

    Raises:
        UsageError: it is missing or not a folder.
    """
    resolved = path.expanduser().resolve()
    if not resolved.exists():
        raise UsageError(
            f"The workdir {str(path)!r} does not exist.", hint="make it, or name another one with --workdir"
        )
    if not resolved.is_dir():
        raise UsageError(f"The workdir {str(path)!r} is not a folder.", hint="name a folder with --workdir")
    return resolved


def checked_inputs(blueprint: Blueprint, given: dict[str, str]) -> dict[str, str]:
    """Return a value for each of the blueprint's inputs.

    Raises:
        UsageError: one is unknown, missing, or not among its choices.
    """
    known = ", ".join(blueprint.inputs) or "none"
    for name in given:
        if name not in blueprint.inputs:
            raise UsageError(f"{blueprint.name} has no input {name!r}; its inputs: {known}.")
    values: dict[str, str] = {}
    for name, table in blueprint.inputs.items():
        value = given.get(name, table.default)
        if value is None:
            if table.required:
                about = f" ({table.description})" if table.description else ""
                raise UsageError(
                    f"{blueprint.name} needs the input {name!r}{about}.", hint=f"add  -i {name}=VALUE"
                )
            value = ""
        if table.choices and value not in table.choices:
            raise UsageError(f"Input {name}={value!r} is none of {', '.join(table.choices)}.")
        values[name] = value
    return values


def overrides(limits: tuple[str, ...], model: str) -> tuple[Override, ...]:
    """Return what `--limit` and `--model` set for this invocation.

    Raises:
        UsageError: a limit is not KEY=VALUE with a known key.
    """
    chosen = (Override(path=("model", "use"), text=model, source="--model"),) if model else ()
    return (*limit_overrides(limits), *chosen)
