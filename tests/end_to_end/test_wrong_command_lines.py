"""What a new user types wrong: one clear line, the right exit code, and never a traceback."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.end_to_end.command import Bench

ASKS_FOR_INPUTS = """
[agent]
name = "asks"
[inputs.language]
choices = ["py", "js"]
[inputs.file]
description = "which file"
[model]
use = ["scripted:"]
[stages.work]
prompt = "Work on {inputs.file} in {inputs.language}."
[script]
replies = [{ text = "Done." }]
"""


KEYED = """
[agent]
name = "keyed"
[model]
use = ["scripted:"]
[[state_keys]]
name = "review"
[stages.work]
prompt = "Work."
[script]
replies = [{ text = "Done." }]
"""


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        ("run hello fix the bug", 2, "quotes around a text of several words"),
        ("run hello -4", 2, "stands behind --: agentctl run … -- -4"),
        ("run hello --count x", 2, "'x' is not a whole number"),
        ("run hello --limit step=3", 2, "Did you mean 'steps'?"),
        ("run hello --limit steps", 2, "write --limit steps=N"),
        ("run hello --limit steps=x", 2, "--limit steps: 'x': expected a whole number"),
        ("run hello --deny shel", 3, "(did you mean 'shell'?)"),
        ("run hello -i a=@nope", 2, "-i a: 'nope' cannot be read: No such file or directory."),
        ("run ./asks.tml", 2, "There is no blueprint at 'asks.tml'. Did you mean 'asks.toml'?"),
        ("run asks", 2, "For the file of that name write './asks.toml'."),
        ("run ./asks.toml", 2, "needs the inputs 'language', 'file' (which file)."),
        ("run ./asks.toml -i langage=py", 2, "Did you mean 'language'?"),
        (f"check {'x' * 300}.toml", 2, "File name too long"),
        (f"check {'x' * 300}", 2, "There is no blueprint named"),
        ("batch hello --inputs noise", 2, "--inputs: 'noise' cannot be read: it is not UTF-8 text"),
        ("batch hello --inputs .", 2, "--inputs: '.' cannot be read: Is a directory."),
        ("policy test noise", 2, "'noise' cannot be read: it is not UTF-8 text (byte 0xff at 2)"),
        ("policy import claude nope", 2, "'nope' cannot be read: No such file or directory."),
        ("why hello", 2, "Say which call."),
        ("why hello shell(ls", 2, "the last bracket is missing"),
        ("config show limts", 1, "did you mean 'limits'?"),
        ("config set limits.steps -- -4", 3, "expected a number of at least 1"),
        ("approvals answer last --document nope", 2, "--document: 'nope' cannot be read"),
        ("models list -p antropic", 2, "Did you mean 'anthropic'?"),
        ("models rm qwen2.5-coder-1.5b", 1, "is not installed"),
        ("hooks list hello", 1, "no hooks"),
        ("mcp list", 0, "no MCP servers"),
        ("replay last --policy .", 2, "The policy '.' is a directory."),
        ("state get last reviw", 1, "did you mean 'review'?"),
        ("state set last reviw 1", 0, "the blueprint declares no such key; did you mean 'review'?"),
        ("state migrate last", 0, "nothing has drifted"),
        ("state migrate last --with lift.py", 0, "nothing has drifted"),
        ("hooks test hello --event nope", 2, "--event: 'nope' cannot be read"),
    ],
)
def test_a_wrong_command_line_is_told_what_to_type(
    bench: Bench, arguments: str, code: int, told: str
) -> None:
    (bench.workdir / "noise").write_bytes(b"ab\xff\x00")
    (bench.workdir / "asks.toml").write_text(ASKS_FOR_INPUTS, encoding="utf-8")
    if " last" in arguments:
        bench.agentctl("run", bench.blueprint(KEYED))

    ran = bench.agentctl(*arguments.split())

    assert (ran.code, ran.out) == (code, "")
    assert told in ran.err
    assert "bug in agentctl" not in ran.err
    assert "Errno" not in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.parametrize("option", ["--model", "--thread"])
def test_an_option_with_nothing_in_it_is_not_passed_over(bench: Bench, option: str) -> None:
    ran = bench.agentctl("run", "hello", option, "")

    assert ran.code == 2
    assert "it is empty" in ran.err


def test_options_about_a_call_that_was_not_made_are_refused_for_a_past_one(
    bench: Bench, two_stages: Path
) -> None:
    bench.agentctl("run", two_stages)

    ran = bench.agentctl("why", "last", "call-0", "--stage", "plan")

    assert ran.code == 2
    assert "a call that was not made yet" in ran.err


def test_a_conversation_that_is_not_there_is_begun_and_said(bench: Bench, two_stages: Path) -> None:
    first = bench.agentctl("run", two_stages, "--thread", "talk")
    again = bench.agentctl("run", two_stages, "--thread", "talk")

    assert "there was no conversation 'talk'" in first.err
    assert "conversation" not in again.err


def test_a_wrong_trust_is_said_to_be_wrong(bench: Bench) -> None:
    (bench.folder / "hook.py").write_text("print()\n", encoding="utf-8")
    hooked = '[[hooks]]\nname = "a"\ncommand = ["python3", "hook.py"]\nevents = ["tool_call"]\n'
    blueprint = bench.blueprint('[agent]\nname = "t"\n' + hooked + '[stages.work]\nprompt = "p"\n')

    ran = bench.agentctl("run", blueprint, "--trust", "abc123")

    assert ran.code == 3
    assert "--trust abc123 is not the hash of this code." in ran.err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full is Linux's")
@pytest.mark.parametrize(
    "arguments",
    [["--version"], ["--help"], ["runs", "list"], ["tools", "safe"], ["run", "hello", "--model", "scripted:"]]
    + [["run", "hello", "--model", "scripted:", form] for form in ("--json", "--jsonl", "--quiet")],
)
def test_what_could_not_be_written_is_a_failure_and_said(bench: Bench, arguments: list[str]) -> None:
    bench.agentctl("run", "hello", "--model", "scripted:")
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run(
            [sys.executable, "-m", "agentctl", *arguments],
            stdout=full, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, check=False,
            env=bench.environ(), cwd=bench.workdir, start_new_session=True, timeout=60,
        )  # fmt: skip

    assert ran.returncode == 1
    assert "No space left on device" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert "bug in agentctl" not in ran.stderr


@pytest.mark.parametrize("arguments", ["tools safe", "--help", "--version", "schema blueprint", "log --json"])
def test_a_reader_that_has_seen_enough_is_no_failure(bench: Bench, arguments: str) -> None:
    bench.agentctl("run", "hello", "--model", "scripted:")
    with bench.start(*arguments.split()) as process:
        assert process.stdout is not None
        process.stdout.close()
        process.stdout = None
        _, err = process.communicate(timeout=60)

    assert (process.returncode, err) == (0, "")


def test_the_log_says_how_the_run_ended_and_the_end_is_said_once(bench: Bench) -> None:
    ran = bench.agentctl("run", "scout", "x", "--model", "scripted:")

    assert ran.err.count("nobody was there to answer") == 1
    last = bench.agentctl("log", "last").out.splitlines()[-1]
    assert last.split("  ", 1)[1].startswith("refused · 4 steps · 1,6")


def test_what_cannot_be_taken_over_from_another_tool_is_said(bench: Bench) -> None:
    (bench.workdir / "rules.json").write_text('{"permissions": {"allow": [3, "Read"], "deny": 4}}', "utf-8")
    (bench.workdir / "none.json").write_text('{"theme": "dark"}', "utf-8")

    ran = bench.agentctl("policy", "import", "claude", "rules.json")
    nothing = bench.agentctl("policy", "import", "gemini", "none.json")

    assert "# NOT CARRIED OVER: 3: allow holds it" in ran.out
    assert "# NOT CARRIED OVER: 4: deny holds it" in ran.out
    assert "none.json holds nothing that is read as a rule of gemini" in nothing.err


def test_a_lifting_function_that_fails_is_named(bench: Bench) -> None:
    (bench.workdir / "lift.py").write_text("def lift(value, version):\n    raise KeyError('x')\n", "utf-8")
    bench.agentctl("run", bench.blueprint(KEYED))
    bench.agentctl("state", "set", "last", "review", "text")
    drifted = bench.blueprint(
        KEYED.replace('name = "review"', 'name = "review"\nschema = { type = "integer" }')
    )

    ran = bench.agentctl("state", "migrate", "last", "--blueprint", drifted, "--with", "lift.py:lift")

    assert ran.code == 2
    assert "--with: the function failed: KeyError: 'x'" in ran.err


def test_a_home_that_cannot_be_used_is_named_with_the_way_out(bench: Bench) -> None:
    (bench.folder / "file").write_text("", encoding="utf-8")

    ran = bench.agentctl("run", "hello", AGENTCTL_HOME=str(bench.folder / "file"))

    assert ran.code == 1
    assert "cannot be used: Not a directory." in ran.err
    assert "AGENTCTL_HOME=FOLDER" in ran.err


def test_a_config_that_is_a_link_to_nothing_is_named_as_that(bench: Bench, agentctl_home: Path) -> None:
    folder = agentctl_home / "agentctl" / "config"
    folder.mkdir(parents=True)
    (folder / "config.toml").symlink_to("nowhere")

    ran = bench.agentctl("run", "hello")

    assert ran.code == 2
    assert "It is a link to what is not there." in ran.err
    assert "Did you mean" not in ran.err


@pytest.mark.parametrize("encoding", ["ascii", "utf-8:strict"])
def test_what_an_encoding_does_not_have_is_written_out(bench: Bench, encoding: str) -> None:
    bench.agentctl("run", "hello", "ü日本 \udcff", "--model", "scripted:")

    for arguments in (["log"], ["runs", "list"], ["runs", "show"], ["check", "./caf\udce9.toml"]):
        ran = bench.agentctl(*arguments, PYTHONIOENCODING=encoding)
        assert "bug in agentctl" not in ran.err
        assert ran.code == (2 if arguments[0] == "check" else 0)


def test_a_value_of_shared_state_is_what_the_file_holds(bench: Bench) -> None:
    (bench.workdir / "bom.txt").write_bytes("\ufeffa\r\nb".encode())
    (bench.workdir / "noise").write_bytes(b"ab\xff")
    bench.agentctl("run", "hello", "--model", "scripted:")

    assert bench.agentctl("shared", "set", "last", "k", "@bom.txt").code == 0
    assert json.loads(bench.agentctl("shared", "get", "last", "k", "--json").out)["value"] == "\ufeffa\r\nb"
    wrong = bench.agentctl("shared", "set", "last", "k", "@noise")
    assert wrong.code == 2
    assert "it is not UTF-8 text" in wrong.err


def test_json_is_one_value_or_nothing_and_messages_are_on_stderr(bench: Bench, two_stages: Path) -> None:
    """docs/output.md: a list of nothing is a list; what is absent is no JSON."""
    bench.agentctl("run", two_stages)
    empty = {
        "approvals list": 0, "grants": 0, "state list": 1, "state history last k": 1, "shared list": 1,
        "shared grep last k": 1, "workspace log": 1, "scratch": 1, "replay": 0, "mcp list": 0,
        "hooks list hello": 1, "config show nope": 1, "state verify": 0,
    }  # fmt: skip
    nothing = {
        "state get last k": 1, "shared get last k": 1, "workspace show": 1, "workspace at last --seq 0": 2,
        "why last nope": 2, "plan nope": 2, "blueprints show nope": 2, "runs show nope": 2, "log nope": 2,
    }  # fmt: skip

    for arguments, code in empty.items():
        ran = bench.agentctl(*arguments.split(), "--json")
        assert (arguments, ran.code) == (arguments, code)
        assert isinstance(json.loads(ran.out), list | dict), arguments
    for arguments, code in nothing.items():
        ran = bench.agentctl(*arguments.split(), "--json")
        assert (arguments, ran.code, ran.out) == (arguments, code, "")
        assert ran.err


def test_a_current_folder_that_was_removed_is_named(bench: Bench) -> None:
    line = (
        f"cd {bench.folder}; mkdir gone; cd gone; rmdir ../gone; exec {sys.executable} -m agentctl run hello"
    )
    ran = subprocess.run(
        ["sh", "-c", line], capture_output=True, text=True, check=False, env=bench.environ(), timeout=60
    )

    assert ran.returncode == 2
    assert ran.stderr.startswith("agentctl: The current folder is not there any more.")


@pytest.mark.parametrize("place", ["pipe.toml", "/dev/zero", "."])
def test_a_script_that_is_no_file_is_refused_and_not_waited_for(bench: Bench, place: str) -> None:
    """A blueprint that nobody trusts yet may name one."""
    os.mkfifo(bench.folder / "pipe.toml")
    text = ASKS_FOR_INPUTS.partition("[script]")[0].replace('"scripted:"', f'"scripted:{place}"')
    text = text.replace('[inputs.language]\nchoices = ["py", "js"]\n', "").replace(
        " in {inputs.language}", ""
    )

    ran = bench.agentctl("run", bench.blueprint(text), "-i", "file=x", patience_s=20)

    assert ran.code == 2
    assert "cannot be read" in ran.err


def test_a_file_without_an_end_is_refused(bench: Bench) -> None:
    ran = bench.agentctl("batch", "hello", "--inputs", "/dev/zero", patience_s=60)

    assert ran.code == 2
    assert "it has more than 536,870,912 bytes" in ran.err


def test_a_limit_on_calls_of_an_unknown_tool_is_told_as_the_flags(bench: Bench, two_stages: Path) -> None:
    ran = bench.agentctl("run", two_stages, "go", "--limit", "calls.shel(echo *)=1")

    assert ran.code == 2
    assert "--limit calls.shel(echo *): unknown tool 'shel'. Did you mean 'shell'?" in ran.err
