import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.command import TWO_STAGES, Bench
from tests.terminal.pty_screen import Open, Screen


@pytest.fixture
def bench(tmp_path: Path, agentctl_home: Path) -> Bench:
    """A fresh folder, workdir and home."""
    del agentctl_home
    workdir = tmp_path / "work"
    workdir.mkdir()
    return Bench(folder=tmp_path, workdir=workdir)


@pytest.fixture
def two_stages(bench: Bench) -> Path:
    """A blueprint of two stages whose scripted model asks for the time once."""
    return bench.blueprint(TWO_STAGES)


@pytest.fixture
def screens() -> Iterator[Open]:
    """Opens a command, a list of words, on a terminal of its own, and ends it with the test."""
    opened: list[Screen] = []

    def run(command: list[str], **more: Any) -> Screen:
        opened.append(Screen(command, **more))
        return opened[-1]

    yield run
    for screen in opened:
        screen.kill()


@pytest.fixture
def on_screen(screens: Open) -> Open:
    """Opens agentctl with these arguments on a terminal, and ends it with the test."""

    def run(*arguments: str | Path, **more: Any) -> Screen:
        return screens([sys.executable, "-m", "agentctl", *map(str, arguments)], **more)

    return run


@pytest.fixture
def in_workdir(bench: Bench, screens: Open) -> Open:
    """As `on_screen`, in the bench's workdir."""

    def run(*arguments: str | Path, **more: Any) -> Screen:
        command = [sys.executable, "-m", "agentctl", *map(str, arguments)]
        return screens(["/bin/sh", "-c", f'cd {bench.workdir}; exec "$@"', "sh", *command], **more)

    return run
