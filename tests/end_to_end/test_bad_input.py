"""Bad input gets one clear line, the right exit code, and never a traceback."""

from pathlib import Path

import pytest

from tests.end_to_end.command import TWO_STAGES, Bench, Ran


def one_clear_sentence(ran: Ran, code: int, *words: str) -> None:
    assert ran.code == code, ran.err
    assert "Traceback" not in ran.err
    assert ran.out == ""
    for word in words:
        assert word in ran.err


def test_a_blueprint_that_is_not_there(bench: Bench) -> None:
    one_clear_sentence(bench.agentctl("run", "./nowhere.toml"), 2, "nowhere.toml")


def test_a_name_that_no_catalogue_has(bench: Bench) -> None:
    one_clear_sentence(bench.agentctl("run", "helo"), 2, "hello")


def test_a_toml_error_names_line_and_column(bench: Bench) -> None:
    path = bench.blueprint('[agent]\nname = "x\n')

    one_clear_sentence(bench.agentctl("run", path), 3, f"{path}:2:")


def test_an_unknown_key_names_its_place_and_the_nearest_right_one(bench: Bench) -> None:
    path = bench.blueprint(TWO_STAGES.replace("available_tools", "avaliable_tools", 1))

    one_clear_sentence(bench.agentctl("run", path), 3, f"{path}:8:", "available_tools")


def test_an_unknown_provider(bench: Bench, two_stages: Path) -> None:
    one_clear_sentence(bench.agentctl("run", two_stages, "--model", "opnai:gpt-5"), 3, "openai")


def test_a_missing_key(bench: Bench, two_stages: Path) -> None:
    ran = bench.agentctl("run", two_stages, "--model", "anthropic:claude-sonnet-4-5")

    one_clear_sentence(ran, 7, "ANTHROPIC_API_KEY")


def test_a_workdir_that_is_a_file(bench: Bench, two_stages: Path) -> None:
    one_clear_sentence(bench.agentctl("run", two_stages, "--workdir", two_stages), 2, "not a folder")


def test_a_workdir_that_is_not_there(bench: Bench, two_stages: Path) -> None:
    one_clear_sentence(bench.agentctl("run", two_stages, "--workdir", bench.folder / "gone"), 2, "gone")


def test_a_blueprint_of_ten_megabytes(bench: Bench) -> None:
    path = bench.blueprint(TWO_STAGES + "#" * 10_000_000)

    one_clear_sentence(bench.agentctl("run", path), 3, "MiB")


def test_a_blueprint_that_is_a_folder(bench: Bench) -> None:
    one_clear_sentence(bench.agentctl("run", bench.workdir), 2)


@pytest.mark.parametrize(
    ("option", "value", "code"),
    [
        ("--limit", "stepz=3", 2),
        ("--limit", "steps=many", 2),
        ("--allow", "shel(git *)", 3),
        ("--deny", "shell(", 3),
        ("--on-ask", "maybe", 2),
        ("-i", "novalue", 2),
        ("--nonsense", "x", 2),
    ],
)
def test_a_wrong_option(bench: Bench, two_stages: Path, option: str, value: str, code: int) -> None:
    one_clear_sentence(bench.agentctl("run", two_stages, option, value), code)


def test_an_input_that_the_blueprint_needs(bench: Bench) -> None:
    path = bench.blueprint(TWO_STAGES + '\n[inputs.city]\ndescription = "where"\n')

    one_clear_sentence(bench.agentctl("run", path), 2, "city", "-i city=VALUE")


def test_a_command_that_does_not_exist(bench: Bench) -> None:
    one_clear_sentence(bench.agentctl("rnu"), 2, "rnu")


def test_a_config_with_a_mistake_stops_everything(
    bench: Bench, two_stages: Path, agentctl_home: Path
) -> None:
    config = agentctl_home / "agentctl" / "config" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[tool_permissions]\nshell = "dney"\n', encoding="utf-8")

    one_clear_sentence(bench.agentctl("run", two_stages), 3, f"{config}:2:", "deny")
