"""A program on a real pseudo-terminal, seen through a screen emulator."""

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pexpect
import pyte

from agentctl.protocol.codec import encode
from agentctl.protocol.questions import Question

ROOT = Path(__file__).resolve().parents[2]


class Screen:
    """A running program and what its terminal shows."""

    def __init__(
        self, command: list[str], *, columns: int = 100, rows: int = 40, env: dict[str, str] | None = None
    ) -> None:
        environ = {**os.environ, "TERM": "xterm-256color", "PYTHONPATH": str(ROOT), **(env or {})}
        self.child: pexpect.spawn[bytes] = pexpect.spawn(
            command[0], command[1:], dimensions=(rows, columns), env=environ, timeout=10
        )
        self.child.delaybeforesend = None
        self.screen = pyte.HistoryScreen(columns, rows, history=5000)
        self._stream = pyte.ByteStream(self.screen)
        self.raw = b""

    @property
    def text(self) -> str:
        """Everything shown so far: what scrolled away, then the screen."""
        gone = [
            "".join(line[column].data for column in range(self.screen.columns)).rstrip()
            for line in self.screen.history.top
        ]
        return "\n".join([*gone, *(line.rstrip() for line in self.screen.display)])

    def pump(self, seconds: float = 0.05) -> bool:
        """Take in what the program writes; False when it has ended."""
        try:
            data = self.child.read_nonblocking(65536, timeout=seconds)
        except pexpect.TIMEOUT:
            return True
        except pexpect.EOF:
            return False
        self.raw += data
        self._stream.feed(data)
        return True

    def wait_for(self, text: str, *, times: int = 1, timeout_s: float = 15.0) -> None:
        """Wait until `text` has been shown so many times."""
        end = time.monotonic() + timeout_s
        while self.text.count(text) < times:
            assert time.monotonic() < end, f"{text!r} was not shown {times} times:\n{self.text}"
            assert self.pump() or self.text.count(text) >= times, f"ended without {text!r}:\n{self.text}"

    def wait_raw(self, data: bytes, *, times: int = 1, timeout_s: float = 15.0) -> None:
        """Wait until `data` was written so many times; for what a resize of the emulator loses."""
        end = time.monotonic() + timeout_s
        while self.raw.count(data) < times:
            assert time.monotonic() < end, f"{data!r} was not written {times} times:\n{self.text}"
            assert self.pump(), f"ended without {data!r}:\n{self.text}"

    def send(self, keys: str | bytes) -> None:
        self.child.send(keys)

    def resize(self, columns: int, rows: int) -> None:
        self.child.setwinsize(rows, columns)
        self.screen.resize(rows, columns)

    def wait_end(self, timeout_s: float = 20.0) -> int:
        """Wait for the end; return the exit code, or minus the signal."""
        end = time.monotonic() + timeout_s
        while self.pump():
            assert time.monotonic() < end, f"did not end:\n{self.text}"
        self.child.close()
        return self.child.exitstatus if self.child.exitstatus is not None else -(self.child.signalstatus or 0)

    def hang_up(self) -> None:
        """Take the terminal away, as a closed window does."""
        self.child.ptyproc.fileobj.close()
        self.child.ptyproc.closed = self.child.closed = True
        self.child.child_fd = self.child.ptyproc.fd = -1

    def kill(self) -> None:
        if self.child.isalive():
            os.kill(self.child.pid, signal.SIGKILL)
        if not self.child.closed:
            self.child.close(force=True)


Open = Callable[..., Screen]
"""Opens a program on a terminal."""


class Asking(Screen):
    """The program that asks `questions`."""

    def __init__(self, place: Path, questions: list[Question], **more: Any) -> None:
        asked, self._answers = place / "questions.json", place / "answers.json"
        asked.write_text(json.dumps([encode(one) for one in questions]), encoding="utf-8")
        program = [sys.executable, "-m", "tests.terminal.asking", str(asked), str(self._answers)]
        super().__init__(program, **more)

    def answers(self) -> dict[str, Any]:
        """Wait for the end and return the answers by question id."""
        assert self.wait_end() == 0, self.text
        read: dict[str, Any] = json.loads(self._answers.read_text("utf-8"))
        return read

    def written(self, timeout_s: float = 15.0) -> dict[str, Any]:
        """Return the answers of a program whose terminal is gone."""
        end = time.monotonic() + timeout_s
        while not self._answers.exists() or not self._answers.read_text("utf-8"):
            assert time.monotonic() < end, "nothing was answered"
            time.sleep(0.05)
        read: dict[str, Any] = json.loads(self._answers.read_text("utf-8"))
        return read
