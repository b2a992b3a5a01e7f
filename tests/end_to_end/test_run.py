import json
from pathlib import Path

from tests.end_to_end.command import TWO_STAGES, Bench

ASKING = TWO_STAGES.replace("[stages.plan]", '[tool_permissions]\ncurrent_time = "ask"\n[stages.plan]')


def test_a_run_takes_a_blueprint_through_its_stages_and_prints_the_answer(
    bench: Bench, two_stages: Path
) -> None:
    ran = bench.agentctl("run", two_stages, "do it")

    assert ran.code == 0, ran.err
    assert ran.out == "All done.\n"
    assert "stage plan" in ran.err
    assert "stage build" in ran.err
    assert "current_time" in ran.err


def test_json_is_one_object_and_nothing_else_on_stdout(bench: Bench, two_stages: Path) -> None:
    ran = bench.agentctl("run", two_stages, "do it", "--json")

    assert ran.code == 0
    assert ran.result["outcome"] == "finished"
    assert ran.result["answer"] == "All done."
    assert ran.result["exit_code"] == 0
    assert len(ran.out.splitlines()) == 1


def test_jsonl_begins_with_a_header_and_ends_with_the_result(bench: Bench, two_stages: Path) -> None:
    ran = bench.agentctl("run", two_stages, "do it", "--jsonl")

    lines = [json.loads(line) for line in ran.out.splitlines()]
    assert lines[0]["type"] == "header"
    assert lines[-1]["type"] == "result"
    kinds = [line["event"]["type"] for line in lines if line["type"] == "event"]
    assert kinds[0] == "RunStarted"
    assert kinds[-1] == "RunEnded"
    assert kinds.index("ToolCallDecided") < kinds.index("CallStarted") < kinds.index("CallCompleted")


def test_quiet_prints_the_answer_and_nothing_else(bench: Bench, two_stages: Path) -> None:
    ran = bench.agentctl("run", two_stages, "do it", "--quiet")

    assert (ran.out, ran.err) == ("All done.\n", "")


def test_an_ask_without_a_person_is_refused_and_the_flag_that_helps_is_named(bench: Bench) -> None:
    path = bench.blueprint(ASKING)

    ran = bench.agentctl("run", path, "do it")

    assert ran.code == 5
    assert "--allow 'current_time'" in ran.err
    assert bench.agentctl("run", path, "do it", "--allow", "current_time").code == 0
    assert bench.agentctl("run", path, "do it", "--yolo").code == 0


def test_a_paused_ask_is_saved_and_resume_goes_on_from_there(bench: Bench) -> None:
    path = bench.blueprint(ASKING)

    paused = bench.agentctl("run", path, "do it", "--on-ask", "pause")
    resumed = bench.agentctl("resume", "last", "--allow", "current_time")

    assert paused.code == 4
    assert "resume" in paused.err
    assert resumed.code == 0, resumed.err
    assert resumed.out == "All done.\n"


def test_a_deny_is_final_and_the_run_goes_on(bench: Bench, two_stages: Path) -> None:
    ran = bench.agentctl("run", two_stages, "do it", "--deny", "current_time", "--yolo", "--jsonl")

    assert ran.code == 0
    results = [
        line["event"]["message"]["result"]
        for line in map(json.loads, ran.out.splitlines())
        if line["type"] == "event" and line["event"].get("message", {}).get("type") == "ToolMessage"
    ]
    assert [result["outcome"] for result in results] == ["denied"]


def test_a_limit_stops_the_run_cleanly_and_a_higher_one_goes_on(bench: Bench, two_stages: Path) -> None:
    limited = bench.agentctl("run", two_stages, "do it", "--limit", "steps=1", "--json")
    resumed = bench.agentctl("resume", "last", "--limit", "steps=9")

    assert limited.code == 6
    assert "limits.steps" in json.dumps(limited.result)
    assert resumed.code == 0, resumed.err
    assert resumed.out == "All done.\n"


def test_a_run_that_has_ended_is_not_resumed(bench: Bench, two_stages: Path) -> None:
    bench.agentctl("run", two_stages, "do it")

    ran = bench.agentctl("resume", "last")

    assert ran.code == 2
    assert "--thread" in ran.err


def test_a_thread_is_continued_with_what_was_said_before(bench: Bench, two_stages: Path) -> None:
    first = bench.agentctl("run", two_stages, "do it", "--json")

    second = bench.agentctl("run", two_stages, "again", "--thread", str(first.result["thread"]), "--json")

    assert second.code == 0, second.err
    assert second.result["thread"] == first.result["thread"]


def test_the_journal_is_readable_by_its_owner_alone(
    bench: Bench, two_stages: Path, agentctl_home: Path
) -> None:
    bench.agentctl("run", two_stages, "do it")

    journal = agentctl_home / "agentctl" / "data" / "journal.sqlite"
    assert journal.stat().st_mode & 0o077 == 0
