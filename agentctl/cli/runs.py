"""`agentctl runs`: what ran, what stands still, and how to go on or clean up."""

import json
import os
import shutil
import sys
from collections.abc import Sequence
from typing import Annotated

import anyio
import typer

from agentctl.cli.command_app import command_app
from agentctl.cli.options import Run
from agentctl.cli.reading import Waiting, find, opened_journal, root_of, tree, waiting_questions
from agentctl.errors import UsageError
from agentctl.journal.store import RunInfo
from agentctl.protocol.codec import encode
from agentctl.terminal.visible import cells, cut, one_line

app = command_app("Runs in the journal: list, show, remove.")

_HEAD = ("RUN", "AGENT", "STATUS", "STEPS", "CHANGED", "TASK")
_PIPE_COLUMNS = 200


@app.command("list")
def list_runs(
    *,
    everything: Annotated[bool, typer.Option("--all", help="Sub-agents' runs too.")] = False,
    last: Annotated[
        int, typer.Option("--last", "-n", metavar="N", help="Only the latest N; 0 for all.")
    ] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON array on stdout.")] = False,
) -> None:
    """List runs, the latest at the end.

    Examples: agentctl runs list · agentctl runs list --all -n 0 --json
    """
    found = anyio.run(_list, everything, last)
    if as_json:
        sys.stdout.write(json.dumps([encode(info) for info in found]) + "\n")
        return
    if not found:
        sys.stderr.write("no runs yet\n")
        return
    rows = [_HEAD, *(_cells(info) for info in found)]
    widths = [max(cells(row[column]) for row in rows) for column in range(len(_HEAD))]
    room = shutil.get_terminal_size().columns if os.isatty(1) else _PIPE_COLUMNS
    for row in rows:
        line = "  ".join(text + " " * (width - cells(text)) for text, width in zip(row, widths, strict=True))
        sys.stdout.write(cut(line.rstrip(), room) + "\n")


@app.command()
def show(
    run: Run = "last",
    *,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Show one run: how it stands, its sub-agents, what waits, the next command.

    Example: agentctl runs show last
    """
    info, below, waiting = anyio.run(_show, run)
    if as_json:
        record = {
            "run": encode(info),
            "subagents": [encode(one) for one in below],
            "questions": [{"run": one.run.run_id, "question": encode(one.question)} for one in waiting],
        }
        sys.stdout.write(json.dumps(record) + "\n")
        return
    facts = {
        "run": info.run_id, "thread": info.thread_id, "agent": info.agent, "status": _status(info),
        "why": info.reason, "stage": info.stage, "steps": str(info.steps), "model": info.model,
        "task": info.task, "workdir": info.workdir, "blueprint": info.blueprint_path,
        "started": info.started, "changed": info.updated, "part of": info.parent_run,
    }  # fmt: skip
    lines = [f"{name:<10} {one_line(text, width=400)}" for name, text in facts.items() if text]
    lines += [f"sub-agent  {one.run_id}  {one.agent}  {_status(one)}" for one in below]
    lines += [f"waits      {one.question.question_id}  in {one.run.run_id}" for one in waiting]
    lines.append(f"next       {_next(info, waiting)}")
    sys.stdout.write("".join(f"{line}\n" for line in lines))


@app.command()
def rm(
    runs: Annotated[
        list[str], typer.Argument(metavar="RUN...", help="Runs to delete, with their sub-agents'.")
    ],
) -> None:
    """Delete runs from the journal; what they did to files stays.

    Example: agentctl runs rm r-1m8 r-1m9
    """
    for gone in anyio.run(_remove, tuple(runs)):
        sys.stderr.write(f"removed {gone}\n")


async def _list(everything: bool, last: int) -> tuple[RunInfo, ...]:  # noqa: FBT001 - anyio.run passes positions
    if last < 0:
        raise UsageError("-n is 0 or more.")
    async with opened_journal() as journal:
        found = [info for info in await journal.runs() if everything or not info.parent_run]
        return tuple(found[-last:] if last else found)


async def _show(name: str) -> tuple[RunInfo, tuple[RunInfo, ...], tuple[Waiting, ...]]:
    async with opened_journal() as journal:
        info, *below = await tree(journal, await find(journal, name))
        return info, tuple(below), await waiting_questions(journal, [info, *below])


async def _remove(names: Sequence[str]) -> tuple[str, ...]:
    async with opened_journal() as journal:
        found = list({info.run_id: info for info in [await find(journal, name) for name in names]}.values())
        for info in found:
            root = await root_of(journal, info)
            if root.run_id != info.run_id and root.status != "ended":
                raise UsageError(
                    f"{info.run_id} is a sub-agent of {root.run_id}, which would do its work again.",
                    hint=f"agentctl runs rm {root.run_id}, or agentctl resume {root.run_id} to its end first",
                )
        for info in found:
            await journal.remove_run(info.run_id)
        return tuple(info.run_id for info in found)


def _cells(info: RunInfo) -> tuple[str, ...]:
    changed = info.updated[:19].replace("T", " ")
    return (
        info.run_id,
        one_line(info.agent),
        _status(info),
        str(info.steps),
        changed,
        one_line(info.task, width=60),
    )


def _status(info: RunInfo) -> str:
    if info.status == "ended":
        return info.outcome or "ended"
    return f"waiting ({info.open_questions})" if info.status == "waiting" else info.status


def _next(info: RunInfo, waiting: Sequence[Waiting]) -> str:
    if info.status == "ended":
        return f"agentctl log {info.run_id}"
    if waiting:
        return f"agentctl approvals list {info.run_id}"
    if info.status == "running":
        return f'agentctl msg {info.run_id} "…"  ·  agentctl pause {info.run_id}'
    return f"agentctl resume {info.run_id}"
