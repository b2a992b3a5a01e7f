"""Trusted hashes are kept, and a broken list trusts nothing."""

from pathlib import Path

import pytest

from agentctl.errors import StateConflict
from agentctl.settings.trust_store import TrustStore


def test_a_hash_is_trusted_from_when_it_was_added() -> None:
    store = TrustStore()
    assert not store.is_trusted("a" * 64)

    store.add("a" * 64, blueprint=Path("/x/b.toml"))
    store.add("a" * 64, blueprint=Path("/x/b.toml"))

    assert TrustStore().is_trusted("a" * 64)
    assert not TrustStore().is_trusted("b" * 64)


@pytest.mark.parametrize("text", ["", "[]", "{", "\0"])
def test_a_broken_list_stops_instead_of_trusting_or_forgetting(text: str, tmp_path: Path) -> None:
    file = tmp_path / "trusted.json"
    file.write_text(text)
    store = TrustStore(file)

    with pytest.raises(StateConflict, match="can't be read"):
        store.is_trusted("a" * 64)
    with pytest.raises(StateConflict, match="can't be read"):
        store.add("a" * 64, blueprint=Path("/x"))

    assert file.read_text() == text
