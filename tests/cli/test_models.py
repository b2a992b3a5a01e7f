"""`agentctl models` as a person calls it."""

from pathlib import Path

import pytest

from agentctl.cli.app import run_app
from agentctl.llm.local_catalogue import default_model


def test_verify_and_rm_of_a_model_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_app(["models", "verify"]) == 1
    assert "models install" in capsys.readouterr().err
    assert run_app(["models", "rm", default_model()]) == 1
    assert run_app(["models", "rm", "nothing"]) == 2


def test_install_from_a_file_of_another_size_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = tmp_path / "own.gguf"
    own.write_bytes(b"not it")

    assert run_app(["models", "install", "--from", str(own)]) == 2
    assert "is not a file of 1,117,320,768 bytes" in capsys.readouterr().err
