"""`agentctl resume`: go on with a run that stands still, whatever stopped it."""

from pathlib import Path
from typing import Annotated

import anyio
import typer

from agentctl.agent.snapshot import RunSnapshot
from agentctl.blueprint.load import load_blueprint, parse_blueprint
from agentctl.blueprint.model import Blueprint
from agentctl.cli.command_app import command_app
from agentctl.cli.launch import overrides
from agentctl.cli.options import (
    Allow,
    Ask,
    Deny,
    Json,
    Jsonl,
    Limit,
    Model,
    OnAsk,
    Output,
    Quiet,
    WholeRun,
    Yolo,
    launch_flags,
    output_of,
)
from agentctl.cli.reading import find, root_of
from agentctl.cli.show import recorded, show_run
from agentctl.cli.trusting import trust_given
from agentctl.cli.wiring import open_house
from agentctl.errors import ExitCode, UsageError
from agentctl.journal.sqlite import open_journal
from agentctl.locations import data_dir
from agentctl.protocol.events import LaunchFlags, RunStarted
from agentctl.run.house import House
from agentctl.run.resume import check_goes_on, read_snapshot
from agentctl.run.start import resumed
from agentctl.settings.load import load_settings

app = command_app()


@app.command()
def resume(  # noqa: PLR0913 - one parameter an option of the command line
    run: WholeRun = "last",
    *,
    blueprint: Annotated[
        str, typer.Option(metavar="current", help="`current` adopts the blueprint file as it is now.")
    ] = "",
    model: Model = "",
    yolo: Yolo = False,
    allow: Allow = None,
    ask: Ask = None,
    deny: Deny = None,
    on_ask: OnAsk = "deny",
    limit: Limit = None,
    trust: Annotated[
        str, typer.Option("--trust", metavar="HASH", help="Trust the code of the blueprint as it is now.")
    ] = "",
    json: Json = False,
    jsonl: Jsonl = False,
    quiet: Quiet = False,
) -> int:
    """Go on with a run: paused, killed, waiting, limited or stopped.

    Recorded --deny and --ask still hold; --allow and --yolo hold only if said again.
    """
    output = output_of(json=json, jsonl=jsonl, quiet=quiet)

    def work() -> int:
        if blueprint not in {"", "current"}:
            raise UsageError(f"--blueprint is `current`, not {blueprint!r}.")
        said = launch_flags(yolo=yolo, allow=allow, ask=ask, deny=deny, on_ask=on_ask, limit=limit)
        return _find_and_resume(run, said, model, output, blueprint == "current", trust)

    return recorded(output, work)


def _find_and_resume(
    run: str,
    said: LaunchFlags,
    model: str,
    output: Output,
    current: bool,  # noqa: FBT001
    trust: str,
) -> int:
    snapshot = anyio.run(_find, run)
    started = snapshot.started
    assert started is not None, "_find looked"  # noqa: S101
    blueprint = _blueprint(started, current=current)
    settings = load_settings(overrides(said.limits, model))
    trusted = trust_given(blueprint, trust)  # between two event loops: a person may take their time

    async def main() -> int:
        async with open_house(settings, blueprint) as house:
            house.trust = trusted
            return await _resume(house, blueprint, snapshot, _flags(snapshot.launch, said), output)

    return anyio.run(main)


async def _find(run: str) -> RunSnapshot:
    journal = await open_journal(data_dir() / "journal.sqlite")
    try:
        info = await find(journal, run)
        if info.parent_run:
            root = await root_of(journal, info)
            raise UsageError(
                f"The run {info.run_id} is a sub-agent's, and goes on with the run that started it.",
                hint=f"agentctl resume {root.run_id}",
            )
        snapshot = await read_snapshot(journal, info.run_id)
    finally:
        await journal.aclose()
    if snapshot.started is None:
        raise UsageError(f"The run {info.run_id} has no beginning in the journal.", hint="agentctl runs list")
    check_goes_on(snapshot)
    return snapshot


async def _resume(
    house: House, blueprint: Blueprint, snapshot: RunSnapshot, launch: LaunchFlags, output: Output
) -> int:
    async with show_run(house, output) as view, resumed(house, blueprint, snapshot, launch) as parts:
        code = await view.drive(parts)
    if code == ExitCode.FINISHED:
        house.providers.check_all_read()
    return code


def _blueprint(started: RunStarted, *, current: bool) -> Blueprint:
    """Return the journaled blueprint, or with `current` the file as it is now."""
    path = Path(started.blueprint_path)
    if current:
        return load_blueprint(path, found_by=started.found_by)
    return parse_blueprint(started.blueprint_source.encode(), path=path, found_by=started.found_by)


def _flags(recorded: LaunchFlags, said: LaunchFlags) -> LaunchFlags:
    """Recorded denies and asks stay, what is said now comes on top; allows and --yolo must be said again."""
    return LaunchFlags(
        yolo=said.yolo,
        allow=said.allow,
        ask=(*recorded.ask, *said.ask),
        deny=(*recorded.deny, *said.deny),
        on_ask=said.on_ask,
        limits=said.limits,
    )
