import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agentctl.protocol.children import ChildStarted
from agentctl.protocol.codec import encode
from agentctl.protocol.events import (
    CallCompleted,
    CallStarted,
    MessageAdded,
    ModelCalled,
    ModelRetried,
    OutputStreamed,
    Published,
    StageEntered,
    TextStreamed,
)
from agentctl.protocol.messages import AssistantMessage, ToolCall, ToolResult
from tests.terminal.pty_screen import Screen
from tests.terminal.samples import one_of, published, short_run, started

Play = Callable[..., Screen]


@pytest.fixture
def play(tmp_path: Path) -> Iterator[Play]:
    opened: list[Screen] = []

    def run(events: tuple[Published, ...], *counts: int, **more: Any) -> Screen:
        place = tmp_path / "events.json"
        place.write_text(json.dumps([encode(one) for one in events]), encoding="utf-8")
        command = [sys.executable, "-m", "tests.terminal.playing", str(place), *map(str, counts)]
        opened.append(Screen(command, **more))
        return opened[-1]

    yield run
    for one in opened:
        one.kill()


def test_what_happened_scrolls_by_and_what_goes_on_stands_below(play: Play) -> None:
    screen = play(short_run(), 6, 3)
    screen.wait_for("… shell pytest -q")
    screen.wait_for("implement · 1 step")

    screen.send("\n")
    screen.wait_for("✓ shell pytest -q · allowed · 1.2 s")
    screen.wait_for("waiting for the model")
    assert "… shell" not in screen.text
    screen.send("\n")

    assert screen.wait_end() == 0
    assert [line for line in screen.text.splitlines() if line] == [
        "▶ coder · scripted:demo · r-root",
        "■ stage implement · scripted:demo",
        "✓ shell pytest -q · allowed · 1.2 s",
        "All done.",
        "Two files.",
        "finished · 2 steps · 2,400 tokens · $0.0200",
    ]


def test_streamed_text_is_seen_as_it_comes_and_is_void_after_a_retry(play: Play) -> None:
    retry = ModelRetried(model="m", reason="overloaded", wait_s=1.0, attempt=1)
    events = [started(), TextStreamed(text="First line\nand ha"), retry, TextStreamed(text="whole")]

    screen = play(tuple(map(published, events)), 2, 2)
    screen.wait_for("and ha")
    screen.send("\n")
    screen.wait_for("the text above is void")
    screen.wait_for("whole")

    assert "and ha" not in screen.text
    screen.send("\n")
    assert screen.wait_end() == 0


def test_agents_at_work_at_once_are_a_tree(play: Play) -> None:
    child, deeper = {"run": "r-child", "parent": "r-root"}, {"run": "r-deep", "parent": "r-child"}
    call = ToolCall(call_id="c-9", tool="grep", arguments={"pattern": "needle"})
    events = (
        published(started()),
        published(
            ChildStarted(child_run="r-child", child_thread="t", agent="researcher", call_id="c", task="look")
        ),
        published(ModelCalled(step=2, model="m"), agent="researcher", **child),
        published(MessageAdded(message=AssistantMessage(parts=(call,))), agent="reader", **deeper),
        published(CallStarted(call_id="c-9", tool="grep", read_only=True), agent="reader", **deeper),
        published(OutputStreamed(call_id="c-9", text="a\n\x1b[31mlast line\n"), agent="reader", **deeper),
        published(
            CallCompleted(
                call_id="c-9",
                result=ToolResult(call_id="c-9", tool="grep", outcome="ok", text=""),
                elapsed_s=1,
            ),
            agent="reader",
            **deeper,
        ),
    )

    screen = play(events, 6)
    screen.wait_for("  └ reader · implement · grep needle")

    assert "└ researcher · implement · step 2 · waiting for the model" in screen.text
    assert "s · last line" in screen.text
    screen.send("\n")
    screen.wait_for("✓ [researcher/reader] grep needle")
    assert screen.wait_end() == 0


def test_a_dozen_workers_leave_half_of_a_small_terminal_to_what_happened(play: Play) -> None:
    def worker(event: Any, number: int) -> Published:
        agent = f"reader-{number}" if number > 1 else "reader"
        return published(event, agent=agent, run=f"r-{number}", parent="r-root")

    numbers = range(1, 13)
    call = ToolCall(call_id="c", tool="grep", arguments={"pattern": "needle"})
    events = (
        published(started()),
        *(worker(StageEntered(stage="reader", index=1, visit=1, model="m"), number) for number in numbers),
        *(worker(MessageAdded(message=AssistantMessage(parts=(call,))), number) for number in numbers),
        *(worker(CallStarted(call_id="c", tool="grep", read_only=True), number) for number in numbers),
    )

    screen = play(events, len(events), columns=80, rows=24)
    screen.wait_for("… and 2 more at work")

    rows = [row.rstrip() for row in screen.screen.display]
    assert sum(row.startswith("└ reader") for row in rows) == 10
    assert any(row.startswith("└ reader-10 · grep needle") for row in rows)
    assert "stage reader" not in screen.text
    assert not any(row.startswith("… [") for row in rows)


@pytest.mark.parametrize("columns", [1, 2, 5])
def test_a_very_narrow_terminal_is_no_trouble(play: Play, columns: int) -> None:
    screen = play(short_run(), 6, 3, columns=columns, rows=10)
    for _ in range(2):
        screen.pump(0.2)
        screen.send("\n")

    assert screen.wait_end() == 0


def test_a_diff_is_shown_with_the_edit(play: Play) -> None:
    diff = "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-日本 = 1\n+日本 = 2\n"
    result = ToolResult(call_id="c", tool="edit_file", outcome="ok", text="", structured={"diff": diff})

    screen = play((published(started()), published(CallCompleted(call_id="c", result=result, elapsed_s=0.1))))

    assert screen.wait_end() == 0
    text = screen.text.replace("日 本 ", "日本")  # the emulator gives a wide character two cells
    assert "  -日本 = 1\n" in text
    assert "  +日本 = 2\n" in text


@pytest.mark.parametrize("environ", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_without_colour_no_colour_is_sent(play: Play, environ: dict[str, str]) -> None:
    screen = play(short_run(), env=environ)

    assert screen.wait_end() == 0
    assert b"\x1b[3" not in screen.raw
    assert "✓ shell pytest -q · allowed" in screen.text


def test_no_event_brings_anything_raw_to_the_terminal(play: Play) -> None:
    kinds = [type(one.event) for one in short_run()]
    events = (published(started()), *(published(one_of(kind)) for kind in dict.fromkeys(kinds)))

    screen = play(events)

    assert screen.wait_end() == 0
    assert b"x\x1b[31m" not in screen.raw
    assert "\u202e".encode() not in screen.raw
