"""Reading by lines, with true totals, in bounded memory."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentctl.errors import ToolError
from agentctl.executor.api import Page, PageRequest, PathKind, ResolvedPath
from agentctl.executor.pages import PageReader
from tests.executor.conftest import Hands

pytestmark = pytest.mark.anyio


async def page(hands: Hands, text: str, **wanted: int) -> Page:
    return await hands.executor.read_page(await hands.resolve(text), PageRequest(**wanted))


async def test_a_page_says_where_it_is_and_what_comes_next(hands: Hands, workdir: Path) -> None:
    (workdir / "f").write_text("".join(f"line {number}\n" for number in range(1, 11)))

    first = await page(hands, "f", limit_lines=3)
    last = await page(hands, "f", offset_line=9, limit_lines=5)
    tail = await page(hands, "f", offset_line=-2)

    assert (first.lines, first.next_line) == (("line 1", "line 2", "line 3"), 4)
    assert (first.total_lines, first.total_bytes) == (10, 71)
    assert (last.lines, last.next_line) == (("line 9", "line 10"), None)
    assert (tail.first_line, tail.lines) == (9, ("line 9", "line 10"))


async def test_beyond_the_end_the_number_of_lines_is_told(hands: Hands, workdir: Path) -> None:
    (workdir / "f").write_text("a\nb")

    with pytest.raises(ToolError, match="2 lines"):
        await page(hands, "f", offset_line=3)


async def test_an_empty_file_has_no_lines(hands: Hands, workdir: Path) -> None:
    (workdir / "f").write_text("")

    found = await page(hands, "f")

    assert (found.lines, found.total_lines, found.next_line) == ((), 0, None)


@pytest.mark.parametrize(
    ("data", "lines", "encoding"),
    [
        (b"caf\xc3\xa9\n", ("caf\u00e9",), "utf-8"),
        (b"\xef\xbb\xbfname\r\nx\r\n", ("name", "x"), "utf-8-sig"),
        (b"caf\xe9 \x93x\x94\n", ("caf\u00e9 \u201cx\u201d",), "windows-1252"),
        ("\ufeffa\nb\u00e9\n".encode("utf-16-le"), ("a", "b\u00e9"), "utf-16-le"),
        ("\ufeffa\nb".encode("utf-32-be"), ("a", "b"), "utf-32-be"),
        (b'const R = "\xef\xbf\xbd";\n', ('const R = "\ufffd";',), "utf-8"),
        ("na\u00efve \u00e9t\u00e9 ".encode() + b"\xff\n", ("na\u00efve \u00e9t\u00e9 \\xff",), "utf-8"),
        (b"10%\r20%\nname\n", ("10%\r20%", "name"), "utf-8"),
    ],
)
async def test_every_encoding_is_shown_as_text(
    hands: Hands, workdir: Path, data: bytes, lines: tuple[str, ...], encoding: str
) -> None:
    (workdir / "f").write_bytes(data)

    found = await page(hands, "f")

    assert (found.lines, found.encoding) == (lines, encoding)
    assert found.total_bytes == len(data)


async def test_binary_is_refused_with_its_size(hands: Hands, workdir: Path) -> None:
    (workdir / "f").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" * 10)

    with pytest.raises(ToolError, match=r"binary file of 160 bytes"):
        await page(hands, "f")


async def test_a_long_line_is_cut_and_says_so(hands: Hands, workdir: Path) -> None:
    (workdir / "f").write_text("\u20ac" * 3000 + "\nshort\n")

    found = await page(hands, "f", limit_line_chars=100)

    assert found.lines[0].startswith("\u20ac" * 100 + " [… 8700 more bytes")
    assert (found.lines[1], found.cut_lines, found.total_lines) == ("short", (1,), 2)


async def test_a_page_ends_at_its_bytes_too(hands: Hands, workdir: Path) -> None:
    (workdir / "f").write_text("0123456789\n" * 100)

    found = await page(hands, "f", limit_bytes=55)

    assert (len(found.lines), found.next_line) == (5, 6)


async def test_mixed_line_ends_are_told(hands: Hands, workdir: Path) -> None:
    (workdir / "f").write_bytes(b"a\r\nb\nc\r\n")

    assert (await page(hands, "f")).line_ends == "mixed"
    assert (await page(hands, "f", limit_lines=1)).line_ends == "crlf"


async def test_a_two_megabyte_file_gives_its_first_page(hands: Hands, workdir: Path) -> None:
    (workdir / "f").write_text("x" * 99 + "\n" * 1 + ("y" * 99 + "\n") * 20_000)

    found = await page(hands, "f")

    assert (len(found.lines), found.next_line, found.total_lines) == (2000, 2001, 20_001)


@settings(max_examples=200, deadline=None)
@given(
    data=st.binary(max_size=60).filter(lambda data: b"\0" not in data),
    offset=st.integers(1, 6),
    limit=st.integers(1, 4),
)
def test_pages_are_the_lines_that_splitting_gives(
    data: bytes, offset: int, limit: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.getbasetemp() / "page"
    file.write_bytes(b"\n".join(data[at : at + 5] for at in range(0, len(data), 5)))
    whole = file.read_bytes().removeprefix(b"\xef\xbb\xbf")
    path = ResolvedPath(
        path=file, shown="page", kind=PathKind.FILE, inside=True, readable=True, root=file.parent
    )
    expected = whole.split(b"\n")[: None if whole and not whole.endswith(b"\n") else -1]

    try:
        found = PageReader().read_page(path, PageRequest(offset_line=offset, limit_lines=limit), lambda: None)
    except ToolError:
        assert offset > max(1, len(expected)) or whole[:2] in (b"\xff\xfe", b"\xfe\xff")
        return

    if found.encoding.startswith(("utf-16", "utf-32")):
        return
    assert found.total_lines == len(expected)
    assert len(found.lines) == len(expected[offset - 1 : offset - 1 + limit])


@pytest.mark.parametrize("size", [1 << 29, pytest.param(5 << 30, marks=pytest.mark.slow)])
def test_a_page_of_a_file_of_gigabytes_takes_little_memory(tmp_path: Path, size: int) -> None:
    file = tmp_path / "huge"
    with file.open("wb") as held:
        held.write(b"first line\n")
        held.seek(size - 10)
        held.write(b"\nlast one\n")
    program = f"""
import resource, sys
from pathlib import Path
from agentctl.executor.api import PageRequest, PathKind, ResolvedPath
from agentctl.executor.pages import PageReader
path = ResolvedPath(path=Path({str(file)!r}), shown="f", kind=PathKind.FILE, inside=True, readable=True,
                    root=Path({str(tmp_path)!r}))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
page = PageReader().read_page(path, PageRequest(offset_line=-1), lambda: None)
assert page.lines == ("last one",), page.lines
assert page.total_bytes == {size}
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    # A hole reads as NULs, which begin only after the part that tells text from binary.
    with file.open("r+b") as held:
        held.seek(0)
        held.write((b"x" * 63 + b"\n") * 1024 * 2)

    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        check=True,
        text=True,
        env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
    )

    assert int(done.stdout) < 16 * 1024
