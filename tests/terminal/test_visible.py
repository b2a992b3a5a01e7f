import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentctl.executor.text import without_sequences
from agentctl.terminal.visible import cells, cut, exact, mixed_scripts, one_line, prose, wrap


def test_plain_text_is_shown_as_it_is() -> None:
    assert (
        exact("git commit -m 'fix: naïve Größe 日本'\n  done")
        == "git commit -m 'fix: naïve Größe 日本'\n  done"
    )


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("curl x|sh\r\x1b[2K   command: ls -la", "curl x|sh\\r\\x1b[2K   command: ls -la"),
        ("echo \u202ehs.live\u202c", "echo \\u{202e}hs.live\\u{202c}"),
        ("a\u200bb\u2060c\ufeff", "a\\u{200b}b\\u{2060}c\\u{feff}"),
        ("a\x9b31mb\x7f", "a\\x9b31mb\\x7f"),
        ("nbsp\u00a0x\u3164y\u2800z", "nbsp\\xa0x\\u{3164}y\\u{2800}z"),
        ("tag\U000e0041", "tag\\u{e0041}"),
        ("a\tb", "a⇥   b"),
        ("e\u0301", "e\u0301"),
        ("\u0301x", "\\u{0301}x"),
        ("e" + "\u0301" * 5, "e\u0301\u0301\u0301\\u{0301}\\u{0301}"),
        ("lone\ud800", "lone\\u{d800}"),
    ],
)
def test_what_a_terminal_would_obey_or_hide_is_written_out(raw: str, shown: str) -> None:
    assert exact(raw) == shown


def test_padding_is_counted_and_the_tail_stays() -> None:
    assert exact("ls" + " " * 200 + "; rm x") == "ls ⟨200 blanks⟩ ; rm x"
    assert exact("ls" + "\u2003" * 200 + "; rm x") == "ls\\u{2003}\\u{2003}\\u{2003}⟨and 197 more⟩; rm x"
    assert exact("ls" + "\n" * 60 + "rm x") == "ls\n⟨59 blank lines⟩\nrm x"


def test_words_that_mix_scripts_are_named() -> None:
    assert mixed_scripts("g\u0456t push and прошу") == ("g\u0456t",)


def test_prose_drops_joiners_and_writes_out_the_rest() -> None:
    assert prose("👩\u200d💻 a\r\nb\x1b[31m\u202e") == "👩💻 a\nb\\x1b[31m\\u{202e}"


def test_terminal_sequences_are_taken_out_of_tool_output() -> None:
    assert (
        without_sequences("\x1b]8;;file:///a\x1b\\a\x1b]8;;\x1b\\ \x1b[1;31mred\x1b[0m\x1b]0;title\x07")
        == "a red"
    )


def test_one_line_says_that_there_is_more() -> None:
    assert one_line("\n  first\nsecond") == "first …"
    assert one_line("x" * 50, width=10) == "xxxxxxxxx…"
    assert one_line(" \n") == ""


def test_rows_are_measured_in_cells() -> None:
    assert wrap("日本語ab", 4) == ("日本", "語ab")
    assert wrap("日本", 1) == ("日", "本")
    assert wrap("", 5) == ("",)
    assert cut("日本語", 4) == "日…"


@given(st.text(), st.integers(min_value=2, max_value=30))
@settings(max_examples=300, deadline=None)
def test_nothing_is_lost_by_wrapping_and_no_row_is_too_wide(text: str, width: int) -> None:
    line = exact(text).replace("\n", " ")

    rows = wrap(line, width)

    assert "".join(rows) == line
    assert all(cells(row) <= width for row in rows)


@given(st.text())
@settings(max_examples=300, deadline=None)
def test_nothing_that_moves_or_hides_is_left(text: str) -> None:
    for shown in (exact(text), prose(text)):
        assert all(letter == "\n" or letter.isprintable() for letter in shown)
        assert not set(shown) & set("\u202a\u202e\u2066\u200b\u00a0\x1b")


def test_the_shared_cases_of_commands_are_shown_whole(shared: Path) -> None:
    for line in (shared / "cases" / "approval-ux.jsonl").read_text("utf-8").splitlines():
        command = json.loads(line)["input"].get("command", "")
        shown = exact(command)
        assert all(letter == "\n" or letter.isprintable() for letter in shown)
        assert shown.endswith(exact(command.splitlines()[-1][-6:]) if command else "")
