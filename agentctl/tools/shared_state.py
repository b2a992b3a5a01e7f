"""`shared_state`: what agents share by reference, read a page at a time."""

from collections.abc import Callable
from typing import Annotated, Literal

from agentctl.errors import ToolError
from agentctl.protocol.values import JsonObject, JsonValue
from agentctl.records import dataclass
from agentctl.state.pages import Bounds, Page, find_lines, page_of
from agentctl.state.shared_backend import Entry, SharedStateError, Written
from agentctl.state.shared_state import SharedState, is_stash, size_text, summary_of
from agentctl.tools.definition import ActContext, Prepared, Tool, ToolOutput, ToolPlace
from agentctl.tools.schema import Says
from agentctl.tools.typed import typed_tool

_MOST_MATCHES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedStateArguments:
    """Arguments of `shared_state`."""

    action: Annotated[Literal["get", "set", "append", "remove", "list"], Says("What to do.")]
    key: Annotated[str, Says("The key; for every action but list.")] = ""
    value: Annotated[str | None, Says("The text to set or append.")] = None
    offset: Annotated[int, Says("get: first line to return, from 1.")] = 1
    limit: Annotated[int, Says("get: lines to return; 0 is a page.")] = 0
    byte_offset: Annotated[int, Says("get: where to go on inside a very long line.")] = 0
    grep: Annotated[
        str, Says("get: return only lines with this text; `a|b` finds either, `.*` any characters.")
    ] = ""
    if_absent: Annotated[bool, Says("set: only where the key is not there yet.")] = False
    if_version: Annotated[int | None, Says("set: only where the key is at this version.")] = None


def shared_state_tool(store_of: Callable[[str], SharedState], bounds: Bounds) -> Tool:
    """Return `shared_state`; `store_of` gives a stage's view of the store, a page of `get` fits `bounds`."""

    async def plan(arguments: SharedStateArguments, place: ToolPlace) -> Prepared:
        _check(arguments)
        handle = store_of(place.stage).by(run=place.run_id, agent=place.agent, stage=place.stage)

        async def act(context: ActContext) -> ToolOutput:
            try:
                return await _act(handle.by(call=context.call_id), arguments, bounds)
            except SharedStateError as error:
                raise ToolError(str(error)) from error

        return Prepared(
            effects=(),
            act=act,
            preview=_preview(arguments),
            read_only=arguments.action in {"get", "list"},
        )

    return typed_tool(
        "shared_state",
        "Texts that the agents of this run share by key: results too large to repeat, and cut tool output.",
        SharedStateArguments,
        plan,
    )


def _check(arguments: SharedStateArguments) -> None:
    if arguments.action != "list" and not arguments.key:
        raise ToolError(f"Missing required 'key' parameter for {arguments.action}.")
    if arguments.action in {"set", "append"}:
        if arguments.value is None:
            raise ToolError(f"Missing required 'value' parameter for {arguments.action}.")
        if is_stash(arguments.key.rpartition("/")[2]):
            raise ToolError(f"Keys that begin with 'tool-out-' are kept for cut output: {arguments.key!r}.")


def _preview(arguments: SharedStateArguments) -> str:
    value = f"\n{arguments.value}" if arguments.value is not None else ""
    return f"shared_state {arguments.action} {arguments.key}".rstrip() + value


async def _act(store: SharedState, arguments: SharedStateArguments, bounds: Bounds) -> ToolOutput:
    match arguments.action:
        case "get":
            return await _get(store, arguments, bounds)
        case "set":
            written = await store.set(
                arguments.key,
                arguments.value or "",
                if_absent=arguments.if_absent,
                if_version=arguments.if_version,
            )
            return _wrote("Stored", arguments, written)
        case "append":
            return _wrote("Appended to", arguments, await store.append(arguments.key, arguments.value or ""))
        case "remove":
            existed = await store.remove(arguments.key)
            text = f"Removed {arguments.key!r}" if existed else f"Key {arguments.key!r} not found"
            return ToolOutput(
                text=text, structured={"action": "remove", "key": arguments.key, "existed": existed}
            )
        case "list":
            return await _list(store)


def _wrote(verb: str, arguments: SharedStateArguments, written: Written) -> ToolOutput:
    info = written.info
    return ToolOutput(
        text=f"{verb} {arguments.key!r} ({info.value_bytes} bytes), version {info.version}",
        structured={
            "action": arguments.action,
            "key": arguments.key,
            "bytes": info.value_bytes,
            "version": info.version,
        },
    )


async def _list(store: SharedState) -> ToolOutput:
    listing = await store.listing()
    entries: list[JsonValue] = [
        {
            "key": listed.key,
            "bytes": listed.info.value_bytes,
            "version": listed.info.version,
            "stash": listed.info.stash,
            "read_only": listed.granted,
            "writer": {**listed.info.writer},
        }
        for listed in listing
    ]
    return ToolOutput(text=summary_of(listing), structured={"action": "list", "entries": entries})


async def _get(store: SharedState, arguments: SharedStateArguments, bounds: Bounds) -> ToolOutput:
    entry = await store.entry(arguments.key)
    if entry is None:
        gone = " It was recycled to make room; call the tool again." if is_stash(arguments.key) else ""
        raise ToolError(f"Key {arguments.key!r} not found in shared state.{gone}")
    if arguments.grep:
        return _found(arguments, entry, bounds)
    lines = arguments.limit or bounds.lines
    page = page_of(
        entry.value,
        offset=arguments.offset,
        byte_offset=arguments.byte_offset,
        bounds=Bounds(lines=min(lines, bounds.lines), size_bytes=bounds.size_bytes),
    )
    return ToolOutput(text=_page_text(page, entry), structured=_page_json(arguments.key, page, entry))


def _page_text(page: Page, entry: Entry) -> str:
    if page.whole:
        return page.text
    where = f"lines {page.first_line}-{page.last_line} of {page.total_lines}"
    following = "the end"
    if page.next_byte_offset:
        following = f"go on with offset={page.next_offset}, byte_offset={page.next_byte_offset}"
    elif page.next_offset:
        following = f"go on with offset={page.next_offset}"
    size = size_text(entry.info.value_bytes)
    return f"{page.text}\n[{where}, {size} in all; {following}]"


def _page_json(key: str, page: Page, entry: Entry) -> JsonObject:
    return {
        "action": "get",
        "key": key,
        "text": page.text,
        "version": entry.info.version,
        "total_lines": page.total_lines,
        "total_bytes": entry.info.value_bytes,
        "first_line": page.first_line,
        "last_line": page.last_line,
        "next_offset": page.next_offset or None,
        "next_byte_offset": page.next_byte_offset or None,
    }


def _found(arguments: SharedStateArguments, entry: Entry, bounds: Bounds) -> ToolOutput:
    most = min(arguments.limit or _MOST_MATCHES, bounds.lines)
    found = find_lines(entry.value, arguments.grep, start=arguments.offset)
    shown, text = _that_fit(found[:most], bounds.size_bytes)
    if not found:
        text = f"No line of {arguments.key!r} has {arguments.grep!r}."
    elif len(found) > len(shown):
        text += f"\n[{len(shown)} of {len(found)} lines; go on with offset={found[len(shown)][0]}]"
    lines: list[JsonValue] = [{"line": number, "text": line} for number, line in shown]
    return ToolOutput(
        text=text,
        structured={
            "action": "get",
            "key": arguments.key,
            "grep": arguments.grep,
            "version": entry.info.version,
            "total_matches": len(found),
            "matches": lines,
        },
    )


def _that_fit(found: list[tuple[int, str]], size_bytes: int) -> tuple[list[tuple[int, str]], str]:
    """Return the first lines that fit, and their text; a line that does not fit alone is cut, and says so."""
    taken: list[str] = []
    room = size_bytes
    for number, line in found:
        text = f"{number}: {line}"
        data = text.encode("utf-8", "replace")
        room -= len(data) + 1
        if room < -1 and taken:
            break
        if room < -1:
            text = f"{data[:size_bytes].decode('utf-8', 'ignore')}\n[line {number} is longer than a page]"
        taken.append(text)
    return found[: len(taken)], "\n".join(taken)
