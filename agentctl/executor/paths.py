"""Where a path leads, and how to open exactly that: links resolved once, then never followed again.

Containment compares components. The roots of a run are pinned by an open descriptor, so that a workdir that
was moved, removed or replaced is noticed, and every open walks down from there one component at a time.
"""

import errno
import os
import re
import stat
import sys
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from agentctl.errors import ToolError
from agentctl.executor.file_types import PathKind, ResolvedPath, Roots
from agentctl.executor.identity import Identity, identity

_MAX_LINKS = 40
_MAX_TEXT = 4096
# Control characters, line and paragraph ends, halves of characters, and marks that turn text round.
_UNFIT = re.compile("[\0-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\u202a-\u202e\u2066-\u2069]")
_UTF8_NAMES = sys.getfilesystemencoding() == "utf-8"
_PATH_ONLY = getattr(os, "O_PATH", os.O_RDONLY)
_DIRECTORY = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | _PATH_ONLY


@dataclass(frozen=True, slots=True)
class _Led:
    path: Path
    kind: PathKind
    through_link: bool


def check_text(text: str) -> None:
    """Refuse text that can't be a path or that would read differently than it looks.

    Raises:
        ToolError: empty, too long, with control characters or lone surrogates.
    """
    if not text or not text.strip():
        raise ToolError("The path is empty; give a path relative to the working directory.")
    if len(text) > _MAX_TEXT:
        raise ToolError(f"The path has {len(text)} characters; at most {_MAX_TEXT} are possible.")
    unfit = _UNFIT.search(text)
    if unfit is not None:
        raise ToolError(
            f"The path {text!r} contains the character U+{ord(unfit[0]):04X}; a path has none such."
        )


def absolute_text(text: str, *, workdir: Path, home: Path) -> Path:
    """Return the absolute path a text means, `..` and links still in it. `~` and `~/` are home. Pure."""
    # File names are UTF-8 whatever the locale says.
    text = os.fsdecode(text.encode("utf-8"))
    if text == "~" or text.startswith("~/"):
        return home / text[2:]
    return workdir / text


def follow(path: Path) -> _Led:
    """Return where an absolute path leads as the kernel would walk it; a missing rest is kept as written.

    Raises:
        ToolError: a loop of links.
    """
    done: list[str] = []
    todo = list(reversed(path.parts[1:]))
    links = 0
    kind = PathKind.DIRECTORY
    while todo:
        part = todo.pop()
        if part == "..":
            done = done[:-1]
            kind = PathKind.DIRECTORY
            continue
        if kind is PathKind.MISSING:
            done.append(part)
            continue
        here = "/" + "/".join([*done, part])
        kind, target = _look(here)
        if target is None:
            done.append(part)
            continue
        links += 1
        if links > _MAX_LINKS:
            raise ToolError(f"{str(path)!r} leads in a loop of symbolic links.")
        if target.startswith("/"):
            done = []
        todo.extend(piece for piece in reversed(target.split("/")) if piece not in {"", "."})
        kind = PathKind.DIRECTORY
    return _Led(Path("/", *done), kind, links > 0)


def _look(path: str) -> tuple[PathKind, str | None]:
    """Return what stands at a path and, for a symbolic link, where it points."""
    try:
        found = os.lstat(path)
        if stat.S_ISLNK(found.st_mode):
            return PathKind.OTHER, os.readlink(path)
    except OSError:
        # Nothing there, a file where a directory was expected, or a directory we may not enter: in each case
        # no link can lead on from here, and a later open fails by itself.
        return PathKind.MISSING, None
    return kind_of(found.st_mode), None


def name_text(name: str) -> str:
    """Return a name from the system as UTF-8 text, other bytes as surrogates, in any locale. Pure."""
    return name if _UTF8_NAMES else os.fsencode(name).decode("utf-8", "surrogateescape")


def shown_name(name: bytes) -> str:
    r"""Return a file name for a model: bytes that are no UTF-8 as `\xNN`. Pure, total."""
    return name.decode("utf-8", "backslashreplace")


def kind_of(mode: int) -> PathKind:
    """Return the kind of a `st_mode`. Pure."""
    if stat.S_ISREG(mode):
        return PathKind.FILE
    if stat.S_ISDIR(mode):
        return PathKind.DIRECTORY
    return PathKind.OTHER


class RootPins:
    """The roots of runs, known by what they are: nobody can put others in their place. Thread-safe."""

    def __init__(self) -> None:
        self._pins: dict[Path, tuple[Path, Identity]] = {}
        self._by_place: dict[Path, Path] = {}
        self._lock = Lock()

    def resolved(self, root: Path) -> Path:
        """Return a root with its links resolved, pinned at first use.

        Raises:
            ToolError: it is not there any more, or another directory stands in its place.
        """
        pin = self._pins.get(root) or self._pin(root)
        if pin is None:
            return follow(root).path
        place, was = pin
        now = identity(root)
        if now is None:
            raise ToolError(
                f"The directory {str(root)!r} is gone; it was moved or removed after the run began. "
                "Nothing was done."
            )
        if now != was:
            raise ToolError(
                f"The directory {str(root)!r} was replaced by another after the run began. Nothing was done."
            )
        return place

    def _pin(self, root: Path) -> tuple[Path, Identity] | None:
        place = follow(root).path
        found = identity(place)
        if found is None:
            # A granted read path or a temp folder that is not there yet: nothing to know it by.
            return None
        with self._lock:
            pin = self._pins.setdefault(root, (place, found))
            self._by_place.setdefault(pin[0], root)
        return pin

    def check(self, place: Path) -> None:
        """Notice that a root, given as it was resolved, is not the one that was pinned.

        Raises:
            ToolError: as `resolved`.
        """
        root = self._by_place.get(place)
        if root is not None:
            self.resolved(root)


def resolve(text: str, roots: Roots, pins: RootPins) -> ResolvedPath:
    """Return where a text that a model wrote leads.

    Raises:
        ToolError: as `Files.resolve`.
    """
    check_text(text)
    workdir = pins.resolved(roots.workdir)
    led = follow(absolute_text(text, workdir=workdir, home=roots.home))
    writable = (workdir, pins.resolved(roots.temp))
    root = next((place for place in writable if led.path.is_relative_to(place)), None)
    inside = root is not None
    if root is None:
        granted = (pins.resolved(place) for place in roots.read_paths)
        root = next((place for place in granted if led.path.is_relative_to(place)), None)
    shown = led.path.relative_to(workdir) if led.path.is_relative_to(workdir) else led.path
    return ResolvedPath(
        path=led.path,
        shown=shown_name(os.fsencode(shown)),
        kind=led.kind,
        inside=inside,
        readable=root is not None,
        root=root or Path("/"),
        through_link=led.through_link,
    )


def open_directory(path: Path, *, root: Path) -> int:
    """Return a descriptor of a resolved directory, reached from its root without following any link.

    Raises:
        OSError: something on the way is missing, a link, or no directory.
    """
    # SAFETY: the root is pinned and resolved; below it each component is opened by itself with O_NOFOLLOW.
    held = os.open(root, _DIRECTORY)
    try:
        for part in path.relative_to(root).parts:
            # SAFETY: as above; `held` is the directory this component was judged in.
            below = os.open(part, _DIRECTORY, dir_fd=held)
            os.close(held)
            held = below
        _check_place(held, path)
    except BaseException:
        os.close(held)
        raise
    return held


def open_file(path: Path, *, root: Path, flags: int = os.O_RDONLY) -> int:
    """Return a descriptor of a resolved regular file; pipes, sockets and devices are refused unopened.

    Raises:
        OSError: missing, a link by now, no regular file (EINVAL), or not permitted.
    """
    parent = open_directory(path.parent, root=root if root != path else path.parent)
    try:
        found = os.stat(path.name, dir_fd=parent, follow_symlinks=False)
        _check_regular(found.st_mode, path)
        # SAFETY: O_NOFOLLOW keeps a link swapped in from leading out, O_NONBLOCK keeps a pipe swapped in from
        # holding us; what was opened is looked at again below.
        opened = os.open(
            path.name, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC, dir_fd=parent
        )
    finally:
        os.close(parent)
    try:
        _check_regular(os.fstat(opened).st_mode, path)
        _check_place(opened, path)
    except BaseException:
        os.close(opened)
        raise
    return opened


def _check_regular(mode: int, path: Path) -> None:
    if stat.S_ISLNK(mode):
        raise OSError(errno.ELOOP, "it became a symbolic link after it was judged", str(path))
    if stat.S_ISDIR(mode):
        raise OSError(errno.EISDIR, "is a directory", str(path))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "not a regular file", str(path))


def _check_place(held: int, path: Path) -> None:
    """Notice a directory that was moved away between two steps of the walk, where the system can tell."""
    try:
        # SAFETY: our own descriptor's name in /proc; read, not opened.
        place = os.readlink(f"/proc/self/fd/{held}")
    except OSError:
        return
    if place not in (str(path), f"{path} (deleted)"):
        raise OSError(errno.ESTALE, "it was moved while it was being opened", str(path))


def explain(error: OSError, path: ResolvedPath) -> ToolError:
    """Return what a failed open or read means, for the model. Pure."""
    name = path.shown
    match error.errno:
        case errno.ENOENT:
            return ToolError(f"{name!r} does not exist.")
        case errno.EISDIR:
            return ToolError(f"{name!r} is a directory; use list_dir.")
        case errno.ENOTDIR:
            return ToolError(f"{name!r}: a part of the path is not a directory.")
        case errno.EACCES | errno.EPERM:
            return ToolError(f"{name!r}: permission denied by the operating system.")
        case errno.ENOSPC | errno.EDQUOT:
            return ToolError(f"{name!r}: no space left on the disk; nothing was changed.")
        case _:
            return ToolError(f"{name!r}: {error.strerror or error}.")
