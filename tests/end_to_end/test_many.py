"""Many runs in one process: one report, one exit code, each a run like any other."""

import json
from pathlib import Path

from tests.end_to_end.command import TWO_STAGES, Bench


def test_count_runs_a_blueprint_side_by_side(bench: Bench, two_stages: Path) -> None:
    ran = bench.agentctl("run", two_stages, "do it", "--count", "5", "--json")

    assert ran.code == 0, ran.err
    assert ran.result["finished"] == 5
    runs = bench.agentctl("runs", "list", "--json")
    assert runs.out.count("finished") >= 5


def test_batch_runs_one_item_a_line_and_keeps_their_order(bench: Bench, two_stages: Path) -> None:
    items = bench.folder / "items.jsonl"
    items.write_text('{"task": "one"}\n\n{"task": "two"}\n"three"\n', encoding="utf-8")

    ran = bench.agentctl("batch", two_stages, "--inputs", items, "--max-workers", "2", "--json")

    assert ran.code == 0, ran.err
    runs = ran.result["runs"]
    assert isinstance(runs, list)
    assert [run["index"] for run in runs] == [0, 1, 2]


def test_one_item_that_fails_does_not_stop_the_others(bench: Bench) -> None:
    path = bench.blueprint(TWO_STAGES.replace("[stages.plan]", "[inputs.city]\n[stages.plan]", 1))
    items = bench.folder / "items.jsonl"
    items.write_text('{"inputs": {"city": "Graz"}}\n{"inputs": {"town": "x"}}\n', encoding="utf-8")

    ran = bench.agentctl("batch", path, "--inputs", items, "--json")

    assert ran.code == 2
    assert ran.result["finished"] == 1


def test_a_line_that_is_no_item_names_its_place_before_anything_runs(bench: Bench, two_stages: Path) -> None:
    items = bench.folder / "items.jsonl"
    items.write_text('{"task": "one"}\n{"tsak": "two"}\nnonsense\n', encoding="utf-8")

    ran = bench.agentctl("batch", two_stages, "--inputs", items)

    assert ran.code == 3
    assert f"{items}:2:1" in ran.err
    assert f"{items}:3:1" in ran.err
    assert ran.out == ""


def test_jsonl_ends_with_the_result(bench: Bench, two_stages: Path) -> None:
    ran = bench.agentctl("run", two_stages, "do it", "--count", "3", "--jsonl")

    lines = [json.loads(line) for line in ran.out.splitlines()]
    assert [line["type"] for line in lines] == ["run", "run", "run", "result"]
