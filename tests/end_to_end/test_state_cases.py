"""Reported faults of stored state, resume and JSON Patch elsewhere, each tried here by its id.

Patches and files of JSON lines go through `agentctl.api`, resumes through the real command; what needs a
process to die at one commit is in tests/run/test_resume.py, `test_re_…`.
"""

import copy
import json
import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from agentctl.api import FileBackend, PatchError, SharedState, append_line, apply_patch, read_lines
from agentctl.state.typed import same
from tests.end_to_end.command import Bench
from tests.end_to_end.test_crash import lines_of

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared" / "cases"
OWN = ROOT / "tests" / "corpus" / "json-patch" / "cases.jsonl"


def cases(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.is_file() else []


def by_id(*paths: Path) -> Any:
    found = [case for path in paths for case in cases(path)]
    return pytest.mark.parametrize("case", found, ids=[case["id"] for case in found])


@by_id(OWN, SHARED / "json-patch.jsonl")
def test_a_patch_does_what_the_standard_says_or_nothing(case: dict[str, Any]) -> None:
    document, patch, expected = case["input"]["doc"], case["input"]["patch"], case["expected"]
    before = copy.deepcopy(document)

    if re.match(r"(patch )?error", expected):
        with pytest.raises(PatchError):
            apply_patch(document, patch)
    else:
        after = apply_patch(document, patch)
        assert expected.startswith("success") or same(after, json.loads(expected))

    assert same(document, before)


FILES: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "ST-001": ('{"i":1}\n{"i":2}{"i":3}\n{"i":4}\n', [{"i": 1}, {"i": 2}, {"i": 3}, {"i": 4}]),
    "ST-002": ('{"a":1}\n{"unterminated":', [{"a": 1}]),
    "ST-003": ('{"text":"close-then-open: }{ here"}\n', [{"text": "close-then-open: }{ here"}]),
    "ST-004": ('{"a":1}\nnull\n42\n[1]\n{"a":2}\n', [{"a": 1}, {"a": 2}]),
    "OS-001": ('{"a":1}\r\n\r\n{"a":2}\r\n', [{"a": 1}, {"a": 2}]),
    "OS-002": ('{"a":1}\n\x00\x00\x00{"a":2}\n{"a":3}\n', [{"a": 1}, {"a": 3}]),
    "OS-003": ('\ufeff{"a":1}\n{"a":2}\n', [{"a": 1}, {"a": 2}]),
    "OS-004": ('{"a":1}{"a":\n{"a":2}\n', [{"a": 1}, {"a": 2}]),
    "OS-005": ('{"a":"\u2028"}\n{"a":NaN}\n{"a":2}\n', [{"a": "\u2028"}, {"a": 2}]),
}
"""Ids of the shared cases, and ours of the same kinds."""


@pytest.mark.parametrize("name", FILES)
def test_what_stands_whole_in_a_file_is_read_and_what_comes_next_too(name: str, tmp_path: Path) -> None:
    text, expected = FILES[name]
    path = tmp_path / "log.jsonl"
    path.write_text(text, encoding="utf-8")

    assert list(read_lines(path.read_text("utf-8")).records) == expected
    append_line(path, {"next": True})

    assert list(read_lines(path.read_text("utf-8")).records) == [*expected, {"next": True}]


def test_the_shared_files_are_those_that_are_tried_here(shared: Path) -> None:
    found = {
        case["id"]: case["input"]["file"].replace("\\n", "\n")
        for case in cases(shared / "cases" / "state.jsonl")
        if "file" in case["input"]
    }
    assert found == {name: text for name, (text, _) in FILES.items() if name.startswith("ST-")}


@pytest.mark.anyio
async def test_st_008_names_that_begin_alike_are_kept_apart(tmp_path: Path) -> None:
    store = SharedState(backend=FileBackend(tmp_path / "store"))
    one, two = ("/w/" + "x" * 210 + end for end in "12")

    await store.set(one, "1")
    await store.set(two, "2")
    await store.scoped(one[3:]).set("k", "3")

    assert [await store.get(one), await store.get(two)] == ["1", "2"]
    assert await store.scoped(two[3:]).get("k") is None


APPENDS = """
[agent]
name = "appends"
[model]
use = ["scripted:"]
[stages.work]
prompt = "Append."
available_tools = ["shell", "read_file"]
[[script.replies]]
tool_calls = [{ tool = "shell", arguments = { command = "pwd >> log.txt" } }]
[[script.replies]]
tool_calls = [{ tool = "shell", arguments = { command = "echo 2 >> log.txt; touch begun; sleep 30" } }]
[[script.replies]]
text = "done"
"""
QUICK = APPENDS.replace("; touch begun; sleep 30", "")


def test_st_008_runs_in_workdirs_that_begin_alike_are_kept_apart(bench: Bench) -> None:
    path = bench.blueprint(QUICK)
    ran = []
    for end in "12":
        workdir = bench.folder / ("x" * 210 + end)
        workdir.mkdir()
        ran.append(bench.agentctl("run", path, "go", "--yolo", "--workdir", workdir, "--json").result)
        assert lines_of(workdir / "log.txt") == [str(workdir), "2"]

    assert ran[0]["thread"] != ran[1]["thread"]


def test_st_009_half_a_character_in_a_file_can_be_sent(tmp_path: Path) -> None:
    [record] = read_lines('{"stored":"\\ud83d"}\n').records

    assert json.dumps(record, ensure_ascii=False).encode("utf-8")


def test_st_011_a_link_in_place_of_a_file_of_state_is_refused(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").symlink_to(tmp_path / "elsewhere.jsonl")

    with pytest.raises(OSError, match="symbolic"):
        append_line(tmp_path / "log.jsonl", {})

    assert not (tmp_path / "elsewhere.jsonl").exists()


def killed(bench: Bench) -> None:
    """A run whose process is killed while its second call runs."""
    path = bench.blueprint(APPENDS)
    with bench.start("run", path, "go", "--yolo") as process:
        while not (bench.workdir / "begun").exists() and process.poll() is None:
            pass
        process.kill()


def thread_of(bench: Bench) -> str:
    shown: dict[str, Any] = json.loads(bench.agentctl("runs", "show", "last", "--json").out)
    return str(shown["run"]["thread_id"])


def test_re_001_a_call_left_open_by_a_kill_is_answered_when_the_talk_goes_on(bench: Bench) -> None:
    killed(bench)
    (bench.folder / "test.toml").write_text(QUICK, encoding="utf-8")

    again = bench.agentctl(
        "run", bench.folder / "test.toml", "go on", "--thread", thread_of(bench), "--jsonl"
    )

    results = re.findall(r'"outcome":"(\w+)"', again.out)
    assert again.code == 5, again.err  # no --yolo this time: it asks, and nobody is there
    assert "in_doubt" in results
    assert lines_of(bench.workdir / "log.txt").count("2") == 1


def test_re_002_what_was_mended_at_the_first_resume_is_stored(bench: Bench) -> None:
    killed(bench)

    first = bench.agentctl("resume", "last", "--limit", "steps=2")
    second = bench.agentctl("resume", "last", "--limit", "steps=9")

    assert (first.code, second.code) == (6, 0), second.err
    assert lines_of(bench.workdir / "log.txt").count("2") == 1
    assert bench.agentctl("state", "verify", "last").code == 0


def test_re_008_a_run_that_is_its_own_parent_makes_nothing_go_round_for_ever(
    bench: Bench, agentctl_home: Path
) -> None:
    ran = bench.agentctl("run", bench.blueprint(QUICK), "go", "--yolo", "--limit", "steps=1", "--json")
    other = bench.agentctl("run", bench.blueprint(QUICK), "go", "--yolo", "--json")
    run = str(ran.result["run"])
    with sqlite3.connect(agentctl_home / "agentctl" / "data" / "journal.sqlite") as database:
        database.execute("UPDATE runs SET parent_run = run_id WHERE run_id = ?", (run,))

    listed = json.loads(bench.agentctl("runs", "list", "--json").out)
    shown = bench.agentctl("runs", "show", run, "--json")
    resumed = bench.agentctl("resume", run, "--yolo")

    assert {one["run_id"] for one in listed} == {run, other.result["run"]}
    assert shown.code == 0
    assert (resumed.code, resumed.out) == (0, "done\n"), resumed.err
    assert bench.agentctl("runs", "rm", run).code == 0


def test_re_008_runs_that_are_each_others_parent_do_not_either(bench: Bench, agentctl_home: Path) -> None:
    path = bench.blueprint(QUICK)
    first, second = (
        str(bench.agentctl("run", path, "go", "--yolo", "--limit", "steps=1", "--json").result["run"])
        for _ in range(2)
    )
    with sqlite3.connect(agentctl_home / "agentctl" / "data" / "journal.sqlite") as database:
        database.execute("UPDATE runs SET parent_run = ? WHERE run_id = ?", (second, first))
        database.execute("UPDATE runs SET parent_run = ? WHERE run_id = ?", (first, second))

    assert bench.agentctl("runs", "show", first).code == 0
    assert bench.agentctl("runs", "show", first, "--json").code == 0
    assert bench.agentctl("resume", first, "--yolo").code in {0, 2}


def test_re_009_what_is_said_at_the_resume_is_in_force(bench: Bench) -> None:
    bench.agentctl("run", bench.blueprint(QUICK), "go", "--yolo", "--limit", "steps=1")

    resumed = bench.agentctl("resume", "last", "--deny", "shell")

    assert resumed.code == 0, resumed.err
    assert lines_of(bench.workdir / "log.txt") == [str(bench.workdir)]


def test_re_010_an_approval_for_the_run_is_there_after_a_resume(bench: Bench) -> None:
    path = bench.blueprint(QUICK.replace("echo 2", "pwd"))
    ask = ("--on-ask", "pause")
    assert bench.agentctl("run", path, "go", *ask).code == 4
    assert bench.agentctl("approvals", "answer", "last", "--run").code == 0

    resumed = bench.agentctl("resume", "last", *ask)

    assert resumed.code == 0, resumed.err
    assert len(lines_of(bench.workdir / "log.txt")) == 2


def test_every_shared_case_of_state_resume_and_patches_has_a_test(shared: Path) -> None:
    named = {f"ST-{name[3:]}" for name in FILES if name.startswith("ST-")}
    for path in (Path(__file__), ROOT / "tests" / "run" / "test_resume.py"):
        for kind, numbers in re.findall(r"def test_(st|re)((?:_\d{3})+)_", path.read_text("utf-8")):
            named |= {f"{kind.upper()}-{number}" for number in numbers.strip("_").split("_")}

    given = {case["id"] for name in ("state", "resume") for case in cases(shared / "cases" / f"{name}.jsonl")}
    assert given <= named, given - named
