"""One command as its supervisor starts it: session, descriptors, confinement, and a log if asked."""

import errno
import os
import resource
import signal
from contextlib import suppress
from typing import NoReturn

from agentctl.executor.confine import confine, punch_hole
from agentctl.executor.supervisor_wire import Confinement, Request

_FIRST_INTERNAL_SIGNAL = 32
"""The C library keeps the first real-time signals to itself."""
_PUMP = 1 << 20


class Started:
    """A command that runs."""

    def __init__(self, pid: int, *, status_pipe: int, log_pipe: int, log: int, keep_bytes: int) -> None:
        self.pid = pid
        self.watch = os.pidfd_open(pid) if hasattr(os, "pidfd_open") else -1
        """Becomes readable when the command itself ends; -1 where the system has no such thing."""
        self.log_pipe = log_pipe
        """Readable end of its output, to be pumped into the log; -1 without one or when it has ended."""
        self._status_pipe = status_pipe
        self._log = log
        self._keep = keep_bytes
        self._size = 0
        self._punched = 0

    def pump(self) -> None:
        """Move what was written into the log; positions in it stay true, its oldest part is given back."""
        while self.log_pipe >= 0:
            try:
                piece = os.read(self.log_pipe, _PUMP)
            except BlockingIOError:
                return
            if not piece:
                os.close(self.log_pipe)
                self.log_pipe = -1
                return
            try:
                os.pwrite(self._log, piece, self._size)
            except OSError:
                # A full disk: the command goes on, its output is lost, its size stays true.
                with suppress(OSError):
                    os.ftruncate(self._log, self._size + len(piece))
            self._size += len(piece)
            if self._size - self._punched > 2 * self._keep:
                end = (self._size - self._keep) // 4096 * 4096
                if punch_hole(self._log, self._punched, end - self._punched):
                    self._punched = end

    def wrapper_said(self) -> str:
        """Return what the wrapper told about itself."""
        said = b""
        with suppress(OSError):
            while self._status_pipe >= 0 and (piece := os.read(self._status_pipe, 4096)):
                said += piece
        return said.decode("utf-8", "replace")


def start(request: Request, fds: list[int]) -> Started:
    """Start a command and close the descriptors that are now its own.

    Raises:
        OSError: it could not be started; the file name says what was missing.
    """
    directory, stdin, *outputs = fds
    keep = request["log_keep_bytes"]
    log = log_pipe = -1
    if keep:
        log = outputs[0]
        log_pipe, write_end = os.pipe()
        os.set_blocking(log_pipe, False)
        outputs = [write_end]
    os.fchdir(directory)
    # agentctl lifted its own limit; programs get the usual one: some close or select all they may have.
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (request["descriptors"], hard))
    status_pipe, status_end = os.pipe() if request["wrapped"] else (-1, -1)
    standard = (stdin, outputs[0], outputs[-1])
    try:
        if request["confinement"] is None:
            pid = _spawn(request, standard, status_end)
        else:
            pid = _fork(request, request["confinement"], standard)
    finally:
        for fd in {directory, stdin, status_end, *outputs} - {-1}:
            os.close(fd)
    if status_pipe >= 0:
        os.set_blocking(status_pipe, False)
    return Started(pid, status_pipe=status_pipe, log_pipe=log_pipe, log=log, keep_bytes=keep)


def _spawn(request: Request, standard: tuple[int, int, int], status_end: int) -> int:
    argv = _with_descriptors(request, status_end)
    failed = errno.ENOENT
    for place in _places(argv[0], request["environment"]):
        try:
            # SAFETY: the judged words, or the judged text as one word of a shell; the environment was chosen,
            # and no descriptor but the standard ones and those made for the wrapper is inherited.
            return os.posix_spawn(
                place,
                argv,
                request["environment"],
                file_actions=[(os.POSIX_SPAWN_DUP2, fd, number) for number, fd in enumerate(standard)],
                setsid=True,
                setsigmask=(),
                setsigdef=_signals(),
            )
        except (FileNotFoundError, NotADirectoryError, PermissionError) as error:
            failed = error.errno or failed
    raise OSError(failed, os.strerror(failed), argv[0])


def _places(program: str, environment: dict[str, str]) -> list[str]:
    """Return the files a program's name may mean, in the order in which they are tried."""
    if "/" in program:
        return [program]
    path = environment.get("PATH") or "/usr/local/bin:/usr/bin:/bin"
    return [f"{directory or '.'}/{program}" for directory in path.split(":")]


def _signals() -> list[int]:
    """Return the signals that a program expects at their default, ours being ignored or handled."""
    unchanged = {signal.SIGKILL, signal.SIGSTOP}
    return [number for number in signal.valid_signals() - unchanged if number < _FIRST_INTERNAL_SIGNAL]


def _fork(request: Request, confinement: Confinement, standard: tuple[int, int, int]) -> int:
    """Start a command that confines itself first; only a process of our own can do that."""
    failure, failure_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        _become(request, confinement, standard, failure_end)
    os.close(failure_end)
    said = os.read(failure, 4096)
    os.close(failure)
    if said:
        os.waitpid(pid, 0)
        number, _, about = said.decode("utf-8", "replace").partition(" ")
        raise OSError(int(number), os.strerror(int(number)), about)
    return pid


def _become(
    request: Request, confinement: Confinement, standard: tuple[int, int, int], failure_end: int
) -> NoReturn:
    """Turn this freshly forked process into the command; on failure say why and leave."""
    about = "the sandbox"
    try:
        os.setsid()
        for number, fd in enumerate(standard):
            os.dup2(fd, number, inheritable=True)
        for name in _signals():
            signal.signal(name, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        confine(confinement)
        about = request["argv"][0]
        # SAFETY: as in `_spawn`, and confined.
        os.execvpe(about, request["argv"], request["environment"])
    except OSError as error:
        os.write(failure_end, f"{error.errno or errno.EIO} {about}".encode("utf-8", "surrogateescape"))
    finally:
        os._exit(127)


def _with_descriptors(request: Request, status_end: int) -> list[str]:
    """Return the words to execute, with descriptors among the wrapper's; the command's stay as they are."""
    argv = list(request["argv"])
    if not request["wrapped"]:
        return argv
    for at in range(argv.index("--")):
        if argv[at] == "{status}":
            os.set_inheritable(status_end, True)
            argv[at] = str(status_end)
        elif argv[at] == "{filter}":
            held = os.memfd_create("filter")
            os.write(held, bytes.fromhex(request["filter_hex"]))
            os.lseek(held, 0, os.SEEK_SET)
            os.set_inheritable(held, True)
            argv[at] = str(held)
    return argv
