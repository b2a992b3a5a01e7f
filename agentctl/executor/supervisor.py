"""The processes between agentctl and what it runs, so that nothing a command starts outlives it.

A *launcher* is started once and forks *supervisors*, each for one command at a time. A supervisor starts its
command in a session of its own and adopts whatever of it loses its parent (a sub-reaper), so it can end all
of it: when the command is over, when its time is up, when agentctl asks, and when agentctl is gone. Of those
that left nothing behind a few wait for the next command, which then costs no fork of a Python process.
Standard library only, since this process is forked.

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
from itertools import pairwise
from time import monotonic, sleep
from typing import NoReturn

from agentctl.executor.confine import control_process
from agentctl.executor.process_tree import descendants
from agentctl.executor.started import Started, start
from agentctl.executor.supervisor_wire import Answer, Ended, Request

_PR_SET_CHILD_SUBREAPER = 36
_MAX_FDS = 8
_LAST_S = 5.0
"""After this, a process that does not die (stuck in the kernel, another user's) is no longer waited for."""
_LOOK_ROUND_S = 1.0
"""Children of the command that lost their parent are reaped this often while it runs."""
_FASTEST_DISK = 10e9
"""Bytes a second that a command may fill a disk with: how soon the free space is looked at again."""
_LEAST_LOOK_S = 0.02
_WITHOUT_WATCH_S = 0.005
"""Where the system has no descriptor for a process, its end is looked for this often."""
_REAPER_ENDS_S = (0.0001, 0.0004, 0.002, 0.01, 0.05, 0.1)
_AGENTCTL_IS_GONE = 7
"""How a waiting supervisor ends then."""
_LENGTH = struct.Struct("!I")
_WORD = struct.Struct("!i?")
"""A supervisor to the launcher: its process number, and whether it waits for a command. Written at once."""
_WAIT_AGAIN = 4
"""So many supervisors stay for another command; tools of one step run four at a time."""
_MOST_FDS = 64
"""More descriptors than one command ever has here."""


def serve(channel_fd: int) -> NoReturn:
    """Keep at least one supervisor waiting for the next request, until agentctl is gone.

    It is forked before it is needed, so that a command does not wait for that.
    """
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    control_process(_PR_SET_CHILD_SUBREAPER, 1)
    wake = _wake_on_child()
    told, tell = os.pipe()
    # Its number is the one it had in agentctl; a low one leaves no gap below it.
    channel = socket.socket(fileno=os.dup(channel_fd))
    os.close(channel_fd)
    duty = _Duty(channel, tell)
    poller = select.poll()
    poller.register(told, select.POLLIN)
    poller.register(wake, select.POLLIN)
    supervisors: set[int] = set()
    waiting: set[int] = set()
    gc.collect()
    gc.freeze()
    while True:
        if not waiting:
            pid = os.fork()
            if pid == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                os.close(told)
                wake.close()
                duty.run()
            supervisors.add(pid)
            waiting.add(pid)
        ready = {fd for fd, _ in poller.poll()}
        if told in ready:
            for pid, waits in _WORD.iter_unpack(os.read(told, 64 * _WORD.size)):
                (waiting.add if waits else waiting.discard)(pid)
        if wake.fileno() in ready:
            _drain(wake)
            _bury(supervisors, waiting)
        waiting &= supervisors


def _receive(channel: socket.socket) -> list[int]:
    count, ancillary, _, _ = channel.recvmsg(1, socket.CMSG_SPACE(4 * _MAX_FDS))
    fds = array.array("i")
    for level, kind, data in ancillary:
        if count and level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.frombytes(data[: len(data) - len(data) % fds.itemsize])
    for fd in fds:
        os.set_inheritable(fd, False)  # received ones are inherited, unlike those that Python opens
    return list(fds)


def _bury(supervisors: set[int], waiting: set[int]) -> None:
    """Reap what ended; the charges of a supervisor that was killed come to us, and are ended here.

    Does not return when agentctl is gone: those that waited for it end then, too.
    """
    orphans = False
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            supervisors.clear()
            return
        if pid == 0:
            break
        if os.WIFEXITED(status) and os.WEXITSTATUS(status) == _AGENTCTL_IS_GONE:
            for other in waiting - {pid}:
                with suppress(ChildProcessError):
                    os.waitpid(other, 0)
            os._exit(0)
        orphans = orphans or status != 0
        supervisors.discard(pid)
    if not orphans:
        return
    kept = set(supervisors).union(*(descendants(pid) for pid in supervisors))
    _signal(descendants(os.getpid()) - kept, signal.SIGKILL)


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


class _Duty:
    """A supervisor's whole life: to wait for a command, to serve it, and to wait again if few others do."""

    def __init__(self, channel: socket.socket, tell: int) -> None:
        self._channel = channel
        self._tell = tell
        self._places, self._leave = os.pipe()
        """A byte in it is a place for one who waits again."""
        os.set_blocking(self._places, False)
        os.write(self._leave, b"p" * _WAIT_AGAIN)
        own = sorted({channel.fileno(), tell, self._places, self._leave})
        self._not_own = tuple(
            (below + 1, above)
            for below, above in pairwise([2, *own, own[-1] + _MOST_FDS])
            if above > below + 1
        )
        """Ranges of descriptors in which a command's may be."""

    def run(self) -> NoReturn:
        """Serve until agentctl is gone, enough others wait, or something is left of a command."""
        control_process(_PR_SET_CHILD_SUBREAPER, 1)
        has_place = False
        try:
            while True:
                fds = _receive(self._channel)
                if not fds:
                    os._exit(_AGENTCTL_IS_GONE)
                self._say(waits=False)
                if has_place:
                    os.write(self._leave, b"p")
                with socket.socket(fileno=fds[0]) as control:
                    clean = _Supervisor(control).serve(_read_request(control), fds[1:])
                os.chdir("/")
                for first, beyond in self._not_own:
                    os.closerange(first, beyond)
                has_place = clean and self._takes_place()
                if not has_place:
                    break
                self._say(waits=True)
        finally:
            # Whatever went wrong here, nothing of the command is to be left.
            _kill_all()
            os._exit(0)

    def _say(self, *, waits: bool) -> None:
        with suppress(OSError):
            os.write(self._tell, _WORD.pack(os.getpid(), waits))

    def _takes_place(self) -> bool:
        try:
            return bool(os.read(self._places, 1))
        except OSError:
            return False


def _above(path: str, floor: int) -> int:
    """Return how many bytes more than a floor are free; where that cannot be told, one."""
    try:
        found = os.statvfs(path)
    except OSError:
        return 1
    return found.f_bavail * found.f_frsize - floor


def _read_request(control: socket.socket) -> Request:
    data = b""
    while len(data) < _LENGTH.size or len(data) < _LENGTH.size + _LENGTH.unpack_from(data)[0]:
        piece = control.recv(1 << 16)
        if not piece:
            os._exit(0)
        data += piece
    request: Request = json.loads(data[_LENGTH.size :])
    return request


class _Supervisor:
    """One command, from its start until nothing of it is left."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._status: int | None = None
        self._blocks = 0
        self._stop = False
        self._disk_low = False

    def serve(self, request: Request, fds: list[int]) -> bool:
        """Run the command; return whether nothing of it is left."""
        # Said before the command can do anything, even stop us.
        self._say(Answer(supervisor=os.getpid()))
        try:
            command = start(request, fds)
        except OSError as error:
            self._say(Answer(failed=str(error.strerror), about=str(error.filename or "")))
            return True
        self._say(Answer(started=command.pid))
        timed_out = self._watch(command, request)
        survivors = self._end_all(command, request)
        left = len(descendants(os.getpid())) if self._reap(command) else 0
        command.pump()
        ended = Ended(
            status=signal.SIGKILL if self._status is None else self._status,
            timed_out=timed_out,
            disk_low=self._disk_low,
            survivors=survivors,
            left=left,
            blocks=self._blocks,
            wrapper_said=command.wrapper_said(),
        )
        self._say(Answer(ended=ended))
        return not left

    def _watch(self, command: Started, request: Request) -> bool:
        """Wait until the command itself is over or has to be; return whether its time was up."""
        deadline = monotonic() + request["timeout_s"] if request["timeout_s"] else None
        floor = request["floor_bytes"] if _above(request["floor_path"], request["floor_bytes"]) > 0 else 0
        while True:
            self._reap(command)
            if self._status is not None or self._stop:
                return False
            until = _LOOK_ROUND_S
            if floor:
                room = _above(request["floor_path"], floor)
                if room <= 0:
                    self._disk_low = True
                    return False
                until = min(until, max(room / _FASTEST_DISK, _LEAST_LOOK_S))
            left = until if deadline is None else min(deadline - monotonic(), until)
            if left <= 0:
                return True
            self._wait(command, left)

    def _wait(self, command: Started, seconds: float) -> None:
        """Wait for the command's end, a word from agentctl, output for the log, or the time."""
        poller = select.poll()
        if command.watch >= 0 and self._status is None:
            poller.register(command.watch, select.POLLIN)
        elif command.watch < 0:
            seconds = min(seconds, _WITHOUT_WATCH_S)
        if not self._stop:
            poller.register(self._control, select.POLLIN)
        if command.log_pipe >= 0:
            poller.register(command.log_pipe, select.POLLIN)
        ready = {fd for fd, _ in poller.poll(max(0, seconds) * 1000 + 1)}
        if self._control.fileno() in ready:
            # A byte, the end, or the reset of a peer that was killed: all mean stop.
            with suppress(OSError):
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
        for pause in _REAPER_ENDS_S:
            sleep(pause)
            if not self._reap(command):
                return True
            if len(descendants(os.getpid())) > 1:
                return False
        return False

    def _gone_within(self, command: Started, seconds: float) -> bool:
        deadline = monotonic() + seconds
        pause = 0.001
        while self._reap(command):
            if monotonic() >= deadline:
                return False
            self._wait(command, pause)
            pause = min(2 * pause, 0.02)
        return True

    def _kill(self, command: Started) -> None:
        """Stop all before killing any, so that none can start another meanwhile; until none is left."""
        deadline = monotonic() + _LAST_S
        while self._reap(command) and monotonic() < deadline:
            left = descendants(os.getpid())
            _signal(left, signal.SIGSTOP)
            _signal(left | descendants(os.getpid()), signal.SIGKILL)
            self._gone_within(command, 0.05)

    def _say(self, answer: Answer) -> None:
        with suppress(OSError):
            self._control.sendall(json.dumps(answer).encode() + b"\n")


def _kill_all() -> None:
    deadline = monotonic() + _LAST_S
    while (left := descendants(os.getpid())) and monotonic() < deadline:
        _signal(left, signal.SIGKILL)
        sleep(_WITHOUT_WATCH_S)
        with suppress(OSError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def _signal(pids: set[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(OSError):
            os.kill(pid, number)
