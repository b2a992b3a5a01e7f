"""Many runs in one process: one report, one exit code, each a run like any other."""

import json
import signal
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
    assert [line["type"] for line in lines] == ["header", "run", "run", "run", "result"]


def test_what_was_refused_in_many_runs_is_told_once_with_its_flag(bench: Bench) -> None:
    ran = bench.agentctl("run", "scout", "x", "--model", "scripted:", "--count", "3")
    again = bench.agentctl("run", "scout", "x", "--model", "scripted:", "--count", "2", "--json")

    assert (ran.code, again.code) == (5, 5)
    assert ran.err.count("let it through with: --allow 'grep'") == 1
    assert [run["refused"][0]["allow"] for run in json.loads(again.out)["runs"]] == [["grep"], ["grep"]]


def test_a_reader_that_goes_away_ends_none_of_many_runs(bench: Bench, two_stages: Path) -> None:
    with bench.start("run", two_stages, "do it", "--count", "4", "--jsonl") as process:
        assert process.stdout is not None
        process.stdout.close()
        process.stdout = None
        _, err = process.communicate(timeout=60)

    assert (process.returncode, err) == (0, "")
    runs = json.loads(bench.agentctl("runs", "list", "--json").out)
    assert [run["outcome"] for run in runs] == ["finished"] * 4


def test_an_item_may_hold_any_character_that_json_may_hold(bench: Bench, two_stages: Path) -> None:
    items = bench.folder / "items.jsonl"
    items.write_text('\ufeff{"task": "one\u2028two"}\r\n\r\n"three"\r\n', encoding="utf-8")

    ran = bench.agentctl("batch", two_stages, "--inputs", items, "--json")

    assert (ran.code, json.loads(ran.out)["total"]) == (0, 2)


def test_an_error_before_the_runs_is_a_result_too(bench: Bench, two_stages: Path) -> None:
    ran = bench.agentctl("batch", two_stages, "--inputs", "nowhere", "--json")

    assert (ran.code, json.loads(ran.out)["exit_code"]) == (2, 2)


def test_an_interrupt_tells_of_every_run_that_stands_still(bench: Bench) -> None:
    call = "tool_calls = [{ tool = 'shell', arguments = { command = 'sleep 30' } }]"
    text = TWO_STAGES.replace('tool_calls = [{ tool = "current_time" }]', call).replace(
        '"current_time"', '"shell"'
    )
    command = ("run", bench.blueprint(text), "go", "--yolo", "--count", "2", "--jsonl")
    with bench.start(*command) as process:
        while bench.agentctl("runs", "list", "--json").out.count('"running"') < 2:
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)

    lines = [json.loads(line) for line in out.splitlines()]
    assert process.returncode == 130
    assert [line["type"] for line in lines] == ["header", "run", "run", "result"]
    assert {line["outcome"] for line in lines if line["type"] == "run"} == {"cancelled"}
    assert f"agentctl resume {lines[1]['run']}" in err or f"agentctl resume {lines[2]['run']}" in err


def test_an_item_with_a_value_of_the_wrong_kind_names_its_line(bench: Bench, two_stages: Path) -> None:
    items = bench.folder / "items.jsonl"
    items.write_text('{"task": null}\n{"inputs": {"a": [1]}}\n{"workdir": 5}\n', encoding="utf-8")

    ran = bench.agentctl("batch", two_stages, "--inputs", items)

    assert ran.code == 3
    assert f"{items}:1:1: task is a text" in ran.err
    assert f"{items}:2:1: inputs.a is a text, a number or a truth value" in ran.err
    assert f"{items}:3:1: workdir is a text" in ran.err


def test_a_truth_value_of_an_item_is_given_as_json_writes_it(bench: Bench) -> None:
    text = TWO_STAGES.replace("[stages.plan]", '[inputs.fast]\nchoices = ["true"]\n[stages.plan]', 1)
    items = bench.folder / "items.jsonl"
    items.write_text('{"inputs": {"fast": true}}\n', encoding="utf-8")

    ran = bench.agentctl("batch", bench.blueprint(text), "--inputs", items)

    assert ran.code == 0, ran.err
