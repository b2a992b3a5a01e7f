"""Every place to start from, every kind of question, every mode: in time, with the docs' exit codes."""

import os
import subprocess
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.end_to_end.command import ROOT, Bench
from tests.terminal.pty_screen import Open, Screen

TABLE = ROOT / "docs" / "unattended.md"
MODES = {"plain": (), "--yolo": ("--yolo",), "--on-ask pause": ("--on-ask", "pause")}
LONGEST_S = 40.0

HEAD = """
[agent]
name = "unattended"
[model]
use = ["scripted:"]
[limits]
interaction_timeout = 2
"""
BLUEPRINTS = {
    "ask": HEAD
    + """
[stages.work]
prompt = "Work."
available_tools = ["shell"]
[script]
[[script.replies]]
text = "Looking."
tool_calls = [{ tool = "shell", arguments = { command = "python3 -c pass" } }]
[[script.replies]]
text = "Done."
""",
    "ask_user": HEAD
    + """
[stages.work]
prompt = "Work."
available_tools = ["ask_user"]
required_tools = ["ask_user"]
[script]
[[script.replies]]
text = "Asking."
tool_calls = [{ tool = "ask_user", arguments = { question = "Which one?" } }]
[[script.replies]]
text = "Done."
""",
    "checkpoint": HEAD
    + """
[stages.work]
prompt = "Work."
available_tools = ["run_info"]
[[stages.work.interaction_points]]
name = "sign-off"
prompt = "Is this right?"
unattended = "ask"
[script]
[[script.replies]]
text = "Done."
""",
}


def expected() -> dict[tuple[str, str, str], int]:
    """Return the table of docs/unattended.md: (where, question, mode) → exit code."""
    found: dict[tuple[str, str, str], int] = {}
    for line in TABLE.read_text("utf-8").splitlines():
        words = [cell.strip() for cell in line.strip("|").split("|")]
        if len(words) == 2 + len(MODES) and words[2].isdigit():
            found |= {
                (words[0], words[1], mode): int(code) for mode, code in zip(MODES, words[2:], strict=True)
            }
    return found


TABLED = expected()


def in_cron(command: list[str], home: Path) -> int:
    """Run without a terminal, with next to no environment."""
    environ = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(home),
        "AGENTCTL_HOME": str(home),
        "PYTHONPATH": str(ROOT),
    }
    return subprocess.run(
        command,
        env=environ,
        cwd=home,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        start_new_session=True,
        check=False,
        timeout=LONGEST_S,
    ).returncode


def on_terminal(command: list[str], home: Path, redirect: str) -> int:
    """Run on a terminal at which nobody types."""
    words = {"tty": '"$@"', "pipe": ': | "$@"', "closed": '"$@" <&-'}[redirect]
    environ = {"HOME": str(home), "AGENTCTL_HOME": str(home)}
    screen = Screen(["/bin/sh", "-c", f"cd {home}; {words}", "sh", *command], env=environ)
    try:
        return screen.wait_end(LONGEST_S)
    finally:
        screen.kill()


@pytest.fixture
def shells(screens: Open) -> Open:
    """Opens commands, with these variables, on terminals."""
    return lambda *command, **environ: screens(list(command), env=environ)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str, str], "Future[int]"]:
    """All combinations, six at a time: nearly all of it is waiting for deadlines."""
    pool = ThreadPoolExecutor(max_workers=6)
    futures: dict[tuple[str, str, str], Future[int]] = {}
    for where, question, mode in TABLED:
        home = tmp_path_factory.mktemp(f"{where}-{question}")
        blueprint = home / "it.toml"
        blueprint.write_text(BLUEPRINTS[question], encoding="utf-8")
        command = [sys.executable, "-m", "agentctl", "run", str(blueprint), "go", *MODES[mode]]
        if where == "cron":
            futures[where, question, mode] = pool.submit(in_cron, command, home)
        else:
            futures[where, question, mode] = pool.submit(on_terminal, command, home, where)
    pool.shutdown(wait=False)
    return futures


def test_the_table_is_complete() -> None:
    wheres = {where for where, _, _ in TABLED}

    assert wheres == {"tty", "pipe", "closed", "cron"}
    assert len(TABLED) == len(wheres) * len(BLUEPRINTS) * len(MODES)


@pytest.mark.parametrize("combination", TABLED, ids="/".join)
def test_the_run_ends_in_time_with_the_code_of_the_docs(
    combination: tuple[str, str, str], ran: dict[tuple[str, str, str], "Future[int]"]
) -> None:
    assert ran[combination].result(timeout=100) == TABLED[combination]


@pytest.mark.parametrize("where", ["tty", "pipe", "closed"])
def test_a_person_answers_on_the_terminal_whatever_stdin_is(bench: Bench, shells: Open, where: str) -> None:
    blueprint = bench.blueprint(BLUEPRINTS["ask"].replace("interaction_timeout = 2", ""))
    words = {"tty": '"$@"', "pipe": ': | "$@"', "closed": '"$@" <&-'}[where]
    command = [sys.executable, "-m", "agentctl", "run", str(blueprint), "go"]
    screen = shells("/bin/sh", "-c", words, "sh", *command)

    screen.wait_for("[n] >", timeout_s=30)
    assert "│ python3 -c pass" in screen.text
    screen.send("y")

    assert screen.wait_end() == 0
    assert "approved once" in screen.text


def test_a_run_in_the_background_of_a_shell_is_unattended_and_ends(bench: Bench, shells: Open) -> None:
    blueprint = bench.blueprint(BLUEPRINTS["ask"])
    shell = shells("/bin/bash", "--norc", "-i", PS1="$ ")
    shell.wait_for("$")

    shell.send(f"{sys.executable} -m agentctl run {blueprint} go & wait $!; echo code=$?\n")
    shell.wait_for("code=5", timeout_s=LONGEST_S)

    assert "[n] >" not in shell.text
    assert "--allow 'shell(python3 -c pass)'" in shell.text


def test_a_prompt_that_is_put_in_the_background_ends_with_its_deadline(bench: Bench, shells: Open) -> None:
    blueprint = bench.blueprint(BLUEPRINTS["ask"].replace("= 2", "= 5"))
    shell = shells("/bin/bash", "--norc", "-i", PS1="$ ")
    shell.wait_for("$")
    shell.send(f"{sys.executable} -m agentctl run {blueprint} go\n")
    shell.wait_for("[n] >", timeout_s=30)

    shell.send("\x1a")
    shell.wait_for("Stopped")
    shell.send("bg; wait %1; echo code=$?\n")

    shell.wait_for("code=5", timeout_s=LONGEST_S)


def test_a_prompt_comes_back_to_the_foreground(bench: Bench, shells: Open) -> None:
    blueprint = bench.blueprint(BLUEPRINTS["ask"].replace("= 2", "= 60"))
    shell = shells("/bin/bash", "--norc", "-i", PS1="$ ")
    shell.wait_for("$")
    shell.send(f"{sys.executable} -m agentctl run {blueprint} go\n")
    shell.wait_for("[n] >", timeout_s=30)
    shell.send("\x1a")
    shell.wait_for("Stopped")

    shell.send("fg\n")
    shell.wait_for("[n] >", times=2)
    shell.send("y")
    shell.wait_for("approved once")
    shell.send("echo code=$?\n")

    shell.wait_for("code=0")


def test_a_saved_question_is_answered_from_elsewhere_and_resume_goes_on(bench: Bench) -> None:
    blueprint = bench.blueprint(BLUEPRINTS["ask"])
    assert bench.agentctl("run", blueprint, "go", "--on-ask", "pause").code == 4

    listed = bench.agentctl("approvals", "list", "last")
    answered = bench.agentctl("approvals", "answer", "last", "--once")
    again = bench.agentctl("approvals", "answer", "last", "--deny")
    late = bench.agentctl("approvals", "answer", "last", answered.err.split()[1].rstrip(";"), "--deny")
    resumed = bench.agentctl("resume", "last")

    assert "│ python3 -c pass" in listed.out
    assert answered.code == 0, answered.err
    assert again.code == 2
    assert late.code == 9
    assert "waits no longer" in late.err
    assert (resumed.code, resumed.out) == (0, "Done.\n"), resumed.err


def test_a_saved_checkpoint_is_answered_from_elsewhere_and_resume_goes_on(bench: Bench) -> None:
    blueprint = bench.blueprint(BLUEPRINTS["checkpoint"])
    assert bench.agentctl("run", blueprint, "go").code == 4

    wrong = bench.agentctl("approvals", "answer", "last", "--option", "Perhaps")
    answered = bench.agentctl("approvals", "answer", "last", "--option", "Approve")
    resumed = bench.agentctl("resume", "last")

    assert wrong.code == 2
    assert "Approve, Abort" in wrong.err
    assert answered.code == 0, answered.err
    assert (resumed.code, resumed.out) == (0, "Done.\n"), resumed.err


def test_a_running_run_is_answered_from_another_terminal(bench: Bench, shells: Open) -> None:
    blueprint = bench.blueprint(BLUEPRINTS["ask"].replace("= 2", "= 60"))
    screen = shells(sys.executable, "-m", "agentctl", "run", str(blueprint), "go")
    screen.wait_for("[n] >", timeout_s=30)

    answered = bench.agentctl("approvals", "answer", "last", "--deny", "--reason", "too risky")

    assert answered.code == 0, answered.err
    assert "the run goes on" in answered.err
    assert screen.wait_end() == 0
    assert "answered elsewhere" in screen.text
    assert "too risky" in screen.text


@pytest.mark.parametrize(("word", "code", "after"), [("pause", 4, 0), ("cancel", 1, 2)])
def test_a_run_is_stopped_from_another_terminal(
    bench: Bench, shells: Open, word: str, code: int, after: int
) -> None:
    blueprint = bench.blueprint(BLUEPRINTS["ask"].replace("= 2", "= 60"))
    screen = shells(sys.executable, "-m", "agentctl", "run", str(blueprint), "go")
    screen.wait_for("[n] >", timeout_s=30)

    stopped = bench.agentctl(word, "last")

    assert stopped.code == 0, stopped.err
    assert screen.wait_end() == code
    assert bench.agentctl("resume", "last", "--yolo").code == after


def test_a_message_reaches_a_run_that_stands_still_when_it_is_resumed(bench: Bench) -> None:
    blueprint = bench.blueprint(BLUEPRINTS["ask"])
    bench.agentctl("run", blueprint, "go", "--on-ask", "pause")

    told = bench.agentctl("msg", "last", "leave the tests alone")
    resumed = bench.agentctl("resume", "last", "--yolo", "--jsonl")

    assert told.code == 0, told.err
    assert resumed.code == 0, resumed.err
    assert "leave the tests alone" in resumed.out


def test_an_interrupt_at_the_prompt_keeps_the_question_and_resume_asks_again(
    bench: Bench, shells: Open
) -> None:
    blueprint = bench.blueprint(BLUEPRINTS["ask"].replace("= 2", "= 60"))
    command = [sys.executable, "-m", "agentctl"]
    screen = shells(*command, "run", str(blueprint), "go")
    screen.wait_for("[n] >", timeout_s=30)

    began = time.monotonic()
    screen.send("\x03")
    assert screen.wait_end() == 130
    assert time.monotonic() - began < 10
    assert "agentctl resume" in screen.text

    again = shells(*command, "resume", "last")
    again.wait_for("[n] >", timeout_s=30)
    again.send("y")
    assert again.wait_end() == 0


def test_jsonl_ends_with_the_result_after_an_interrupt_at_the_prompt(bench: Bench, shells: Open) -> None:
    blueprint = bench.blueprint(BLUEPRINTS["ask"].replace("= 2", "= 60"))
    out = bench.folder / "out.jsonl"
    command = f"{sys.executable} -m agentctl run {blueprint} go --jsonl > {out}"
    screen = shells("/bin/sh", "-c", f"trap : INT; {command}")
    screen.wait_for("[n] >", timeout_s=30)

    screen.send("\x03")

    assert screen.wait_end() == 130
    lines = out.read_text("utf-8").splitlines()
    assert '"type":"header"' in lines[0]
    assert '"type":"result"' in lines[-1]
    assert '"outcome":"cancelled"' in lines[-1]


@pytest.mark.parametrize("mode", ["--json", "--jsonl"])
def test_an_error_before_the_run_is_a_result_too(bench: Bench, mode: str) -> None:
    ran = bench.agentctl("run", bench.folder / "missing.toml", "go", mode)

    assert ran.code == 2
    assert (ran.result["type"], ran.result["exit_code"], ran.result["outcome"]) == ("result", 2, "failed")
    assert "missing.toml" in str(ran.result["reason"])
    assert ran.err.count("missing.toml") == 1
    assert ('"type":"header"' in ran.out) == (mode == "--jsonl")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_do_no_harm(bench: Bench, closed: str) -> None:
    blueprint = bench.blueprint(BLUEPRINTS["ask"])
    command = f"{sys.executable} -m agentctl run {blueprint} go --yolo {closed}"

    code = subprocess.run(["/bin/sh", "-c", command], check=False, env=bench.environ(), timeout=60).returncode

    assert code == 0
    assert bench.agentctl("log", "last").code == 0
    assert bench.agentctl("runs", "list").out.count("finished") == 1


def test_a_reader_that_goes_away_ends_nothing_and_says_nothing(bench: Bench) -> None:
    blueprint = bench.blueprint(BLUEPRINTS["ask"])
    run = f"{sys.executable} -m agentctl run {blueprint} go --yolo --jsonl"
    log = f"{sys.executable} -m agentctl log last --json"

    for command in (f"{run} | head -1", f"{log} | head -1"):
        ran = subprocess.run(
            ["/bin/sh", "-c", command], check=False, capture_output=True, text=True, env=bench.environ()
        )
        assert ran.stdout.count("\n") == 1
        assert "Traceback" not in ran.stderr
        assert "BrokenPipe" not in ran.stderr

    assert bench.agentctl("runs", "list").out.count("finished") == 1


@pytest.mark.parametrize("said", [["--deny"], ["--document", "plan.md"]])
def test_a_checkpoint_is_not_passed_by_what_is_no_option(bench: Bench, said: list[str]) -> None:
    (bench.workdir / "plan.md").write_text("plan", encoding="utf-8")
    bench.agentctl("run", bench.blueprint(BLUEPRINTS["checkpoint"]), "go")

    refused = bench.agentctl("approvals", "answer", "last", *said)

    assert refused.code == 2
    assert "is answered with one of its options" in refused.err
    assert bench.agentctl("resume", "last").code == 4


@pytest.mark.parametrize("unattended", ["ask", "auto_approve"])
def test_escape_at_a_checkpoint_is_no_yes(bench: Bench, shells: Open, unattended: str) -> None:
    text = BLUEPRINTS["checkpoint"].replace('unattended = "ask"', f'unattended = "{unattended}"')
    text = text.replace("= 2", "= 60")
    command = [sys.executable, "-m", "agentctl"]
    screen = shells(*command, "run", str(bench.blueprint(text)), "go")
    screen.wait_for("Esc no answer", timeout_s=30)

    screen.send("\x1b")

    assert screen.wait_end() == 4
    again = shells(*command, "resume", "last")
    again.wait_for("Esc no answer", timeout_s=30)
    again.send("1")
    assert again.wait_end() == 0


def test_a_stage_that_goes_on_by_a_directive_is_asked_about_again(bench: Bench) -> None:
    text = BLUEPRINTS["checkpoint"].replace(
        'prompt = "Is this right?"',
        'prompt = "Is this right?"\noptions = ["Fine", "More"]\ndirectives = { More = "Write more." }',
    )
    text += '[[script.replies]]\nexpect = { last = "Write more." }\ntext = "More."\n'
    text += '[[script.replies]]\nexpect = { last = "one line" }\ntext = "One line."\n'
    assert bench.agentctl("run", bench.blueprint(text), "go").code == 4

    answers = [("--option", "More"), ("--text", "one line"), ("--option", "Fine")]
    codes: list[int] = []
    for answer in answers:
        assert bench.agentctl("approvals", "answer", "last", *answer).code == 0
        resumed = bench.agentctl("resume", "last")
        codes.append(resumed.code)

    assert codes == [4, 4, 0]
    assert resumed.out == "One line.\n"


def test_an_option_that_edits_takes_the_edited_document(bench: Bench) -> None:
    (bench.workdir / "plan.md").write_text("plan", encoding="utf-8")
    (bench.folder / "better.md").write_text("better plan", encoding="utf-8")
    text = BLUEPRINTS["checkpoint"].replace(
        'prompt = "Is this right?"',
        'prompt = "Is this right?"\noptions = ["Fine", "Edit"]\n'
        'edit_options = ["Edit"]\ndocument = "plan.md"',
    )
    assert bench.agentctl("run", bench.blueprint(text), "go").code == 4

    shown = bench.agentctl("approvals", "list", "last").out
    refused = bench.agentctl("approvals", "answer", "last", "--option", "Edit")
    answered = bench.agentctl(
        "approvals", "answer", "last", "--option", "Edit", "--document", bench.folder / "better.md"
    )

    assert "--option OPTION | --document FILE | --text TEXT" in shown
    assert refused.code == 2
    assert "--option Edit --document FILE" in refused.err
    assert answered.code == 0, answered.err
    assert bench.agentctl("resume", "last").code == 0
    assert (bench.workdir / "plan.md").read_text("utf-8") == "better plan"


def test_a_pipe_in_place_of_a_checkpoints_document_holds_nobody_up(bench: Bench) -> None:
    os.mkfifo(bench.workdir / "plan.md")
    text = BLUEPRINTS["checkpoint"].replace(
        'prompt = "Is this right?"', 'prompt = "Is this right?"\ndocument = "plan.md"'
    )

    ended = bench.agentctl("run", bench.blueprint(text), "go")

    assert ended.code == 2
    assert "checkpoint document 'plan.md': it is no regular file" in ended.err
