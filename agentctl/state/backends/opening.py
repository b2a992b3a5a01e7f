"""Opens a backend of shared state by its name, importing only that one."""

import importlib
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path

from agentctl.errors import UsageError
from agentctl.records import dataclass
from agentctl.state.backends.memory import MemoryBackend
from agentctl.state.shared_backend import SharedStateBackend

PLUGIN_GROUP = "agentctl.shared_state"
"""Entry points: a callable that takes a `StorePlace` and returns a backend."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StorePlace:
    """Where one run's shared state is kept."""

    space: str
    """The run's own part of a store that holds many: its thread."""
    folder: Path
    """agentctl's data directory."""
    url: str = ""
    """From `[shared_state] url`: an address, or a path for `file` and `sqlite`."""


def open_backend(name: str, place: StorePlace) -> SharedStateBackend:
    """Return the backend `name`, without touching the disk or the network yet.

    Raises:
        UsageError: there is no such backend, or what it needs is not installed.
    """
    opener = _BUILT_IN.get(name) or _installed(name)
    try:
        return opener(place)
    except ImportError as error:
        raise UsageError(
            f"The shared state backend {name!r} needs a package that is not installed: {error}.",
            hint=f"pip install 'agentctl[{name}]'",
        ) from error


def _memory(place: StorePlace) -> SharedStateBackend:
    del place
    return MemoryBackend()


def _file(place: StorePlace) -> SharedStateBackend:
    module = importlib.import_module("agentctl.state.backends.files")
    folder = Path(place.url).expanduser() if place.url else place.folder / "shared"
    backend: SharedStateBackend = module.FileBackend(folder / place.space)
    return backend


def _sqlite(place: StorePlace) -> SharedStateBackend:
    module = importlib.import_module("agentctl.state.backends.sqlite")
    path = Path(place.url).expanduser() if place.url else place.folder / "shared.sqlite"
    backend: SharedStateBackend = module.SqliteBackend(path, place.space)
    return backend


def _redis(place: StorePlace) -> SharedStateBackend:
    module = importlib.import_module("agentctl.state.backends.redis")
    backend: SharedStateBackend = module.RedisBackend(place.url or "redis://localhost:6379/0", place.space)
    return backend


def _installed(name: str) -> Callable[[StorePlace], SharedStateBackend]:
    found = next((point for point in entry_points(group=PLUGIN_GROUP) if point.name == name), None)
    if found is None:
        known = ", ".join((*_BUILT_IN, *(point.name for point in entry_points(group=PLUGIN_GROUP))))
        raise UsageError(
            f"There is no shared state backend {name!r}.", hint=f"[shared_state] backend is one of {known}."
        )
    opener: Callable[[StorePlace], SharedStateBackend] = found.load()
    return opener


_BUILT_IN: dict[str, Callable[[StorePlace], SharedStateBackend]] = {
    "memory": _memory,
    "file": _file,
    "sqlite": _sqlite,
    "redis": _redis,
}
