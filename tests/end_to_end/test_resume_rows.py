"""Rows of docs/runs.md that need the command line: the blueprint, flags, views taken anew."""

from pathlib import Path

from tests.end_to_end.command import Bench

LIMITED = """
[agent]
name = "kept"
[model]
use = ["scripted:"]
[workspace]
initial = { done = [] }
[[state_effects]]
tool = "write_file"
ops = [{ op = "add", path = "/done/-", value = "{input.path}" }]
[stages.work]
prompt = "PROMPT"
workspace = ["/done"]
available_tools = ["write_file", "run_info", "current_time"]
[[script.replies]]
tool_calls = [{ tool = "write_file", arguments = { path = "a.txt", content = "a" } }]
[[script.replies]]
tool_calls = [{ tool = "write_file", arguments = { path = "b.txt", content = "b" } }]
[[script.replies]]
text = "All done."
"""


def stopped(bench: Bench, *flags: str) -> Path:
    """Run up to the limit of one step, and return the blueprint."""
    path = bench.blueprint(LIMITED.replace("PROMPT", "Work as it was."))
    ran = bench.agentctl("run", path, "go", "--limit", "steps=1", *flags)
    assert ran.code == 6, ran.err
    return path


def test_the_blueprint_is_what_it_was_when_the_run_began(bench: Bench) -> None:
    path = stopped(bench, "--allow", "write_file")
    path.write_text(LIMITED.replace("All done.", "Done by another file."), encoding="utf-8")

    resumed = bench.agentctl("resume", "last", "--limit", "steps=9", "--allow", "write_file")

    assert (resumed.code, resumed.out) == (0, "All done.\n"), resumed.err


def test_blueprint_current_takes_the_file_as_it_is_now(bench: Bench) -> None:
    path = stopped(bench, "--allow", "write_file")
    path.write_text(LIMITED.replace("All done.", "Done by another file."), encoding="utf-8")

    resumed = bench.agentctl(
        "resume", "last", "--blueprint", "current", "--limit", "steps=9", "--allow", "write_file"
    )

    assert (resumed.code, resumed.out) == (0, "Done by another file.\n"), resumed.err


def test_allow_and_limit_hold_no_longer_unless_said_again(bench: Bench) -> None:
    stopped(bench, "--allow", "write_file")

    resumed = bench.agentctl("resume", "last")

    assert resumed.code == 5, resumed.err
    assert (bench.workdir / "a.txt").exists()
    assert not (bench.workdir / "b.txt").exists()
    assert "refused, nobody to ask: write_file" in resumed.err


def test_deny_still_holds(bench: Bench) -> None:
    stopped(bench, "--deny", "write_file")

    resumed = bench.agentctl("resume", "last", "--limit", "steps=9", "--allow", "write_file")

    assert not (bench.workdir / "a.txt").exists()
    assert not (bench.workdir / "b.txt").exists()
    assert "write_file" in resumed.err


def test_what_a_view_showed_first_is_taken_anew(bench: Bench) -> None:
    second = '[[script.replies]]\ntool_calls = [{ tool = "write_file", arguments = { path = "b.txt"'
    anew = second.replace("]]\n", "]]\nwhen = '/done: [\"a.txt\"]'\n")
    path = bench.blueprint(LIMITED.replace(second, anew))

    in_one_go = bench.agentctl("run", path, "go", "--allow", "write_file")
    (bench.workdir / "a.txt").unlink()
    bench.agentctl("run", path, "go", "--limit", "steps=1", "--allow", "write_file")
    resumed = bench.agentctl("resume", "last", "--limit", "steps=9", "--allow", "write_file", "--json")

    assert "1 unread replies" in in_one_go.err, "the reply that wants a.txt in the base is passed over"
    assert (resumed.code, resumed.result["steps"]) == (0, 3), resumed.err
