"""From a request to what a supervisor is given: words, environment, descriptors, sandbox."""

import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import field
from pathlib import Path

from agentctl.errors import ToolError
from agentctl.executor.environment import chosen_environment
from agentctl.executor.paths import RootPins, follow, open_directory
from agentctl.executor.process_types import CommandRequest
from agentctl.records import dataclass

MAX_TIMEOUT_S = 3600.0
"""The ceiling of `timeout_s`; a longer wish is lowered to it."""
_LONGEST_WORD = 131_072 - 1
"""Linux takes no longer word on a command line (MAX_ARG_STRLEN)."""
_SAFE_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """A command that can be started."""

    argv: list[str]
    environment: dict[str, str]
    workdir: Path
    cwd: Path
    timeout_s: float
    output_directory: Path
    output_name: str
    script: Path | None = field(default=None)
    """A file that holds the text, where it is too long for a command line."""

    def clean_up(self) -> None:
        """Remove what was made for this command alone. Idempotent."""
        if self.script is not None:
            with suppress(OSError):
                os.unlink(self.script)


def prepare(request: CommandRequest, pins: RootPins, environment: Mapping[str, str]) -> Ready:
    """Return a command made ready. Blocks.

    Raises:
        ToolError: the workdir is not the one the run began with, the directory is missing or outside, the
            command holds a NUL, or a pinned file changed.
    """
    _check_pinned(request.pinned)
    workdir = pins.resolved(request.roots.workdir)
    cwd = workdir if request.cwd is None else _inside(request.cwd, request, pins)
    chosen = chosen_environment(environment, pass_names=request.pass_names, extra=request.environment)
    temp = request.roots.temp
    os.makedirs(output_directory(temp), mode=0o700, exist_ok=True)
    chosen.setdefault("HOME", str(request.roots.home))
    if "TMPDIR" not in request.environment:
        chosen["TMPDIR"] = str(pins.resolved(temp))
    chosen["PWD"] = str(cwd)
    name = _harmless(request.spill_name)
    directory = output_directory(pins.resolved(temp))
    argv, script = _words(request, directory, name)
    limit = request.timeout_s if request.timeout_s > 0 else MAX_TIMEOUT_S
    return Ready(
        argv=argv,
        environment=chosen,
        workdir=workdir,
        cwd=cwd,
        timeout_s=min(limit, MAX_TIMEOUT_S),
        output_directory=directory,
        output_name=name,
        script=script,
    )


def _check_pinned(pinned: Mapping[Path, str]) -> None:
    for place, digest in pinned.items():
        try:
            now = hashlib.sha256(place.read_bytes()).hexdigest()
        except OSError:
            now = ""
        if now != digest:
            raise ToolError(f"{str(place)!r} is not what was trusted: it changed. It was not started.")


def output_directory(temp: Path) -> Path:
    """Return where output and logs of commands are kept, for tools to read and not to be written. Pure."""
    return temp / "output"


def _inside(cwd: Path, request: CommandRequest, pins: RootPins) -> Path:
    led = follow(cwd)
    if request.cwd_anywhere:
        return led.path
    roots = (pins.resolved(request.roots.workdir), pins.resolved(request.roots.temp))
    if not any(led.path.is_relative_to(root) for root in roots):
        raise ToolError(f"{str(cwd)!r} is outside the working directory; commands start inside it only.")
    return led.path


def _words(request: CommandRequest, directory: Path, name: str) -> tuple[list[str], Path | None]:
    command = request.command
    words = (command,) if isinstance(command, str) else command
    if not words or any("\0" in word for word in words):
        raise ToolError("A command can't be empty or hold a NUL character.")
    if not isinstance(command, str):
        return list(command), None
    shell = shutil.which("bash", path=_SAFE_PATH) or shutil.which("sh", path=_SAFE_PATH) or "/bin/sh"
    try:
        text = command.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ToolError("The command contains half a character (a lone surrogate).") from error
    if command.endswith("\\"):
        # As on a terminal, where no line ends without a line feed: `ls\\` is `ls`, not a program named so.
        command, text = f"{command}\n", text + b"\n"
    if len(text) < _LONGEST_WORD:
        return [shell, "-c", command], None
    script = new_file(directory, f"{name}.sh", text)
    return [shell, str(script)], script


def _harmless(name: str) -> str:
    """Return a name that stays in its directory whatever a tool or model calls itself."""
    kept = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in name)[:60]
    return f"{kept.strip('-') or 'output'}-{os.urandom(4).hex()}"


def new_file(directory: Path, name: str, content: bytes = b"") -> Path:
    """Make a private file in the run's own folder; nothing that stands there is opened or followed. Blocks.

    Raises:
        OSError: it can't be made.
    """
    os.close(open_new(directory, name, content))
    return directory / name


def open_new(directory: Path, name: str, content: bytes = b"") -> int:
    """Return a descriptor, for reading and writing, of a new private file; see `new_file`. Blocks."""
    os.makedirs(directory.parent, mode=0o700, exist_ok=True)
    held = open_directory(directory.parent, root=directory.parent)
    try:
        try:
            os.mkdir(directory.name, 0o700, dir_fd=held)
        except FileExistsError:
            if not stat.S_ISDIR(os.stat(directory.name, dir_fd=held, follow_symlinks=False).st_mode):
                raise
        inner = open_directory(directory, root=directory.parent)
    finally:
        os.close(held)
    try:
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        # SAFETY: a name of our own making in a directory reached without links; O_EXCL opens nothing old.
        file = os.open(name, flags, 0o600, dir_fd=inner)
    finally:
        os.close(inner)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(file, view) :]
    except BaseException:
        os.close(file)
        raise
    return file


@contextmanager
def command_descriptors(ready: Ready, stdin: bytes) -> Iterator[tuple[int, int]]:
    """Give the descriptors of the working directory and of standard input; both are closed afterwards.

    Raises:
        ToolError: the directory is not there.
    """
    try:
        # SAFETY: resolved and inside; opened component by component without links.
        root = ready.workdir if ready.cwd.is_relative_to(ready.workdir) else ready.cwd
        directory = open_directory(ready.cwd, root=root)
    except OSError as error:
        raise ToolError(f"The directory {str(ready.cwd)!r} can't be entered: {error.strerror}.") from error
    try:
        if not stdin:
            # SAFETY: a fixed name; a command that reads gets the end of input at once.
            nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
            try:
                yield directory, nothing
            finally:
                os.close(nothing)
            return
        with tempfile.TemporaryFile() as file:
            file.write(stdin)
            file.seek(0)
            yield directory, file.fileno()
    finally:
        os.close(directory)
