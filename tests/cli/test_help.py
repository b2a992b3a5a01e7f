"""What a person meets who looks for a command."""

import pytest

from agentctl.cli.app import COMMANDS, run_app


def test_a_mistyped_command_names_the_one_that_was_meant(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_app(["aproval"]) == 2

    assert "There is no command 'aproval'; did you mean 'approvals'?" in capsys.readouterr().err


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_every_command_fits_a_narrow_terminal_and_looks_alike(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_app([command, "--help"]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Usage: ")
    assert f" {command} [OPTIONS]" in lines[0]
    assert lines[2].startswith("  "), "says first what it does"
    assert not [line for line in lines if len(line) > 80 or "╭" in line or "install-completion" in line]
