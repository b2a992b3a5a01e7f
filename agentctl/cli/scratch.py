"""`agentctl scratch`: what the hooks of a run noted."""

import json
import sys
from typing import Annotated

import anyio
import typer

from agentctl.agent.hook_record import SCRATCHPAD_KEY
from agentctl.cli.command_app import command_app
from agentctl.cli.options import AsJson, Run
from agentctl.cli.reading import opened_journal
from agentctl.cli.run_state import absent, read_run_state
from agentctl.protocol.values import JsonValue, compact_json

app = command_app()


@app.command()
def scratch(
    run: Run = "last",
    kind: Annotated[str, typer.Argument(metavar="[TYPE]", help="Only notes whose type ends so.")] = "",
    *,
    as_json: AsJson = False,
) -> int:
    """Print the scratchpad that was saved with a run; exit 1 when it is empty.

    Examples: agentctl scratch last · agentctl scratch last FilesRead --json
    """
    saved = anyio.run(_read, run)
    found = {
        name: value
        for name, value in (saved if isinstance(saved, dict) else {}).items()
        if name.endswith(kind)
    }
    if as_json:
        sys.stdout.write(json.dumps(found) + "\n")
    for name, value in () if as_json else found.items():
        sys.stdout.write(f"{name}  {compact_json(value)}\n")
    if found:
        return 0
    notes = ", ".join(saved) if isinstance(saved, dict) else ""
    return absent(f"no note of type {kind!r}; there are {notes}" if notes else "the scratchpad is empty")


async def _read(run: str) -> JsonValue:
    async with opened_journal() as journal:
        state = await read_run_state(journal, run)
        return state.cells.get("run", SCRATCHPAD_KEY, run_id=state.info.run_id)
