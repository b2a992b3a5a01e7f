"""Putting a new content in a file's place: whole, durable, and with everything else of the file kept.

The content goes to a nameless file in the same directory (a named one where the disk has no nameless files),
is flushed, and takes the name in one step, so that a crash at any moment leaves the old file or the new one.
"""

import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from agentctl.errors import ToolError

_NAMELESS = getattr(os, "O_TMPFILE", 0)
_NO_NAMELESS = {errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT}
_FULL_SYNC = getattr(fcntl, "F_FULLFSYNC", None)
_ACL = "system.posix_acl_access"
_KEPT_ATTRIBUTES = ("user.", _ACL, "security.selinux")
_PIECE = 1 << 22


@contextmanager
def staged(directory: int, data: bytes, *, like: int | None) -> Iterator["StagedFile"]:
    """Give a flushed file without a name of its own in a directory; what was not placed is gone afterwards.

    `like` is a descriptor of the file whose mode, owner and attributes it takes; None for a new file, which
    gets what the umask says.

    Raises:
        OSError: the disk is full or refuses.
        ToolError: the owner can't be kept.
    """
    mode = 0o666 if like is None else 0o600
    held, name = _open_staged(directory, mode)
    try:
        _write_all(held, data)
        if like is not None:
            _copy_attributes(like, held)
        flush(held)
        yield StagedFile(held, directory, name)
    finally:
        os.close(held)
        if name:
            with suppress(OSError):
                os.unlink(name, dir_fd=directory)


class StagedFile:
    """A file that is complete on disk and waits for its name."""

    def __init__(self, held: int, directory: int, name: str) -> None:
        self._held = held
        self._directory = directory
        self._name = name

    def place_new(self, directory: int, name: str) -> None:
        """Give it a name that nothing has.

        Raises:
            FileExistsError: something has it.
        """
        self._link(directory, name)

    def place_over(self, directory: int, name: str) -> None:
        """Give it a name in place of the file that has it, in one step."""
        between = temporary_name()
        self._link(directory, between)
        try:
            os.rename(between, name, src_dir_fd=directory, dst_dir_fd=directory)
        except BaseException:
            with suppress(OSError):
                os.unlink(between, dir_fd=directory)
            raise

    def _link(self, directory: int, name: str) -> None:
        if self._name:
            os.link(self._name, name, src_dir_fd=self._directory, dst_dir_fd=directory, follow_symlinks=False)
        else:
            # SAFETY: the name in /proc is our own descriptor's; the link goes to the file just written.
            os.link(f"/proc/self/fd/{self._held}", name, dst_dir_fd=directory, follow_symlinks=True)


def temporary_name() -> str:
    """Return a name that nobody else uses, hidden, and known as ours."""
    return f".agentctl-{os.urandom(8).hex()}.tmp"


def flush(held: int) -> None:
    """Return when what was written is on the disk itself."""
    if _FULL_SYNC is not None:
        with suppress(OSError):
            fcntl.fcntl(held, _FULL_SYNC)
            return
    os.fsync(held)


def flush_directory(directory: int) -> None:
    """Return when the names in a directory are on the disk."""
    # SAFETY: the directory itself, through a descriptor that was walked to without links.
    held = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=directory)
    try:
        os.fsync(held)
    finally:
        os.close(held)


def _open_staged(directory: int, mode: int) -> tuple[int, str]:
    if _NAMELESS and os.access("/proc/self/fd", os.F_OK):
        try:
            # SAFETY: a file without a name in a directory that was walked to without links.
            return os.open(".", _NAMELESS | os.O_RDWR | os.O_CLOEXEC, mode, dir_fd=directory), ""
        except OSError as error:
            if error.errno not in _NO_NAMELESS:
                raise
    name = temporary_name()
    # SAFETY: O_EXCL makes a new file or fails; nothing that stands there is opened.
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(name, flags, mode, dir_fd=directory), name


def _write_all(held: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        written = os.write(held, view[:_PIECE])
        if not written:
            raise OSError(errno.EIO, "the disk took no more bytes")
        view = view[written:]


def _copy_attributes(like: int, held: int) -> None:
    old, new = os.fstat(like), os.fstat(held)
    if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
        try:
            os.fchown(held, old.st_uid, old.st_gid)
        except PermissionError as error:
            raise ToolError(
                f"The file belongs to user {old.st_uid}, group {old.st_gid}, which can't be kept when it is "
                "written by this user; nothing was changed."
            ) from error
    os.fchmod(held, stat.S_IMODE(old.st_mode))
    if not hasattr(os, "listxattr"):
        return
    with suppress(OSError):
        for attribute in os.listxattr(like):
            if attribute.startswith(_KEPT_ATTRIBUTES):
                with suppress(OSError):
                    os.setxattr(held, attribute, os.getxattr(like, attribute))
