"""`agentctl pause` and `agentctl cancel`: stop a run and all its agents from another terminal."""

import sys
from typing import Literal

import anyio

from agentctl.cli.command_app import command_app
from agentctl.cli.options import WholeRun
from agentctl.cli.reading import find, opened_journal, root_of, tree
from agentctl.errors import ExitCode, UsageError
from agentctl.interaction.socket import StopRun, send_request
from agentctl.journal.store import Journal, RunInfo, commit_to
from agentctl.locations import live_dir
from agentctl.protocol.events import RunEnded

app = command_app()


@app.command()
def pause(run: WholeRun = "last") -> None:
    """Stop a running run with all its agents so that `resume` goes on.

    A command that runs is ended; after `resume` you and the model are told that it may have happened in part.

    Example: agentctl pause last
    """
    sys.stderr.write(anyio.run(_stop, run, "pause") + "\n")


@app.command()
def cancel(run: WholeRun = "last") -> None:
    """End a run with all its agents, whether it is running or stands still; it can't be resumed.

    Example: agentctl cancel r-1m8
    """
    sys.stderr.write(anyio.run(_stop, run, "cancel") + "\n")


async def _stop(name: str, how: Literal["pause", "cancel"]) -> str:
    async with opened_journal() as journal:
        info = await find(journal, name)
        if info.status == "ended":
            raise UsageError(f"The run {info.run_id} has ended ({info.outcome}).")
        root = await root_of(journal, info)
        if await send_request(live_dir(), root.run_id, StopRun(how=how)):
            go_on = f"; go on with: agentctl resume {root.run_id}" if how == "pause" else ""
            return f"{root.run_id} stops{go_on}"
        if how == "pause":
            raise UsageError(
                f"No process is at work on {root.run_id} ({root.status}).",
                hint=f"agentctl resume {root.run_id}",
            )
        await _end(journal, root)
        return f"{root.run_id} is over"


async def _end(journal: Journal, info: RunInfo) -> None:
    """End a run that stands still, and all below it.

    Raises:
        StateConflict: a process is at work on it.
    """
    code = int(ExitCode.FAILED)
    event = RunEnded(outcome="cancelled", exit_code=code, reason="cancelled from another terminal")
    for one in await tree(journal, info):
        if one.status == "ended":
            continue
        lease = await journal.acquire(one.thread_id)
        try:
            await journal.append(commit_to(one, event))
        finally:
            await lease.release()
