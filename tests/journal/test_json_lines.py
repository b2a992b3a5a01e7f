"""Files of JSON lines as crashes and other programs leave them; ids are of ../shared/cases/state.jsonl."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentctl.journal.jsonl import append_line, read_lines


@pytest.mark.parametrize(
    ("case", "text", "expected", "warnings"),
    [
        ("ST-001", '{"i":1}\n{"i":2}{"i":3}\n{"i":4}\n', [1, 2, 3, 4], 0),
        ("ST-002", '{"i":1}\n{"unterminated":', [1], 1),
        ("ST-004", '{"i":1}\nnull\n42\n[1]\n{"i":2}\n', [1, 2], 3),
        ("a bad line between", '{"i":1}\n{"i":\n{"i":2}\n', [1, 2], 1),
        ("nothing", "\n\n", [], 0),
    ],
)
def test_no_line_makes_another_be_lost(case: str, text: str, expected: list[int], warnings: int) -> None:
    read = read_lines(text)

    assert [record["i"] for record in read.records] == expected, case
    assert len(read.warnings) == warnings, read.warnings


def test_what_looks_like_two_records_in_a_string_is_one() -> None:  # ST-003
    [record] = read_lines('{"text":"close-then-open: }{ here"}\n').records

    assert record == {"text": "close-then-open: }{ here"}


def test_a_torn_tail_is_told_and_the_next_record_begins_on_a_new_line(tmp_path: Path) -> None:  # ST-002
    path = tmp_path / "log.jsonl"
    path.write_text('{"a":1}\n{"unterminated":', encoding="utf-8")

    assert read_lines(path.read_text("utf-8")).warnings == ("line 2: torn at the end; left out",)
    append_line(path, {"a": 2})

    assert [record["a"] for record in read_lines(path.read_text("utf-8")).records] == [1, 2]


def test_half_a_character_is_made_whole_on_load_so_that_it_can_be_sent(tmp_path: Path) -> None:  # ST-009
    path = tmp_path / "log.jsonl"
    path.write_text('{"text":"\\ud83d"}\n', encoding="utf-8")

    [record] = read_lines(path.read_text("utf-8")).records

    assert json.dumps(record, ensure_ascii=False).encode("utf-8")
    append_line(path, {"text": "\ud83d"})
    assert len(read_lines(path.read_text("utf-8")).records) == 2


def test_a_log_is_its_owners_alone_and_no_link_is_followed(tmp_path: Path) -> None:  # ST-011
    path, link = tmp_path / "logs" / "log.jsonl", tmp_path / "link.jsonl"
    append_line(path, {})
    link.symlink_to(path)

    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(OSError, match="symbolic"):
        append_line(link, {})


def test_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: append_line(path, {"n": number, "pad": "x" * 9000}), range(100)))

    read = read_lines(path.read_text("utf-8"))
    assert sorted(record["n"] for record in read.records) == list(range(100))  # type: ignore[type-var]
    assert not read.warnings


@given(st.text(max_size=80))
def test_any_text_is_read(text: str) -> None:
    read_lines(text)


@given(st.lists(st.dictionaries(st.text(max_size=5), st.text(max_size=9) | st.integers()), max_size=5))
def test_what_was_written_is_read(records: list[dict[str, str | int]]) -> None:
    text = "".join(json.dumps(record) + "\n" for record in records)

    assert list(read_lines(text).records) == records
