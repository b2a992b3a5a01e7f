"""What git executes, compared before and after a sandboxed command, and put back where it was changed."""

import os
import shutil
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from agentctl.executor.git_places import GitPlaces

_NAMES = ("config", "config.worktree", "commondir", "hooks")
_MOST_BYTES = 1 << 20
_MOST_HOOKS = 200


@dataclass(frozen=True, slots=True)
class _Kept:
    """One file or directory as it stood. None as the content: it was not there."""

    place: Path
    content: bytes | None
    mode: int
    names: tuple[str, ...] | None = None
    """Of a directory."""


class GitGuard:
    """A repository's hooks and configuration, remembered. Blocks."""

    def __init__(self, git: GitPlaces, workdir: Path) -> None:
        self._directory = git.directory
        self._identity = _identity(git.directory)
        self._workdir = workdir
        self._kept: list[_Kept] = []
        for directory in dict.fromkeys((git.directory, git.common)):
            for name in _NAMES:
                self._remember(directory / name)

    def _remember(self, place: Path) -> None:
        if _mode(place) is not None and stat.S_ISDIR(_mode(place) or 0):
            with suppress(OSError):
                names = tuple(sorted(os.listdir(place)))[:_MOST_HOOKS]
                self._kept.append(_Kept(place, b"", stat.S_IMODE(_mode(place) or 0), names))
                for name in names:
                    self._remember_file(place / name)
            return
        self._remember_file(place)

    def _remember_file(self, place: Path) -> None:
        mode = _mode(place)
        content = _read(place) if mode is not None else None
        if mode is None or content is not None:
            self._kept.append(_Kept(place, content, stat.S_IMODE(mode or 0)))

    def put_back(self) -> tuple[str, ...]:
        """Undo every change; return what had been changed, relative to the workdir where inside."""
        changed: list[str] = []
        if _identity(self._directory) != self._identity:
            changed.append(self._shown(self._directory))
            if not self._bring_back():
                return tuple(changed)
        for kept in self._kept:
            if kept.names is not None:
                changed += self._remove_new(kept)
            elif self._restore(kept):
                changed.append(self._shown(kept.place))
        return tuple(changed)

    def _bring_back(self) -> bool:
        """Put the repository back in its place, if it was only renamed; what stands there is put aside."""
        try:
            with os.scandir(self._workdir) as entries:
                moved = [entry.path for entry in entries if _identity(Path(entry.path)) == self._identity]
            if not moved or self._directory.parent != self._workdir:
                return False
            if _mode(self._directory) is not None:
                os.rename(self._directory, self._workdir / f".git-put-aside-{os.urandom(4).hex()}")
            os.rename(moved[0], self._directory)
        except OSError:
            return False
        return True

    def _remove_new(self, kept: _Kept) -> list[str]:
        try:
            names = sorted(os.listdir(kept.place))
        except OSError:
            return []
        new = [name for name in names if name not in (kept.names or ())]
        for name in new:
            _remove(kept.place / name)
        return [self._shown(kept.place / name) for name in new]

    def _restore(self, kept: _Kept) -> bool:
        mode = _mode(kept.place)
        if kept.content is None:
            if mode is None:
                return False
            _remove(kept.place)
            return True
        same = mode is not None and stat.S_ISREG(mode) and stat.S_IMODE(mode) == kept.mode
        if same and _read(kept.place) == kept.content:
            return False
        _remove(kept.place)
        with suppress(OSError):
            os.makedirs(kept.place.parent, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            # SAFETY: a file of the repository that stood there before, made anew; nothing is opened.
            held = os.open(kept.place, flags, kept.mode)
            try:
                os.fchmod(held, kept.mode)
                os.write(held, kept.content)
            finally:
                os.close(held)
        return True

    def _shown(self, place: Path) -> str:
        return str(place.relative_to(self._workdir) if place.is_relative_to(self._workdir) else place)


def _mode(place: Path) -> int | None:
    try:
        return os.lstat(place).st_mode
    except OSError:
        return None


def _identity(place: Path) -> tuple[int, int] | None:
    try:
        found = os.lstat(place)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _read(place: Path) -> bytes | None:
    try:
        # SAFETY: a repository's own file; a link or pipe in its place is neither followed nor waited for.
        held = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
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


def _remove(place: Path) -> None:
    mode = _mode(place)
    if mode is None:
        return
    with suppress(OSError):
        if stat.S_ISDIR(mode):
            shutil.rmtree(place)
        else:
            os.unlink(place)
