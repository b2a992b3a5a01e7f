"""`agentctl state`: the typed cells of a run's thread."""

import json
import sys
from pathlib import Path
from typing import Annotated

import anyio
import typer

from agentctl.agent.state_plan import key_of
from agentctl.blueprint.load import load_blueprint
from agentctl.cli.command_app import command_app
from agentctl.cli.options import AsJson, Run
from agentctl.cli.reading import opened_journal
from agentctl.cli.run_state import ABSENT, RunState, absent, commit_by_person, read_run_state
from agentctl.cli.state_values import json_value, lift, lifted, lifting
from agentctl.errors import ExitCode, StateConflict, UsageError
from agentctl.journal.states import verify_cells
from agentctl.journal.store import Fault
from agentctl.protocol.codec import encode
from agentctl.protocol.commands import Command, FoldValue, Merge, RemoveValue, Scope, SetValue
from agentctl.protocol.values import JsonObject, compact_json
from agentctl.run.resume import replay_whole
from agentctl.run.snapshots import verify_run
from agentctl.state.cells import Address
from agentctl.state.keys import SCOPES, KeyDefinition, KeyTable
from agentctl.toml.words import nearest

app = command_app("The typed state of a run's thread: list, read, write, verify, migrate.")

_INTERNAL = "agentctl/"
InScope = Annotated[
    str, typer.Option("--scope", metavar="run|thread|shared|profile", help="Only this scope.")
]


@app.command("list")
def list_cells(
    run: Run = "last",
    *,
    scope: InScope = "",
    everything: Annotated[bool, typer.Option("--all", help="agentctl's own cells too.")] = False,
    as_json: AsJson = False,
) -> int:
    """List the cells that a run sees, with who wrote them.

    Examples: agentctl state list last · agentctl state list r-1m8 --scope run --json
    """
    wanted = _scope(scope) if scope else None
    state = anyio.run(_read, run)
    rows = [
        address
        for address in state.cells
        if address.run_id in ("", state.info.run_id)
        and (wanted is None or address.scope == wanted)
        and (everything or not address.key.startswith(_INTERNAL))
    ]
    if as_json:
        sys.stdout.write(json.dumps([_row(state, address) for address in rows]) + "\n")
    for address in () if as_json else rows:
        cell = state.cells.at(address)
        if cell is not None:
            writer = f"  ({cell.writer})" if cell.writer else ""
            sys.stdout.write(f"{address}  {compact_json(cell.value)}{writer}\n")
    return 0 if rows else absent("no cells")


@app.command()
def get(
    run: Run,
    key: Annotated[str, typer.Argument(metavar="KEY", help="The key.")],
    *,
    scope: InScope = "",
    as_json: AsJson = False,
) -> int:
    """Print a cell's value as JSON; exit 1 when it is absent.

    Example: agentctl state get last review
    """
    state = anyio.run(_read, run)
    address = _address(state, key, scope)
    cell = state.cells.at(address) if address else None
    if address is None or cell is None:
        return absent(f"{key!r} is absent{_meant(state, key)}")
    shown = json.dumps(_row(state, address)) if as_json else compact_json(cell.value)
    sys.stdout.write(shown + "\n")
    return 0


@app.command("set")
def set_value(
    run: Run,
    key: Annotated[str, typer.Argument(metavar="KEY", help="The key.")],
    value: Annotated[
        str, typer.Argument(metavar="VALUE", help="The value as JSON; other text is taken as text.")
    ],
    *,
    scope: InScope = "",
) -> int:
    """Write a cell; a key that the blueprint declares must fit its schema.

    Examples: agentctl state set last review '{"approved": true}' · agentctl state set last note hello
    """
    if not key or key.startswith(_INTERNAL):
        hint = f"agentctl state rm {run} KEY  starts one of them over" if key else "agentctl state list"
        raise UsageError(f"{key!r} is no key to write: give it a name outside {_INTERNAL!r}.", hint=hint)
    state = anyio.run(_read, run)
    keys = state.keys()
    definition = _definition(keys, key, scope)
    action = SetValue(value=json_value(value))
    command = Command(
        scope=definition.scope if definition else _scope(scope or "thread"),
        key=key,
        action=action,
        merge=definition.merge if definition else Merge.DISJOINT,
        version=definition.version if definition else 1,
        writer="person",
    )
    anyio.run(_commit, run, command, keys, f"state key {key!r} was set by a person")
    undeclared = "" if definition else f"; the blueprint declares no such key{_meant(state, key)}"
    sys.stderr.write(f"set {command.scope}/{key}{undeclared}\n")
    return 0


@app.command()
def rm(
    run: Run, key: Annotated[str, typer.Argument(metavar="KEY", help="The key.")], *, scope: InScope = ""
) -> int:
    """Make a cell absent; exit 1 when it was.

    Example: agentctl state rm last review
    """
    state = anyio.run(_read, run)
    address = _address(state, key, scope)
    if address is None or state.cells.at(address) is None:
        return absent(f"{key!r} is absent")
    keys = state.keys()
    definition = keys.get(address.scope, key)
    command = Command(
        scope=address.scope,
        key=key,
        action=RemoveValue(),
        merge=definition.merge if definition else Merge.DISJOINT,
        writer="person",
    )
    anyio.run(_commit, run, command, keys, f"state key {key!r} was removed by a person")
    return 0


@app.command()
def history(
    run: Run,
    key: Annotated[str, typer.Argument(metavar="KEY", help="The key.")],
    *,
    scope: InScope = "",
    as_json: AsJson = False,
) -> int:
    """Show every write to a cell, oldest first; exit 1 when there is none.

    Example: agentctl state history last review
    """
    wanted = _scope(scope) if scope else None
    rows = anyio.run(_history, run, key, wanted)
    if as_json:
        sys.stdout.write(json.dumps(rows) + "\n")
    for row in () if as_json else rows:
        what = compact_json(row["value"]) if "value" in row else ""
        line = f"{row['at']}  {row['run']}#{row['sequence']}  {row['action']} {what}  {row['writer']}"
        sys.stdout.write(line.rstrip() + "\n")
    return 0 if rows else absent(f"{key!r} was never written")


@app.command()
def verify(run: Run = "last", *, as_json: AsJson = False) -> int:
    """Check that the journal is what was written, and that snapshots are what it replays to; exit 9 if not.

    Example: agentctl state verify last
    """
    faults, differs = anyio.run(_verify, run)
    if as_json:
        found: JsonObject = {"faults": [encode(fault) for fault in faults], "snapshot": differs}
        sys.stdout.write(json.dumps(found) + "\n")
    else:
        for fault in faults:
            sys.stdout.write(f"{fault.run_id}#{fault.sequence}: {fault.text}\n")
        if differs:
            sys.stdout.write(differs + "\n")
        if not faults and not differs:
            sys.stdout.write("every record is as it was written, and replay gives the stored state\n")
    return int(ExitCode.CONFLICT) if faults or differs else 0


@app.command()
def migrate(
    run: Run,
    key: Annotated[
        str, typer.Argument(metavar="KEY", help="Only this key; every drifted key without it.")
    ] = "",
    *,
    blueprint: Annotated[
        str, typer.Option("--blueprint", metavar="PATH", help="Whose keys to follow; the run's file now.")
    ] = "",
    code: Annotated[
        str, typer.Option("--with", metavar="FILE.py:FUNCTION", help="function(value, version) → value.")
    ] = "",
    reset: Annotated[bool, typer.Option("--reset", help="Take the key's default instead.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be written.")] = False,
) -> int:
    """Lift stored values to what the blueprint's keys say now, where they have drifted.

    Examples: agentctl state migrate last · agentctl state migrate last review --with lift.py:review ·
    agentctl state migrate last review --reset
    """
    if code and reset:
        raise UsageError("Give --with or --reset, not both.")
    state = anyio.run(_read, run)
    keys = _keys_now(state, blueprint)
    if key and keys.named(key) is None:
        known = ", ".join(one.name for one in keys.definitions) or "none"
        raise UsageError(f"The blueprint declares no state key {key!r}; it declares {known}.")
    view = state.cells.view(state.info.run_id)
    drifted: list[tuple[KeyDefinition, str]] = []
    for definition in keys.definitions:
        if key and definition.name != key:
            continue
        try:
            definition.load(view)
        except StateConflict as error:
            drifted.append((definition, error.message))
    if not drifted:
        absent("nothing has drifted")
        return ABSENT if key else 0
    function = lifting(code) if code else None
    commands = []
    for definition, why in drifted:
        cell = view.cell(definition.scope, definition.name)
        value = definition.default
        if function is not None and cell is not None:
            value = lift(function, cell)
        sys.stdout.write(f"{definition.scope}/{definition.name}: {why}\n")
        if function is None and not reset:
            continue
        sys.stdout.write(f"  {compact_json(cell.value if cell else None)} → {compact_json(value)}\n")
        commands.append(lifted(definition, value))
    if not commands:
        raise StateConflict(
            f"{len(drifted)} state key(s) have drifted.",
            hint="Lift them with --with FILE.py:FUNCTION, or take the defaults with --reset.",
        )
    if not dry_run:
        anyio.run(_commit_all, run, tuple(commands), "state was migrated by a person")
    return 0


def _keys_now(state: RunState, path: str) -> KeyTable:
    file = Path(path or state.started.blueprint_path)
    if not file.is_file():
        if path:
            raise UsageError(f"There is no blueprint {path!r}.")
        return state.keys()
    return KeyTable(key_of(table) for table in load_blueprint(file, found_by="path").state_keys)


def _row(state: RunState, address: Address) -> JsonObject:
    cell = state.cells.at(address)
    return {
        "scope": address.scope,
        "key": address.key,
        "value": cell.value if cell else None,
        "version": cell.version if cell else None,
        "writer": cell.writer if cell else "",
    }


def _address(state: RunState, key: str, scope: str) -> Address | None:
    scopes = [_scope(scope)] if scope else list(SCOPES)
    for one in scopes:
        address = Address(scope=one, key=key, run_id=state.info.run_id if one == "run" else "")
        if state.cells.at(address) is not None:
            return address
    return None


def _meant(state: RunState, key: str) -> str:
    known = {one.name for one in state.keys().definitions} | {address.key for address in state.cells}
    near = nearest(key, sorted(one for one in known - {key} if not one.startswith(_INTERNAL)))
    return f"; did you mean {near!r}?" if near else ""


def _definition(keys: KeyTable, key: str, scope: str) -> KeyDefinition | None:
    return keys.get(_scope(scope), key) if scope else keys.named(key)


def _scope(word: str) -> Scope:
    found = next((scope for scope in SCOPES if scope == word), None)
    if found is None:
        raise UsageError(f"--scope is one of {', '.join(SCOPES)}, not {word!r}.")
    return found


async def _read(run: str) -> RunState:
    async with opened_journal() as journal:
        return await read_run_state(journal, run)


async def _commit(run: str, command: Command, keys: KeyTable, words: str) -> None:
    async with opened_journal() as journal:
        state = await read_run_state(journal, run)
        await commit_by_person(journal, state, (command,), keys=keys, words=words)


async def _commit_all(run: str, commands: tuple[Command, ...], words: str) -> None:
    async with opened_journal() as journal:
        state = await read_run_state(journal, run)
        await commit_by_person(journal, state, commands, keys=KeyTable(), words=words)


async def _history(run: str, key: str, scope: Scope | None) -> list[JsonObject]:
    async with opened_journal() as journal:
        state = await read_run_state(journal, run)
        rows: list[JsonObject] = []
        for record in await journal.read_state(state.state_thread):
            for command in record.commands:
                if command.key != key or (scope is not None and command.scope != scope):
                    continue
                if command.scope == "run" and command.run_id != state.info.run_id:
                    continue
                row: JsonObject = {
                    "at": record.at,
                    "run": record.run_id,
                    "sequence": record.sequence,
                    "scope": command.scope,
                    "action": _word(command),
                    "writer": command.writer,
                }
                if not isinstance(command.action, RemoveValue):
                    row["value"] = command.action.value
                rows.append(row)
        return rows


def _word(command: Command) -> str:
    match command.action:
        case SetValue():
            return "set"
        case RemoveValue():
            return "remove"
        case FoldValue(fold=name):
            return name


async def _verify(run: str) -> tuple[tuple[Fault, ...], str]:
    async with opened_journal() as journal:
        state = await read_run_state(journal, run)
        faults = await journal.verify(state.info.run_id)
        differs = (
            await verify_cells(journal, state.state_thread),
            await verify_run(journal, state.info.run_id, replay_whole),
        )
        return faults, "\n".join(text for text in differs if text)
