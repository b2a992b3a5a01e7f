"""Edits on bytes: only the span that matched changes."""

import ast
import json
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from agentctl.errors import ToolError
from agentctl.executor.diff import unified_diff
from agentctl.executor.edits import edit_bytes, whole_text_bytes
from agentctl.executor.file_types import Edit
from agentctl.executor.text import LEGACY, Encoding, sniff

CORPUS = Path(__file__).parents[1] / "corpus" / "executor" / "edits.jsonl"
CASES = [json.loads(line) for line in CORPUS.read_text("utf-8").splitlines()]


def unescaped(text: str) -> bytes:
    """Bytes as the cases write them, with backslash escapes."""
    quoted = text.replace('\\"', '"').replace('"', '\\"').replace("\n", "\\n")
    return bytes(ast.literal_eval(f'b"{quoted}"'))


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_a_case_of_our_own(case: dict[str, str]) -> None:
    data = unescaped(case["bytes"])
    edit = Edit(old=case["old"], new=case["new"], every=bool(case.get("every")))

    if "error" in case:
        with pytest.raises(ToolError, match=case["error"]):
            edit_bytes(data, (edit,), name="f")
    else:
        assert edit_bytes(data, (edit,), name="f").new_bytes == unescaped(case["result"])


def test_several_edits_are_made_in_order_all_or_none() -> None:
    edits = (Edit(old="a", new="b"), Edit(old="bb", new="c"))

    assert edit_bytes(b"ab", edits, name="f").new_bytes == b"c"
    with pytest.raises(ToolError):
        edit_bytes(b"ab", (*edits, Edit(old="zz", new="y")), name="f")


def test_a_refusal_names_the_lines() -> None:
    with pytest.raises(ToolError, match=r"lines 1, 3"):
        edit_bytes(b"foo\nbar\nfoo\n", (Edit(old="foo", new="x"),), name="f")


def test_a_near_miss_is_named_with_its_line() -> None:
    with pytest.raises(ToolError, match=r"line 2 differs in blanks, .*: '    return 1'"):
        edit_bytes(b"a\n    return 1\n", (Edit(old="\treturn 1", new="x"),), name="f")


lines = st.lists(st.text(alphabet="ab\u00e9 \t\r", max_size=6), min_size=1, max_size=8)
line_end = st.sampled_from([b"\n", b"\r\n"])


@settings(max_examples=300, deadline=None)
@given(content=lines, ends=st.data(), at=st.integers(0, 7), new=st.text(alphabet="xyz\n", max_size=5))
def test_bytes_outside_the_span_never_change(
    content: list[str], ends: st.DataObject, at: int, new: str
) -> None:
    mark = f"<{at}>"
    content = [line.replace("\r", "") for line in content]
    content[at % len(content)] += mark
    data = b"".join(line.encode() + ends.draw(line_end) for line in content)
    before, _, after = data.partition(mark.encode())

    result = edit_bytes(data, (Edit(old=mark, new=new),), name="f").new_bytes

    assert result.startswith(before)
    assert result.endswith(after)
    inserted = result[len(before) : len(result) - len(after)]
    assert inserted.replace(b"\r\n", b"\n").decode() == new


@settings(max_examples=300, deadline=None)
@given(data=st.binary(max_size=200), old=st.text(max_size=4), new=st.text(max_size=4), every=st.booleans())
def test_any_bytes_and_any_texts_give_a_result_or_a_word_for_the_model(
    data: bytes, old: str, new: str, every: bool
) -> None:
    try:
        edited = edit_bytes(data, (Edit(old=old, new=new, every=every),), name="f")
    except ToolError:
        return
    assert edited.replacements >= 1
    if not every:
        assert edited.replacements == 1


@settings(max_examples=300, deadline=None)
@given(data=st.binary(max_size=300))
def test_every_encoding_gives_back_the_bytes_it_decoded(data: bytes) -> None:
    encoding = sniff(data)
    assume(encoding is not None)
    assert encoding is not None
    body = data[len(encoding.mark) :]
    try:
        text = encoding.decode(body)
    except UnicodeDecodeError:
        assert encoding.wide
        return
    assert encoding.encode(text) == body


def test_an_edit_of_a_large_repetitive_text_is_quick() -> None:
    old, new = "same line\n" * 40_000, "other\n" * 50_000

    assert edit_bytes(old.encode(), (Edit(old=old, new=new),), name="f").new_bytes == new.encode()
    with pytest.raises(ToolError, match="1000 or more"):
        edit_bytes(old.encode(), (Edit(old=old[: len(old) // 2], new=new),), name="f")


def test_every_single_character_is_replaced() -> None:
    assert edit_bytes(b"a" * 5000, (Edit(old="a", new="b", every=True),), name="f").replacements == 5000


def test_the_legacy_table_is_one_to_one() -> None:
    every_byte = bytes(range(256))
    encoding = Encoding(name=LEGACY)

    assert encoding.encode(encoding.decode(every_byte)) == every_byte
    assert encoding.decode(b"\x93caf\xe9\x94") == "\u201ccaf\u00e9\u201d"


def test_a_whole_write_keeps_mark_encoding_and_crlf_of_the_old_file() -> None:
    assert whole_text_bytes("a\nb\n", b"\xef\xbb\xbfx\r\ny\r\n") == (
        b"\xef\xbb\xbfa\r\nb\r\n",
        ("kept CRLF line ends", "kept the byte order mark"),
    )
    assert whole_text_bytes("th\u00e9\n", b"caf\xe9\n") == (b"th\xe9\n", ("kept the encoding windows-1252",))
    assert whole_text_bytes("\u65e5\n", b"caf\xe9\n") == ("\u65e5\n".encode(), ())
    assert whole_text_bytes("a\nb\n", b"x\r\ny\n") == (b"a\nb\n", ())
    assert whole_text_bytes("a\r\nb\n", b"x\r\n") == (b"a\r\nb\n", ())


@settings(max_examples=200, deadline=None)
@given(
    old=st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=12),
    new=st.lists(st.sampled_from(["a", "b", "c", "e"]), max_size=12),
)
def test_a_diff_applied_to_the_old_gives_the_new(old: list[str], new: list[str]) -> None:
    before, after = ("".join(f"{line}\n" for line in lines) for lines in (old, new))

    diff = unified_diff(before.encode(), after.encode(), name="f")

    assert _patched(before.splitlines(), diff) == after.splitlines()


def _patched(lines: list[str], diff: str) -> list[str]:
    result: list[str] = []
    at = 0
    for row in diff.splitlines()[2:]:
        if row.startswith("@@"):
            first = int(row.split()[1][1:].split(",")[0])
            count = int([*row.split()[1].split(","), "1"][1])
            start = first - 1 if count else first
            result += lines[at:start]
            at = start
        elif row.startswith("+"):
            result.append(row[1:])
        else:
            assert lines[at] == row[1:]
            at += 1
            result += [row[1:]] if row.startswith(" ") else []
    return result + lines[at:]


def test_a_diff_of_a_large_file_with_two_far_edits_is_small_and_quick() -> None:
    old = "".join(f"line {number}\n" for number in range(100_000)).encode()
    new = old.replace(b"line 5\n", b"LINE 5\n").replace(b"line 99990\n", b"LINE 99990\n")

    diff = unified_diff(old, new, name="f")

    assert diff.count("\n") == 2 + 2 * 9


@pytest.mark.parametrize(
    ("old", "said"),
    [
        ("def f():\n    return 'a'", r"lines 1-2 differ in blanks"),
        ("return 'a'\nx = 1 - 2", r"lines 2-3 differ in blanks, quotes, dashes"),
        ("x = 1 - 2", r"line 3 differs in .*dashes"),
        ("caf\u00e9", r"line 4 differs in .*spelling of letters"),
        ("def f():\n    return 2", r"its line 'def f\(\):' stands at line 1, but what follows differs"),
    ],
)
def test_what_was_nearly_found_is_named_whole(old: str, said: str) -> None:
    text = "def f():\n\treturn \u2018a\u2019\nx = 1 \u2013 2\ncafe\u0301\n"

    with pytest.raises(ToolError, match=said):
        edit_bytes(text.encode(), (Edit(old=old, new="y"),), name="f")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "windows-1252", "utf-8"])
def test_a_diff_shows_text_in_the_encoding_of_the_file(encoding: str) -> None:
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    old, new = ((mark + text).encode(encoding) for text in ("un \u00e9t\u00e9\nb\n", "un \u00e9t\u00e9\nc\n"))

    assert unified_diff(old, new, name="f") == "--- f\n+++ f\n@@ -1,2 +1,2 @@\n un \u00e9t\u00e9\n-b\n+c\n"


def test_a_diff_between_encodings_shows_bytes() -> None:
    assert "-caf\\xe9\n+caf\u00e9" in unified_diff(b"caf\xe9\n", "caf\u00e9\n".encode(), name="f")


def test_a_diff_shows_line_ends_and_missing_final_newlines() -> None:
    assert unified_diff(b"a\r\n", b"a\n", name="f").endswith("-a\\r\n+a\n")
    assert "\\ No newline at end of file" in unified_diff(b"a\n", b"a", name="f")
    assert unified_diff(None, b"", name="f") == "--- /dev/null\n+++ f\n"
