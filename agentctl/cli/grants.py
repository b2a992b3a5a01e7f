"""`agentctl grants`: what a person approved for a run, and taking it back."""

import json
import sys
from typing import Annotated

import anyio
import typer

from agentctl.agent.snapshot import RunSnapshot
from agentctl.cli.command_app import command_app
from agentctl.cli.options import Run, not_empty
from agentctl.cli.reading import find, opened_journal
from agentctl.errors import StateConflict, UsageError
from agentctl.ids import new_id
from agentctl.journal.store import Journal, RunInfo, commit_to
from agentctl.protocol.codec import encode
from agentctl.protocol.commands import OutgoingMessage
from agentctl.protocol.decisions import Grant
from agentctl.protocol.events import GrantRevoked

app = command_app()


@app.command()
def grants(
    run: Run = "last",
    *,
    revoke: Annotated[
        str,
        typer.Option(
            "--revoke", metavar="KEY", help="Take this one back: 'shell(pytest *)'.", callback=not_empty
        ),
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Show the approvals that a run remembers, or take one back.

    Grants never reach another run. What you allow always stands in your config, [[remembered]].

    Examples: agentctl grants last · agentctl grants last --revoke 'shell(git push *)'
    """
    info, held = anyio.run(_grants, run, revoke)
    if as_json:
        record = {"run": info.run_id, "grants": [encode(grant) for grant in held]}
        sys.stdout.write(json.dumps({**record, "revoked": revoke} if revoke else record) + "\n")
        return
    if revoke:
        sys.stderr.write(f"revoked {revoke}\n")
    if not held:
        sys.stderr.write(f"{info.run_id} remembers no approval\n")
    for grant in held:
        sys.stdout.write(f"{grant.key}  {_reach(grant)}\n")


def _reach(grant: Grant) -> str:
    scope = "for this run" if grant.scope == "run" else f"for stage {grant.stage_index}"
    uses = "" if grant.uses is None else f", {grant.uses} more use{'' if grant.uses == 1 else 's'}"
    return scope + uses


async def _grants(name: str, revoke: str) -> tuple[RunInfo, tuple[Grant, ...]]:
    async with opened_journal() as journal:
        info = await find(journal, name)
        held = await _held(journal, info)
        if not revoke:
            return info, held
        if revoke not in {grant.key for grant in held}:
            known = ", ".join(grant.key for grant in held) or "none"
            raise UsageError(f"{info.run_id} remembers no approval {revoke!r}; it has: {known}.")
        await _take_back(journal, info, revoke)
        return info, tuple(grant for grant in held if grant.key != revoke)


async def _held(journal: Journal, info: RunInfo) -> tuple[Grant, ...]:
    snapshot = RunSnapshot()
    for record in await journal.read(info.run_id):
        for event in record.events:
            snapshot.apply(event)
    return tuple(snapshot.grants)


async def _take_back(journal: Journal, info: RunInfo, key: str) -> None:
    """Take a grant back: in the journal of a run that stands still, else before the run's next step.

    Raises:
        UsageError: the run has ended.
    """
    if info.status == "ended":
        raise UsageError(f"The run {info.run_id} has ended; its approvals reach nothing any more.")
    try:
        lease = await journal.acquire(info.thread_id)
    except StateConflict:
        message = OutgoingMessage(message_id=new_id("m"), target=info.run_id, body={"revoke": key})
        await journal.post(message, sender="person")
        return
    try:
        event = GrantRevoked(key=key)
        await journal.append(commit_to(info, event))
    finally:
        await lease.release()
