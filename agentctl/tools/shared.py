"""`shared_state`: the run's store of texts, read in pages and written under conditions."""

import re
from dataclasses import dataclass
from typing import Annotated, Literal

from agentctl.errors import ToolError
from agentctl.protocol.values import JsonObject, JsonValue
from agentctl.state.shared_backend import ConditionFailed, SharedStateError, Written
from agentctl.state.shared_state import Listed, SharedState, provenance, size_text
from agentctl.tools.definition import ActContext, Prepared, Tool, ToolOutput, ToolPlace
from agentctl.tools.schema import Bounds, Says
from agentctl.tools.typed import typed_tool

_PAGE_LINES = 350
_PAGE_CHARS = 24_000
_LINE_CHARS = 4_000
"""A longer line is shown as several."""
_MOST_LISTED = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedStateArguments:
    """Arguments of `shared_state`."""

    action: Literal["get", "set", "append", "remove", "list"]
    key: Annotated[str, Says("Needed by all but list.")] = ""
    value: Annotated[str | None, Says("For set and append.")] = None
    offset: Annotated[int, Says("get: first line, from 1.", Bounds(minimum=1))] = 1
    limit: Annotated[int, Says("get: lines.", Bounds(minimum=1))] = _PAGE_LINES
    grep: Annotated[str, Says("get: only lines that match this regular expression.")] = ""
    if_absent: Annotated[bool, Says("set: only if the key is not there.")] = False
    if_version: Annotated[int | None, Says("set: only at this version.")] = None


def shared_state_tool(store: SharedState) -> Tool:
    """Return `shared_state` on `store`, a handle that is scoped as the agent may see it."""

    async def plan(arguments: SharedStateArguments, place: ToolPlace) -> Prepared:
        _check(arguments)

        async def act(context: ActContext) -> ToolOutput:
            holder = store.by(run=place.run_id, stage=place.stage, agent=place.agent, call=context.call_id)
            try:
                return await _act(arguments, holder)
            except SharedStateError as error:
                raise ToolError(await _explained(error, holder)) from error

        value = f"\n{arguments.value}" if arguments.value is not None else ""
        return Prepared(
            effects=(),
            act=act,
            preview=f"{arguments.action} {arguments.key}{value}",
            read_only=arguments.action in {"get", "list"},
        )

    return typed_tool(
        "shared_state", "Texts that the agents of this run share by key.", SharedStateArguments, plan
    )


def _check(arguments: SharedStateArguments) -> None:
    if arguments.action != "list" and not arguments.key:
        raise ToolError(f"{arguments.action} needs a key.")
    if arguments.action in {"set", "append"} and arguments.value is None:
        raise ToolError(f"{arguments.action} needs a value.")
    try:
        re.compile(arguments.grep)
    except re.error as error:
        raise ToolError(f"grep is no regular expression: {error}.") from error


async def _act(arguments: SharedStateArguments, store: SharedState) -> ToolOutput:
    match arguments.action:
        case "get":
            return await _get(arguments, store)
        case "set":
            written = await store.set(
                arguments.key,
                arguments.value or "",
                if_absent=arguments.if_absent,
                if_version=arguments.if_version,
            )
            return _written(arguments.key, "Stored", written)
        case "append":
            return _written(
                arguments.key, "Added to", await store.append(arguments.key, arguments.value or "")
            )
        case "remove":
            there = await store.remove(arguments.key)
            text = f"Removed {arguments.key}." if there else f"{arguments.key} was not there."
            return ToolOutput(text=text, structured={"key": arguments.key, "removed": there})
        case "list":
            return _listed(await store.listing())


async def _get(arguments: SharedStateArguments, store: SharedState) -> ToolOutput:
    entry = await store.entry(arguments.key)
    if entry is None:
        raise ToolError(f"There is no key {arguments.key!r}. Keys: {await store.prompt_summary()}.")
    lines = _wrapped(entry.value)
    numbered = list(enumerate(lines, start=1))
    if arguments.grep:
        pattern = re.compile(arguments.grep)
        numbered = [(number, line) for number, line in numbered if pattern.search(line)]
    ahead = [(number, line) for number, line in numbered if number >= arguments.offset]
    page = _page(ahead, arguments.limit)
    next_offset = ahead[len(page)][0] if len(page) < len(ahead) else None
    text = "\n".join(f"{number}\t{line}" if arguments.grep else line for number, line in page)
    notes = _notes(arguments, found=len(numbered), total=len(lines), page=page, next_offset=next_offset)
    if notes:
        text = f"{text}\n[{'; '.join((*notes, f'version {entry.info.version}'))}]".lstrip("\n")
    structured: JsonObject = {
        "key": arguments.key,
        "value": "\n".join(line for _, line in page),
        "version": entry.info.version,
        "value_bytes": entry.info.value_bytes,
        "total_lines": len(lines),
        "next_offset": next_offset,
        "written_by": provenance(entry.info.writer),
    }
    return ToolOutput(text=text, structured=structured)


def _page(ahead: list[tuple[int, str]], limit: int) -> list[tuple[int, str]]:
    page: list[tuple[int, str]] = []
    room = _PAGE_CHARS
    for number, line in ahead[: min(limit, _PAGE_LINES)]:
        room -= len(line) + 1
        if room < 0:
            break
        page.append((number, line))
    return page


def _notes(
    arguments: SharedStateArguments,
    *,
    found: int,
    total: int,
    page: list[tuple[int, str]],
    next_offset: int | None,
) -> list[str]:
    notes: list[str] = []
    if arguments.grep:
        notes.append(f"{found} of {total} lines match")
    elif not page:
        notes.append(f"no line there: it has {total} lines")
    elif next_offset is not None or arguments.offset > 1:
        notes.append(f"lines {page[0][0]}-{page[-1][0]} of {total}")
    if next_offset is not None:
        notes.append(f"go on with offset={next_offset}")
    return notes


def _written(key: str, verb: str, written: Written) -> ToolOutput:
    size = size_text(written.info.value_bytes)
    recycled = f" {len(written.evicted)} stashes were recycled for it." if written.evicted else ""
    return ToolOutput(
        text=f"{verb} {key} ({size}, version {written.info.version}).{recycled}",
        structured={
            "key": key,
            "version": written.info.version,
            "value_bytes": written.info.value_bytes,
            "recycled": len(written.evicted),
        },
    )


def _listed(entries: list[Listed]) -> ToolOutput:
    lines = [
        f"{listed.key}  ({size_text(listed.info.value_bytes)}, version {listed.info.version})"
        for listed in entries[:_MOST_LISTED]
    ]
    if len(entries) > _MOST_LISTED:
        lines.append(f"[and {len(entries) - _MOST_LISTED} more]")
    keys: list[JsonValue] = [
        {"key": listed.key, "value_bytes": listed.info.value_bytes, "version": listed.info.version}
        for listed in entries
    ]
    return ToolOutput(text="\n".join(lines) or "(empty)", structured={"entries": keys})


async def _explained(error: SharedStateError, store: SharedState) -> str:
    """Return the error's words; a failed condition comes with what is there, so that one call is saved."""
    if not isinstance(error, ConditionFailed):
        return str(error)
    entry = await store.entry(error.key)
    return f"{error} It holds: {entry.value[:_LINE_CHARS]}" if entry is not None else str(error)


def _wrapped(value: str) -> list[str]:
    lines: list[str] = []
    for line in value.removesuffix("\n").split("\n"):
        lines += [line[start : start + _LINE_CHARS] for start in range(0, len(line), _LINE_CHARS)] or [""]
    return lines
