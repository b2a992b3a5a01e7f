"""Writes in two steps: planned so that they can be shown and judged, then made as judged."""

import errno
import hashlib
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Lock

from agentctl.errors import ToolError
from agentctl.executor.diff import unified_diff
from agentctl.executor.edits import edit_bytes, whole_text_bytes
from agentctl.executor.file_types import (
    Edit,
    FileIdentity,
    PathKind,
    PlannedWrite,
    ResolvedPath,
    WriteMode,
    Written,
)
from agentctl.executor.pages import read_open
from agentctl.executor.paths import explain, open_directory, open_file
from agentctl.executor.replace import flush_directory, staged
from agentctl.executor.walk import Walk

MAX_FILE = 64 << 20
"""Largest file that is edited or overwritten; a larger one is a shell command's matter."""
_STRIPES = 64


def plan_write(path: ResolvedPath, text: str, mode: WriteMode) -> PlannedWrite:
    """Return what writing a whole file would do, as `Files.plan_write` says. Blocks."""
    _require_writable(path)
    current = None if path.kind is PathKind.MISSING else _current(path)
    if current is not None and mode is WriteMode.CREATE:
        raise ToolError(
            f"{path.shown!r} exists already ({len(current[0])} bytes) and was not changed. Read it, then use "
            "edit_file, or say that it shall be overwritten."
        )
    old = None if current is None else current[0]
    if mode is WriteMode.APPEND and old is not None:
        addition, notes = whole_text_bytes(text, old)
        mark = len(addition) - len(addition.removeprefix(_mark(old)))
        data = old + addition[mark:]
    else:
        data, notes = whole_text_bytes(text, old)
    return PlannedWrite(
        path=path,
        new_bytes=data,
        diff=unified_diff(old, data, name=path.shown),
        old=None if current is None else current[1],
        also=() if current is None else current[2],
        mode=mode,
        counted_bytes=len(data) - len(old or b"") if mode is WriteMode.APPEND else len(data),
        notes=notes,
    )


def plan_edit(path: ResolvedPath, edits: tuple[Edit, ...]) -> PlannedWrite:
    """Return what edits would do, as `Files.plan_edit` says. Blocks."""
    _require_writable(path)
    if path.kind is PathKind.MISSING:
        raise ToolError(f"{path.shown!r} does not exist; use write_file to make it.")
    old, identity, also = _current(path)
    edited = edit_bytes(old, edits, name=path.shown)
    return PlannedWrite(
        path=path,
        new_bytes=edited.new_bytes,
        diff=unified_diff(old, edited.new_bytes, name=path.shown),
        old=identity,
        also=also,
        edits=edits,
        counted_bytes=max(0, len(edited.new_bytes) - len(old)),
        replacements=edited.replacements,
    )


class Writer:
    """Makes planned writes, one at a time for each path. Thread-safe; blocks."""

    def __init__(self) -> None:
        self._locks = tuple(Lock() for _ in range(_STRIPES))

    def apply(self, planned: PlannedWrite, checkpoint: Callable[[], None]) -> Written:
        """Make a planned write, as `Files.apply_write` says."""
        _require_inside(planned.path)
        with self._locks[hash(planned.path.path) % _STRIPES]:
            try:
                if planned.old is None:
                    return _make(planned)
                return _replace(planned, checkpoint)
            except OSError as error:
                raise explain(error, planned.path) from error


def _make(planned: PlannedWrite) -> Written:
    path = planned.path
    directory, made = _open_or_make_directory(path)
    placed = False
    try:
        with staged(directory, planned.new_bytes, like=None) as file:
            file.place_new(directory, path.path.name)
        placed = True
        flush_directory(directory)
    except FileExistsError as error:
        raise ToolError(
            f"{path.shown!r} was made by something else after this call was judged; nothing was changed. "
            "Read it and call again."
        ) from error
    finally:
        os.close(directory)
        if not placed:
            _remove_made(path, made)
    return Written(
        counted_bytes=len(planned.new_bytes),
        files=1,
        size_bytes=len(planned.new_bytes),
        created=True,
        made_directories=tuple(made),
    )


def _replace(planned: PlannedWrite, checkpoint: Callable[[], None]) -> Written:
    path = planned.path
    directory = open_directory(path.path.parent, root=path.root)
    try:
        held = open_file(path.path, root=path.root)
        try:
            before = os.fstat(held)
            fitted = _fitted(planned, read_open(held, path, MAX_FILE))
            _require_permitted(directory, path)
            others = _other_links(path, before, checkpoint)
            if not set(others) <= set(planned.also):
                raise _changed(path)  # it got a name that nobody judged
            with staged(directory, fitted.new_bytes, like=held) as file:
                now = os.stat(path.path.name, dir_fd=directory, follow_symlinks=False)
                if _content_key(now) != _content_key(before):
                    raise _changed(path)
                file.place_over(directory, path.path.name)
                for other in others:
                    beside = open_directory(other.parent, root=path.root)
                    try:
                        file.place_over(beside, other.name)
                    finally:
                        os.close(beside)
            flush_directory(directory)
        finally:
            os.close(held)
    finally:
        os.close(directory)
    return Written(
        counted_bytes=fitted.counted_bytes, files=1, size_bytes=len(fitted.new_bytes), created=False
    )


def _fitted(planned: PlannedWrite, current: bytes) -> PlannedWrite:
    """Return the plan for what the file holds now.

    Raises:
        ToolError: it changed since, in a way that what was judged no longer fits.
    """
    old = planned.old
    if old is not None and old.sha256 == _digest(current):
        return planned
    if planned.edits:
        edited = edit_bytes(current, planned.edits, name=planned.path.shown)
        growth = max(0, len(edited.new_bytes) - len(current))
        return replace(planned, new_bytes=edited.new_bytes, counted_bytes=growth)
    if planned.mode is WriteMode.APPEND and old is not None:
        return replace(planned, new_bytes=current + planned.new_bytes[old.size_bytes :])
    raise _changed(planned.path)


def _changed(path: ResolvedPath) -> ToolError:
    return ToolError(
        f"{path.shown!r} changed on disk after this call was judged; nothing was written. "
        "Read it and call again."
    )


def _current(path: ResolvedPath) -> tuple[bytes, FileIdentity, tuple[Path, ...]]:
    """Return what a file holds, what it is, and its other names, which a write of it writes too."""
    try:
        held = open_file(path.path, root=path.root)
    except OSError as error:
        raise explain(error, path) from error
    try:
        status = os.fstat(held)
        data = read_open(held, path, MAX_FILE)
    finally:
        os.close(held)
    identity = FileIdentity(
        device=status.st_dev, inode=status.st_ino, size_bytes=len(data), sha256=_digest(data)
    )
    return data, identity, tuple(_other_links(path, status, lambda: None))


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _content_key(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _mark(old: bytes) -> bytes:
    data, _ = whole_text_bytes("", old)
    return data


def _require_inside(path: ResolvedPath) -> None:
    if not path.inside:
        raise ToolError(f"{path.shown!r} is outside the working directory; files are written inside it only.")


def _require_writable(path: ResolvedPath) -> None:
    _require_inside(path)
    match path.kind:
        case PathKind.FILE | PathKind.MISSING:
            return
        case PathKind.DIRECTORY:
            raise ToolError(f"{path.shown!r} is a directory.")
        case PathKind.OTHER:
            raise ToolError(f"{path.shown!r} is not a regular file.")


def _require_permitted(directory: int, path: ResolvedPath) -> None:
    """Refuse a file that this user may not write: taking its name needs a right on the directory only.

    One that nobody may write was put out of reach on purpose, and is out of the superuser's as well.
    """
    mode = os.stat(path.path.name, dir_fd=directory, follow_symlinks=False).st_mode
    if not mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH):
        raise ToolError(
            f"{path.shown!r} is read-only (mode {stat.S_IMODE(mode):04o}) and was not changed. If it is "
            "to be written, its mode has to be changed first."
        )
    flags = os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        # SAFETY: the judged name in its judged directory, no link followed, nothing written through it.
        os.close(os.open(path.path.name, flags, dir_fd=directory))
    except OSError as error:
        # A program that is running can be replaced though it can't be written.
        if error.errno != errno.ETXTBSY:
            raise


def _other_links(path: ResolvedPath, status: os.stat_result, checkpoint: Callable[[], None]) -> list[Path]:
    """Return the file's other names, which are to stay the same file.

    Raises:
        ToolError: some are outside the workdir, where nothing may be changed.
    """
    if status.st_nlink == 1:
        return []
    base = replace(path, path=path.root, kind=PathKind.DIRECTORY, readable=True)
    walk = Walk(base, ignored=True, checkpoint=checkpoint)
    same = (status.st_dev, status.st_ino)
    names = [
        path.root / found.relative
        for found in walk.names(lambda _: True)
        if (found.status.st_dev, found.status.st_ino) == same
    ]
    if len(names) != status.st_nlink:
        outside = status.st_nlink - len(names)
        raise ToolError(
            f"{path.shown!r} has {outside} more name(s) outside the working directory (hard links); writing "
            "it would change or cut those, so nothing was changed. Copy it first to cut the link."
        )
    return [name for name in names if name != path.path]


def _open_or_make_directory(path: ResolvedPath) -> tuple[int, list[str]]:
    """Return the parent's descriptor, made with what is missing above it, and the names of what was made."""
    made: list[str] = []
    here = path.root
    held = open_directory(here, root=path.root)
    try:
        for part in path.path.parent.relative_to(path.root).parts:
            here /= part
            try:
                os.mkdir(part, dir_fd=held)
            except FileExistsError:
                pass
            else:
                made.append(str(here))
                flush_directory(held)
            below = open_directory(here, root=path.root)
            os.close(held)
            held = below
    except BaseException:
        os.close(held)
        _remove_made(path, made)
        raise
    return held, made


def _remove_made(path: ResolvedPath, made: list[str]) -> None:
    for name in reversed(made):
        place = Path(name)
        with suppress(OSError):
            parent = open_directory(place.parent, root=path.root)
            try:
                os.rmdir(place.name, dir_fd=parent)
            finally:
                os.close(parent)
