"""`agentctl plan` shows the machines that hold calls to an order."""

import json

import pytest

from agentctl.cli.app import run_app


def test_the_moves_of_each_machine_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_app(["plan", "coder"]) == 0

    shown = capsys.readouterr().out
    assert "machine  read-before-edit for each {path}, first unread" in shown
    assert "edit_file while known → known; else deny" in shown


def test_programs_read_them_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_app(["plan", "coder", "--json"]) == 0

    (machine,) = json.loads(capsys.readouterr().out)["machines"]
    assert machine["initial"] == "unread"
    assert {"on": "edit_file", "from": ["known"], "to": "known", "else": "deny"} in machine["moves"]
