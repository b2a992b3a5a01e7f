"""`agentctl shared`: what the agents of a run share by reference."""

import json
import sys
from typing import Annotated

import anyio
import typer

from agentctl.cli.command_app import command_app
from agentctl.cli.given import given_text
from agentctl.cli.options import AsJson, Run
from agentctl.cli.reading import opened_journal
from agentctl.cli.run_state import absent, read_run_state
from agentctl.errors import StateConflict, UsageError
from agentctl.protocol.values import JsonObject
from agentctl.run.state_parts import store_of
from agentctl.settings.load import load_settings
from agentctl.state.pages import find_lines
from agentctl.state.shared_backend import (
    CapacityExceeded,
    ConditionFailed,
    Entry,
    InvalidKey,
    SharedStateError,
)
from agentctl.state.shared_state import Listed, SharedState, provenance, size_text

app = command_app("Shared state of a run: list, read, write, search. `scope/key` reaches into a scope.")

Scoped = Annotated[str, typer.Option("--scope", metavar="a/b", help="Work inside this scope.")]
Key = Annotated[str, typer.Argument(metavar="KEY", help="The key.")]


@app.command("list")
def list_entries(run: Run = "last", *, scope: Scoped = "", as_json: AsJson = False) -> int:
    """List keys with sizes and who wrote them, stashes too; exit 1 when there are none.

    Examples: agentctl shared list last · agentctl shared list last --scope researcher --json
    """
    listing = anyio.run(_listing, run, scope)
    if as_json:
        sys.stdout.write(json.dumps([_row(listed) for listed in listing]) + "\n")
    for listed in () if as_json else listing:
        kind = "  stash" if listed.info.stash else ""
        writer = provenance(listed.info.writer)
        line = f"{listed.key}  {size_text(listed.info.value_bytes)}{kind}  {listed.info.at}  {writer}"
        sys.stdout.write(line.rstrip() + "\n")
    return 0 if listing else absent("(empty)")


@app.command()
def get(run: Run, key: Key, *, scope: Scoped = "", as_json: AsJson = False) -> int:
    """Print a value as it is; exit 1 when the key is absent.

    Example: agentctl shared get last researcher/notes
    """
    entry = anyio.run(_entry, run, scope, key)
    if entry is None:
        return absent(f"{key!r} is absent")
    if as_json:
        record: JsonObject = {
            "key": key,
            "value": entry.value,
            "bytes": entry.info.value_bytes,
            "version": entry.info.version,
            "stash": entry.info.stash,
            "writer": {**entry.info.writer},
            "at": entry.info.at,
            "sha256": entry.sha256,
        }
        sys.stdout.write(json.dumps(record) + "\n")
    else:
        sys.stdout.write(entry.value)
        if not entry.value.endswith("\n"):
            sys.stdout.write("\n")
    return 0


@app.command("set")
def set_value(
    run: Run,
    key: Key,
    value: Annotated[str, typer.Argument(metavar="VALUE", help="The text; `-` reads stdin, @FILE a file.")],
    *,
    scope: Scoped = "",
    if_absent: Annotated[bool, typer.Option("--if-absent", help="Only where the key is not there.")] = False,
) -> int:
    """Store a value; exit 1 when --if-absent does not hold.

    Examples: agentctl shared set last plan @plan.md · agentctl shared set last inputs/a hello --if-absent
    """
    text = value
    if value == "-" or value.startswith("@"):
        text = given_text(value.removeprefix("@"), what="value", exact=True)
    try:
        version = anyio.run(_set, run, scope, key, text, if_absent)
    except ConditionFailed as error:
        return absent(str(error))
    sys.stderr.write(f"stored {key!r}, version {version}\n")
    return 0


@app.command()
def rm(run: Run, key: Key, *, scope: Scoped = "") -> int:
    """Delete a key; exit 1 when it was absent.

    Example: agentctl shared rm last plan
    """
    return 0 if anyio.run(_remove, run, scope, key) else absent(f"{key!r} is absent")


@app.command()
def grep(
    run: Run,
    pattern: Annotated[
        str, typer.Argument(metavar="PATTERN", help="Text to find; `a|b` is either, `.*` any characters.")
    ],
    *,
    scope: Scoped = "",
    as_json: AsJson = False,
) -> int:
    """Find lines in all values; exit 1 when there are none.

    Example: agentctl shared grep last 'FAILED|Error'
    """
    found = anyio.run(_grep, run, scope, pattern)
    if as_json:
        rows = [{"key": key, "line": number, "text": line} for key, number, line in found]
        sys.stdout.write(json.dumps(rows) + "\n")
    for key, number, line in () if as_json else found:
        sys.stdout.write(f"{key}:{number}: {line}\n")
    return 0 if found else absent(f"no line has {pattern!r}")


def _row(listed: Listed) -> JsonObject:
    return {
        "key": listed.key,
        "bytes": listed.info.value_bytes,
        "version": listed.info.version,
        "stash": listed.info.stash,
        "writer": {**listed.info.writer},
        "at": listed.info.at,
    }


async def _open(run: str, scope: str) -> SharedState:
    async with opened_journal() as journal:
        state = await read_run_state(journal, run)
    store = store_of(load_settings(), state.blueprint(), state.state_thread)
    try:
        return store.scoped(scope) if scope else store
    except InvalidKey as error:
        raise UsageError(str(error)) from error


async def _listing(run: str, scope: str) -> list[Listed]:
    store = await _open(run, scope)
    try:
        return await store.listing()
    except SharedStateError as error:
        raise _told(error) from error
    finally:
        await store.aclose()


async def _entry(run: str, scope: str, key: str) -> Entry | None:
    store = await _open(run, scope)
    try:
        return await store.entry(key)
    except SharedStateError as error:
        raise _told(error) from error
    finally:
        await store.aclose()


async def _set(run: str, scope: str, key: str, text: str, if_absent: bool) -> int:  # noqa: FBT001 - anyio.run passes positions
    store = await _open(run, scope)
    try:
        written = await store.by(agent="person").set(key, text, if_absent=if_absent)
    except ConditionFailed:
        raise
    except SharedStateError as error:
        raise _told(error) from error
    finally:
        await store.aclose()
    return written.info.version


async def _remove(run: str, scope: str, key: str) -> bool:
    store = await _open(run, scope)
    try:
        return await store.remove(key)
    except SharedStateError as error:
        raise _told(error) from error
    finally:
        await store.aclose()


async def _grep(run: str, scope: str, pattern: str) -> list[tuple[str, int, str]]:
    store = await _open(run, scope)
    found: list[tuple[str, int, str]] = []
    try:
        for listed in await store.listing():
            value = await store.get(listed.key)
            found += [(listed.key, number, line) for number, line in find_lines(value or "", pattern)]
    except SharedStateError as error:
        raise _told(error) from error
    finally:
        await store.aclose()
    return found


def _told(error: SharedStateError) -> UsageError | StateConflict:
    if isinstance(error, InvalidKey | CapacityExceeded):
        return UsageError(str(error))
    return StateConflict(f"{error}.", hint="Check [shared_state] in the blueprint and in your config.")
