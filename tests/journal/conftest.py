from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from agentctl.journal.sqlite import open_journal
from agentctl.journal.store import Journal
from agentctl.testing.memory_journal import MemoryJournal

Opener = Callable[[], Awaitable[Journal]]


@pytest.fixture(params=["sqlite", "memory"])
async def journal(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Journal]:
    made: Journal = (
        MemoryJournal() if request.param == "memory" else await open_journal(tmp_path / "journal.db")
    )
    yield made
    await made.aclose()
