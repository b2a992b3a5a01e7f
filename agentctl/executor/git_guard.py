"""What runs outside a sandbox, compared before and after a sandboxed command, and put back where it changed.

That is what git executes, and the files that a run must keep. A command may leave links behind that lead
anywhere, so what is put back is reached from its root one component at a time, and no link is followed.
"""

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from agentctl.executor.git_places import GitPlaces

_NAMES = ("config", "config.worktree", "commondir", "hooks")
_MOST_BYTES = 1 << 20
_MOST_HOOKS = 200
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class _Kept:
    """One file or directory as it stood. None as the content: it was not there."""

    place: Path
    root: Path
    """Above it, and nothing that a command could have put a link in place of."""
    content: bytes | None
    mode: int
    names: tuple[str, ...] | None = None
    """Of a directory."""


class GitGuard:
    """A repository's hooks and configuration, and other files to keep, remembered. Blocks."""

    def __init__(self, git: GitPlaces | None, workdir: Path, own: tuple[Path, ...] = ()) -> None:
        self._git = git
        self._identity = _identity(git.directory) if git else None
        self._workdir = workdir
        self._kept: list[_Kept] = []
        for directory in dict.fromkeys((git.directory, git.common, *git.modules)) if git else ():
            for name in _NAMES:
                self._remember(directory / name)
        for place in own:
            self._remember_file(place)

    def _remember(self, place: Path) -> None:
        mode = _mode(place)
        if mode is not None and stat.S_ISDIR(mode):
            with suppress(OSError):
                names = tuple(sorted(os.listdir(place)))[:_MOST_HOOKS]
                self._kept.append(_Kept(place, self._root_of(place), b"", stat.S_IMODE(mode), names))
                for name in names:
                    self._remember_file(place / name)
            return
        self._remember_file(place)

    def _remember_file(self, place: Path) -> None:
        mode = _mode(place)
        content = _read(place) if mode is not None else None
        if mode is None or content is not None:
            self._kept.append(_Kept(place, self._root_of(place), content, stat.S_IMODE(mode or 0)))

    def _root_of(self, place: Path) -> Path:
        roots = [self._workdir, *((self._git.common, self._git.directory) if self._git else ())]
        return next((root for root in roots if place.is_relative_to(root)), place.parent)

    def put_back(self) -> tuple[str, ...]:
        """Undo every change; return what had been changed, relative to the workdir where inside."""
        changed: list[str] = []
        if self._git is not None and _identity(self._git.directory) != self._identity:
            changed.append(self._shown(self._git.directory))
            if not self._bring_back(self._git.directory, self._identity):
                return tuple(changed)
        for kept in self._kept:
            # SAFETY: the directory is reached without following a link; all below acts on its descriptor.
            with suppress(OSError), _directory(kept.place.parent, kept.root) as parent:
                if kept.names is not None:
                    changed += [self._shown(place) for place in _restore_directory(kept, parent)]
                elif _restore_file(kept, parent):
                    changed.append(self._shown(kept.place))
        return tuple(changed)

    def _bring_back(self, directory: Path, was: tuple[int, int] | None) -> bool:
        """Put the repository back in its place, if it was only renamed; what stands there is put aside."""
        try:
            with os.scandir(self._workdir) as entries:
                moved = [entry.path for entry in entries if _identity(Path(entry.path)) == was]
            if not moved or directory.parent != self._workdir:
                return False
            if _mode(directory) is not None:
                os.rename(directory, self._workdir / f".git-put-aside-{os.urandom(4).hex()}")
            os.rename(moved[0], directory)
        except OSError:
            return False
        return True

    def _shown(self, place: Path) -> str:
        return str(place.relative_to(self._workdir) if place.is_relative_to(self._workdir) else place)


@contextmanager
def _directory(place: Path, root: Path) -> Iterator[int]:
    """Give a descriptor of a directory below `root`; what stands in the way is removed and made anew.

    Raises:
        OSError: the root is gone, or something can't be removed or made.
    """
    held = os.open(root, _DIRECTORY)
    try:
        for part in place.relative_to(root).parts:
            below = _entered(part, held)
            os.close(held)
            held = below
        yield held
    finally:
        os.close(held)


def _entered(name: str, parent: int) -> int:
    mode = _mode_in(name, parent)
    if mode is None or not stat.S_ISDIR(mode):
        _remove(name, parent)
        os.mkdir(name, dir_fd=parent)
    return os.open(name, _DIRECTORY, dir_fd=parent)


def _restore_directory(kept: _Kept, parent: int) -> Iterator[Path]:
    """Yield what had been changed: the directory itself, and what is new in it."""
    name = kept.place.name
    mode = _mode_in(name, parent)
    if mode is None or not stat.S_ISDIR(mode):
        yield kept.place
    held = _entered(name, parent)
    try:
        new = [found for found in sorted(os.listdir(held)) if found not in (kept.names or ())]
        for found in new:
            _remove(found, held)
            yield kept.place / found
    finally:
        os.close(held)


def _restore_file(kept: _Kept, parent: int) -> bool:
    name = kept.place.name
    mode = _mode_in(name, parent)
    if kept.content is None:
        _remove(name, parent)
        return mode is not None
    same = mode is not None and stat.S_ISREG(mode) and stat.S_IMODE(mode) == kept.mode
    if same and _read(name, parent) == kept.content:
        return False
    _remove(name, parent)
    with suppress(OSError):
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        # SAFETY: a file that stood there before, made anew in a directory reached without links.
        held = os.open(name, flags, kept.mode, dir_fd=parent)
        try:
            os.fchmod(held, kept.mode)
            os.write(held, kept.content)
        finally:
            os.close(held)
    return True


def _mode(place: Path) -> int | None:
    try:
        return os.lstat(place).st_mode
    except OSError:
        return None


def _identity(place: Path) -> tuple[int, int] | None:
    """Return what stands at a path itself: a link to the same directory is another thing."""
    try:
        found = os.lstat(place)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _mode_in(name: str, parent: int) -> int | None:
    try:
        return os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode
    except OSError:
        return None


def _read(place: Path | str, parent: int | None = None) -> bytes | None:
    try:
        # SAFETY: a file to keep; a link or pipe in its place is neither followed nor waited for.
        held = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent)
    except OSError:
        return None
    try:
        found = os.fstat(held)
        if not stat.S_ISREG(found.st_mode) or found.st_size > _MOST_BYTES:
            return None
        return os.read(held, _MOST_BYTES)
    except OSError:
        return None
    finally:
        os.close(held)


def _remove(name: str, parent: int) -> None:
    mode = _mode_in(name, parent)
    if mode is None:
        return
    with suppress(OSError):
        if stat.S_ISDIR(mode):
            shutil.rmtree(name, dir_fd=parent)
        else:
            os.unlink(name, dir_fd=parent)
