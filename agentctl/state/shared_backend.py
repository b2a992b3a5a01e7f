"""What a backend of shared state does, and the one rule by which every backend decides about a write."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Literal, Protocol

from agentctl.records import dataclass


class SharedStateError(Exception):
    """Shared state did not do what was asked. The text says what would work."""


class InvalidKey(SharedStateError):
    """A key or scope that cannot be one."""


class CapacityExceeded(SharedStateError):
    """A write that cannot fit, whatever is recycled; nothing was changed."""

    def __init__(
        self, key: str, *, value_bytes: int, total_bytes: int, max_bytes: int, largest: str = ""
    ) -> None:
        """Sizes are in bytes; `total_bytes` is the true sum that the write would have brought."""
        tail = f" The largest keys are {largest}; remove what is not needed." if largest else ""
        super().__init__(
            f"Shared state capacity exceeded: storing {key!r} ({value_bytes} bytes) would bring the total to"
            f" {total_bytes} of {max_bytes} bytes (shared_state.max_bytes).{tail}"
        )
        self.key = key
        self.value_bytes = value_bytes
        self.total_bytes = total_bytes
        self.max_bytes = max_bytes


class ConditionFailed(SharedStateError):
    """`if_absent` or `if_version` did not hold; nothing was changed."""

    def __init__(self, key: str, *, version: int) -> None:
        """`version` is the one that is there; 0 when the key is absent."""
        there = f"it is at version {version}" if version else "it is absent"
        super().__init__(f"{key!r} was not written: {there}. Read it again and decide.")
        self.key = key
        self.version = version


class StoreUnreadable(SharedStateError):
    """The store could not be read or written: never to be taken for an absent key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryInfo:
    """What is known of an entry without its value."""

    key: str
    """As stored: the scopes in front."""
    value_bytes: int
    version: int
    """Rises with every write to the store: a later write of any key has a greater one."""
    stash: bool = False
    """Machine-made, and recycled when room is needed."""
    writer: Mapping[str, str] = field(default_factory=dict)
    """Who wrote it: run, stage, agent, call."""
    at: str = ""
    """When, RFC 3339, UTC."""

    @property
    def cost(self) -> int:
        """Bytes that count against the capacity: key and value."""
        return len(self.key.encode("utf-8")) + self.value_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A value and what is known of it."""

    value: str
    info: EntryInfo

    @property
    def sha256(self) -> str:
        """The value's sha256, in hex."""
        return hashlib.sha256(self.value.encode("utf-8")).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """A write that is asked for."""

    key: str
    value: str
    max_bytes: int
    how: Literal["set", "append"] = "set"
    stash: bool = False
    if_absent: bool = False
    if_version: int | None = None
    """Only where the key is at this version; 0 is absent."""
    pinned: frozenset[str] = frozenset()
    """Stashes that a live conversation still names: recycled last."""
    writer: Mapping[str, str] = field(default_factory=dict)
    at: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What a write did."""

    info: EntryInfo
    evicted: tuple[str, ...] = ()
    """Stashes that were recycled for it, as stored."""


class SharedStateBackend(Protocol):
    """A flat store of texts. Scopes are none of its business: they are a part of the key.

    An implementation must decide writes by `plan_write` (or the same rule) and make each write atomic, also
    against other processes where it can be shared. It must never answer "absent" when it could not read.
    """

    async def get(self, key: str) -> Entry | None:
        """Return an entry, or None when it is absent.

        Raises:
            StoreUnreadable: the store could not be read.
        """

    async def write(self, write: Write) -> Written:
        """Store a value, recycling stashes where needed; whole or not at all.

        Raises:
            CapacityExceeded: it cannot fit.
            ConditionFailed: a condition does not hold.
            StoreUnreadable: the store could not be used.
        """

    async def remove(self, key: str) -> bool:
        """Delete an entry; True if it was there."""

    async def entries(self) -> tuple[EntryInfo, ...]:
        """Return all entries without their values, in any order."""

    async def aclose(self) -> None:
        """Let go of files and connections. Idempotent."""


def plan_write(entries: Iterable[EntryInfo], write: Write) -> tuple[str, ...]:
    """Return the keys of the stashes to recycle so that `write` fits. Pure.

    The entry that is overwritten does not count. Exactly full fits. Stashes go oldest first, pinned ones
    last, never the key that is written; callers' keys never go. Nothing is recycled for a write that cannot
    fit.

    Raises:
        CapacityExceeded: it cannot fit.
        ConditionFailed: a condition does not hold.
    """
    others = [info for info in entries if info.key != write.key]
    before = next((info for info in entries if info.key == write.key), None)
    version = before.version if before else 0
    if (write.if_absent and before) or (write.if_version is not None and write.if_version != version):
        raise ConditionFailed(write.key, version=version)
    grown = before.value_bytes if before and write.how == "append" else 0
    value_bytes = grown + len(write.value.encode("utf-8"))
    needed = len(write.key.encode("utf-8")) + value_bytes
    used = sum(info.cost for info in others)
    spare = sorted(
        (info for info in others if info.stash),
        key=lambda info: (info.key in write.pinned, info.version),
    )
    kept = used - sum(info.cost for info in spare)
    if kept + needed > write.max_bytes:
        raise CapacityExceeded(
            write.key,
            value_bytes=value_bytes,
            total_bytes=kept + needed,
            max_bytes=write.max_bytes,
            largest=largest_of(info for info in others if not info.stash),
        )
    evicted: list[str] = []
    for info in spare:
        if used + needed <= write.max_bytes:
            break
        used -= info.cost
        evicted.append(info.key)
    return tuple(evicted)


def info_after(write: Write, value: str, version: int) -> EntryInfo:
    """Return what is known of the entry that holds `value` after `write`."""
    return EntryInfo(
        key=write.key,
        value_bytes=len(value.encode("utf-8")),
        version=version,
        stash=write.stash,
        writer=dict(write.writer),
        at=write.at,
    )


def largest_of(entries: Iterable[EntryInfo]) -> str:
    """Return the three largest entries as text."""
    largest = sorted(entries, key=lambda info: (-info.cost, info.key))[:3]
    return ", ".join(f"{readable(info.key)!r} ({info.value_bytes} bytes)" for info in largest)


SEPARATOR = "\x1f"
"""Between scopes and key, as stored. Never in a scope, and escaped in a key."""
_ESCAPE = "\x1e"


def stored_key(scope: tuple[str, ...], key: str) -> str:
    """Return a key as stored: scopes in front. No key of a scope leads out of it. Pure.

    Raises:
        InvalidKey: the key is empty, or no text that can be stored.
    """
    if not key:
        raise InvalidKey("a key of shared state must not be empty")
    try:
        key.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidKey(f"{key!r} is no key: it holds half of a character") from error
    escaped = key.replace(_ESCAPE, _ESCAPE + "0").replace(SEPARATOR, _ESCAPE + "1")
    return SEPARATOR.join((*scope, escaped))


def parts_of(stored: str) -> tuple[tuple[str, ...], str]:
    """Return the scopes and the key of a stored key; the inverse of `stored_key`. Pure."""
    *scope, escaped = stored.split(SEPARATOR)
    return tuple(scope), escaped.replace(_ESCAPE + "1", SEPARATOR).replace(_ESCAPE + "0", _ESCAPE)


def readable(stored: str) -> str:
    """Return a stored key as people write it: `scope/key`."""
    scope, key = parts_of(stored)
    return "/".join((*scope, key))
