"""Random keys, pastes, resizes and signals at two hundred prompts; nothing is answered that was not typed."""

import os
import random
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.terminal.pty_screen import Asking
from tests.terminal.samples import approval

TERMINALS, PROMPTS = 20, 10
KEYS = "ysrantevq?YSRANTEVQ \r\x1b\x7fxj1\x1a\x15\x04é語"
APART_S = 0.09
"""More than what tells a burst from a key press, and a bit for a busy machine."""
NEEDS = {"once": "yY", "stage": "sS", "run": "rR", "always": "aA", "quit": "qQ", "edit": "eE"}
NO = "nN\r\x1btT\x04"


class Fuzzer(threading.Thread):
    """One terminal and somebody who types without looking."""

    def __init__(self, place: Path, seed: int) -> None:
        super().__init__()
        place.mkdir()
        self._random = random.Random(seed)  # noqa: S311 - a test that can be played again
        questions = [approval(f"q-{number}", command=f"echo {number}#") for number in range(PROMPTS)]
        environ = {"STEPWISE": "1", "EDITOR": "true", "VISUAL": ""}
        self.terminal = Asking(place, list(questions), env=environ, rows=30)
        self._ready = place / "answers.ready"
        self.typed: list[str] = []
        """For each prompt, the keys that were pressed alone while it was shown."""
        self.answers: dict[str, dict[str, str]] = {}
        self.trouble = ""

    def run(self) -> None:
        try:
            while not self._ready.exists():
                self.terminal.pump(0.05)
            for number in range(PROMPTS):
                self._prompt(number)
            self.answers = self.terminal.answers()
        except (AssertionError, OSError) as error:
            self.trouble = str(error)
        finally:
            self.terminal.kill()

    def _prompt(self, number: int) -> None:
        terminal = self.terminal
        terminal.send(self._random.choice(["", "y", "aaa", "\r", "s\r", "\x1b[200~y"]))  # typed ahead
        terminal.raw = b""
        os.kill(terminal.child.pid, signal.SIGUSR1)
        terminal.wait_raw(f"echo {number}#".encode())
        terminal.wait_raw(b"[n] >")
        pressed = ""
        while terminal.raw.count(b"went on meanwhile") < 1:
            pressed += self._gesture()
            terminal.pump(APART_S)
            assert len(pressed) < 400, "never answered"
        self.typed.append(pressed)

    def _gesture(self) -> str:
        """Do something at the keyboard; return the key if one was pressed alone."""
        terminal, pick = self.terminal, self._random
        match pick.randrange(8):
            case 0:
                burst = "".join(pick.choices(KEYS.replace("\x1b", ""), k=pick.randrange(2, 9)))
                terminal.send(burst)
                return "\r" if burst.endswith("\r") else ""  # ends a line of words, where one is open
            case 1:
                terminal.send(f"\x1b[200~{''.join(pick.choices(KEYS[:-3], k=5))}\x1b[201~")
            case 2:
                terminal.resize(pick.randrange(24, 120), pick.randrange(2, 40))
            case 3:
                os.kill(terminal.child.pid, pick.choice([signal.SIGWINCH, signal.SIGCONT]))
            case 4:
                terminal.send(pick.choice(["\x1b[A", "\x1b[I", "\x1b[5;7R", "\x1bOB", "\x1b[", "\x1b[20"]))
                return "\x1b"  # a sequence that does not go on is the Escape key
            case _:
                key = pick.choice(KEYS)
                terminal.send(key)
                time.sleep(APART_S)
                return key
        return ""


def test_no_ask_is_answered_with_more_than_was_typed_for_it(tmp_path: Path) -> None:
    seed = int(os.environ.get("FUZZ_SEED", "0")) or int(time.time())
    sys.stdout.write(f"FUZZ_SEED={seed}\n")  # shown when the test fails
    fuzzers = [Fuzzer(tmp_path / str(number), seed + number) for number in range(TERMINALS)]
    for fuzzer in fuzzers:
        fuzzer.start()
    for fuzzer in fuzzers:
        fuzzer.join(timeout=100)

    assert [fuzzer.trouble for fuzzer in fuzzers] == [""] * TERMINALS
    for fuzzer in fuzzers:
        assert len(fuzzer.answers) == PROMPTS
        for number, pressed in enumerate(fuzzer.typed):
            choice = fuzzer.answers[f"q-{number}"]["choice"]
            needed = NEEDS.get(choice, NO)
            if not set(pressed) & set(needed):
                pytest.fail(f"prompt {number} was answered {choice!r} after {pressed!r}; FUZZ_SEED={seed}")
