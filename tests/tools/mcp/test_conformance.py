"""The official conformance suite for clients: what was recorded still holds, each failure is explained."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
RESULT = ROOT / "bench" / "results" / "mcp_conformance.json"


def test_every_failing_scenario_is_explained() -> None:
    page = (ROOT / "docs" / "mcp.md").read_text(encoding="utf-8")
    recorded = json.loads(RESULT.read_text(encoding="utf-8"))

    assert [name for name in recorded["failing"] if f"`{name}`" not in page] == []
    assert f"{recorded['passed']} of {recorded['scenarios']} scenarios" in page


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_suite_gives_what_was_recorded() -> None:
    command = [sys.executable, str(ROOT / "bench" / "mcp_conformance.py"), "--check"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode == 2:
        pytest.skip(ran.stderr.strip())

    assert ran.returncode == 0, ran.stdout
