from pathlib import Path

import pytest

from tests.end_to_end.command import Bench
from tests.reported.desk import Desk


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """Folders of a test's own, with hands to act in them."""
    return Desk(tmp_path)


@pytest.fixture
def bench(desk: Desk) -> Bench:
    """The real command, in the same workdir."""
    return Bench(folder=desk.folder, workdir=desk.work)
