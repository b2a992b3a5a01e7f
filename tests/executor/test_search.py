"""Listing, globbing and searching."""

import os
from pathlib import Path

import pytest

from agentctl.errors import ToolError
from agentctl.executor.api import GlobRequest, GrepRequest, GrepResult, PathKind
from agentctl.executor.search import bounded
from tests.executor.conftest import Hands

pytestmark = pytest.mark.anyio


@pytest.fixture
def tree(workdir: Path) -> Path:
    for name in (
        "README.md",
        "src/a.py",
        "src/pkg/b.py",
        "src/pkg/c.ts",
        "tests/test_a.py",
        ".github/ci.yml",
        "build/out.py",
        ".git/config",
        ".git/hooks/x.py",
        "sub/.git/config",
    ):
        (workdir / name).parent.mkdir(parents=True, exist_ok=True)
        (workdir / name).write_text(f"needle in {name}\n")
    (workdir / ".gitignore").write_text("build/\n*.log\n!keep.log\n")
    (workdir / "x.log").write_text("needle\n")
    (workdir / "keep.log").write_text("needle\n")
    return workdir


async def globbed(hands: Hands, pattern: str, **more: bool) -> list[str]:
    base = await hands.resolve(".")
    listing = await hands.executor.glob(base, GlobRequest(pattern=pattern, **more))  # type: ignore[arg-type]
    return [entry.name for entry in listing.entries]


async def grepped(hands: Hands, base: str = ".", **more: object) -> GrepResult:
    return await hands.executor.grep(await hands.resolve(base), GrepRequest(**more))  # type: ignore[arg-type]


@pytest.mark.usefixtures("tree")
@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.md", ["README.md"]),
        ("*.py", []),
        ("**/*.py", ["src/a.py", "src/pkg/b.py", "tests/test_a.py"]),
        ("src/**", ["src/a.py", "src/pkg/b.py", "src/pkg/c.ts"]),
        ("src/**/b.py", ["src/pkg/b.py"]),
        ("src/**/**/b.py", ["src/pkg/b.py"]),
        ("**/*.{py,ts}", ["src/a.py", "src/pkg/b.py", "src/pkg/c.ts", "tests/test_a.py"]),
        ("s?c/[ab].py", ["src/a.py"]),
        ("src/[!b].py", ["src/a.py"]),
        ("**/ci.yml", [".github/ci.yml"]),
        (".git/config", [".git/config"]),
        ("**/config", []),
        ("src/pkg/", ["src/pkg"]),
        ("*.log", ["keep.log"]),
    ],
)
async def test_a_glob_finds(hands: Hands, pattern: str, found: list[str]) -> None:
    assert await globbed(hands, pattern) == found


@pytest.mark.usefixtures("tree")
async def test_ignored_and_hidden_files_come_when_asked_for(hands: Hands) -> None:
    assert await globbed(hands, "**/*.py", ignored=True) == [
        "build/out.py",
        "src/a.py",
        "src/pkg/b.py",
        "tests/test_a.py",
    ]
    assert await globbed(hands, "**/*.yml", hidden=False) == []


@pytest.mark.usefixtures("tree")
@pytest.mark.parametrize(
    "pattern", ["", "/etc/*", "../*", "a/../../b", "{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}"]
)
async def test_a_glob_that_leads_out_or_explodes_is_refused(hands: Hands, pattern: str) -> None:
    with pytest.raises(ToolError):
        await globbed(hands, pattern)


async def test_a_listing_shows_links_and_does_not_enter_them(hands: Hands, workdir: Path) -> None:
    (workdir / "d").mkdir()
    (workdir / "d" / "f").write_text("xyz")
    (workdir / "l").symlink_to("/etc")

    flat = await hands.executor.list_dir(await hands.resolve("."))
    deep = await hands.executor.list_dir(await hands.resolve("."), depth=2)

    assert [(entry.name, entry.kind, entry.link_to) for entry in flat.entries] == [
        ("d", PathKind.DIRECTORY, ""),
        ("l", PathKind.OTHER, "/etc"),
    ]
    assert [entry.name for entry in deep.entries] == ["d", "d/f", "l"]
    assert deep.entries[1].size_bytes == 3


async def test_a_listing_stops_at_its_limit_and_says_so(hands: Hands, workdir: Path) -> None:
    for number in range(5):
        (workdir / str(number)).write_text("")

    listing = await hands.executor.list_dir(await hands.resolve("."), limit=3)

    assert (len(listing.entries), listing.more) == (3, True)


@pytest.mark.usefixtures("tree")
async def test_a_search_passes_over_git_and_what_is_ignored(hands: Hands) -> None:
    found = await grepped(hands, pattern="needle")

    assert sorted(match.path for match in found.matches) == sorted(
        [
            "README.md",
            "keep.log",
            "src/a.py",
            "src/pkg/b.py",
            "src/pkg/c.ts",
            "tests/test_a.py",
            ".github/ci.yml",
        ]
    )


@pytest.mark.usefixtures("tree")
async def test_a_search_below_keeps_the_ignore_file_above(hands: Hands, workdir: Path) -> None:
    (workdir / "src" / "build").mkdir()
    (workdir / "src" / "build" / "gen.py").write_text("needle\n")

    found = await grepped(hands, "src", pattern="needle", include="*.py")

    assert [match.path for match in found.matches] == ["a.py", "pkg/b.py"]


async def test_matches_carry_line_numbers_and_context(hands: Hands, workdir: Path) -> None:
    (workdir / "f").write_text("one\ntwo\nTHREE\nfour\nfive\n")

    found = await grepped(hands, pattern="three", ignore_case=True, context_lines=1)

    assert [(match.line, match.text, match.context) for match in found.matches] == [
        (2, "two", True),
        (3, "THREE", False),
        (4, "four", True),
    ]


async def test_a_search_in_one_file_and_in_other_encodings(hands: Hands, workdir: Path) -> None:
    (workdir / "wide").write_bytes("\ufeffone\nh\u00e9llo\n".encode("utf-16-le"))
    (workdir / "legacy").write_bytes(b"h\xe9llo\n")
    (workdir / "binary").write_bytes(b"h\0llo hello\n")

    assert [match.line for match in (await grepped(hands, "wide", pattern="h\u00e9l")).matches] == [2]
    found = await grepped(hands, pattern="h\u00e9llo", literal=True)
    assert sorted(match.path for match in found.matches) == ["legacy", "wide"]


async def test_a_limit_is_told(hands: Hands, workdir: Path) -> None:
    (workdir / "f").write_text("x\n" * 10)

    found = await grepped(hands, pattern="x", limit=3)

    assert (len(found.matches), found.more) == (3, True)


async def test_a_pattern_that_never_ends_is_stopped(hands: Hands, workdir: Path) -> None:
    (workdir / "f").write_text("a" * 40 + "b\n")
    assert not bounded(GrepRequest(pattern="(a+)+$"))

    found = await hands.executor.grep(await hands.resolve("."), GrepRequest(pattern="(a+)+$", timeout_s=-4.0))

    assert (found.matches, found.timed_out) == ((), True)


async def test_a_pattern_with_many_repeats_is_searched_beside_us(hands: Hands, workdir: Path) -> None:
    (workdir / "f.py").write_text("def name(argument):\n    pass\n")

    found = await grepped(hands, pattern=r"def \w+\(.*\):", include="**/*.py")

    assert [(match.path, match.line) for match in found.matches] == [("f.py", 1)]


async def test_a_pattern_that_is_none_is_told(hands: Hands) -> None:
    for pattern in ("(", "", "[z-a]", "x{99999999999}"):
        with pytest.raises(ToolError):
            await grepped(hands, pattern=pattern)


async def test_a_match_far_out_in_a_long_line_is_found(hands: Hands, workdir: Path) -> None:
    (workdir / "f").write_text("x" * 100_000 + "needle" + "y" * 100_000 + "\n")

    found = await grepped(hands, pattern="needle")

    assert len(found.matches) == 1
    assert found.matches[0].text.endswith("more characters]")


async def test_a_directory_that_may_not_be_read_is_passed_over(hands: Hands, workdir: Path) -> None:
    (workdir / "closed").mkdir()
    (workdir / "closed" / "f").write_text("needle\n")
    (workdir / "open").write_text("needle\n")
    (workdir / "closed").chmod(0)
    try:
        found = await grepped(hands, pattern="needle")
    finally:
        (workdir / "closed").chmod(0o755)

    expected = ["closed/f", "open"] if os.geteuid() == 0 else ["open"]
    assert sorted(match.path for match in found.matches) == expected


async def test_a_base_that_may_not_be_read_is_told(hands: Hands, workdir: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    (workdir / "closed").mkdir(mode=0)

    try:
        with pytest.raises(ToolError, match="permission denied"):
            await hands.executor.list_dir(await hands.resolve("closed"))
    finally:
        (workdir / "closed").chmod(0o755)
