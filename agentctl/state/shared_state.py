"""Shared state: a scoped store of texts that agents share by reference."""

from collections.abc import Iterable, Mapping

from agentctl.clock import Clock, SystemClock
from agentctl.records import dataclass
from agentctl.state.backends.memory import MemoryBackend
from agentctl.state.shared_backend import (
    SEPARATOR,
    Entry,
    EntryInfo,
    InvalidKey,
    SharedStateBackend,
    SharedStateError,
    Write,
    Written,
    parts_of,
    readable,
    stored_key,
)

DEFAULT_MAX_BYTES = 10 * 1024 * 1024
STASH_PREFIX = "tool-out-"
"""Keys that begin so are stashes: made by the harness, recycled when room is needed."""
_KIB = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """An entry as one holder sees it."""

    key: str
    """As the holder writes it: below its scope, `inner/key` for an inner scope's."""
    info: EntryInfo
    granted: bool = False
    """Outside the holder's scope and readable by a grant."""


class SharedState:
    """A handle on a store, or on one scope of it. Cheap to copy; all handles of a store see one truth.

    A scoped handle puts its scope in front of every key on the way in, so no key leads out of it, and lists
    only its own. The unscoped handle sees all, an inner scope's keys as `scope/key`.
    """

    def __init__(
        self,
        max_bytes: int = DEFAULT_MAX_BYTES,
        *,
        backend: SharedStateBackend | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Open a store over `backend`, in memory where none is given; `max_bytes` is keys and values."""
        self.max_bytes = max_bytes
        self._backend: SharedStateBackend = backend or MemoryBackend()
        self._clock = clock or SystemClock()
        self._scope: tuple[str, ...] = ()
        self._grants: tuple[str, ...] = ()
        self._writer: dict[str, str] = {}
        self._pins: dict[str, frozenset[str]] = {}

    @property
    def scope(self) -> str | None:
        """The scope of this handle, `a/b` for an inner one; None for the whole store."""
        return "/".join(self._scope) or None

    def scoped(self, name: str) -> "SharedState":
        """Return a handle on the scope `name` within this one; `a/b` is `b` within `a`. No way leads back.

        Raises:
            InvalidKey: the name, or a part of it, is empty or holds U+001F.
        """
        parts = name.split("/")
        if not all(parts) or SEPARATOR in name:
            raise InvalidKey(f"{name!r} is no scope: write `name` or `outer/inner`, without empty parts")
        return self._copy(scope=(*self._scope, *parts), grants=())

    def granting(self, keys: Iterable[str]) -> "SharedState":
        """Return this handle with leave to read keys of the whole store; a last `*` is any characters."""
        return self._copy(scope=self._scope, grants=tuple(keys))

    @property
    def grants(self) -> tuple[str, ...]:
        """Keys of the whole store that this handle may read besides its own."""
        return self._grants

    def as_grants(self, keys: Iterable[str]) -> tuple[str, ...]:
        """Return keys that this handle can read as grants of the whole store, to be lent to another."""
        inside = "/".join((*self._scope, ""))
        named = tuple(keys)
        return (*(f"{inside}{key}" for key in named), *(key for key in named if self.is_granted(key)))

    def by(self, **writer: str) -> "SharedState":
        """Return this handle writing in somebody's name: run, stage, agent, call; shown with each entry."""
        given = {name: value for name, value in writer.items() if value}
        return self._copy(scope=self._scope, grants=self._grants, writer={**self._writer, **given})

    async def get(self, key: str) -> str | None:
        """Return the value of a key, or None when it is absent.

        Raises:
            StoreUnreadable: the store could not be read.
            InvalidKey: the key is empty or no text.
        """
        found = await self.entry(key)
        return None if found is None else found.value

    async def entry(self, key: str) -> Entry | None:
        """Return a key's value with its version and provenance, or None when it is absent.

        Looks for the key itself, then for `inner/key` in an inner scope, then for what a grant lets read.
        """
        for stored in self._places(key):
            found = await self._backend.get(stored)
            if found is not None:
                return found
        if self.is_granted(key):
            return await self._root().entry(key)
        return None

    async def set(
        self, key: str, value: str, *, if_absent: bool = False, if_version: int | None = None
    ) -> Written:
        """Store a value; a key that is a stash's is stored as one.

        Raises:
            CapacityExceeded: it cannot fit; nothing was changed.
            ConditionFailed: the key is there (`if_absent`), or at another version; nothing was changed.
            StoreUnreadable: the store could not be written.
            InvalidKey: the key is empty or no text.
        """
        return await self._write(
            Write(
                key=stored_key(self._scope, key),
                value=value,
                max_bytes=self.max_bytes,
                stash=is_stash(key),
                if_absent=if_absent,
                if_version=if_version,
            )
        )

    async def append(self, key: str, value: str) -> Written:
        """Add to the end of a value, absent counting as empty; atomic, so no other writer's part is lost."""
        return await self._write(
            Write(
                key=stored_key(self._scope, key),
                value=value,
                max_bytes=self.max_bytes,
                how="append",
                stash=is_stash(key),
            )
        )

    async def remove(self, key: str) -> bool:
        """Delete a key; True if it was there."""
        for stored in self._places(key):
            if await self._backend.remove(stored):
                return True
        return False

    async def keys(self) -> list[str]:
        """Return the keys of this scope, stashes included, sorted; an inner scope's as `inner/key`."""
        return [listed.key for listed in await self.listing()]

    async def listing(self) -> list[Listed]:
        """Return the entries of this scope, sorted by key, then those that grants let read.

        A granted entry under a name that this scope has itself is left out, for `get` does not reach it.
        """
        entries = await self._backend.entries()
        depth = len(self._scope)
        own, granted = [], []
        for info in entries:
            scope, _ = parts_of(info.key)
            if scope[:depth] == self._scope:
                own.append(Listed(key=readable(_below(info.key, depth)), info=info))
            elif self.is_granted(readable(info.key)):
                granted.append(Listed(key=readable(info.key), info=info, granted=True))
        names = {listed.key for listed in own}
        granted = [listed for listed in granted if listed.key not in names]
        order = (sorted(part, key=lambda listed: listed.key) for part in (own, granted))
        return [listed for part in order for listed in part if not listed.granted or self._grants]

    async def summary(self) -> str:
        """Return all keys of this scope with their sizes, sorted; `(empty)` where there are none."""
        return summary_of(await self.listing())

    async def prompt_summary(self) -> str:
        """Return `summary` without stashes, so that a cut result does not change the system prompt."""
        return summary_of(listed for listed in await self.listing() if not listed.info.stash)

    async def take_all(self, other: "SharedState") -> None:
        """Copy every entry of another store, oldest first, each with its writer.

        Raises:
            CapacityExceeded: they do not fit here.
            StoreUnreadable: one of the stores could not be used.
        """
        for entry in await other.whole():
            await self._backend.write(
                Write(
                    key=entry.info.key,
                    value=entry.value,
                    max_bytes=self.max_bytes,
                    stash=entry.info.stash,
                    writer=entry.info.writer,
                    at=entry.info.at,
                )
            )

    async def whole(self) -> list[Entry]:
        """Return every entry of the store, whatever the handle's scope, oldest first.

        Raises:
            StoreUnreadable: the store could not be read.
        """
        infos = sorted(await self._backend.entries(), key=lambda info: info.version)
        found = [await self._backend.get(info.key) for info in infos]
        return [entry for entry in found if entry is not None]

    def pin(self, keys: Iterable[str], *, owner: str = "") -> None:
        """Say which stashes the live conversation of `owner` names now: they are recycled last.

        Takes the place of what was said for that owner before, so an empty list lets all of them go.
        """
        self._pins[owner] = frozenset(stored_key(self._scope, key) for key in keys)

    def is_granted(self, key: str) -> bool:
        """Whether a grant lets this handle read a key of the whole store."""
        return any(
            key.startswith(grant[:-1]) if grant.endswith("*") else key == grant for grant in self._grants
        )

    async def aclose(self) -> None:
        """Close the store, for all handles."""
        await self._backend.aclose()

    async def _write(self, write: Write) -> Written:
        moment = self._clock.now().isoformat(timespec="milliseconds").replace("+00:00", "Z")
        asked = Write(
            key=write.key,
            value=write.value,
            max_bytes=write.max_bytes,
            how=write.how,
            stash=write.stash,
            if_absent=write.if_absent,
            if_version=write.if_version,
            pinned=frozenset().union(*self._pins.values()),
            writer=self._writer,
            at=moment,
        )
        try:
            asked.value.encode("utf-8")
        except UnicodeEncodeError as error:
            raise SharedStateError(f"the value of {readable(write.key)!r} holds half a character") from error
        return await self._backend.write(asked)

    def _places(self, key: str) -> Iterable[str]:
        yield stored_key(self._scope, key)
        parts = key.split("/")
        for count in range(1, len(parts)):
            inner, rest = parts[:count], "/".join(parts[count:])
            if all(inner) and rest and SEPARATOR not in "".join(inner):
                yield stored_key((*self._scope, *inner), rest)

    def _root(self) -> "SharedState":
        return self._copy(scope=(), grants=())

    def _copy(
        self, *, scope: tuple[str, ...], grants: tuple[str, ...], writer: dict[str, str] | None = None
    ) -> "SharedState":
        copied = SharedState(self.max_bytes, backend=self._backend, clock=self._clock)
        copied._scope, copied._grants = scope, grants
        copied._writer = self._writer if writer is None else writer
        copied._pins = self._pins
        return copied


def is_stash(key: str) -> bool:
    """Whether a key, without its scopes, names a stash."""
    return key.startswith(STASH_PREFIX)


def summary_of(entries: Iterable[Listed]) -> str:
    """Return `key (size), …`, or `(empty)`."""
    texts = [f"{listed.key} ({size_text(listed.info.value_bytes)})" for listed in entries]
    return ", ".join(texts) or "(empty)"


def size_text(size_bytes: int) -> str:
    """Return a size for people: bytes below 1 KiB, then KB and MB with one digit after the point."""
    if size_bytes < _KIB:
        return f"{size_bytes} bytes"
    if size_bytes < _KIB * _KIB:
        return f"{size_bytes / _KIB:.1f} KB"
    return f"{size_bytes / (_KIB * _KIB):.1f} MB"


def provenance(writer: Mapping[str, str]) -> str:
    """Return who wrote an entry, for people: `run r-… stage plan call c-…`."""
    return " ".join(f"{name} {value}" for name, value in writer.items())


def _below(stored: str, depth: int) -> str:
    return SEPARATOR.join(stored.split(SEPARATOR)[depth:])
