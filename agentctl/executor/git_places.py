"""Where a repository keeps what git executes, so that a sandbox and the checks around a command guard it."""

import os
import stat
from pathlib import Path

from agentctl.executor.paths import follow
from agentctl.records import dataclass

_POINTER_LIMIT = 4096
_MOST_MODULES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class GitPlaces:
    """The repository whose working tree is a directory."""

    directory: Path
    """What `.git` is, or what it points to."""
    common: Path
    """Where hooks and configuration are; differs for a linked working tree."""
    outside: tuple[Path, ...]
    """Parts outside the working tree that git has to write: of a linked working tree only."""
    kept: tuple[Path, ...]
    """Hooks and configuration; existing ones only."""
    held: tuple[Path, ...]
    modules: tuple[Path, ...] = ()
    """The repositories of its submodules: git looks into them whenever it looks at the whole."""


def git_places(workdir: Path) -> GitPlaces | None:
    """Return the places of a working tree's repository, or None without one. Reads small files only.

    A `.git` file is believed only if the place it points to points back: a command could have written it.
    """
    entry = workdir / ".git"
    try:
        mode = os.lstat(entry).st_mode
    except OSError:
        return None
    if stat.S_ISDIR(mode):
        common = common_of(entry)
        inside = common.is_relative_to(workdir)
        modules = _modules(entry)
        above = {folder for one in modules for folder in one.parents if folder.is_relative_to(entry)}
        return GitPlaces(
            directory=entry,
            common=common,
            outside=(),
            kept=_kept(entry)
            + (_kept(common) if inside and common != entry else ())
            + tuple(place for one in modules for place in _kept(one)),
            held=(entry, *sorted(above - {entry}), *modules),
            modules=modules,
        )
    if not stat.S_ISREG(mode):
        return None
    directory = pointed(entry, workdir, b"gitdir:")
    if directory is None or pointed(directory / "gitdir", directory, b"") != follow(entry).path:
        return None
    common = common_of(directory)
    outside = () if directory.is_relative_to(workdir) else (common,)
    return GitPlaces(
        directory=directory,
        common=common,
        outside=outside,
        kept=(entry, *_kept(common), *_kept(directory)),
        held=(),
    )


def common_of(directory: Path) -> Path:
    """Return where a repository keeps hooks and configuration: itself, or what a linked one names."""
    return pointed(directory / "commondir", directory, b"") or directory


def _modules(directory: Path) -> tuple[Path, ...]:
    """Return the repositories under `modules`, theirs included, at most 100; follows no link to a folder."""
    found: list[Path] = []
    waiting = [directory / "modules"]
    while waiting and len(found) < _MOST_MODULES:
        here = waiting.pop()
        try:
            with os.scandir(here) as entries:
                inner = [Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False)]
        except OSError:
            continue
        for one in sorted(inner):
            if (one / "HEAD").is_file() and (one / "objects").is_dir():
                found.append(one)
                waiting.append(one / "modules")
            else:
                waiting.append(one)  # a submodule's name may have slashes in it
    return tuple(found[:_MOST_MODULES])


def _kept(directory: Path) -> tuple[Path, ...]:
    names = ("hooks", "config", "config.worktree", "commondir", "gitdir")
    found: list[Path] = []
    for name in names:
        place = directory / name
        try:
            mode = os.lstat(place).st_mode
        except OSError:
            continue
        if stat.S_ISDIR(mode) or stat.S_ISREG(mode):
            found.append(place)
    return tuple(found)


def pointed(file: Path, base: Path, prefix: bytes) -> Path | None:
    """Return the place that a one-line file names, resolved, or None if there is no such file."""
    try:
        # SAFETY: a fixed name; not followed if a link, not waited for if a pipe, only its beginning is read.
        held = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        data = os.read(held, _POINTER_LIMIT)
    except OSError:
        return None
    finally:
        os.close(held)
    if not data.startswith(prefix) or b"\0" in data:
        return None
    text = os.fsdecode(data.removeprefix(prefix).strip())
    return follow(base / text).path if text else None
