"""`agentctl log`: everything a run did, from its journal."""

import sys
from collections.abc import Iterator, Sequence
from typing import Annotated

import anyio
import typer

from agentctl.cli.command_app import command_app
from agentctl.cli.options import Run
from agentctl.cli.reading import find, opened_journal
from agentctl.journal.store import Record, RunInfo
from agentctl.protocol.events import MessageAdded, Published, StageEntered
from agentctl.protocol.messages import AssistantMessage
from agentctl.terminal.board import Board
from agentctl.terminal.closing import spent_words
from agentctl.terminal.json_views import event_record
from agentctl.terminal.result import record_line
from agentctl.terminal.story import tell
from agentctl.terminal.visible import prose

app = command_app()


@app.command()
def log(
    run: Run = "last",
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Every event as a JSON line on stdout.")] = False,
) -> None:
    """Show what a run did, in order.

    Examples: agentctl log last · agentctl log r-1m8/researcher --json
    """
    info, records = anyio.run(_read, run)
    board = Board(root=info.run_id)
    for published in _published(info, records):
        if as_json:
            sys.stdout.write(record_line(event_record(published)))
            continue
        board.take(published)
        clock = published.at[11:19]
        for line in _lines(published, board):
            sys.stdout.write(f"{clock}  {line}\n")
    if not as_json:
        stands = info.outcome or info.status
        sys.stdout.write(f"{info.updated[11:19]}  {stands} · {spent_words(board)}\n")
    sys.stdout.flush()


async def _read(name: str) -> tuple[RunInfo, tuple[Record, ...]]:
    async with opened_journal() as journal:
        info = await find(journal, name)
        return info, await journal.read(info.run_id)


def _published(info: RunInfo, records: Sequence[Record]) -> Iterator[Published]:
    stage = ""
    for record in records:
        for event in record.events:
            stage = event.stage if isinstance(event, StageEntered) else stage
            yield Published(
                run_id=info.run_id,
                agent=info.agent,
                stage=stage,
                event=event,
                parent_run=info.parent_run,
                sequence=record.sequence,
                at=record.at,
            )


def _lines(published: Published, board: Board) -> Iterator[str]:
    if isinstance(published.event, MessageAdded) and isinstance(published.event.message, AssistantMessage):
        yield from (f"  {line}" for line in prose(published.event.message.text).splitlines())
    yield from map(str, tell(published, board))
