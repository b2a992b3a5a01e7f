"""What a tool result does to state, and how much of it the model sees."""

from contextlib import AbstractAsyncContextManager
from typing import Protocol

from agentctl.protocol.commands import Command
from agentctl.protocol.events import Event
from agentctl.protocol.messages import ToolCall, ToolResult
from agentctl.protocol.values import JsonObject, JsonValue
from agentctl.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """A result as the model sees it, with the facts and state changes that join its commit."""

    result: ToolResult
    events: tuple[Event, ...] = ()
    commands: tuple[Command, ...] = ()
    afterwards: tuple[Event, ...] = ()
    """Facts that follow the results of the whole step: words to the model may not stand between results."""
    failure: str = ""
    """Why the run must end after this commit; empty where it goes on."""


class ResultFold(Protocol):
    """Folds results into state, in call order."""

    def settling(self) -> AbstractAsyncContextManager[None]:
        """Hold the state still from a step's first result to its commit."""

    async def fold(self, call: ToolCall, raw: ToolResult, shown: ToolResult, *, stage: str) -> Folded:
        """Return what joins the step's commit: state effects of the raw result, the shown one cut to size."""

    def told(self, event: str, data: JsonObject) -> Folded | None:
        """Return what `before_model` or `after_model` does to machines, or None where it does nothing.

        Words of the latter wait for the next `before_model`: none may stand between a call and its result.
        """

    def begin(self) -> Folded | None:
        """Return what begins the thread's document, or None where that is done or there is none."""

    def document_at(self, pointer: str) -> JsonValue:
        """Return the part of the state document at a JSON Pointer, or None where there is nothing."""

    def replace_document(self, pointer: str, text: str) -> Folded:
        """Return what puts a person's edit there: JSON if it is JSON, else the text itself."""


def cut(text: str, max_lines: int, max_bytes: int, *, note: str = "") -> str:
    """Return `text`, or its head and tail within both bounds and a line between that counts what is missing.

    Cuts between lines where there are any, never inside a character. Pure.
    """
    size = len(text.encode("utf-8", "surrogatepass"))
    lines = text.splitlines(keepends=True)
    if size <= max_bytes and len(lines) <= max_lines:
        return text
    head = _take(lines, max_lines * 2 // 3, max_bytes * 2 // 3)
    tail = _take(lines[len(head) :][::-1], max_lines // 3, max_bytes // 3)[::-1]
    if not head and not tail:  # one very long line
        head, tail = [_clip(text, max_bytes * 2 // 3)], [_clip(text[::-1], max_bytes // 3)[::-1]]
    left_out = len(lines) - len(head) - len(tail)
    missing = size - sum(len(part.encode("utf-8", "surrogatepass")) for part in (*head, *tail))
    middle = f"[… {max(left_out, 0)} lines, {missing} bytes left out{f'; {note}' if note else ''} …]"
    return f"{''.join(head).rstrip(chr(10))}\n{middle}\n{''.join(tail)}"


def _take(lines: list[str], max_lines: int, max_bytes: int) -> list[str]:
    taken: list[str] = []
    size = 0
    for line in lines[:max_lines]:
        size += len(line.encode("utf-8", "surrogatepass"))
        if size > max_bytes:
            break
        taken.append(line)
    return taken


def _clip(text: str, max_bytes: int) -> str:
    return text.encode("utf-8", "ignore")[:max_bytes].decode("utf-8", "ignore")
