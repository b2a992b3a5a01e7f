"""Output in bounded memory: head, tail, true counts, whole characters."""

import os
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from time import monotonic

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentctl.executor.output import Collector, Spill
from agentctl.executor.process_types import Output
from agentctl.executor.text import cut_end, cut_start, show


def unlimited() -> int:
    return 1 << 40


def collect(
    pieces: list[bytes],
    place: Path,
    *,
    head: int = 10,
    tail: int = 10,
    cap: Callable[[], int] = unlimited,
    shown: list[str] | None = None,
) -> Output:
    collector = Collector(
        head_bytes=head,
        tail_bytes=tail,
        spill=Spill(place, "spill", cap),
        on_output=None if shown is None else shown.append,
    )
    for piece in pieces:
        collector.add(piece)
    return collector.finish()


def test_what_fits_comes_whole_without_a_file(tmp_path: Path) -> None:
    output = collect([b"hello ", b"world"], tmp_path / "out")

    assert (output.text, output.spill, output.omitted_bytes) == ("hello world", None, 0)
    assert not (tmp_path / "out").exists()


def test_head_and_tail_are_kept_and_the_gap_is_told(tmp_path: Path) -> None:
    data = b"".join(b"line %d\n" % number for number in range(10_000)) + b"FAILED x\n"

    output = collect([data], tmp_path / "out", head=100, tail=100)

    assert output.head.startswith("line 0\n")
    assert output.tail.endswith("FAILED x\n")
    assert f"{output.omitted_bytes} bytes left out" in output.text
    assert output.spill is not None
    assert output.spill.read_bytes() == data


def test_a_character_cut_at_either_edge_is_left_out_whole(tmp_path: Path) -> None:
    data = ("a" * 1999 + "\U0001f4c1" + "b" * 10).encode()

    output = collect([data], tmp_path / "out", head=2000, tail=12)

    assert output.head == "a" * 1999
    assert output.tail == "b" * 10
    assert output.text.encode()


def test_a_limit_in_bytes_holds_and_invents_nothing(tmp_path: Path) -> None:
    output = collect(["\u20ac".encode() * 200], tmp_path / "out", head=100, tail=0)

    assert output.head == "\u20ac" * 33
    assert len(output.head.encode()) <= 100
    assert "\ufffd" not in output.text


def test_text_in_an_old_code_page_is_shown_and_not_binary(tmp_path: Path) -> None:
    output = collect([bytes.fromhex("5374617475733a204f4b0a8ee9a8a1aaa0")], tmp_path / "out", head=100)

    assert output.text.startswith("Status: OK\n")
    assert not output.binary


def test_pieces_shown_live_never_split_a_character(tmp_path: Path) -> None:
    shown: list[str] = []

    collect([bytes.fromhex("e4bd"), bytes.fromhex("a0e5a5bd")], tmp_path / "out", shown=shown)

    assert "".join(shown) == "\u4f60\u597d"
    assert "\ufffd" not in "".join(shown)


@settings(max_examples=300, deadline=None)
@given(
    pieces=st.lists(st.binary(max_size=40), max_size=12),
    head=st.integers(0, 30),
    tail=st.integers(0, 30),
    cap=st.integers(0, 200),
)
def test_counts_are_true_and_nothing_shown_twice(
    pieces: list[bytes], head: int, tail: int, cap: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = tmp_path_factory.mktemp("spill")
    data = b"".join(pieces)

    output = collect(pieces, place / "out", head=head, tail=tail, cap=lambda: cap)

    assert output.total_bytes == len(data)
    if output.binary:
        return
    shown = output.total_bytes - output.omitted_bytes
    assert show(data).startswith(output.head)
    assert show(data).endswith(output.tail) or output.tail == show(data[len(data) - len(output.tail) :])
    assert shown <= max(len(data), 0)
    size = len(show(data).encode())
    if size <= head + tail:
        assert output.head + output.tail == show(data)
    else:
        assert len(output.head.encode()) <= head
        assert len(output.tail.encode()) <= tail
    if len(data) == size > head + tail:
        assert shown >= min(head, len(data)) + tail - 6
    if output.spill:
        assert output.spill.read_bytes() == data[:cap]


@settings(max_examples=300, deadline=None)
@given(lines=st.integers(1, 9), count=st.integers(0, 40), end=st.sampled_from(["", "x"]))
def test_lines_are_bounded_as_well_as_bytes(
    lines: int, count: int, end: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    text = "".join(f"{number}\n" for number in range(count)) + end
    place = tmp_path_factory.mktemp("spill") / "out"

    collector = Collector(
        head_bytes=1000,
        tail_bytes=1000,
        end_lines=lines,
        spill=Spill(place, "spill", unlimited),
        on_output=None,
    )
    collector.add(text.encode())
    output = collector.finish()

    shown = output.head.count("\n"), len(output.tail.splitlines())
    assert len(output.head) + len(output.tail) + output.omitted_bytes == len(text)
    if count <= 2 * lines:
        assert (output.head, output.tail, output.spill) == (text, "", None)
    else:
        assert shown == (lines, lines)
        assert text.startswith(output.head)
        assert text.endswith(output.tail)
        assert output.spill is not None
        assert output.spill.read_text() == text


@settings(max_examples=300, deadline=None)
@given(text=st.text(max_size=20), at=st.integers(0, 80))
def test_cuts_fall_between_characters(text: str, at: int) -> None:
    data = text.encode("utf-8", "replace")
    left, right = data[:at], data[at:]

    assert left[: len(left) - cut_end(left)].decode("utf-8", "strict") is not None
    assert right[cut_start(right) :].decode("utf-8", "strict") is not None


def test_a_pipe_is_moved_to_the_file_without_being_looked_at(tmp_path: Path) -> None:
    spill = Spill(tmp_path / "out", "spill", unlimited)
    collector = Collector(head_bytes=10, tail_bytes=10, spill=spill, on_output=None)
    collector.add(b"x" * 30)
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    os.write(write_end, b"y" * 1000 + b"end")

    assert collector.unseen
    assert collector.take(read_end) == 1003
    assert collector.take(read_end) is None
    os.close(write_end)
    assert collector.take(read_end) == 0
    os.close(read_end)

    output = collector.finish()
    assert (output.total_bytes, output.head, output.tail) == (1033, "x" * 10, "y" * 7 + "end")


def test_a_program_that_drips_does_not_hold_the_thread_that_reads(tmp_path: Path) -> None:
    """A cancellation waits for that thread: it comes back soon, however long something comes every moment."""
    spill = Spill(tmp_path / "out", "spill", unlimited)
    collector = Collector(head_bytes=1, tail_bytes=1, spill=spill, on_output=None)
    collector.add(b"x" * 30)
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    dripping = Event()

    def drip() -> None:
        while not dripping.wait(0.001):
            os.write(write_end, b"y")

    thread = Thread(target=drip)
    thread.start()
    began = monotonic()
    try:
        collector.take(read_end)
    finally:
        took_s = monotonic() - began
        dripping.set()
        thread.join()
        os.close(write_end)
        os.close(read_end)
        collector.finish()

    assert took_s < 2
