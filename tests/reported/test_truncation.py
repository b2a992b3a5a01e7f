"""Long texts that were cut in the middle of something, or at the wrong end, elsewhere."""

import json
import re
from pathlib import Path

import pytest

from agentctl.protocol.messages import ToolResult
from agentctl.state.cut import cut_text
from tests.reported.cases import Case, each_case, nobody_reads
from tests.reported.desk import Desk, call

pytestmark = pytest.mark.anyio

SHOWN_BYTES = 14_000
"""Of head and of tail, as the shell tool shows them."""


@each_case("truncation")
async def test_a_reported_cut(case: Case, desk: Desk) -> None:
    match case.given:
        case {"text": str(text), "limit": int(limit)} | {"text": str(text), "limit_bytes": int(limit)}:
            await a_text(desk, written_out(text, limit), limit)
        case {"output": str(words)}:
            await an_output(desk, words)
        case {"tool": str(tool), "id": str(call_id)}:
            await hostile_names(desk, tool, call_id)
        case {"stream": str()}:
            await a_character_at_the_edge(desk)
        case {"file": str(words)}:
            await a_long_file(desk, words)
        case _:
            nobody_reads(case)


def written_out(text: str, limit: int) -> str:
    """Return the text that words such as `a*1999 + U+1F4C1 + b*10` or `U+20AC repeated` mean."""
    if text.endswith(" repeated"):
        return chr(int(text.split(maxsplit=1)[0].removeprefix("U+"), 16)) * limit
    parts = []
    for part in text.split(" + "):
        word, _, times = part.partition("*")
        letter = written_out(f"{word} repeated", 1) if word.startswith("U+") else word
        parts.append(letter * int(times or 1))
    return "".join(parts)


async def a_text(desk: Desk, text: str, limit: int) -> None:
    """Cut it as results are cut for a model, and at every nearby place as output of a command."""
    for cap in range(max(1, limit - 8), limit + 9):
        cut = cut_text(text, max_lines=1000, max_bytes=cap).text
        assert len(cut.encode()) <= cap
        assert "\ufffd" not in cut
    character = max(text, key=ord)
    for before in range(5):
        (desk.work / "long").write_text("a" * (SHOWN_BYTES - before) + character * 60_000, encoding="utf-8")
        (told,) = await desk.calls(call("shell", command="cat long"))
        clean(told, {"a", character})


def clean(told: ToolResult, letters: set[str]) -> None:
    """Check that a result holds nothing but these letters and a notice."""
    assert json.loads(json.dumps(told.text)).encode("utf-8")
    assert told.outcome == "ok", told.text
    rest = re.sub(r"\[[^\]]*\]", "", told.text)
    assert set(rest) - {"\n"} == letters, set(rest)


async def an_output(desk: Desk, words: str) -> None:
    found = re.fullmatch(r'(\d+) lines, last line "(.*)"', words)
    assert found is not None
    line = f"for n in $(seq {int(found[1]) - 1}); do echo line $n of many; done; echo {found[2]}; exit 1"
    (told,) = await desk.calls(call("shell", command=line))
    assert told.text.startswith("line 1 of many\n")
    assert f"\n{found[2]}\n" in told.text
    shown = sum(len(one) + 1 for one in told.text.splitlines() if not one.startswith("["))
    omitted = re.search(r"([\d,]+) bytes (?:are )?(?:left out|omitted)", told.text)
    assert omitted is not None, told.text[-400:]
    assert isinstance(told.structured, dict)
    total = told.structured["total_bytes"]
    assert isinstance(total, int)
    assert abs(total - shown - int(omitted[1].replace(",", ""))) < 10


async def hostile_names(desk: Desk, tool: str, call_id: str) -> None:
    """The name of a tool and the id of a call come from the model; they may end in the name of a file."""
    for hostile in (call_id, tool, f"{call_id}/../../../x", ".", "a\0b", "n" * 5000):
        (told,) = await desk.calls(call("shell", call_id=hostile, command="seq 100000"))
        kept = re.search(r"(?:kept|is) in (\S+)", told.text)
        assert kept is not None, told.text[-300:]
        place = Path(kept[1])
        assert place.parent.name == "output"
        assert ".." not in place.parts
        assert len(place.name) < 120
    assert sorted(one.name for one in desk.folder.iterdir()) == ["outside", "repo"]


async def a_character_at_the_edge(desk: Desk) -> None:
    for before in range(4):
        (desk.work / "long").write_text("\U0001f4c1" * 20_000 + "b" * before, encoding="utf-8")
        (told,) = await desk.calls(call("shell", command="cat long"))
        clean(told, {"\U0001f4c1", *("b" * before)})


async def a_long_file(desk: Desk, words: str) -> None:
    size = int(words.split(maxsplit=1)[0]) << 20
    count = size // 20
    (desk.work / "long").write_text("".join(f"line {n:>13}.\n" for n in range(1, count + 1)))
    (first,) = await desk.calls(call("read_file", path="long"))
    assert first.outcome == "ok"
    assert first.text.startswith("1\tline")
    assert f"of {count}" in first.text
    following = re.search(r"go on with offset=(\d+)", first.text)
    assert following is not None
    (second,) = await desk.calls(call("read_file", path="long", offset=int(following[1])))
    assert second.text.startswith(f"{following[1]}\tline")


@pytest.mark.parametrize(("lines", "size"), [(400, 32_768), (30, 32_768), (400, 4_000), (5_000, 1_000_000)])
async def test_a_gap_is_told_once_and_truly_whatever_a_model_may_see(
    desk: Desk, lines: int, size: int
) -> None:
    bounds = f"[context]\ntool_output_max_lines = {lines}\ntool_output_max_bytes = {size}"
    (desk.work / "long").write_text("".join(f"line {number}\n" for number in range(1, 3001)))

    shown, page = await desk.calls(
        call("shell", command="cat long"), call("read_file", path="long"), rules=bounds
    )

    assert isinstance(shown.structured, dict)
    gap = re.findall(r"(\d+) bytes left out; the whole is in", shown.text)
    there = sum(len(line) + 1 for line in shown.text.splitlines() if line.startswith("line "))
    # The lines at the gap may be cut.
    assert abs(int(gap[0]) + there - (desk.work / "long").stat().st_size) < 20
    assert shown.text.endswith("line 3000")
    for told in (shown, page):
        assert "truncated" not in told.text
        assert told.text.count("\n") < lines
        assert len(told.text.encode()) <= size
    last, following = re.findall(r"lines 1-(\d+) of 3000.*offset=(\d+)", page.text)[0]
    assert int(following) == int(last) + 1
    assert page.text.count("\n") == int(last)
