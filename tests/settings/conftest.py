"""A place to write the user's config."""

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def write_config(agentctl_home: Path) -> Callable[[str], Path]:
    """Return a function that makes a text the user's config.toml."""
    file = agentctl_home / "agentctl" / "config" / "config.toml"

    def write(text: str) -> Path:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    return write
