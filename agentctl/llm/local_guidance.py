"""How the embedded default model is kept on the path: fewer tools, fewer arguments, nothing invented.

A model of this size picks the right tool when there is little to get wrong. Measured on it, see
docs/local-model.md: looking around first, paths taken only from what was seen, one-word searches over
everything, and no answer before something was read, took it from 0 to 5 of 6 tasks. It is offered nothing
that writes: it was seen to write unasked.
"""

import json
from collections.abc import Iterable
from dataclasses import replace

from agentctl.protocol.messages import AssistantMessage, Message, ToolCall, ToolMessage, ToolResult, ToolSpec
from agentctl.protocol.values import JsonObject, JsonValue
from agentctl.records import dataclass

READ_ONLY = frozenset(
    {
        "read_file", "list_dir", "glob", "grep", "current_time", "run_info", "state_get", "transition",
        "submit_output", "ask_user", "ask_user_choice", "ask_user_confirm",
    }
)  # fmt: skip
"""What it is offered of a stage's tools."""

RULES = """\
grep finds a word in all files: use one distinctive word of the task as the pattern. Then read the best file.
"""

_LISTING_CHARS = 1000
_ONE_WORD = "^[A-Za-z0-9_.-]{2,40}$"
_LOOKING = frozenset({"list_dir", "glob"})
_MOST_SEEN = 200


def narrowed(tools: Iterable[ToolSpec], messages: tuple[Message, ...]) -> tuple[ToolSpec, ...]:
    """Return the read-only tools of `tools` with as few arguments as they need. Pure."""
    return tuple(_narrow(tool, messages) for tool in tools if tool.name in READ_ONLY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Next:
    """What comes next in a task."""

    tools: tuple[ToolSpec, ...]
    ready: bool
    """The answer may be given instead."""


def next_step(tools: tuple[ToolSpec, ...], messages: tuple[Message, ...], done: list[ToolCall]) -> Next:
    """Return which of the narrowed tools may be called next. Pure.

    `done` holds the calls since the task was given.
    """
    by_name = {tool.name: tool for tool in tools}
    reading = tuple(by_name[name] for name in ("read_file", "grep") if name in by_name)
    if not done and "list_dir" in by_name:
        around: JsonObject = {"path": {"const": "."}, "depth": {"const": 2}}
        return Next(tools=(_with(by_name["list_dir"], around),), ready=False)
    if not done:
        return Next(tools=tools, ready=False)
    if _found_nothing(messages) and "read_file" in by_name:
        return Next(tools=(by_name["read_file"],), ready=False)
    if len(done) == 1 and done[0].tool in _LOOKING and reading:
        return Next(tools=reading, ready=False)
    return Next(tools=tools, ready=True)


def compact_listing(result: ToolResult) -> str:
    """Return what a directory holds in few words, or "" when `result` is no listing. Pure."""
    if result.tool != "list_dir":
        return ""
    by_folder: dict[str, list[str]] = {}
    for name in _names(result.structured, "entries", "name"):
        folder, _, leaf = name.rpartition("/")
        by_folder.setdefault(folder, []).append(leaf)
    lines = [f"{folder or '.'}: {' '.join(leaves)}" for folder, leaves in by_folder.items()]
    text = "\n".join(lines)
    return text if len(text) <= _LISTING_CHARS else f"{text[:_LISTING_CHARS]} …"


def _narrow(tool: ToolSpec, messages: tuple[Message, ...]) -> ToolSpec:
    properties: JsonObject
    match tool.name:
        case "submit_output":
            return _naming_files(tool, _seen(messages))
        case "read_file":
            seen = _seen(messages, unread=True)
            path: JsonObject = {"type": "string", "description": "A file that was seen."}
            properties = {"path": {**path, "enum": [*seen]} if seen else path}
        case "list_dir":
            properties = {"path": {"type": "string", "description": "Directory; '.' is the workdir."}}
        case "glob":
            properties = {"pattern": {"type": "string", "description": "Such as '**/*.py'."}}
        case "grep":
            word: JsonObject = {"type": "string", "pattern": _ONE_WORD, "description": "One word."}
            properties = {"pattern": word, "context": {"const": 2}}
        case _:
            return tool
    return _with(tool, properties)


def _with(tool: ToolSpec, properties: JsonObject) -> ToolSpec:
    """Return `tool` with these parameters alone, all of them required."""
    schema: JsonObject = {**tool.parameters, "properties": properties, "required": [*properties]}
    return replace(tool, parameters=schema)


def _naming_files(tool: ToolSpec, seen: list[str]) -> ToolSpec:
    """Return `tool` with its members `file` and `path` taking only files that were seen."""
    properties = tool.parameters.get("properties")
    if not seen or not isinstance(properties, dict):
        return tool
    narrowed_to: JsonObject = {**properties}
    for name in ("file", "path"):
        shape = properties.get(name)
        if isinstance(shape, dict) and shape.get("type") == "string":
            narrowed_to[name] = {**shape, "enum": [*seen]}
    return replace(tool, parameters={**tool.parameters, "properties": narrowed_to})


def _seen(messages: tuple[Message, ...], *, unread: bool = False) -> list[str]:
    """Return the files that results named, in the order they came up; with `unread` without those read."""
    seen: dict[str, None] = {}
    read: set[JsonValue] = set()
    for message in messages:
        match message:
            case ToolMessage(result=result):
                seen.update(dict.fromkeys(_files_named(result.structured)))
            case AssistantMessage():
                calls = [call for call in message.tool_calls if call.tool == "read_file"]
                read |= {str(call.arguments.get("path")) for call in calls}
            case _:
                continue
    return [name for name in seen if not unread or name not in read][-_MOST_SEEN:]


def _files_named(structured: JsonValue) -> list[str]:
    base = structured.get("path") if isinstance(structured, dict) else None
    folder = f"{base}/" if isinstance(base, str) and base not in {"", "."} else ""
    listed = [f"{folder}{name}" for name in _names(structured, "entries", "name")]
    return [*listed, *_names(structured, "files", ""), *_names(structured, "matches", "path")]


def _names(structured: JsonValue, member: str, key: str) -> list[str]:
    """Return the file names of a result's list: strings, or objects that hold them under `key`."""
    listed = structured.get(member) if isinstance(structured, dict) else None
    names: list[str] = []
    for item in listed if isinstance(listed, list) else []:
        if isinstance(item, str):
            names.append(item)
        elif isinstance(item, dict) and item.get("kind", "file") == "file" and isinstance(item.get(key), str):
            names.append(str(item[key]))
    return names


def _found_nothing(messages: tuple[Message, ...]) -> bool:
    last = messages[-1]
    if not isinstance(last, ToolMessage):
        return False
    result = last.result
    if result.outcome != "ok":
        return True
    return isinstance(result.structured, dict) and [] in (
        result.structured.get("matches"),
        result.structured.get("files"),
    )


def same_call(call: ToolCall) -> str:
    """Return a text that is equal for calls of the same tool with the same arguments. Pure."""
    return json.dumps([call.tool, call.arguments], sort_keys=True)
