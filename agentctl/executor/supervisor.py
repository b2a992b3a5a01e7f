"""The processes between agentctl and what it runs, so that nothing a command starts outlives it.

A *launcher* is started once and forks a *supervisor* for each command. The supervisor starts the command in
a session of its own and adopts whatever of it loses its parent (a sub-reaper), so it can end all of it: when
the command is over, when its time is up, when agentctl asks, and when agentctl is gone. Standard library
only, since every command forks this process.

Wire: agentctl sends one byte with descriptors. The first is a socket that carries one request (four bytes of
length, then JSON) and answers in JSON lines; a byte sent on it later, or its end, means: stop.
"""

import array
import gc
import json
import os
import select
import signal
import socket
import struct
from contextlib import suppress
from time import monotonic
from typing import NoReturn

from agentctl.executor.confine import control_process
from agentctl.executor.process_tree import descendants, parents
from agentctl.executor.started import Started, start
from agentctl.executor.supervisor_wire import Answer, Ended, Request

_PR_SET_CHILD_SUBREAPER = 36
_MAX_FDS = 8
_LAST_S = 5.0
"""After this, a process that does not die (stuck in the kernel, another user's) is no longer waited for."""
_LONE_REAPER_S = 0.2
_LENGTH = struct.Struct("!I")


def serve(channel_fd: int) -> NoReturn:
    """Fork a supervisor for each request until agentctl is gone."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    control_process(_PR_SET_CHILD_SUBREAPER, 1)
    channel = socket.socket(fileno=channel_fd)
    wake = _wake_on_child()
    poller = select.poll()
    poller.register(channel, select.POLLIN)
    poller.register(wake, select.POLLIN)
    supervisors: set[int] = set()
    gc.collect()
    gc.freeze()
    while True:
        ready = {fd for fd, _ in poller.poll()}
        if wake.fileno() in ready:
            _drain(wake)
            _bury(supervisors)
        if channel.fileno() in ready:
            fds = _receive(channel)
            if not fds:
                os._exit(0)
            pid = os.fork()
            if pid == 0:
                channel.close()
                wake.close()
                _Supervisor(fds).run()
            supervisors.add(pid)
            for fd in fds:
                os.close(fd)


def _receive(channel: socket.socket) -> list[int]:
    count, ancillary, _, _ = channel.recvmsg(1, socket.CMSG_SPACE(4 * _MAX_FDS))
    fds = array.array("i")
    for level, kind, data in ancillary:
        if count and level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.frombytes(data[: len(data) - len(data) % fds.itemsize])
    return list(fds)


def _bury(supervisors: set[int]) -> None:
    """Reap what ended; the charges of a supervisor that was killed come to us, and are ended here."""
    orphans = False
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            supervisors.clear()
            return
        if pid == 0:
            break
        orphans = orphans or status != 0
        supervisors.discard(pid)
    if not orphans:
        return
    me = os.getpid()
    for pid, parent in parents().items():
        if parent == me and pid not in supervisors:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)


def _wake_on_child() -> socket.socket:
    """Return a socket that becomes readable when a child ends."""
    wake, woken = socket.socketpair()
    wake.setblocking(False)
    woken.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(woken.detach(), warn_on_full_buffer=False)
    return wake


def _drain(wake: socket.socket) -> None:
    with suppress(BlockingIOError):
        while wake.recv(4096):
            pass


class _Supervisor:
    """One command, from its start until nothing of it is left."""

    def __init__(self, fds: list[int]) -> None:
        self._control = socket.socket(fileno=fds[0])
        self._fds = fds[1:]
        self._wake = _wake_on_child()
        self._status: int | None = None
        self._blocks = 0
        self._stop = False

    def run(self) -> NoReturn:
        """Serve one request and leave the process."""
        try:
            self._serve(self._read_request())
        finally:
            os._exit(0)

    def _read_request(self) -> Request:
        data = b""
        while len(data) < _LENGTH.size or len(data) < _LENGTH.size + _LENGTH.unpack_from(data)[0]:
            piece = self._control.recv(1 << 16)
            if not piece:
                os._exit(0)
            data += piece
        request: Request = json.loads(data[_LENGTH.size :])
        return request

    def _serve(self, request: Request) -> None:
        control_process(_PR_SET_CHILD_SUBREAPER, 1)
        try:
            command = start(request, self._fds)
        except OSError as error:
            self._say(Answer(failed=str(error.strerror), about=str(error.filename or "")))
            return
        self._say(Answer(started=command.pid))
        timed_out = self._watch(command, request["timeout_s"])
        survivors = self._end_all(command, request)
        left = len(descendants(os.getpid())) if self._reap(command) else 0
        command.pump()
        ended = Ended(
            status=signal.SIGKILL if self._status is None else self._status,
            timed_out=timed_out,
            survivors=survivors,
            left=left,
            blocks=self._blocks,
            wrapper_said=command.wrapper_said(),
        )
        self._say(Answer(ended=ended))

    def _watch(self, command: Started, timeout_s: float) -> bool:
        """Wait until the command itself is over or has to be; return whether its time was up."""
        deadline = monotonic() + timeout_s if timeout_s else None
        while True:
            self._reap(command)
            if self._status is not None or self._stop:
                return False
            if deadline is not None and monotonic() >= deadline:
                return True
            self._wait(command, None if deadline is None else deadline - monotonic())

    def _wait(self, command: Started, seconds: float | None) -> None:
        """Wait for a child's end, a word from agentctl, or output for the log."""
        poller = select.poll()
        poller.register(self._wake, select.POLLIN)
        if not self._stop:
            poller.register(self._control, select.POLLIN)
        if command.log_pipe >= 0:
            poller.register(command.log_pipe, select.POLLIN)
        ready = {fd for fd, _ in poller.poll(None if seconds is None else max(0, seconds) * 1000 + 1)}
        if self._wake.fileno() in ready:
            _drain(self._wake)
        if self._control.fileno() in ready:
            # A byte or the end, both mean: stop. What agentctl can still read, it gets.
            self._control.recv(16)
            self._stop = True
        if command.log_pipe in ready:
            command.pump()

    def _reap(self, command: Started) -> bool:
        """Take note of every child that ended; return whether there are others."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            self._blocks += usage.ru_oublock
            if pid == command.pid:
                self._status = status

    def _end_all(self, command: Started, request: Request) -> int:
        """End what is left, politely and then not; return how many the command had left running."""
        if not self._reap(command):
            return 0
        over = self._status is not None
        if over and request["wrapped"] and self._only_reaper_left(command):
            return 0
        left = descendants(os.getpid())
        spared = {command.pid} if request["wrapped"] else set()
        _signal(left - spared, signal.SIGTERM)
        _signal(left - spared, signal.SIGCONT)
        if not self._gone_within(command, request["grace_s"]):
            self._kill(command)
        return max(0, len(left) - request["wrapped"]) if over else 0

    def _only_reaper_left(self, command: Started) -> bool:
        """Give the sandbox's own reaper a moment to end; with nothing to reap it does so by itself."""
        deadline = monotonic() + _LONE_REAPER_S
        while self._reap(command):
            if len(descendants(os.getpid())) > 1 or monotonic() > deadline:
                return False
            self._wait(command, 0.02)
        return True

    def _gone_within(self, command: Started, seconds: float) -> bool:
        deadline = monotonic() + seconds
        while self._reap(command):
            if monotonic() >= deadline:
                return False
            self._wait(command, deadline - monotonic())
        return True

    def _kill(self, command: Started) -> None:
        """Stop all before killing any, so that none can start another meanwhile; until none is left."""
        deadline = monotonic() + _LAST_S
        while self._reap(command) and monotonic() < deadline:
            left = descendants(os.getpid())
            _signal(left, signal.SIGSTOP)
            _signal(left | descendants(os.getpid()), signal.SIGKILL)
            self._wait(command, 0.05)

    def _say(self, answer: Answer) -> None:
        with suppress(OSError):
            self._control.sendall(json.dumps(answer).encode() + b"\n")


def _signal(pids: set[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(OSError):
            os.kill(pid, number)
