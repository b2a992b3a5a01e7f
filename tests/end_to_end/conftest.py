from pathlib import Path

import pytest

from tests.end_to_end.command import TWO_STAGES, Bench


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
