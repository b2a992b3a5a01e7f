"""Shared state in memory: for one process, gone with it."""

import threading

from agentctl.state.shared_backend import Entry, EntryInfo, Write, Written, info_after, plan_write


class MemoryBackend:
    """Implements `SharedStateBackend`. Usable from threads."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._version = 0
        self._lock = threading.Lock()

    async def get(self, key: str) -> Entry | None:
        """Return an entry, or None when it is absent."""
        return self._entries.get(key)

    async def write(self, write: Write) -> Written:
        """Store a value, recycling stashes where needed."""
        with self._lock:
            evicted = plan_write([entry.info for entry in self._entries.values()], write)
            before = self._entries.get(write.key)
            value = before.value + write.value if before and write.how == "append" else write.value
            for key in evicted:
                del self._entries[key]
            self._version += 1
            info = info_after(write, value, self._version)
            self._entries[write.key] = Entry(value=value, info=info)
            return Written(info=info, evicted=evicted)

    async def remove(self, key: str) -> bool:
        """Delete an entry; True if it was there."""
        with self._lock:
            return self._entries.pop(key, None) is not None

    async def entries(self) -> tuple[EntryInfo, ...]:
        """Return all entries without their values."""
        with self._lock:
            return tuple(entry.info for entry in self._entries.values())

    async def aclose(self) -> None:
        """Do nothing: the store goes with the process."""
