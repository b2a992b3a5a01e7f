import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentctl.terminal.keys import Key, KeyDecoder


def typed(*reads: bytes) -> list[Key]:
    decoder = KeyDecoder()
    keys = [key for data in reads for key in decoder.feed(data)]
    return [*keys, *decoder.settle()]


@pytest.mark.parametrize(
    ("reads", "keys"),
    [
        ((b"\xe9", b"\x9f", b"\x93"), [Key(kind="char", text="韓")]),
        ((b"\x1b",), [Key(kind="escape")]),
        ((b"\x1b[", b"A"), [Key(kind="special", text="up")]),
        ((b"\x1bOB",), [Key(kind="special", text="down")]),
        ((b"\x1b[6~",), [Key(kind="special", text="pagedown")]),
        ((b"\x1b[I\x1b[O",), [Key(kind="other"), Key(kind="other")]),
        ((b"\x1b[<0;5;5M",), [Key(kind="other")]),
        ((b"\x1by",), [Key(kind="other")]),
        ((b"\x1b\x1b",), [Key(kind="escape"), Key(kind="escape")]),
        ((b"\r",), [Key(kind="enter")]),
        ((b"\x7f", b"\x08"), [Key(kind="backspace"), Key(kind="backspace")]),
        ((b"\x15",), [Key(kind="control", text="u")]),
        (
            (b"\x1b[200~y\r", b"es\x1b[20", b"1~n"),
            [Key(kind="paste", text="y\nes"), Key(kind="char", text="n")],
        ),
        ((b"\xff",), [Key(kind="char", text="\ufffd")]),
        ((b"\xc2\x9b",), [Key(kind="other")]),
    ],
)  # fmt: skip
def test_bytes_become_keys(reads: tuple[bytes, ...], keys: list[Key]) -> None:
    assert typed(*reads) == keys


def test_reports_of_the_terminal_are_no_key_presses() -> None:
    reports = b"\x1b[I\x1b[?1;2c\x1b[5;7R\x1b[<0;3;4M\x1b[<0;3;4m\x1b[O"

    assert {key.kind for key in typed(reports)} == {"other"}


@given(st.binary(max_size=60), st.data())
@settings(max_examples=300, deadline=None)
def test_how_reads_are_cut_changes_nothing(data: bytes, draw: st.DataObject) -> None:
    at = draw.draw(st.integers(min_value=0, max_value=len(data)))

    assert typed(data[:at], data[at:]) == typed(data)
