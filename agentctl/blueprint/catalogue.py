"""Blueprints by name: the user's own, then those that ship with agentctl; and by path."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from agentctl.blueprint.load import load_blueprint
from agentctl.blueprint.model import Blueprint, FoundBy
from agentctl.errors import UsageError
from agentctl.locations import config_dir, shipped_dir
from agentctl.records import dataclass
from agentctl.toml.words import nearest

_SCRIPT = ".script"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A blueprint that can be named."""

    name: str
    """What `agentctl run NAME` takes: the file's name without `.toml`, or a `blueprint.toml`'s folder."""
    path: Path
    found_by: FoundBy


def entries() -> tuple[Entry, ...]:
    """Return all blueprints that can be named, sorted; a user's own hides a shipped one. May block."""
    found: dict[str, Entry] = {}
    for folder, found_by in _folders():
        for name, path in _files(folder):
            found.setdefault(name, Entry(name=name, path=path, found_by=found_by))
    return tuple(found[name] for name in sorted(found))


def find(name_or_path: str) -> Entry:
    """Return where the blueprint is that a person named. May block.

    A word without a slash and without `.toml` is a name, even where a file of that name lies in the current
    directory: `./NAME` means the file. A folder stands for the `blueprint.toml` in it.

    Raises:
        UsageError: there is no such blueprint.
    """
    if not ("/" in name_or_path or name_or_path.endswith(".toml") or name_or_path in {".", "..", "~"}):
        return _by_name(name_or_path)
    path = Path(name_or_path).expanduser()
    with suppress(OSError):  # a name that no file system takes; reading it says so
        if path.is_dir() and (path / "blueprint.toml").is_file():
            path /= "blueprint.toml"
    return Entry(name=path.stem, path=path, found_by="path")


def load(name_or_path: str) -> Blueprint:
    """Return the blueprint that a person named. May block.

    Raises:
        UsageError: there is none of that name, or its file is missing or of the wrong kind.
        InvalidInput: it is too large or invalid.
    """
    entry = find(name_or_path)
    return load_blueprint(entry.path, found_by=entry.found_by)


def _by_name(name: str) -> Entry:
    known = entries()
    for entry in known:
        if entry.name == name:
            return entry
    names = [entry.name for entry in known]
    suggestion = nearest(name, names)
    meant = f" Did you mean {suggestion!r}?" if suggestion else ""
    file = _file_of_that_name(name)
    if file:
        meant = f" For the file of that name write './{file}'."
    raise UsageError(
        f"There is no blueprint named {name!r}.{meant}",
        hint=f"known: {', '.join(names) or 'none'}; a path needs a slash or ends in .toml",
    )


def _file_of_that_name(name: str) -> str:
    """Return the file in the current directory that `name` may mean; empty when there is none."""
    with suppress(OSError, ValueError):
        for file in (name, f"{name}.toml"):
            if name and Path(file).exists():
                return file
    return ""


def _folders() -> tuple[tuple[Path, FoundBy], ...]:
    return ((config_dir() / "blueprints", "user"), (shipped_dir("blueprints"), "shipped"))


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    if not folder.is_dir():
        return
    for path in sorted(folder.iterdir()):
        if path.suffix == ".toml" and not path.stem.endswith(_SCRIPT) and path.is_file():
            yield path.stem, path
        elif (path / "blueprint.toml").is_file():
            yield path.name, path / "blueprint.toml"
