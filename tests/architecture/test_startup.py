"""Start-up costs what it must: what is heavy is not imported until it is needed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEAVY = (
    "rich", "mcp", "pydantic", "pydantic_monty", "redis", "keyring", "tree_sitter", "tree_sitter_bash",
    "tomlkit", "xllamacpp", "jsonpatch", "certifi", "trio", "httpx",
)  # fmt: skip
"""None of these belongs to an ordinary run: each is loaded by the one feature that needs it."""


def loaded_by(statement: str) -> set[str]:
    code = f"import sys\n{statement}\nprint('\\n'.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    return set(done.stdout.split())


def test_the_version_is_answered_before_anything_is_imported() -> None:
    statement = "sys.argv = ['agentctl', '--version']\nfrom agentctl.__main__ import main\nmain()"

    loaded = loaded_by(statement)

    assert not {"typer", "anyio", "agentctl.errors"} & loaded


@pytest.mark.parametrize("module", ["agentctl.cli.app", "agentctl.cli.run", "agentctl.cli.resume"])
def test_a_run_imports_nothing_heavy(module: str) -> None:
    loaded = loaded_by(f"import {module}")

    assert not loaded & set(HEAVY)


def test_the_command_line_itself_knows_no_command() -> None:
    loaded = loaded_by("import agentctl.cli.app")

    assert not {name for name in loaded if name.startswith("agentctl.cli.")} - {"agentctl.cli.app"}
    assert "anyio" not in loaded
