"""Names under a directory, met in order, one directory open at a time, links never entered."""

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from agentctl.errors import ToolError
from agentctl.executor.file_types import Entry, GlobRequest, Listing, PathKind, ResolvedPath
from agentctl.executor.glob_pattern import GlobPattern, compile_glob
from agentctl.executor.ignore import IgnoreRule, is_ignored, parse_ignore
from agentctl.executor.pages import require_readable
from agentctl.executor.paths import explain, kind_of, name_text, open_directory, open_file, shown_name

MAX_NAMES = 200_000
"""Names taken from one directory; a larger one is listed in part, and says so."""
_MAX_DEPTH = 256


@dataclass(frozen=True, slots=True)
class Found:
    """A name met on a walk."""

    relative: str
    """To the base, `/` between parts; undecodable bytes as surrogates, as the system calls want them."""
    status: os.stat_result
    link_to: str = ""

    @property
    def kind(self) -> PathKind:
        """What it is; a link is OTHER."""
        return kind_of(self.status.st_mode)


@dataclass(frozen=True, slots=True)
class _Directory:
    relative: str
    """Empty for the base, else ending in `/`."""
    rules: tuple[tuple[str, tuple[IgnoreRule, ...]], ...]
    depth: int


class Walk:
    """One walk under a base directory. `cut`: a directory was too large or too deep to take whole."""

    def __init__(self, base: ResolvedPath, *, ignored: bool, checkpoint: Callable[[], None]) -> None:
        self.cut = False
        self._base = base
        self._ignored = ignored
        self._checkpoint = checkpoint
        below_root = base.path.relative_to(base.root).parts
        self._prefix = "".join(f"{part}/" for part in below_root)

    def names(self, enter: Callable[[Found], bool]) -> Iterator[Found]:
        """Yield every name, a directory before what is in it; `enter` says whether to go into a directory.

        Raises:
            ToolError: the base itself can't be opened; a directory below that can't be is passed over.
        """
        waiting = [_Directory("", self._outer_rules(), 0)]
        while waiting:
            self._checkpoint()
            directory = waiting.pop()
            inner: list[_Directory] = []
            rules, found = self._open(directory)
            for entry in found:
                is_directory = entry.kind is PathKind.DIRECTORY
                if rules and is_ignored(
                    name_text(self._prefix + entry.relative), rules, directory=is_directory
                ):
                    continue
                yield entry
                if is_directory and enter(entry):
                    inner.append(_Directory(f"{entry.relative}/", rules, directory.depth + 1))
            if directory.depth >= _MAX_DEPTH:
                self.cut = self.cut or bool(inner)
                continue
            waiting.extend(reversed(inner))

    def _open(
        self, directory: _Directory
    ) -> tuple[tuple[tuple[str, tuple[IgnoreRule, ...]], ...], list[Found]]:
        place = self._base.path / directory.relative
        try:
            held = open_directory(place, root=self._base.root)
        except OSError as error:
            if directory.relative:
                return directory.rules, []
            raise explain(error, self._base) from error
        try:
            rules = directory.rules
            if not self._ignored and (own := _ignore_file(held)):
                rules = (*rules, (name_text(self._prefix + directory.relative), own))
            return rules, self._read(held, directory.relative)
        finally:
            os.close(held)

    def _read(self, held: int, relative: str) -> list[Found]:
        names: list[str] = []
        try:
            # SAFETY: opened for reading through the descriptor that was walked to without links.
            readable = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=held)
        except PermissionError as error:
            if relative:
                return []
            raise explain(error, self._base) from error
        try:
            with os.scandir(readable) as entries:
                for entry in entries:
                    if len(names) == MAX_NAMES:
                        self.cut = True
                        break
                    names.append(entry.name)
        except OSError:
            self.cut = True
        finally:
            os.close(readable)
        names.sort()
        found = (_look(held, name, f"{relative}{name}") for name in names)
        return [entry for entry in found if entry is not None]

    def _outer_rules(self) -> tuple[tuple[str, tuple[IgnoreRule, ...]], ...]:
        """Return the rules of the directories between the root and the base."""
        if self._ignored:
            return ()
        rules: list[tuple[str, tuple[IgnoreRule, ...]]] = []
        prefix = ""
        for part in self._prefix.split("/")[:-1]:
            try:
                held = open_directory(self._base.root / prefix, root=self._base.root)
            except OSError:
                break
            try:
                if own := _ignore_file(held):
                    rules.append((name_text(prefix), own))
            finally:
                os.close(held)
            prefix += f"{part}/"
        return tuple(rules)


def _look(held: int, name: str, relative: str) -> Found | None:
    try:
        status = os.stat(name, dir_fd=held, follow_symlinks=False)
        target = os.readlink(name, dir_fd=held) if stat.S_ISLNK(status.st_mode) else ""
    except OSError:
        return None
    return Found(relative, status, target)


def _ignore_file(directory: int) -> tuple[IgnoreRule, ...]:
    try:
        # SAFETY: a fixed name in a directory that was walked to without links; a link there is not followed,
        # as in git itself.
        held = os.open(
            ".gitignore", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory
        )
    except OSError:
        return ()
    try:
        if not stat.S_ISREG(os.fstat(held).st_mode):
            return ()
        return parse_ignore(os.read(held, 1 << 20))
    finally:
        os.close(held)


def list_dir(path: ResolvedPath, *, depth: int, limit: int, checkpoint: Callable[[], None]) -> Listing:
    """Return names as `Files.list_dir` says. Blocks."""
    require_readable(path)
    _require_directory(path)
    walk = Walk(path, ignored=True, checkpoint=checkpoint)

    def enter(found: Found) -> bool:
        return found.relative.count("/") + 1 < depth and found.relative.rpartition("/")[2] != ".git"

    entries: list[Entry] = []
    for found in walk.names(enter):
        if len(entries) == limit:
            return _listing(entries, more=True)
        entries.append(_entry(found))
    return _listing(entries, more=walk.cut)


def glob(base: ResolvedPath, request: GlobRequest, checkpoint: Callable[[], None]) -> Listing:
    """Return names as `Files.glob` says. Blocks."""
    require_readable(base)
    _require_directory(base)
    pattern = compile_glob(request.pattern)
    walk = Walk(base, ignored=request.ignored, checkpoint=checkpoint)
    states = {"": pattern.start}

    def enter(found: Found) -> bool:
        reached = _advance(pattern, states, found.relative)
        if _passed_over(found.relative, pattern, hidden=request.hidden) or not pattern.open(reached):
            return False
        states[f"{found.relative}/"] = reached
        return True

    entries: list[Entry] = []
    for found in walk.names(enter):
        if _passed_over(found.relative, pattern, hidden=request.hidden):
            continue
        wanted = PathKind.DIRECTORY if pattern.directories else PathKind.FILE
        if found.kind is not wanted and not (found.link_to and not pattern.directories):
            continue
        if pattern.matches(_advance(pattern, states, found.relative)):
            if len(entries) == request.limit:
                return _listing(entries, more=True)
            entries.append(_entry(found))
    return _listing(entries, more=walk.cut)


def _listing(entries: list[Entry], *, more: bool) -> Listing:
    return Listing(entries=tuple(sorted(entries, key=lambda entry: entry.name.split("/"))), more=more)


def _advance(pattern: GlobPattern, states: dict[str, frozenset[int]], relative: str) -> frozenset[int]:
    parent, slash, name = relative.rpartition("/")
    return pattern.advance(states[parent + slash], name_text(name))


def _passed_over(relative: str, pattern: GlobPattern, *, hidden: bool) -> bool:
    name = relative.rpartition("/")[2]
    if name == ".git":
        return not pattern.names(".git")
    return not hidden and name.startswith(".") and not pattern.names(name)


def _entry(found: Found) -> Entry:
    return Entry(
        name=shown_name(os.fsencode(found.relative)),
        kind=found.kind,
        size_bytes=found.status.st_size,
        link_to=shown_name(os.fsencode(found.link_to)),
    )


def _require_directory(path: ResolvedPath) -> None:
    match path.kind:
        case PathKind.DIRECTORY:
            return
        case PathKind.MISSING:
            raise ToolError(f"{path.shown!r} does not exist.")
        case PathKind.FILE | PathKind.OTHER:
            raise ToolError(f"{path.shown!r} is not a directory; use read_file.")


def open_found(base: ResolvedPath, relative: str) -> int:
    """Return a descriptor of a regular file met on a walk.

    Raises:
        OSError: it is a link or something else by now.
    """
    return open_file(base.path / Path(relative), root=base.root)
