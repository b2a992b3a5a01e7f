"""Keys in the keyring: kept, found, told without being shown, deleted."""

import io
import sys
from collections.abc import Iterator

import pytest

from agentctl.cli.app import run_app
from agentctl.cli.keyring import stored_key

keyring = pytest.importorskip("keyring")
backend = pytest.importorskip("keyring.backend")
KEY = "sk-kept-0123456789"


class MemoryKeyring(backend.KeyringBackend):  # type: ignore[misc, name-defined]
    priority = 1  # type: ignore[assignment]

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.kept[service, username]


@pytest.fixture(autouse=True)
def _memory_keyring() -> Iterator[None]:
    before = keyring.get_keyring()
    keyring.set_keyring(MemoryKeyring())
    yield
    keyring.set_keyring(before)


def piped(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))


def test_a_key_is_kept_told_by_its_place_alone_and_deleted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    piped(monkeypatch, f"{KEY}\n")

    assert run_app(["auth", "set", "groq"]) == 0
    assert stored_key("groq") == KEY
    assert run_app(["auth", "list"]) == 0
    assert run_app(["auth", "rm", "groq"]) == 0
    assert run_app(["auth", "rm", "groq"]) == 2

    told = capsys.readouterr()
    assert "groq                   keyring" in told.out
    assert KEY not in told.out + told.err
    assert stored_key("groq") == ""


def test_the_environment_goes_before_the_keyring(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GROQ_API_KEY", KEY)
    assert run_app(["auth", "list"]) == 0
    assert "groq                   environment GROQ_API_KEY" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["", "\n", "two words\n"])
def test_what_is_no_key_is_a_usage_error(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    piped(monkeypatch, text)
    assert run_app(["auth", "set", "groq"]) == 2


def test_an_unknown_provider_is_told_the_nearest_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_app(["auth", "rm", "anthropc"]) == 2
    assert "did you mean 'anthropic'?" in capsys.readouterr().err
