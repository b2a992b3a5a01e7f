"""`agentctl fork`: go on from an earlier point of a run, in a new thread."""

import json
import sys
from typing import Annotated

import anyio
import typer

from agentctl.cli.command_app import command_app
from agentctl.cli.options import AsJson, Run
from agentctl.cli.reading import opened_journal
from agentctl.cli.run_state import read_beginning
from agentctl.errors import StateConflict
from agentctl.journal.fork import Forked, fork_run
from agentctl.run.state_parts import store_of
from agentctl.settings.load import load_settings
from agentctl.state.shared_backend import SharedStateError

app = command_app()


@app.command()
def fork(
    run: Run = "last",
    *,
    at: Annotated[
        int | None,
        typer.Option(
            "--at",
            metavar="N",
            help="The last commit to take along; the latest without it.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Copy a run up to a commit into a new run; `agentctl resume` goes on with it.

    The conversation, grants, budgets and state are as they were at that commit; shared state is copied as it
    is now. Files stay what they are.

    Example: agentctl fork last --at 12
    """
    forked = anyio.run(_fork, run, at)
    if as_json:
        record = {"run": forked.run_id, "thread": forked.thread_id, "at": forked.sequence}
        sys.stdout.write(json.dumps(record) + "\n")
    else:
        sys.stdout.write(f"{forked.run_id}\n")
        sys.stderr.write(f"next: agentctl resume {forked.run_id}\n")
    return 0


async def _fork(run: str, at: int | None) -> Forked:
    async with opened_journal() as journal:
        state = await read_beginning(journal, run)
        forked = await fork_run(journal, state.info, state.info.sequence if at is None else at)
    settings, blueprint = load_settings(), state.blueprint()
    old = store_of(settings, blueprint, state.state_thread)
    new = store_of(settings, blueprint, forked.thread_id)
    try:
        await new.take_all(old)
    except SharedStateError as error:
        raise StateConflict(
            f"The run was forked as {forked.run_id}, and its shared state could not be copied: {error}.",
            hint="Check [shared_state] in the blueprint and in your config.",
        ) from error
    finally:
        await old.aclose()
        await new.aclose()
    return forked
