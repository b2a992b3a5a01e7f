"""Whether git, run in a directory, could start a program that the repository itself names. Reads files only.

Safe lists say that `git status` or `git diff` runs nothing but git. That holds only where the configuration
of the repository, of its working tree and of its submodules names no program that such a command would run,
and no hook of theirs is there.

Source: git-config(1), gitattributes(5), githooks(5)
"""

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from agentctl.executor.api import GitFacts
from agentctl.executor.git_config import NotAConfig, Setting, read_settings
from agentctl.executor.git_places import common_of, pointed
from agentctl.executor.paths import follow

_MAX_BYTES = 1 << 20
_MAX_INDEX = 256 << 20
_MAX_REPOSITORIES = 100
_RUN_BY_READERS = re.compile(
    r"""
    core\.(?:fsmonitor | pager | alternaterefscommand | editor) | (?:pager | alias)\..+
    | diff\.external | diff\..+\.(?:command | textconv)
    | filter\..+\.(?:clean | smudge | process) | merge\..+\.driver | interactive\.difffilter
    | gpg\.(?:.+\.)?program | include\.path | includeif\..+\.path | trailer\..+\.(?:command | cmd)
    | (?:difftool | mergetool)\..+\.cmd | tar\..+\.command | uploadpack\.packobjectshook
    """,
    re.VERBOSE | re.DOTALL,
)
"""Keys whose value a reading command may run, or which bring in another configuration."""
_RUN_BY_FETCHERS = re.compile(
    r"core\.(?:sshcommand|gitproxy|askpass)|remote\..+\.(?:uploadpack|vcs)|protocol\..+|credential\..*|url\..+",
    re.DOTALL,
)
"""Keys that matter to a reading command where objects are fetched when looked at (a partial clone)."""
_LFS = {"git-lfs clean -- %f", "git-lfs smudge -- %f", "git-lfs filter-process"}
_NO_PROGRAM = {"", "false", "no", "off", "0", "true", "yes", "on", "1", "cat"}
_SIGNATURE = re.compile(r"%[-+ ]?G")
_HOOKS_OF_READERS = ("post-index-change", "reference-transaction")
_GITLINK = b"\x00\x00\xe0\x00"
_NAME_AT = 62
_WITH_LONG_FLAGS = 3


def git_facts(cwd: Path) -> GitFacts:
    """Return what the repository around a directory could make git run. Blocks; total."""
    found = _discover(follow(cwd).path)
    if found is None:
        return GitFacts(repository=None, runs_programs=())
    directory, top = found
    reasons = [*_reasons(directory, top)]
    return GitFacts(repository=directory, runs_programs=tuple(dict.fromkeys(reasons)))


def _discover(start: Path) -> tuple[Path, Path] | None:
    """Return the repository git would find from a directory, and the directory it was found in."""
    for top in (start, *start.parents):
        entry = top / ".git"
        mode = _mode(entry)
        if mode is not None and stat.S_ISREG(mode):
            directory = pointed(entry, top, b"gitdir:")
            return (directory or entry), top
        if mode is not None and _looks_like_repository(entry):
            return follow(entry).path, top
        # Without `.git`, a directory that looks like a repository is taken for a bare one.
        if _looks_like_repository(top):
            return top, top
    return None


def _looks_like_repository(place: Path) -> bool:
    common = common_of(place)
    return (
        _mode(place / "HEAD") is not None
        and _mode(common / "objects") is not None
        and _mode(common / "refs") is not None
    )


def _reasons(directory: Path, top: Path) -> Iterator[str]:
    waiting = [(directory, top)]
    seen: set[Path] = set()
    while waiting:
        here, tree = waiting.pop()
        if here in seen:
            continue
        seen.add(here)
        if len(seen) > _MAX_REPOSITORIES:
            yield f"more than {_MAX_REPOSITORIES} submodules, which were not all looked at"
            return
        yield from _of_one(here, tree, top)
        inner, unsure = _submodules(here, tree)
        waiting += inner
        if unsure:
            yield f"the index of {_shown(here, top)} can't be read, so its submodules are not known"


def _of_one(directory: Path, tree: Path, top: Path) -> Iterator[str]:
    """Yield the reasons of one repository's own files."""
    common = common_of(directory)
    settings: list[tuple[Path, Setting]] = []
    for file in dict.fromkeys((common / "config", directory / "config.worktree", directory / "config")):
        data = _read(file, _MAX_BYTES)
        if data is None:
            if _mode(file) is not None:
                yield f"{_shown(file, top)} can't be read"
            continue
        try:
            settings += [(file, setting) for setting in read_settings(data)]
        except NotAConfig:
            yield f"{_shown(file, top)} is not a configuration that git would accept"
    fetches = any(setting.key.endswith((".promisor", ".partialclone")) for _, setting in settings)
    hooks = [common / "hooks"]
    for file, setting in settings:
        place = _shown(file, top)
        if setting.key == "core.hookspath":
            hooks.append(tree / Path(setting.value).expanduser())
            if _mode(hooks[-1]) is None:
                yield f"the folder of hooks that {place} names, {setting.value[:80]!r}, is not there"
        elif _verifies(setting):
            yield f"{setting.key} in {place} has signatures checked, which runs gpg"
        elif _names_program(setting, fetches=fetches):
            yield f"{setting.key} in {place} names {setting.value[:80]!r}"
    for hook in (place / name for place in hooks for name in _HOOKS_OF_READERS):
        mode = _mode(hook)
        if mode is not None and (stat.S_ISLNK(mode) or mode & 0o111):
            yield f"the hook {_shown(hook, top)} runs when git looks at the working tree"


def _names_program(setting: Setting, *, fetches: bool) -> bool:
    """Whether a reading command may run its value, or take further settings from there."""
    if setting.key.startswith("alias.") and not setting.value.lstrip().startswith("!"):
        return False
    if setting.value.lower() in _NO_PROGRAM or setting.value in _LFS:
        return False
    fetcher = fetches and _RUN_BY_FETCHERS.fullmatch(setting.key)
    return bool(fetcher or _RUN_BY_READERS.fullmatch(setting.key))


def _verifies(setting: Setting) -> bool:
    """Whether `log` and `show` check signatures because of it."""
    if setting.key == "log.showsignature":
        return setting.value.lower() not in {"false", "no", "off", "0"}
    formats = setting.key == "format.pretty" or setting.key.startswith("pretty.")
    return formats and _SIGNATURE.search(setting.value) is not None


def _submodules(directory: Path, tree: Path) -> tuple[list[tuple[Path, Path]], bool]:
    """Return the repositories that git enters from here, and whether some could not be told."""
    file = directory / "index"
    if _mode(file) is None:
        return [], False
    index = _read(file, _MAX_INDEX)
    if index is None or _split(directory):
        return [], True
    if _GITLINK not in index:
        return [], False
    names = _gitlinks(index)
    if names is None:
        return [], True
    found: list[tuple[Path, Path]] = []
    for name in names:
        inner_tree = tree / os.fsdecode(name)
        entry = inner_tree / ".git"
        mode = _mode(entry)
        if mode is not None:
            inner = pointed(entry, inner_tree, b"gitdir:") if stat.S_ISREG(mode) else follow(entry).path
            found.append((inner or entry, inner_tree))
    return found, False


def _split(directory: Path) -> bool:
    """Tell whether a part of the index lies in another file."""
    try:
        return any(name.startswith("sharedindex.") for name in os.listdir(directory))
    except OSError:
        return True


def _gitlinks(index: bytes) -> list[bytes] | None:
    """Return the paths of submodules in an index of version 2 or 3, or None for what can't be read here."""
    version, count = int.from_bytes(index[4:8]), int.from_bytes(index[8:12])
    if index[:4] != b"DIRC" or version not in (2, _WITH_LONG_FLAGS):
        return None
    found: list[bytes] = []
    position = 12
    for _ in range(count):
        flags = int.from_bytes(index[position + 60 : position + 62])
        extended = 2 if version == _WITH_LONG_FLAGS and flags & 0x4000 else 0
        start = position + _NAME_AT + extended
        end = index.find(b"\0", start)
        if end < 0:
            return None
        if index[position + 24 : position + 28] == _GITLINK:
            found.append(index[start:end])
        # Entries are padded with one to eight NULs to a multiple of eight.
        position += (end - position) // 8 * 8 + 8
    return found


def _shown(place: Path, top: Path) -> str:
    return str(place.relative_to(top) if place.is_relative_to(top) else place)


def _mode(place: Path) -> int | None:
    try:
        return os.lstat(place).st_mode
    except OSError:
        return None


def _read(place: Path, limit: int) -> bytes | None:
    try:
        # SAFETY: a repository's own file, only read; a pipe in its place is not waited for.
        held = os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        found = os.fstat(held)
        if not stat.S_ISREG(found.st_mode) or found.st_size > limit:
            return None
        data = b""
        while piece := os.read(held, 1 << 20):
            data += piece
    except OSError:
        return None
    else:
        return data
    finally:
        os.close(held)
