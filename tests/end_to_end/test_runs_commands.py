"""`runs`, `log` and `msg`: what the journal tells a person, and a person a run."""

import json
from pathlib import Path

from tests.end_to_end.command import Bench
from tests.end_to_end.test_many_asking import TEN


def test_runs_are_listed_shown_and_removed(bench: Bench, two_stages: Path) -> None:
    first = str(bench.agentctl("run", two_stages, "the first", "--json").result["run"])
    second = str(bench.agentctl("run", two_stages, "the second", "--json").result["run"])

    listed = bench.agentctl("runs", "list")
    shown = bench.agentctl("runs", "show", second[:-2])
    removed = bench.agentctl("runs", "rm", first)
    after = json.loads(bench.agentctl("runs", "list", "--json").out)

    assert [line.split()[0] for line in listed.out.splitlines()] == ["RUN", first, second]
    assert "the second" in shown.out
    assert "finished" in shown.out
    assert removed.code == 0
    assert [run["run_id"] for run in after] == [second]
    assert bench.agentctl("runs", "show", first).code == 2


def test_no_runs_is_not_an_error(bench: Bench) -> None:
    assert bench.agentctl("runs", "list").code == 0
    assert json.loads(bench.agentctl("runs", "list", "--json").out) == []
    assert bench.agentctl("log", "last").code == 2


def test_a_log_tells_what_happened_in_order(bench: Bench, two_stages: Path) -> None:
    bench.agentctl("run", two_stages, "do it")

    told = bench.agentctl("log", "last").out
    records = [json.loads(line) for line in bench.agentctl("log", "last", "--json").out.splitlines()]

    assert told.index("stage plan") < told.index("✓ current_time · allowed") < told.index("stage build")
    assert "All done." in told
    assert next(record["event"]["type"] for record in records) == "RunStarted"
    assert records[-1]["event"]["type"] == "RunEnded"
    assert [record["sequence"] for record in records] == sorted(record["sequence"] for record in records)


def test_a_sub_agent_is_named_behind_its_run(bench: Bench) -> None:
    bench.agentctl("run", bench.blueprint(TEN), "go", "--yolo")

    shown = json.loads(bench.agentctl("runs", "show", "last", "--json").out)
    child = shown["subagents"][3]
    by_name = bench.agentctl("log", f"last/{child['agent']}", "--json")
    by_id = bench.agentctl("log", f"last/{child['run_id']}", "--json")
    nobody = bench.agentctl("log", "last/nobody")

    assert len(shown["subagents"]) == 10
    assert by_name.out == by_id.out != ""
    assert nobody.code == 2
    assert child["agent"] in nobody.err


def test_a_run_that_has_ended_takes_no_message_and_cannot_be_stopped(bench: Bench, two_stages: Path) -> None:
    bench.agentctl("run", two_stages, "do it")

    for words in (("msg", "last", "hello"), ("pause", "last"), ("cancel", "last")):
        ran = bench.agentctl(*words)
        assert ran.code == 2
        assert "has ended" in ran.err
    assert bench.agentctl("msg", "last", "  ").code == 2
