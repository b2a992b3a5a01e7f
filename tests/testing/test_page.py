"""The example in docs/testing.md runs as it is written, and what the page names is there."""

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")


def test_the_example_runs(tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    example = tmp_path / "example.py"
    example.write_text(code, encoding="utf-8")

    ran = subprocess.run(
        [sys.executable, str(example)], cwd=ROOT, check=False, capture_output=True, text=True, timeout=60
    )

    assert ran.returncode == 0, ran.stderr


def test_all_that_the_table_names_is_there() -> None:
    modules = [
        import_module(f"agentctl.testing.{path.stem}")
        for path in (ROOT / "agentctl" / "testing").glob("[a-z]*.py")
    ]

    for name in (
        "play",
        "open_stage",
        "approve",
        "MemoryJournal",
        "HandClock",
        "RecordingExecutor",
        "replay_server",
    ):
        assert name in PAGE
        assert any(hasattr(module, name) for module in modules), name
