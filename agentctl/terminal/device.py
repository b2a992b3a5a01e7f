"""The terminal itself, which is there when stdin is a pipe: keys in, text out, whose turn it is."""

import os
import select
import signal
import termios
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from agentctl.terminal.contract import CANNOT, Looks

_DEVICE = "/dev/tty"
_PASTE_ON, _PASTE_OFF = "\x1b[?2004h", "\x1b[?2004l"
_SCREEN_BACK = "\x1b[?47l\x1b[?25h\x1b[0m"
"""The first screen, a cursor, no colour; the cursor is not moved, as it would be with 1049."""
_SMALLEST = (1, 1)
_USUAL = (80, 24)


class Device:
    """An open terminal device. Used by one prompt at a time; `read` may block, the rest is quick."""

    def __init__(self, descriptor: int, environ: Mapping[str, str], looks: Looks) -> None:
        self._descriptor = descriptor
        self.looks = looks
        self._found: list[int | list[bytes | int]] | None = None
        """The modes that stood when a prompt took the terminal."""
        self.gone = False
        """True once the terminal hung up; nobody can answer here any more."""
        self.moves = environ.get("TERM", "") not in CANNOT
        """Whether escape sequences do anything but make a mess."""
        self.colour = looks.colours(environ)

    def answers(self) -> bool:
        """Return whether a person can answer here now: it is open, and its foreground group is ours."""
        if self.gone:
            return False
        try:
            return os.tcgetpgrp(self._descriptor) == os.getpgrp()
        except OSError:
            self.gone = True
            return False

    def size(self) -> tuple[int, int]:
        """Return columns and rows, at least 1 each; 80 and 24 where the terminal does not say."""
        try:
            columns, rows = os.get_terminal_size(self._descriptor)
        except OSError:
            columns, rows = 0, 0
        return (max(columns or _USUAL[0], _SMALLEST[0]), max(rows or _USUAL[1], _SMALLEST[1]))

    def write(self, text: str) -> None:
        """Show `text`, which is visible already. A terminal that hung up makes the device gone."""
        data = memoryview(text.encode("utf-8", errors="replace"))
        while data and not self.gone:
            try:
                data = data[os.write(self._descriptor, data) :]
            except BlockingIOError:
                select.select([], [self._descriptor], [], 1.0)
            except OSError:
                self.gone = True

    def read(self, wait_s: float) -> bytes:
        """Return what was typed, waiting up to `wait_s` for it; empty when nothing was.

        Empty too while another process group has the terminal: its keys are not ours.
        """
        if not self.answers():
            return b""
        try:
            ready, _, _ = select.select([self._descriptor], [], [], wait_s)
            data = os.read(self._descriptor, 4096) if ready and self.answers() else b""
            self.gone = bool(ready) and not data and self.answers()
        except OSError:
            # In the background a read fails; in the foreground it does when the terminal hung up.
            self.gone = self._hung_up()
            return b""
        return data

    def drop_typed(self) -> None:
        """Throw away what was typed and not read yet."""
        with suppress(termios.error):
            termios.tcflush(self._descriptor, termios.TCIFLUSH)

    @contextmanager
    def keyed(self) -> Iterator[None]:
        """Give keys one by one and unseen; Ctrl-C still interrupts. The modes found are restored after.

        Ctrl-Z and the quit key come as keys, so that the terminal is never left in this mode.
        """
        self.enter()
        try:
            yield
        finally:
            self.leave()

    def enter(self) -> None:
        """Take the terminal for keys; again after another program had it."""
        try:
            modes = termios.tcgetattr(self._descriptor)
            if self._found is None:
                self._found = termios.tcgetattr(self._descriptor)
            modes[0] &= ~(termios.ICRNL | termios.INLCR | termios.IXON)
            modes[3] = (modes[3] | termios.ISIG) & ~(termios.ICANON | termios.ECHO | termios.IEXTEN)
            modes[6] = list(modes[6])
            modes[6][termios.VMIN], modes[6][termios.VTIME] = 1, 0
            never = bytes([os.fpathconf(self._descriptor, "PC_VDISABLE") & 0xFF])
            for key in (termios.VSUSP, termios.VQUIT):
                modes[6][key] = never
            termios.tcsetattr(self._descriptor, termios.TCSADRAIN, modes)
        except termios.error:
            self.gone = self._hung_up()
            return
        if self.moves:
            self.write(_PASTE_ON)

    def leave(self) -> None:
        """Give the terminal back as it was found."""
        found, self._found = self._found, None
        if found is None:
            return
        if self.moves:
            self.write(_PASTE_OFF)
        with suppress(termios.error):
            termios.tcsetattr(self._descriptor, termios.TCSADRAIN, found)

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Give the terminal to another program as it was found, and take it back whatever that left of it.

        What the block raises means that the program did not end by itself: its screen is left for it, too.
        """
        self.leave()
        modes = None
        with suppress(termios.error):
            modes = termios.tcgetattr(self._descriptor)
        try:
            yield
        except BaseException:
            if self.moves:
                self.write(_SCREEN_BACK)
            raise
        finally:
            if modes is not None:
                with suppress(termios.error):
                    termios.tcsetattr(self._descriptor, termios.TCSADRAIN, modes)
            self.enter()

    def lost_modes(self) -> bool:
        """Return whether somebody changed the modes while a prompt had the terminal: a shell, on `fg`."""
        try:
            return self._found is not None and bool(
                termios.tcgetattr(self._descriptor)[3] & (termios.ICANON | termios.ECHO)
            )
        except termios.error:
            return False

    def interrupt(self) -> None:
        """Do what Ctrl-C asks for, where the terminal sent it as a key."""
        os.kill(os.getpid(), signal.SIGINT)

    def stop_job(self) -> None:
        """Do what Ctrl-Z asks for: stop the whole job, with the terminal as it was found."""
        self.leave()
        os.killpg(0, signal.SIGTSTP)
        self.enter()

    @property
    def descriptor(self) -> int:
        """For a program that gets the terminal: an editor."""
        return self._descriptor

    def close(self) -> None:
        """Let go of the terminal. Idempotent."""
        self.leave()
        if not self.gone:
            self.gone = True
            os.close(self._descriptor)

    def _hung_up(self) -> bool:
        try:
            os.tcgetpgrp(self._descriptor)
        except OSError:
            return True
        return False


def open_device(environ: Mapping[str, str], looks: Looks) -> Device | None:
    """Return the controlling terminal, or None when there is none. Never blocks.

    From then on the process ignores SIGTTIN and SIGTTOU: in the background it goes on and is told by errors,
    where the default would stop it without a word.
    """
    try:
        descriptor = os.open(_DEVICE, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return None
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTTIN, signal.SIG_IGN)
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    return Device(descriptor, environ, looks)
