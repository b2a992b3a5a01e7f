"""The TOML form of a scripted model: replies in order, for whom they are, and what they expect.

The format is described in docs/models.md.
"""

import re
import tomllib
from dataclasses import field, fields
from pathlib import Path
from typing import Literal, get_args

from agentctl.errors import InvalidInput, Position, Problem, UsageError, file_fault
from agentctl.llm.base import FailureKind
from agentctl.protocol.messages import StopReason, Usage
from agentctl.protocol.values import JsonObject, JsonValue
from agentctl.records import dataclass

_MAX_BYTES = 64 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedCall:
    """A tool call that a reply makes."""

    tool: str
    arguments: JsonObject = field(default_factory=dict)
    call_id: str = ""
    """Empty: made from the reply's place in the script, so that it is the same in every run."""
    raw_arguments: str = ""
    """What the model sent in place of a JSON object; such a call never runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedError:
    """A failed try in place of a reply."""

    message: str = "scripted failure"
    status: int | None = None
    kind: FailureKind | Literal[""] = ""
    """Empty: told from the status, as for a real service."""
    retry_after_s: float | None = None
    code: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What the request must look like; a request that differs fails the call."""

    system: tuple[str, ...] = ()
    """Texts that the system prompt contains."""
    last: tuple[str, ...] = ()
    """Texts that the newest messages contain: all those after the last reply of the model."""
    task: tuple[str, ...] = ()
    """Texts that the first message contains."""
    anywhere: tuple[str, ...] = ()
    """Texts that some message or the system prompt contains."""
    absent: tuple[str, ...] = ()
    """Texts that neither the system prompt nor any message contains."""
    tools: tuple[str, ...] | None = None
    """The names of all tools on offer, in any order."""
    offers: tuple[str, ...] = ()
    """Names of tools that are on offer."""
    messages: int | None = None
    """The number of messages."""
    outcome: str = ""
    """How the newest tool result ended: `ok`, `failed`, `denied`, `cancelled`, `in_doubt`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One answer of the script."""

    line: int
    agent: str = ""
    stage: str = ""
    when: str = ""
    """Only for requests whose first message contains this: tells siblings of one agent apart."""
    expect: Expectation = field(default_factory=Expectation)
    text: str = ""
    reasoning: str = ""
    refusal: str = ""
    tool_calls: tuple[ScriptedCall, ...] = ()
    stop: StopReason | Literal[""] = ""
    """Empty: `tool_calls` where there are any, else `end`."""
    usage: Usage | None = None
    """None: counted from the lengths of request and reply, four characters a token."""
    error: ScriptedError | None = None
    pause_s: float = 0.0
    """Seconds before the reply begins."""
    times: int = 1
    """How often it answers; 0 means any number of times, never counted as unread."""
    capture: dict[str, str] = field(default_factory=dict)
    """Name → regular expression over the newest messages; its group (or match) replaces `${NAME}`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A whole script."""

    source: str
    replies: tuple[Reply, ...]
    context_window: int | None = None


def load_script(path: Path) -> Script:
    """Return the script in the file `path`. May block.

    Raises:
        UsageError: there is no such file.
        InvalidInput: it is not a script.
    """
    try:
        text = _regular(path).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"The script {str(path)!r} of the scripted model cannot be read: {file_fault(error)}.",
            hint="write scripted:PATH with the path of a TOML file of [[replies]]; see docs/models.md",
        ) from error
    return parse_script(text, source=str(path))


def _regular(path: Path) -> bytes:
    """Return the bytes of a regular file that is not too large.

    A blueprint that nobody trusts yet may name it: a pipe would hang, and a device never end.
    """
    if path.exists() and not path.is_file():
        raise OSError(0, "it is no regular file")
    with path.open("rb") as file:
        data = file.read(_MAX_BYTES + 1)
    if len(data) > _MAX_BYTES:
        raise OSError(0, f"it has more than {_MAX_BYTES:,} bytes")
    return data


def parse_script(text: str, *, source: str) -> Script:
    """Return the script written in `text`; `source` is the file that errors name. Pure.

    Raises:
        InvalidInput: not TOML, an unknown key, or a value of the wrong type; all problems at once.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(
            (Problem(position=Position(file=source), message=f"not TOML: {error}"),)
        ) from error
    lines = [number for number, line in enumerate(text.splitlines(), 1) if _REPLY_HEADER.match(line)]
    return script_from_table(document, source=source, lines=lines)


_REPLY_HEADER = re.compile(r"\s*\[\[\s*replies\s*\]\]")


def script_from_table(table: JsonObject, *, source: str, lines: list[int]) -> Script:
    """Return the script in a parsed TOML table; `lines` are those of the `[[replies]]` headers.

    Raises:
        InvalidInput: as `parse_script`.
    """
    reader = _Reader(source)
    reader.known(table, {"replies", "context_window"}, "")
    replies = []
    for number, item in enumerate(reader.tables(table, "replies", "")):
        reader.line = lines[number] if number < len(lines) else 0
        replies.append(_reply(reader, item, f"replies[{number}]"))
    window = table.get("context_window")
    if window is not None and not isinstance(window, int):
        reader.wrong("context_window", "a number of tokens")
        window = None
    if not replies:
        reader.wrong("replies", "at least one [[replies]] table")
    if reader.problems:
        raise InvalidInput(tuple(reader.problems), hint="docs/models.md describes the script format")
    return Script(source=source, replies=tuple(replies), context_window=window)


def _reply(reader: "_Reader", item: JsonObject, where: str) -> Reply:
    reader.known(item, _names(Reply) - {"line"}, where)
    stop = reader.text(item, "stop", where)
    if stop and stop not in get_args(StopReason):
        reader.wrong(f"{where}.stop", f"one of {', '.join(get_args(StopReason))}")
        stop = ""
    error = reader.table(item, "error", where)
    usage = reader.table(item, "usage", where)
    expect = reader.table(item, "expect", where)
    reply = Reply(
        line=reader.line,
        agent=reader.text(item, "agent", where),
        stage=reader.text(item, "stage", where),
        when=reader.text(item, "when", where),
        expect=_expectation(reader, expect, f"{where}.expect") if expect is not None else Expectation(),
        text=reader.text(item, "text", where),
        reasoning=reader.text(item, "reasoning", where),
        refusal=reader.text(item, "refusal", where),
        tool_calls=tuple(
            _call(reader, call, f"{where}.tool_calls[{number}]")
            for number, call in enumerate(reader.tables(item, "tool_calls", where))
        ),
        stop=_stop_reason(stop),
        usage=_usage(reader, usage, f"{where}.usage") if usage is not None else None,
        error=_error(reader, error, f"{where}.error") if error is not None else None,
        pause_s=reader.number(item, "pause_s", where) or 0.0,
        times=reader.whole(item, "times", where, default=1),
        capture=_captures(reader, item, where),
    )
    if not {"text", "tool_calls", "reasoning", "refusal", "error"} & item.keys():
        reader.wrong(where, "text, tool_calls, refusal or error")
    return reply


def _stop_reason(word: str) -> StopReason | Literal[""]:
    for reason in get_args(StopReason):
        if reason == word:
            return reason  # type: ignore[no-any-return]
    return ""


def _captures(reader: "_Reader", item: JsonObject, where: str) -> dict[str, str]:
    found = {}
    for name, pattern in (reader.table(item, "capture", where) or {}).items():
        try:
            re.compile(str(pattern))
        except re.error as error:
            reader.wrong(f"{where}.capture.{name}", f"a regular expression ({error})")
        else:
            found[name] = str(pattern)
    return found


def _call(reader: "_Reader", item: JsonObject, where: str) -> ScriptedCall:
    reader.known(item, _names(ScriptedCall), where)
    if not item.get("tool"):
        reader.wrong(f"{where}.tool", "the name of a tool")
    return ScriptedCall(
        tool=reader.text(item, "tool", where),
        arguments=reader.table(item, "arguments", where) or {},
        call_id=reader.text(item, "call_id", where),
        raw_arguments=reader.text(item, "raw_arguments", where),
    )


def _error(reader: "_Reader", item: JsonObject, where: str) -> ScriptedError:
    reader.known(item, _names(ScriptedError), where)
    kind = reader.text(item, "kind", where)
    known: FailureKind | Literal[""] = ""
    for word in get_args(FailureKind):
        if word == kind:
            known = word
    if kind and not known:
        reader.wrong(f"{where}.kind", f"one of {', '.join(get_args(FailureKind))}")
    return ScriptedError(
        message=reader.text(item, "message", where) or "scripted failure",
        status=reader.whole(item, "status", where, default=0) or None,
        kind=known,
        retry_after_s=reader.number(item, "retry_after_s", where),
        code=reader.text(item, "code", where),
    )


def _usage(reader: "_Reader", item: JsonObject, where: str) -> Usage:
    reader.known(item, _names(Usage), where)
    return Usage(
        input_tokens=reader.whole(item, "input_tokens", where),
        output_tokens=reader.whole(item, "output_tokens", where),
        cache_read_tokens=reader.whole(item, "cache_read_tokens", where),
        cache_write_tokens=reader.whole(item, "cache_write_tokens", where),
        reasoning_tokens=reader.whole(item, "reasoning_tokens", where),
        cost_usd=reader.number(item, "cost_usd", where),
    )


def _expectation(reader: "_Reader", item: JsonObject, where: str) -> Expectation:
    reader.known(item, _names(Expectation), where)
    return Expectation(
        system=reader.texts(item, "system", where),
        last=reader.texts(item, "last", where),
        task=reader.texts(item, "task", where),
        anywhere=reader.texts(item, "anywhere", where),
        absent=reader.texts(item, "absent", where),
        tools=reader.texts(item, "tools", where) if "tools" in item else None,
        offers=reader.texts(item, "offers", where),
        messages=reader.whole(item, "messages", where) if "messages" in item else None,
        outcome=reader.text(item, "outcome", where),
    )


def _names(kind: type) -> set[str]:
    return {item.name for item in fields(kind)}


class _Reader:
    """Reads typed members and collects what is wrong."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.line = 0
        self.problems: list[Problem] = []

    def wrong(self, key: str, expected: str) -> None:
        place = Position(file=self.source, line=self.line, column=1 if self.line else 0)
        self.problems.append(Problem(position=place, key=key, message=f"expected {expected}"))

    def known(self, item: JsonObject, names: set[str], where: str) -> None:
        place = Position(file=self.source, line=self.line, column=1 if self.line else 0)
        for name in item:
            if name not in names:
                key = f"{where}.{name}" if where else name
                message = f"unknown key; known are {', '.join(sorted(names))}"
                self.problems.append(Problem(position=place, key=key, message=message))

    def text(self, item: JsonObject, name: str, where: str) -> str:
        value = item.get(name, "")
        if isinstance(value, str):
            return value
        self.wrong(f"{where}.{name}", "text")
        return ""

    def texts(self, item: JsonObject, name: str, where: str) -> tuple[str, ...]:
        value = item.get(name, [])
        if isinstance(value, str):
            return (value,)
        if isinstance(value, list) and all(isinstance(one, str) for one in value):
            return tuple(str(one) for one in value)
        self.wrong(f"{where}.{name}", "text or a list of texts")
        return ()

    def whole(self, item: JsonObject, name: str, where: str, *, default: int = 0) -> int:
        value = item.get(name, default)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
        self.wrong(f"{where}.{name}", "a whole number")
        return default

    def number(self, item: JsonObject, name: str, where: str) -> float | None:
        value = item.get(name)
        if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
            return None if value is None else float(value)
        self.wrong(f"{where}.{name}", "a number")
        return None

    def table(self, item: JsonObject, name: str, where: str) -> JsonObject | None:
        value = item.get(name)
        if value is None or isinstance(value, dict):
            return value
        self.wrong(f"{where}.{name}", "a table")
        return None

    def tables(self, item: JsonObject, name: str, where: str) -> list[JsonObject]:
        value: JsonValue = item.get(name, [])
        if isinstance(value, list):
            found = [one for one in value if isinstance(one, dict)]
            if len(found) == len(value):
                return found
        self.wrong(f"{where}.{name}" if where else name, "a list of tables")
        return []
