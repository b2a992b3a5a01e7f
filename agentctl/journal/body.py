"""A commit as bytes and back, and the chain of hashes over a run's commits."""

import hashlib
import json
import math
import re

from agentctl.protocol.codec import Malformed, UnknownType, decode, decoder, encode
from agentctl.protocol.commands import Command, Commit, OutgoingMessage
from agentctl.protocol.events import Event, Noted
from agentctl.protocol.values import JsonObject, JsonValue
from agentctl.records import dataclass

_EVENT = decoder(Event)
_COMMANDS = decoder(tuple[Command, ...])
_OUTGOING = decoder(tuple[OutgoingMessage, ...])
_SURROGATE = re.compile("[\ud800-\udfff]")


class Damaged(ValueError):
    """Stored bytes that are not what was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """What a record holds."""

    events: tuple[Event, ...]
    commands: tuple[Command, ...]
    outgoing: tuple[OutgoingMessage, ...]
    received: tuple[str, ...]


def to_json(value: JsonValue) -> str:
    """Return `value` as compact JSON that any reader takes.

    Total: half of a surrogate pair becomes U+FFFD, NaN and infinities become null; the one journal must
    take whatever a tool or a model came up with.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError:
        text = json.dumps(_finite(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return whole_text(text)


def whole_text(text: str) -> str:
    """Return `text` with surrogate pairs joined and halves of pairs replaced by U+FFFD. Pure, idempotent."""
    if not _SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def from_json(text: str) -> JsonValue:
    """Return the JSON value of `text`, without halves of surrogate pairs.

    Raises:
        Damaged: it is not JSON.
    """
    try:
        value: JsonValue = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Damaged(str(error)) from error
    # An escape such as \ud83d makes half a pair out of clean bytes.
    return _whole(value) if "\\ud" in text or "\\uD" in text else value


def encode_body(commit: Commit) -> tuple[str, str]:
    """Return the two JSON texts of a commit: events and messages, and commands (empty when it has none)."""
    fields: JsonObject = {"events": encode(commit.events)}
    if commit.outgoing:
        fields["outgoing"] = encode(commit.outgoing)
    if commit.received:
        fields["received"] = encode(commit.received)
    return to_json(fields), to_json(encode(commit.commands)) if commit.commands else ""


def decode_body(body: str, commands: str) -> Body:
    """Return what `encode_body` wrote.

    An event of a type or shape that this version does not know becomes a `Noted` warning in its place.

    Raises:
        Damaged: it is not what any version wrote.
    """
    fields = from_json(body)
    if not isinstance(fields, dict) or not isinstance(fields.get("events"), list):
        raise Damaged("not an object with events")
    events = fields["events"]
    try:
        return Body(
            events=tuple(_event(one) for one in events) if isinstance(events, list) else (),
            commands=_COMMANDS(from_json(commands)) if commands else (),
            outgoing=_OUTGOING(fields["outgoing"]) if "outgoing" in fields else (),
            received=decode(tuple[str, ...], fields["received"]) if "received" in fields else (),
        )
    except (Malformed, UnknownType) as error:
        raise Damaged(str(error)) from error


def decode_commands(commands: str) -> tuple[Command, ...]:
    """Return the commands of a record alone, which are all that a replay of state needs.

    Raises:
        Damaged: they are not what any version wrote.
    """
    try:
        decoded: tuple[Command, ...] = _COMMANDS(from_json(commands))
    except (Malformed, UnknownType) as error:
        raise Damaged(str(error)) from error
    return decoded


def first_link(run_id: str) -> bytes:
    """Return what the first record of a run is chained to."""
    return hashlib.sha256(run_id.encode()).digest()


def link(before: bytes, sequence: int, body: str, commands: str) -> bytes:
    """Return the hash of a record: over the one before it, its number and its two texts."""
    digest = hashlib.sha256(before)
    digest.update(b"%d\n%d\n" % (sequence, len(body)))
    digest.update(body.encode())
    digest.update(commands.encode())
    return digest.digest()


def digest_of(value: JsonValue) -> str:
    """Return the sha256 of the one canonical JSON text of `value`, in hex."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _event(value: JsonValue) -> Event:
    try:
        event: Event = _EVENT(value)
    except UnknownType as error:
        return _skipped(f"skipped an event of a type that this version does not know: {error}")
    except Malformed as error:
        return _skipped(f"skipped an event that cannot be read: {error}")
    return event


def _skipped(text: str) -> Noted:
    return Noted(level="warning", text=text, source="journal")


def _finite(value: JsonValue) -> JsonValue:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, list):
        return [_finite(one) for one in value]
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    return value


def _whole(value: JsonValue) -> JsonValue:
    if isinstance(value, str):
        return whole_text(value)
    if isinstance(value, list):
        return [_whole(one) for one in value]
    if isinstance(value, dict):
        return {whole_text(key): _whole(one) for key, one in value.items()}
    return value
