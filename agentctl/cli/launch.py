"""Starts a run: everything that can be wrong is said before the first fact is written."""

import sys
from dataclasses import replace
from pathlib import Path

import anyio

from agentctl.blueprint.catalogue import load
from agentctl.blueprint.model import Blueprint
from agentctl.cli.launch_many import launch_many
from agentctl.cli.options import Output
from agentctl.cli.show import show_run
from agentctl.cli.trusting import trust_given
from agentctl.cli.wiring import open_house
from agentctl.errors import ExitCode
from agentctl.protocol.events import LaunchFlags
from agentctl.records import dataclass
from agentctl.run.house import House
from agentctl.run.inputs import checked_inputs, checked_workdir
from agentctl.run.runner import RunParts
from agentctl.run.start import Order, begun
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
    options = replace(options, workdir=checked_workdir(options.workdir))
    blueprint = load(options.blueprint)
    checked_inputs(blueprint, options.inputs)
    settings = load_settings(overrides(options.flags.limits, options.model))
    trust = trust_given(blueprint, options.trust)

    async def main() -> int:
        async with open_house(settings, blueprint) as house:
            house.trust = trust
            return await _start(house, blueprint, options)

    return anyio.run(main)


def start_many(options: LaunchOptions, count: int) -> int:
    """Run a blueprint `count` times side by side; as `start`, with one report and one exit code."""
    blueprint = load(options.blueprint)
    order = _order(replace(options, workdir=checked_workdir(options.workdir), thread=""))
    checked_inputs(blueprint, options.inputs)
    settings = load_settings(overrides(options.flags.limits, options.model))
    return launch_many(
        settings,
        blueprint,
        [order] * count,
        max_workers=count,
        trust=options.trust,
        output=options.output,
    )


def _order(options: LaunchOptions) -> Order:
    return Order(
        task=options.task,
        inputs=options.inputs,
        context=options.context,
        workdir=options.workdir,
        flags=options.flags,
        thread_id=options.thread,
    )


async def _start(house: House, blueprint: Blueprint, options: LaunchOptions) -> int:
    order = _order(options)
    async with show_run(house, options.output) as view, begun(house, blueprint, order) as parts:
        if options.output:
            _tell_choices(parts)
        if options.thread and not parts.recorder.snapshot.run_from:
            sys.stderr.write(
                f"agentctl: there was no conversation {options.thread!r}; this run begins it "
                "(agentctl runs show RUN names the thread of a run)\n"
            )
        code = await view.drive(parts)
    if code == ExitCode.FINISHED:
        house.providers.check_all_read()
    return code


def _tell_choices(parts: RunParts) -> None:
    """Say on stderr what the other forms of output would leave out: that a script stands in for a model."""
    notices = [parts.model_of(stage).notice for stage in parts.blueprint.in_order]
    for notice in dict.fromkeys(notices):
        if notice:
            sys.stderr.write(f"agentctl: {notice}\n")


def overrides(limits: tuple[str, ...], model: str) -> tuple[Override, ...]:
    """Return what `--limit` and `--model` set for this invocation.

    Raises:
        UsageError: a limit is not KEY=VALUE with a known key.
    """
    chosen = (Override(path=("model", "use"), text=model, source="--model"),) if model else ()
    return (*limit_overrides(limits), *chosen)
