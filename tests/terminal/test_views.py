import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from agentctl.clock import SystemClock
from agentctl.interaction.unattended import RefusedAsk
from agentctl.protocol.codec import decode
from agentctl.protocol.events import (
    Event,
    LiveEvent,
    MessageAdded,
    ModelRetried,
    Published,
    TextStreamed,
    ToolCallDecided,
)
from agentctl.protocol.messages import ToolMessage, ToolResult
from agentctl.terminal.api import Ending, Mode, Streams, open_terminal
from agentctl.terminal.board import Board
from agentctl.terminal.json_views import event_record
from agentctl.terminal.result import record_line
from agentctl.terminal.story import tell
from tests.terminal.samples import RUN, one_of, published, short_run, started

EVERY_EVENT: tuple[type, ...] = (*get_args(Event), *get_args(LiveEvent))
Show = Callable[..., tuple[str, str]]


@pytest.fixture
def show(tmp_path: Path) -> Show:
    def run(mode: Mode, events: tuple[Published, ...], ending: Ending | None = None) -> tuple[str, str]:
        out, err = tmp_path / "out", tmp_path / "err"
        with out.open("wb") as stdout, err.open("wb") as stderr:
            streams = Streams(stdout=stdout.fileno(), stderr=stderr.fileno(), environ={})
            terminal = open_terminal(mode, streams=streams, clock=SystemClock())
            for one in events:
                terminal.on_event(one)
            terminal.finish(ending or Ending(exit_code=0))
            terminal.finish(Ending(exit_code=1))
        return out.read_text("utf-8"), err.read_text("utf-8")

    return run


@pytest.mark.parametrize("kind", EVERY_EVENT, ids=lambda kind: kind.__name__)
def test_every_event_is_told_and_encoded_without_anything_raw(kind: type) -> None:
    board = Board()
    one = published(one_of(kind))

    board.take(one)
    lines = [str(line) for line in tell(one, board)]
    record = record_line(event_record(one))
    decoded = decode(kind, json.loads(record)["event"])

    assert decoded == one.event
    assert all("\x1b" not in line and "\u202e" not in line and "\n" not in line for line in lines)
    assert json.loads(record)["event"]["type"] == kind.__name__
    assert record.isascii()


@pytest.mark.parametrize("kind", EVERY_EVENT, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("mode", get_args(Mode))
def test_every_view_takes_every_event(kind: type, mode: Mode, show: Show) -> None:
    out, err = show(mode, (published(started()), published(one_of(kind))))

    assert "\x1b[31m" not in out + err
    assert "\u202e" not in err


def test_plain_puts_the_answer_on_stdout_and_the_story_on_stderr(show: Show) -> None:
    out, err = show("plain", short_run())

    assert out == "All done.\nTwo files.\n"
    assert err.splitlines() == [
        "▶ coder · scripted:demo · r-root",
        "■ stage implement · scripted:demo",
        "✓ shell pytest -q · allowed · 1.2 s",
        "All done.",
        "Two files.",
        "finished · 2 steps · 2,400 tokens · $0.0200",
    ]


def test_quiet_says_nothing_but_the_answer(show: Show) -> None:
    assert show("quiet", short_run()) == ("All done.\nTwo files.\n", "")


def test_the_answer_is_not_said_twice_in_one_place(tmp_path: Path) -> None:
    place = tmp_path / "both"
    with place.open("wb") as both:
        streams = Streams(stdout=both.fileno(), stderr=both.fileno(), environ={})
        terminal = open_terminal("plain", streams=streams, clock=SystemClock())
        for one in short_run():
            terminal.on_event(one)
        terminal.finish(Ending(exit_code=0))

    assert place.read_text("utf-8").count("All done.") == 1


def test_json_is_one_object_that_says_how_it_ended(show: Show) -> None:
    out, err = show("json", short_run())

    record = json.loads(out)
    assert (record["type"], record["schema"], record["run"]) == ("result", 1, RUN)
    assert (record["outcome"], record["exit_code"]) == ("finished", 0)
    assert (record["answer"], record["steps"]) == ("All done.\nTwo files.", 2)
    assert (record["tokens"], record["cost_usd"]) == (2400, 0.02)
    assert err == ""


def test_jsonl_begins_with_a_header_and_ends_with_the_result(show: Show) -> None:
    out, _ = show("jsonl", short_run())

    records = [json.loads(line) for line in out.split("\n")[:-1]]
    assert (records[0]["type"], records[0]["schema"]) == ("header", 1)
    assert records[-1]["type"] == "result"
    assert [record["event"]["type"] for record in records[1:-1]] == [
        type(one.event).__name__ for one in short_run()
    ]


def test_an_interrupted_stream_still_ends_with_the_result_and_all_its_keys(show: Show) -> None:
    whole, _ = show("jsonl", short_run())
    out, _ = show("jsonl", short_run()[:5], Ending(exit_code=130, hint="agentctl resume r-root"))

    last = json.loads(out.splitlines()[-1])
    assert (last["type"], last["outcome"], last["exit_code"]) == ("result", "cancelled", 130)
    assert last.keys() == json.loads(whole.splitlines()[-1]).keys()


def test_an_error_before_the_run_gives_a_header_and_a_result(show: Show) -> None:
    out, _ = show("jsonl", (), Ending(exit_code=3, reason="The blueprint is invalid."))

    header, last = map(json.loads, out.splitlines())
    assert header["type"] == "header"
    assert (last["outcome"], last["reason"], last["run"]) == ("failed", "The blueprint is invalid.", "")


def test_refused_asks_are_listed_once_with_the_flag_that_lets_them_through(show: Show) -> None:
    ask = RefusedAsk(tool="shell", shown="git push origin x", allow=("shell(git push origin x)",))
    held = RefusedAsk(tool="write_file", shown="~/.bashrc", instead="make this change yourself")

    _, err = show("quiet", short_run(), Ending(exit_code=5, refused=(ask, held, ask)))

    assert err.splitlines() == [
        "refused, nobody to ask: shell: git push origin x",
        "  let it through with: --allow 'shell(git push origin x)'",
        "refused, nobody to ask: write_file: ~/.bashrc",
        "  no flag lets it through; make this change yourself",
    ]


def test_a_retry_voids_what_was_streamed(show: Show) -> None:
    retry = ModelRetried(model="m", reason="overloaded", wait_s=2.0, attempt=1)
    events = [started(), TextStreamed(text="Half a\nrep"), retry, TextStreamed(text="Whole reply")]

    _, err = show("plain", tuple(map(published, events)))

    assert err.splitlines()[1:5] == [
        "Half a", "↻ the text above is void", "↻ m: overloaded; try 2 in 2.0 s", "Whole reply",
    ]  # fmt: skip
    assert "rep\n" not in err.replace("Whole reply\n", "")


def test_a_refused_call_is_told_with_its_reason(show: Show) -> None:
    result = ToolResult(
        call_id="c-9", tool="shell", outcome="denied", text="git push is denied by your config"
    )

    _, err = show("plain", (published(MessageAdded(message=ToolMessage(result=result))),))

    assert "⊘ shell · denied: git push is denied by your config" in err


def test_a_call_that_a_flag_let_through_says_so(show: Show) -> None:
    events = list(short_run())
    decided = events[4].event
    assert isinstance(decided, ToolCallDecided)
    decision = replace(decided.decision, layer="launch", rule="--yolo")
    events[4] = published(replace(decided, decision=decision))

    _, err = show("plain", tuple(events))

    assert "✓ shell pytest -q · allowed by --yolo · 1.2 s" in err


def test_what_the_model_writes_cannot_move_the_cursor(show: Show) -> None:
    _, err = show("plain", (published(started()), published(TextStreamed(text="a\x1b[2Kb\rc\u202ed\n"))))

    assert "a\\x1b[2Kb\\rc\\u{202e}d" in err


def test_a_reader_that_goes_away_is_not_an_error() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    streams = Streams(stdout=writing, stderr=writing, environ={})

    for mode in get_args(Mode):
        terminal = open_terminal(mode, streams=streams, clock=SystemClock())
        for one in short_run():
            terminal.on_event(one)
        terminal.finish(Ending(exit_code=0))
    os.close(writing)


def test_a_slow_reader_gets_every_record_whole() -> None:
    reading, writing = os.pipe()
    count = sys.executable, "-c", "import sys; print(sum(1 for line in sys.stdin), end='')"
    with subprocess.Popen(count, stdin=reading, stdout=subprocess.PIPE) as reader:
        os.close(reading)
        terminal = open_terminal(
            "jsonl", streams=Streams(stdout=writing, stderr=writing, environ={}), clock=SystemClock()
        )
        for _ in range(500):
            terminal.on_event(published(TextStreamed(text="x" * 1000)))
        terminal.finish(Ending(exit_code=0))
        os.close(writing)
        counted, _ = reader.communicate(timeout=20)

    assert counted == b"502"
