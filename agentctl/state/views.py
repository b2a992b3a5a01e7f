"""Workspace and working views: what parts of the state a model is shown, and where in its messages.

Two places, so that prompt caches hold: bases stand in front of the latest human message and stay as they were
at the invocation's first model call; changes end the last message and are rendered at every call. Only the
copy of the messages that goes to the model changes.
"""

import copy
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import TypeAlias

import anyio
import anyio.to_thread

from agentctl.protocol.messages import Message, TextPart, UserMessage
from agentctl.protocol.values import JsonObject, JsonValue, compact_json
from agentctl.records import dataclass
from agentctl.state.changes import changed_lines
from agentctl.state.pointer import PointerError, resolve

VIEW_TIMEOUT_S = 5.0
MAX_BLOCK_BYTES = 32768
"""Bytes of one block that a view or the workspace adds to a request."""

_NOT_HUMAN = frozenset({"harness", "nudge"})


@dataclass(frozen=True, slots=True)
class View:
    """What a working view shows. Empty texts count as None."""

    base: str | None = None
    """Taken at the invocation's first model call and kept until its end."""
    changes: str | None = None
    """Shown at this call only: what is new since the base."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewRequest:
    """What a working view receives."""

    agent: str
    thread_id: str
    run_id: str
    first_call: bool
    """Whether this is the first model call of the invocation, or no base has been given in it yet."""
    context: Mapping[str, str] = field(default_factory=dict)
    """The run context, by name."""
    state: JsonObject = field(default_factory=dict)
    """The state document as of this call; a copy."""


ViewFunction: TypeAlias = Callable[[ViewRequest], View | Awaitable[View | None] | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """What is added to one request."""

    bases: tuple[str, ...] = ()
    """In reading order: run context, workspace, the views' bases from the last to the first."""
    changes: str = ""


@dataclass(slots=True, kw_only=True)
class Invocation:
    """The bases of one invocation: from a human message, or a stage's entry, until control returns.

    In memory only: a resumed run takes its bases anew.
    """

    workspace: tuple[str, ...] = ()
    """Pointers into the document."""
    views: tuple[tuple[str, ViewFunction], ...] = ()
    """Working views with their names, in the order of the blueprint."""
    bases: dict[str, str] = field(default_factory=dict)
    seen: JsonObject | None = None
    """The document at the first call."""
    calls: int = 0

    async def render(self, request: ViewRequest) -> tuple[Blocks, tuple[str, ...]]:
        """Return the blocks for the next model call, and warnings about views that were left out.

        `request.first_call` is filled in for each view. A view that raises, takes longer than 5 s or returns
        something else than a View or None is left out of this call.
        """
        first, self.calls = self.calls == 0, self.calls + 1
        if self.seen is None:
            self.seen = request.state
        warnings: list[str] = []
        changes = [workspace_changes(self.workspace, self.seen, request.state)]
        for name, view in self.views:
            asked = replace(
                request, first_call=first or name not in self.bases, state=copy.deepcopy(request.state)
            )
            try:
                shown = await _call(view, asked)
            except _ViewFailed as error:
                warnings.append(f"view {name!r} was left out of this call: {error}")
                continue
            if shown is not None and shown.base and name not in self.bases:
                self.bases[name] = shown.base
            changes.append((shown.changes or "") if shown is not None else "")
        given = [self.bases[name] for name, _ in self.views if name in self.bases]
        blocks = (
            context_block(request.context),
            workspace_block(self.workspace, self.seen),
            *reversed(given),
        )
        return (
            Blocks(
                bases=tuple(clipped(block) for block in blocks if block),
                changes="\n\n".join(clipped(text) for text in changes if text),
            ),
            tuple(warnings),
        )


def place(messages: Sequence[Message], blocks: Blocks) -> tuple[Message, ...]:
    """Return the messages with the blocks in their places; `messages` is unchanged. Pure, total.

    Bases become the first parts of the latest human message, or a message of their own at the very start
    where there is none. Changes become the last part of the last message if it is a user's, else a message
    after it (services join it with the tool results before it into one turn).
    """
    placed = list(messages)
    if blocks.bases:
        parts = tuple(TextPart(text=text) for text in blocks.bases)
        index = latest_human(placed)
        human = placed[index] if index is not None else None
        if index is not None and isinstance(human, UserMessage):
            placed[index] = replace(human, parts=(*parts, *human.parts))
        else:
            placed.insert(0, UserMessage(parts=parts, source="harness"))
    if blocks.changes:
        part = TextPart(text=blocks.changes)
        last = placed[-1] if placed else None
        if isinstance(last, UserMessage):
            placed[-1] = replace(last, parts=(*last.parts, part))
        else:
            placed.append(UserMessage(parts=(part,), source="harness"))
    return tuple(placed)


def latest_human(messages: Sequence[Message]) -> int | None:
    """Return the index of the last message that a person, or the task in a person's place, said."""
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if isinstance(message, UserMessage) and is_human(message):
            return index
    return None


def is_human(message: UserMessage) -> bool:
    """Whether a person said it, or the task or another agent in a person's place; not the harness."""
    return message.source not in _NOT_HUMAN and not message.source.startswith("checkpoint:")


def workspace_block(pointers: Sequence[str], document: JsonObject) -> str:
    """Return the parts of the document at `pointers`, a line each; empty when none of them is there."""
    lines = [f"{pointer}: {compact_json(value)}" for pointer, value in _found(pointers, document)]
    return "\n".join(("The workspace, as it was when this was said:", *lines)) if lines else ""


def workspace_changes(pointers: Sequence[str], before: JsonObject, after: JsonObject) -> str:
    """Return what differs at `pointers` between two documents, a line a place; empty when nothing does."""
    if before is after:
        return ""
    old, new = dict(_found(pointers, before)), dict(_found(pointers, after))
    lines: list[str] = []
    for pointer in dict.fromkeys(pointers):
        if pointer in old and pointer in new:
            lines += changed_lines(old[pointer], new[pointer], pointer)
        elif pointer in new:
            lines.append(f"+ {pointer}: {compact_json(new[pointer])}")
        elif pointer in old:
            lines.append(f"- {pointer}")
    if not lines:
        return ""
    return "\n".join(("What changed in the workspace since (+ added, - removed, ~ replaced):", *lines))


def context_block(context: Mapping[str, str]) -> str:
    """Return the run context as a list; empty when there is none."""
    lines = [f"- {name}: {value}" for name, value in context.items()]
    return "\n".join(("Context provided by the application:", *lines)) if lines else ""


def clipped(text: str, max_bytes: int = MAX_BLOCK_BYTES) -> str:
    """Return `text`, or as much of it as fits with a last line that says so. Never cuts a character."""
    encoded = text.encode("utf-8", "replace")
    if len(encoded) <= max_bytes:
        return text
    kept = encoded[:max_bytes].decode("utf-8", "ignore")
    return f"{kept}\n[cut here: {len(encoded) - max_bytes} of {len(encoded)} bytes are not shown]"


def _found(pointers: Sequence[str], document: JsonObject) -> list[tuple[str, JsonValue]]:
    found: list[tuple[str, JsonValue]] = []
    for pointer in pointers:
        try:
            found.append((pointer, resolve(document, pointer)))
        except PointerError:
            continue
    return found


class _ViewFailed(Exception):
    """A view gave nothing that can be shown."""


async def _call(view: ViewFunction, request: ViewRequest) -> View | None:
    try:
        with anyio.fail_after(VIEW_TIMEOUT_S):
            # In a thread: a slow view must not hold up other agents. An async one only makes its
            # coroutine there.
            made = await anyio.to_thread.run_sync(view, request, abandon_on_cancel=True)
            shown: object = await made if inspect.isawaitable(made) else made
    except TimeoutError as error:
        raise _ViewFailed(f"it took longer than {VIEW_TIMEOUT_S:g} s") from error
    except Exception as error:
        raise _ViewFailed(f"it raised {type(error).__name__}: {error}") from error
    if shown is None:
        return None
    if not isinstance(shown, View) or not all(
        text is None or isinstance(text, str) for text in (shown.base, shown.changes)
    ):
        raise _ViewFailed(f"it returned {type(shown).__name__}, not a View of texts or None")
    return shown
