"""Reading outside the workdir takes two: the blueprint's declaration and the user's grant."""

from pathlib import Path

import pytest

from agentctl.blueprint.load import parse_blueprint
from agentctl.errors import InvalidInput
from agentctl.locations import config_dir
from agentctl.policy.paths import Place
from agentctl.run.read_paths import granted_read_paths
from agentctl.settings.load import load_settings


def readable(tmp_path: Path, declared: str, config: str) -> list[str]:
    config_dir().mkdir(parents=True, exist_ok=True)
    (config_dir() / "config.toml").write_text(config, encoding="utf-8")
    text = f'[agent]\nname = "a"\n[read_paths]\nallow = [{declared}]\n[stages.s]\n'
    blueprint = parse_blueprint(text.encode(), path=tmp_path / "a.toml", found_by="path")
    place = Place(workdir="/repo/app", home="/home/u")
    return [str(path) for path in granted_read_paths(load_settings(), blueprint, place)]


@pytest.mark.parametrize(
    ("declared", "granted", "expected"),
    [
        ('"/data/**"', '"/data/**"', ["/data"]),
        ('"/data"', "", []),
        ('"/data"', '"/other"', []),
        ('"/data/runs"', '"/data"', ["/data/runs"]),
        ('"/data"', '"/data/runs"', ["/data/runs"]),
        ('"~/docs"', '"/home/u/docs"', ["/home/u/docs"]),
        ('"../shared"', '"/repo/shared"', ["/repo/shared"]),
        ('"/data"', '"/database"', []),
    ],
)
def test_a_place_counts_if_it_is_declared_and_granted(
    tmp_path: Path, declared: str, granted: str, expected: list[str]
) -> None:
    assert readable(tmp_path, declared, f"[read_paths]\nallow = [{granted}]\n") == expected


def test_a_grant_may_be_for_one_agent(tmp_path: Path) -> None:
    assert readable(tmp_path, '"/data"', '[agents.a.read_paths]\nallow = ["/data"]\n') == ["/data"]
    assert readable(tmp_path, '"/data"', '[agents.b.read_paths]\nallow = ["/data"]\n') == []


@pytest.mark.parametrize("entry", ["", "/a/*/b", "~other/x", "/a/../b/*"])
def test_an_entry_that_is_no_single_place_is_told_with_its_place(tmp_path: Path, entry: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        readable(tmp_path, f'"{entry}"', "")

    (problem,) = caught.value.problems
    assert (problem.position.line, problem.key) == (4, "read_paths.allow[0]")
