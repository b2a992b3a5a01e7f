"""The shared corpora, through the command that people use."""

import json
from pathlib import Path

import pytest

from agentctl.cli.app import run_app

OWN = Path(__file__).resolve().parents[2] / "corpus" / "shell"


@pytest.mark.parametrize("name", ["permission", "safe-list"])
def test_every_case_of_our_own_is_decided_as_it_should_be(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run_app(["policy", "test", "--json", str(OWN / f"{name}.jsonl")])
    report = json.loads(capsys.readouterr().out)

    assert (code, report["failed"], report["skipped"], report["contested"]) == (0, [], [], [])
    assert report["passed"] == report["total"] > 300


@pytest.mark.parametrize("name", ["shell-permission", "shell-safe-list"])
def test_every_shared_case_is_decided_as_it_should_be(
    name: str, shared: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run_app(["policy", "test", "--json", str(shared / "cases" / f"{name}.jsonl")])
    report = json.loads(capsys.readouterr().out)

    assert (code, report["failed"], report["skipped"]) == (0, [], [])
    assert report["passed"] == report["total"] > 0


def test_of_the_contested_cases_only_the_documented_ones_differ(
    shared: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    differing = []
    for name in ("shell-permission", "shell-safe-list"):
        run_app(["policy", "test", "--json", str(shared / "cases" / f"{name}.jsonl")])
        differing += [case["id"] for case in json.loads(capsys.readouterr().out)["contested"]]

    assert differing == ["SP-150", "SP-151"]
