"""Blueprints are found by name or by path, and it is known which."""

from pathlib import Path

import pytest

from agentctl.blueprint.catalogue import entries, find, load
from agentctl.errors import UsageError

TEXT = '[agent]\nname = "a"\n[stages.one]\n'


@pytest.fixture
def mine(agentctl_home: Path) -> Path:
    folder = agentctl_home / "agentctl" / "config" / "blueprints"
    folder.mkdir(parents=True)
    return folder


def test_a_name_finds_the_users_own_first(mine: Path) -> None:
    (mine / "hello.toml").write_text(TEXT)

    assert load("hello").source.found_by == "user"
    assert load("hello").source.path == mine / "hello.toml"


def test_a_name_finds_a_shipped_blueprint() -> None:
    assert find("hello").found_by == "shipped"


def test_a_path_is_a_path_even_into_the_catalogue(mine: Path) -> None:
    (mine / "hello.toml").write_text(TEXT)

    assert find(str(mine / "hello.toml")).found_by == "path"


def test_a_file_in_the_current_directory_never_stands_in_for_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine").write_text(TEXT)
    monkeypatch.chdir(tmp_path)

    with pytest.raises(UsageError, match=r"For the file of that name write './mine'"):
        find("mine")


def test_a_folder_stands_for_the_blueprint_in_it(tmp_path: Path) -> None:
    (tmp_path / "blueprint.toml").write_text(TEXT)

    assert load(f"{tmp_path}/").source.path == tmp_path / "blueprint.toml"


def test_a_folder_in_the_catalogue_is_named_after_itself(mine: Path) -> None:
    (mine / "team").mkdir()
    (mine / "team" / "blueprint.toml").write_text(TEXT)
    (mine / "team.script.toml").write_text("")

    assert [entry.name for entry in entries() if entry.found_by == "user"] == ["team"]


def test_an_unknown_name_is_answered_with_the_nearest_and_all_known() -> None:
    with pytest.raises(UsageError, match="Did you mean 'hello'") as caught:
        find("helo")
    assert "hello" in caught.value.hint


@pytest.mark.parametrize("name", ["nothing-like-it", "..", "~", "a/b", "x.toml"])
def test_what_is_not_there_is_a_usage_error(name: str) -> None:
    with pytest.raises(UsageError):
        load(name)
