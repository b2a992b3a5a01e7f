"""Pieces to one message: what the assemblers of all protocols share."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from math import isfinite
from typing import Literal, Protocol, TypeAlias

from agentctl.llm.base import Emit
from agentctl.protocol.events import ReasoningStreamed, TextStreamed
from agentctl.protocol.messages import (
    AssistantMessage,
    AssistantPart,
    ReasoningPart,
    RefusalPart,
    StopReason,
    TextPart,
    ToolCall,
    Usage,
)
from agentctl.protocol.values import JsonObject, JsonValue

PieceKind: TypeAlias = Literal["text", "reasoning", "refusal"]


class Assembler(Protocol):
    """Builds one message from a service's events. Holds the state of one reply."""

    def feed(self, event: JsonObject, name: str) -> None:
        """Take one streamed event.

        Raises:
            ModelCallFailed: the event is an error.
        """

    def whole(self, body: JsonObject) -> None:
        """Take a reply that came in one piece.

        Raises:
            ModelCallFailed: the body is an error.
        """

    def done(self) -> bool:
        """Return whether the service's terminator was seen: nothing more is to come."""

    def stopped(self) -> bool:
        """Return whether the service has said why the reply ends: only figures may still come."""

    def empty(self) -> bool:
        """Return whether nothing of a reply was seen."""

    def finish(self) -> AssistantMessage:
        """Return the message; its stop is `incomplete` if no terminator was seen."""


@dataclass(slots=True)
class _Prose:
    kind: PieceKind
    key: object
    pieces: list[str] = field(default_factory=list)
    opaque: JsonObject = field(default_factory=dict)


@dataclass(slots=True)
class CallInProgress:
    """A tool call whose arguments are still coming."""

    call_id: str = ""
    tool: str = ""
    pieces: list[str] = field(default_factory=list)
    arguments: JsonObject | None = None
    """Set where the service sends them as an object."""
    opaque: JsonObject = field(default_factory=dict)


class PartList:
    """The parts of a reply in the order they began."""

    __slots__ = ("_emit", "_half", "_items", "_last")

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._items: list[_Prose | CallInProgress] = []
        self._last: _Prose | None = None
        self._half = ""
        """The first half of a character that a service split over two pieces."""

    @property
    def calls(self) -> list[CallInProgress]:
        """The tool calls so far."""
        return [item for item in self._items if isinstance(item, CallInProgress)]

    def __bool__(self) -> bool:
        return bool(self._items)

    def text(self, piece: str, key: object = None) -> None:
        """Add to the current text; another `key` begins a new part."""
        if self._half or not piece.isascii():
            piece = self._whole_characters(piece)
        self._prose("text", key).pieces.append(piece)
        if piece:
            self._emit(TextStreamed(text=piece))

    def reasoning(self, piece: str, key: object = None) -> None:
        """Add to the current reasoning; another `key` begins a new part."""
        if self._half or not piece.isascii():
            piece = self._whole_characters(piece)
        self._prose("reasoning", key).pieces.append(piece)
        if piece:
            self._emit(ReasoningStreamed(text=piece))

    def refusal(self, piece: str, key: object = None) -> None:
        """Add to the model's words of refusal."""
        self._prose("refusal", key).pieces.append(piece)

    def opaque(self, kind: PieceKind, key: object = None) -> JsonObject:
        """Return the current part's own block of the service, to be filled in place."""
        return self._prose(kind, key).opaque

    def block(self, opaque: JsonObject) -> None:
        """Add a block of the service's that has no words of its own, to be sent back as it came."""
        self._items.append(_Prose("reasoning", object(), [], opaque))
        self._last = None

    def replace(self, kind: PieceKind, key: object, text: str) -> None:
        """Set the whole text of a part whose end event repeats it; emits what was not streamed."""
        text = without_half_characters(text)
        prose = self._prose(kind, key)
        seen = "".join(prose.pieces)
        if text == seen:
            return
        if text.startswith(seen):
            self._add(kind, text[len(seen) :], key)
        prose.pieces = [text]

    def call(self) -> CallInProgress:
        """Begin a tool call."""
        call = CallInProgress()
        self._items.append(call)
        self._last = None
        return call

    def parts(self, make_id: Callable[[int], str]) -> tuple[AssistantPart, ...]:
        """Return the finished parts. Empty prose without an opaque block is left out.

        `make_id` gives an id for the call of that number where the service sent none, or one twice.
        """
        found: list[AssistantPart] = []
        ids: set[str] = set()
        for item in self._items:
            if isinstance(item, CallInProgress):
                call_id = item.call_id
                if not call_id or call_id in ids:
                    call_id = make_id(len(ids))
                ids.add(call_id)
                found.append(_finished(item, call_id))
            elif item.opaque or any(item.pieces):
                found.append(_prose_part(item))
        return tuple(found)

    def _whole_characters(self, piece: str) -> str:
        """Hold back half a surrogate pair until its other half comes; what stays half becomes U+FFFD."""
        piece, self._half = self._half + piece, ""
        try:
            piece.encode()
        except UnicodeEncodeError:
            if "\ud800" <= piece[-1] <= "\udbff":
                piece, self._half = piece[:-1], piece[-1]
            return without_half_characters(piece)
        return piece

    def _add(self, kind: PieceKind, piece: str, key: object) -> None:
        match kind:
            case "text":
                self.text(piece, key)
            case "reasoning":
                self.reasoning(piece, key)
            case "refusal":
                self.refusal(piece, key)

    def _prose(self, kind: PieceKind, key: object) -> _Prose:
        last = self._last
        if last is not None and last.kind == kind and last.key == key:
            return last
        if key is not None:
            for item in self._items:
                if isinstance(item, _Prose) and item.kind == kind and item.key == key:
                    return item
        self._last = _Prose(kind, key)
        self._items.append(self._last)
        return self._last


def read_arguments(text: str) -> tuple[JsonObject, str]:
    """Return the arguments written in `text`, or the text itself where it is no JSON object. Total.

    Nothing, and `null`, mean no arguments. An object that was encoded twice is taken out of its string.
    """
    if not text.strip():
        return {}, ""
    try:
        value = _loaded(text)
        if isinstance(value, str) and value.lstrip().startswith("{"):
            value = _loaded(value)
    except (ValueError, RecursionError):
        return {}, without_half_characters(text)
    if value is None:
        return {}, ""
    return (value, "") if isinstance(value, dict) else ({}, without_half_characters(text))


def without_half_characters(text: str) -> str:
    """Return `text` with surrogate pairs joined and lone halves as U+FFFD: it can be encoded. Total."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _loaded(text: str) -> JsonValue:
    # Line ends inside strings are what models write and JSON forbids; NaN is read by Python and is no JSON.
    value: JsonValue = json.loads(text, strict=False, parse_constant=_no_number)
    return _cleaned(value) if "\\ud" in text.lower() else value


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _cleaned(value: JsonValue) -> JsonValue:
    match value:
        case str():
            return without_half_characters(value)
        case list():
            return [_cleaned(item) for item in value]
        case dict():
            return _cleaned_object(value)
        case _:
            return value


def _cleaned_object(value: JsonObject) -> JsonObject:
    return {without_half_characters(name): _cleaned(item) for name, item in value.items()}


def message_of(
    parts: tuple[AssistantPart, ...], *, stop: StopReason, usage: Usage, model: str, response_id: str
) -> AssistantMessage:
    """Return the message with the stop reason that its parts support.

    Tool calls decide over the service's `end`; a reason of `tool_calls` without any means `end`.
    """
    calls = any(isinstance(part, ToolCall) for part in parts)
    if calls and stop in {"end", "stop_sequence"}:
        stop = "tool_calls"
    elif not calls and stop == "tool_calls":
        stop = "end"
    if stop == "end" and any(isinstance(part, RefusalPart) for part in parts):
        stop = "refusal"
    return AssistantMessage(
        parts=tuple(_encodable(part) for part in parts),
        stop=stop,
        usage=usage,
        model=model,
        response_id=without_half_characters(response_id),
    )


def _encodable(part: AssistantPart) -> AssistantPart:
    """Whatever a service sent can be written down."""
    match part:
        case TextPart(text=text, opaque=opaque):
            return TextPart(text=without_half_characters(text), opaque=_cleaned_object(opaque))
        case ReasoningPart(text=text, opaque=opaque):
            return ReasoningPart(text=without_half_characters(text), opaque=_cleaned_object(opaque))
        case RefusalPart(text=text):
            return RefusalPart(text=without_half_characters(text))
        case ToolCall():
            return ToolCall(
                call_id=without_half_characters(part.call_id),
                tool=without_half_characters(part.tool),
                arguments=part.arguments,
                invalid_arguments=part.invalid_arguments,
                opaque=_cleaned_object(part.opaque),
            )


def is_first(choice: JsonObject) -> bool:
    """Return whether this is the first of several answers, or the only one. Total."""
    index = choice.get("index")
    return not isinstance(index, int) or index == 0


def whole_number(value: JsonValue) -> int:
    """Return a token count, also one that came as text; 0 where there is none. Total."""
    return int(amount_of(value) or 0)


def amount_of(value: JsonValue) -> float | None:
    """Return an amount, also one that came as text; None where it is none, or less than nothing. Total."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        amount = float(value)
    except (ValueError, OverflowError):
        return None
    return amount if isfinite(amount) and amount >= 0 else None


def member(value: JsonValue, name: str) -> JsonObject:
    """Return the object at `name` of `value`, empty where there is none. Total."""
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def members(value: JsonValue, name: str) -> list[JsonObject]:
    """Return the objects in the list at `name` of `value`. Total."""
    found = value.get(name) if isinstance(value, dict) else None
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def text_member(value: JsonValue, name: str) -> str:
    """Return the text at `name` of `value`, empty where there is none. Total."""
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""


def _finished(item: CallInProgress, call_id: str) -> ToolCall:
    if item.arguments is not None and not any(item.pieces):
        arguments, invalid = _cleaned_object(item.arguments), ""
    else:
        arguments, invalid = read_arguments("".join(item.pieces))
    return ToolCall(
        call_id=call_id,
        tool=item.tool,
        arguments=arguments,
        invalid_arguments=invalid,
        opaque=item.opaque,
    )


def _prose_part(item: _Prose) -> AssistantPart:
    text = "".join(item.pieces)
    match item.kind:
        case "text":
            return TextPart(text=text, opaque=item.opaque)
        case "reasoning":
            return ReasoningPart(text=text, opaque=item.opaque)
        case "refusal":
            return RefusalPart(text=text)
