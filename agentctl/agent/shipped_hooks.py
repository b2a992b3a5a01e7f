"""The hooks that ship with agentctl: `redact`, `audit`, `notify`, `read_before_write`."""

import hashlib
import os
import re
import shutil
import subprocess
import threading
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import anyio.to_thread

from agentctl.agent.hook import Hook, HookContext
from agentctl.agent.hook_events import (
    Continue,
    ModelReply,
    ObserveAction,
    RewriteResult,
    Skip,
    ToolCallAction,
    ToolCallEvent,
    ToolResultAction,
    ToolResultEvent,
)
from agentctl.journal.jsonl import append_line
from agentctl.protocol.events import Published, QuestionAsked, RunEnded, RunSuspended
from agentctl.protocol.values import JsonObject, JsonValue
from agentctl.tools.definition import ToolOutput

_SHAPES = (
    r"sk-[A-Za-z0-9_-]{20,}",
    r"(?:ghp|gho|ghu|ghs|ghr)_[A-Za-z0-9]{36,}",
    r"github_pat_[A-Za-z0-9_]{22,}",
    r"glpat-[A-Za-z0-9_-]{20,}",
    r"xox[abprs]-[A-Za-z0-9-]{10,}",
    r"AKIA[0-9A-Z]{16}",
    r"AIza[0-9A-Za-z_-]{35}",
    r"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
    r"-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----[\s\S]{0,10000}?-----END [A-Z ]{0,20}PRIVATE KEY-----",
    r"(?i:authorization:\s{0,4}(?:bearer|basic)\s{1,4})[A-Za-z0-9._~+/=-]{8,}",
)
_REPLACEMENT = "[redacted]"


class Redact(Hook):
    """Takes credential shapes out of what tools give, before the model or the journal has it.

    `params.patterns` adds regular expressions; `params.defaults = false` leaves out the shipped ones.
    """

    name = "redact"

    def __init__(self, **params: object) -> None:
        super().__init__(**params)
        more = params.get("patterns", [])
        added = [str(pattern) for pattern in more] if isinstance(more, list | tuple) else []
        shapes = (*(_SHAPES if params.get("defaults", True) else ()), *added)
        self._pattern = re.compile("|".join(f"(?:{shape})" for shape in shapes)) if shapes else None

    def clean(self, text: str) -> str:
        """Return `text` with every credential shape replaced. Pure, idempotent."""
        return text if self._pattern is None else self._pattern.sub(_REPLACEMENT, text)

    def cleaned(self, output: ToolOutput) -> ToolOutput:
        """Return a call's output without credential shapes, in its text and its structured form."""
        return replace(output, text=self.clean(output.text), structured=self._value(output.structured))

    def on_tool_result(self, context: HookContext, event: ToolResultEvent) -> ToolResultAction:
        """Clean what earlier hooks may have put in."""
        del context
        clean = self.clean(event.shown)
        return Continue() if clean == event.shown else RewriteResult(clean)

    def _value(self, value: JsonValue) -> JsonValue:
        if isinstance(value, str):
            return self.clean(value)
        if isinstance(value, list):
            return [self._value(item) for item in value]
        if isinstance(value, dict):
            return {name: self._value(item) for name, item in value.items()}
        return value


class Audit(Hook):
    """Writes a JSON line for every tool call, its result and every reply to `params.file`."""

    name = "audit"

    def __init__(self, **params: object) -> None:
        super().__init__(**params)
        file = params.get("file")
        if not isinstance(file, str) or not file:
            raise ValueError("the audit hook needs params.file, the path of the file to write to")
        self._file = Path(file).expanduser()

    async def on_tool_call(self, context: HookContext, event: ToolCallEvent) -> ToolCallAction:
        """Write the call down."""
        await self._write(
            context, "tool_call", {"call": event.call_id, "tool": event.tool, "arguments": event.arguments}
        )
        return Continue()

    async def on_tool_result(self, context: HookContext, event: ToolResultEvent) -> ToolResultAction:
        """Write the outcome down, and how long the result is; not the result."""
        await self._write(
            context,
            "tool_result",
            {
                "call": event.call_id,
                "tool": event.tool,
                "outcome": event.outcome,
                "characters": len(event.raw),
            },
        )
        return Continue()

    async def on_model_reply(self, context: HookContext, event: ModelReply) -> ObserveAction:
        """Write down which model answered, and what it used."""
        usage = event.usage
        await self._write(
            context,
            "model_reply",
            {
                "model": event.reply.model,
                "input_tokens": usage.input_tokens,
                "output_tokens": usage.output_tokens,
                "cost_usd": usage.cost_usd,
            },
        )
        return Continue()

    async def _write(self, context: HookContext, event: str, facts: JsonObject) -> None:
        line: JsonObject = {
            "at": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "event": event,
            "run": context.run_id,
            "agent": context.agent,
            "stage": context.stage,
            "step": context.step,
            **facts,
        }
        await anyio.to_thread.run_sync(append_line, self._file, line)


@dataclass
class FilesRead:
    """What `read_before_write` remembers: the files that were read or written in this run."""

    paths: list[str] = field(default_factory=list)


class ReadBeforeWrite(Hook):
    """Refuses to edit or overwrite a file that was not read in this run. New files may be made.

    The same can be had as a machine (`[[machines]]`), which outlives the run where its scope is the thread.
    """

    name = "read_before_write"

    def __init__(self, **params: object) -> None:
        super().__init__(**params)
        self._workdir = Path(str(params.get("workdir", ".")))

    def on_tool_call(self, context: HookContext, event: ToolCallEvent) -> ToolCallAction:
        """Skip a write to an existing file that was not read."""
        path = _path_of(event)
        if event.tool not in {"write_file", "edit_file"} or not path:
            return Continue()
        place = self._place(path)
        read = context.scratchpad.get(FilesRead) or FilesRead()
        if place in read.paths or not Path(place).exists():
            return Continue()
        return Skip(f"Read {path} before you change it.")

    def on_tool_result(self, context: HookContext, event: ToolResultEvent) -> ToolResultAction:
        """Remember what was read or written."""
        path = event.arguments.get("path")
        if event.outcome == "ok" and event.tool in {"read_file", "write_file", "edit_file"}:
            place = self._place(str(path))
            context.scratchpad.update(
                FilesRead,
                lambda read: None if place in read.paths else read.paths.append(place),
            )
        return Continue()

    def _place(self, path: str) -> str:
        return str((self._workdir / Path(path).expanduser()).resolve())


class Notify(Hook):
    """Starts `params.command` with a sentence as its last word when a person is wanted or the run has ended.

    Without a command it is `notify-send agentctl SENTENCE`, where that is installed. It has no events of the
    loop: the run shows it what it commits.
    """

    name = "notify"

    def __init__(self, **params: object) -> None:
        super().__init__(**params)
        command = params.get("command")
        self._command = tuple(str(word) for word in command) if isinstance(command, list | tuple) else ()
        pinned = params.get("pinned")
        self._pinned: dict[object, object] = dict(pinned) if isinstance(pinned, dict) else {}

    def show(self, published: Published) -> None:
        """Tell a person about a question, or that a run stands still or has ended. Does not wait."""
        words = _attention(published)
        command = self._command or (("notify-send", "agentctl") if shutil.which("notify-send") else ())
        if not words or not command:
            return
        try:
            if any(_digest(file) != digest for file, digest in self._pinned.items()):
                return  # it is not what was trusted any more
            # SAFETY: the words before the last are the user's own or trusted with the blueprint; the last is
            # one argument that no shell reads. Credentials are not in its environment.
            process = subprocess.Popen(  # noqa: S603
                [*command, words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                env={name: os.environ[name] for name in _PASSED if name in os.environ},
            )
        except OSError:
            return  # a notice that cannot be shown must not end a run
        # Somebody must take note of its end, and the loop must not wait for it.
        threading.Thread(target=process.wait, daemon=True).start()


def _digest(file: object) -> str:
    return hashlib.sha256(Path(str(file)).read_bytes()).hexdigest()


_PASSED = (
    "PATH",
    "HOME",
    "LANG",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
)


def _attention(published: Published) -> str:
    who = f"{published.agent} ({published.run_id})"
    match published.event:
        case QuestionAsked():
            return f"{who} has a question."
        case RunSuspended(reason=reason):
            return f"{who} stands still: {reason}"
        case RunEnded(outcome=outcome) if not published.parent_run:
            return f"{who} has ended: {outcome}."
        case _:
            return ""


def _path_of(event: ToolCallEvent) -> str:
    path = event.arguments.get("path") if isinstance(event.arguments, dict) else None
    return path if isinstance(path, str) else ""
