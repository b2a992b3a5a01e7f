"""`agentctl msg`: say something to a run; it reads it before its next step."""

import sys
from typing import Annotated

import anyio
import typer

from agentctl.cli.command_app import command_app
from agentctl.cli.options import Run
from agentctl.cli.reading import find, opened_journal
from agentctl.errors import UsageError
from agentctl.ids import new_id
from agentctl.protocol.commands import OutgoingMessage

app = command_app()


@app.command()
def msg(
    run: Run,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What to say; - reads it from stdin.")],
) -> None:
    """Say something to a run: it joins the conversation before the next step, or when the run is resumed.

    Examples: agentctl msg last "leave the tests alone" · agentctl msg r-1m8/researcher "look in docs/ too"
    """
    words = (sys.stdin.read() if text == "-" else text).strip()
    if not words:
        raise UsageError("The message is empty.")
    sys.stderr.write(anyio.run(_post, run, words) + "\n")


async def _post(name: str, words: str) -> str:
    async with opened_journal() as journal:
        info = await find(journal, name)
        if info.status == "ended":
            raise UsageError(
                f"The run {info.run_id} has ended.",
                hint=f"agentctl run … --thread {info.thread_id}  continues its conversation",
            )
        message = OutgoingMessage(
            message_id=new_id("m"), target=info.run_id, body={"text": words, "source": "person"}
        )
        await journal.post(message, sender="person")
        if info.status == "running":
            return f"{info.run_id} reads it before its next step"
        return f"{info.run_id} reads it when it is resumed: agentctl resume {info.run_id}"
