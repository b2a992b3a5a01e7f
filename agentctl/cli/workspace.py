"""`agentctl workspace`: the state document of a run's thread, now and at any point of its past."""

import json
import sys
from typing import Annotated

import anyio
import typer

from agentctl.cli.command_app import command_app
from agentctl.cli.options import AsJson, Run
from agentctl.cli.reading import opened_journal
from agentctl.cli.run_state import absent, read_run_state
from agentctl.errors import UsageError
from agentctl.protocol.commands import Command, FoldValue, SetValue
from agentctl.protocol.values import JsonObject, JsonValue, compact_json
from agentctl.records import dataclass
from agentctl.state.changes import changed_lines
from agentctl.state.diff import diff as diff_of
from agentctl.state.document import apply_patch
from agentctl.state.pointer import PointerError, resolve
from agentctl.state.workspace import DOCUMENT_KEY

app = command_app("The state document that effects patch and views show.")

Pointer = Annotated[
    str, typer.Argument(metavar="POINTER", help="A JSON Pointer into it: /plan/0; all of it without.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    """One patch of the document."""

    sequence: int
    at: str
    run: str
    writer: str
    patch: JsonValue
    document: JsonValue
    """After it."""


@app.command()
def show(run: Run = "last", pointer: Pointer = "", *, as_json: AsJson = False) -> int:
    """Print the document, or a part of it; exit 1 when there is none.

    Examples: agentctl workspace show last · agentctl workspace show last /workspace/plan --json
    """
    changes = anyio.run(_changes, run)
    if not changes:
        return absent("the run has no state document")
    return _print_part(changes[-1].document, pointer, as_json=as_json)


@app.command()
def log(run: Run = "last", *, as_json: AsJson = False) -> int:
    """Show every patch with its number, run and tool call; exit 1 when there is none.

    Example: agentctl workspace log last
    """
    changes = anyio.run(_changes, run)
    if as_json:
        rows: list[JsonValue] = [_row(change) for change in changes]
        sys.stdout.write(json.dumps(rows) + "\n")
    for change in () if as_json else changes:
        operations = change.patch if isinstance(change.patch, list) else []
        sys.stdout.write(f"{change.sequence}  {change.at}  {change.run}  {change.writer}\n")
        for operation in operations:
            sys.stdout.write(f"    {compact_json(operation)}\n")
    return 0 if changes else absent("the run has no state document")


@app.command()
def diff(
    run: Run,
    first: Annotated[int, typer.Argument(metavar="FROM", help="A patch's number; 0 is the beginning.")],
    second: Annotated[int, typer.Argument(metavar="TO", help="A later patch's number.")],
    *,
    as_json: AsJson = False,
) -> int:
    """Show what changed between two patches; with --json as a JSON Patch. Exit 1 when nothing did.

    Example: agentctl workspace diff last 3 7
    """
    changes = anyio.run(_changes, run)
    before, after = _at(changes, first), _at(changes, second)
    operations = diff_of(before, after)
    if as_json:
        sys.stdout.write(json.dumps(operations) + "\n")
    else:
        for line in changed_lines(before, after):
            sys.stdout.write(line + "\n")
    return 0 if operations else absent("no difference")


@app.command()
def at(
    run: Run,
    pointer: Pointer = "",
    *,
    seq: Annotated[int, typer.Option("--seq", metavar="N", help="The number of a patch.")],
    as_json: AsJson = False,
) -> int:
    """Print the document as it was after patch N.

    Example: agentctl workspace at last --seq 3
    """
    return _print_part(_at(anyio.run(_changes, run), seq), pointer, as_json=as_json)


def _print_part(document: JsonValue, pointer: str, *, as_json: bool) -> int:
    try:
        part = resolve(document, pointer)
    except PointerError as error:
        if pointer and not pointer.startswith("/"):
            raise UsageError(f"{error}.", hint=f"Try '/{pointer}'.") from error
        return absent(f"nothing stands at {pointer!r}")
    text = compact_json(part) if as_json else json.dumps(part, indent=2, ensure_ascii=False)
    sys.stdout.write(text + "\n")
    return 0


def _row(change: _Change) -> JsonObject:
    return {
        "sequence": change.sequence,
        "at": change.at,
        "run": change.run,
        "writer": change.writer,
        "patch": change.patch,
    }


def _at(changes: list[_Change], sequence: int) -> JsonValue:
    if not changes:
        raise UsageError("The run has no state document.", hint="[workspace] in a blueprint gives it one")
    found = next((change for change in changes if change.sequence == sequence), None)
    if found is None:
        last = changes[-1].sequence
        raise UsageError(
            f"There is no patch {sequence}; the last one is {last}.",
            hint="agentctl workspace log RUN  shows them",
        )
    return found.document


async def _changes(run: str) -> list[_Change]:
    async with opened_journal() as journal:
        state = await read_run_state(journal, run)
        changes: list[_Change] = []
        document: JsonValue = {}
        for record in await journal.read_state(state.state_thread):
            for command in record.commands:
                if command.key != DOCUMENT_KEY or command.scope != "thread":
                    continue
                patch = _patch_of(command)
                document = apply_patch(document, patch)
                begins = not isinstance(command.action, FoldValue) or command.action.fold == "last"
                last = changes[-1].sequence if changes else 0
                changes.append(
                    _Change(
                        sequence=0 if begins and not changes else last + 1,
                        at=record.at,
                        run=record.run_id,
                        writer=command.writer,
                        patch=patch,
                        document=document,
                    )
                )
        return changes


def _patch_of(command: Command) -> JsonValue:
    match command.action:
        case SetValue(value=value) | FoldValue(value=value, fold="last"):
            return [{"op": "replace", "path": "", "value": value}]
        case FoldValue(value=value):
            return value
        case _:
            return [{"op": "replace", "path": "", "value": {}}]
