import os
from collections.abc import Awaitable, Callable

import pytest

from agentctl.errors import ToolError
from agentctl.executor.api import Executor
from agentctl.protocol.effects import ReadPath
from agentctl.protocol.values import JsonObject
from agentctl.tools.definition import Tool, ToolOutput, ToolPlace
from agentctl.tools.look import look_tools

pytestmark = pytest.mark.anyio
Call = Callable[[Tool, JsonObject], Awaitable[ToolOutput]]
PIXEL = bytes.fromhex("89504e470d0a1a0a") + b"not really"


@pytest.fixture
def tools(executor: Executor) -> dict[str, Tool]:
    return {tool.spec.name: tool for tool in look_tools(executor)}


@pytest.fixture
def tree(place: ToolPlace) -> ToolPlace:
    """A small project in the workdir."""
    files = {
        "README.md": "# Harbour\nIt listens on port 8417.\n",
        "src/crane.py": "LIMIT = 42\n\n\ndef lift():\n    pass\n",
        "src/ship.py": "from crane import lift\n\nlift()\n",
        "empty.txt": "",
    }
    for name, text in files.items():
        path = place.workdir / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return place


async def test_a_file_is_shown_with_line_numbers_and_as_plain_content(
    call: Call, tools: dict[str, Tool], tree: ToolPlace
) -> None:
    output = await call(tools["read_file"], {"path": "README.md"})

    assert output.text == "1\t# Harbour\n2\tIt listens on port 8417."
    assert isinstance(output.structured, dict)
    assert output.structured["content"] == "# Harbour\nIt listens on port 8417."
    assert output.structured["total_lines"] == 2


async def test_a_long_file_comes_in_pages_with_true_totals(
    call: Call, tools: dict[str, Tool], place: ToolPlace
) -> None:
    (place.workdir / "long.txt").write_text("".join(f"line {number}\n" for number in range(1, 5001)))

    first = await call(tools["read_file"], {"path": "long.txt"})
    second = await call(tools["read_file"], {"path": "long.txt", "offset": 351, "limit": 10})
    end = await call(tools["read_file"], {"path": "long.txt", "offset": -2})

    assert first.text.splitlines()[-1].startswith("[lines 1-350 of 5000, 48,893 bytes; go on with offset=351")
    assert second.text.startswith("351\tline 351\n")
    assert end.text.startswith("4999\tline 4999\n5000\tline 5000\n[lines 4999-5000 of 5000")


async def test_a_page_never_needs_to_be_cut_again(
    call: Call, tools: dict[str, Tool], place: ToolPlace
) -> None:
    (place.workdir / "wide.txt").write_text("".join("x" * 900 + "\n" for _ in range(500)))

    output = await call(tools["read_file"], {"path": "wide.txt", "limit": 2000})

    assert len(output.text.encode()) <= 32_768
    assert len(output.text.splitlines()) <= 400
    assert "go on with offset=" in output.text


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "[empty file]"),
        (b"a\r\nb\r\n", "1\ta\n2\tb\n[line ends: crlf]"),
        ("caf\u00e9\n".encode("cp1252"), "1\tcaf\u00e9\n[encoding: windows-1252]"),
        ('const REPL = "\ufffd";'.encode(), '1\tconst REPL = "\ufffd";'),
    ],
)
async def test_what_is_unusual_about_a_file_is_said(
    call: Call, tools: dict[str, Tool], place: ToolPlace, content: bytes, expected: str
) -> None:
    (place.workdir / "file").write_bytes(content)

    output = await call(tools["read_file"], {"path": "file"})

    assert output.text == expected


async def test_a_picture_goes_to_the_model_as_one(
    call: Call, tools: dict[str, Tool], place: ToolPlace
) -> None:
    (place.workdir / "dot.png").write_bytes(PIXEL)

    output = await call(tools["read_file"], {"path": "dot.png"})

    assert [image.media_type for image in output.images] == ["image/png"]


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("READNE.md", "There is no file READNE.md. Did you mean README.md? Existing in .: README.md"),
        ("src/boat.py", "There is no file src/boat.py. Existing in src: crane.py, ship.py."),
        ("lib/deep/x.py", "There is no file lib/deep/x.py. Existing in .: "),
        ("src", "src is a directory. Existing in src: crane.py, ship.py."),
        ("a\0b", "U+0000"),
        ("", "empty"),
    ],
)
async def test_a_wrong_path_is_told_with_what_exists(
    call: Call, tools: dict[str, Tool], tree: ToolPlace, path: str, words: str
) -> None:
    with pytest.raises(ToolError) as raised:
        await call(tools["read_file"], {"path": path})

    assert words in str(raised.value)


@pytest.mark.parametrize("name", ["read_file", "list_dir", "glob", "grep"])
async def test_outside_the_workdir_nothing_is_told_and_nothing_is_read(
    tools: dict[str, Tool], call: Call, tree: ToolPlace, name: str
) -> None:
    arguments: JsonObject = {"path": "../../secret"}
    if name in {"glob", "grep"}:
        arguments["pattern"] = "x"

    prepared = await tools[name].prepare(arguments, tree)

    (effect,) = prepared.effects
    assert isinstance(effect, ReadPath)
    assert effect.outside
    with pytest.raises(ToolError, match=r"is outside\. You can read in the workdir"):
        await call(tools[name], arguments)


async def test_a_link_that_leads_outside_is_outside(tools: dict[str, Tool], tree: ToolPlace) -> None:
    (tree.workdir / "way-out").symlink_to("/etc")

    prepared = await tools["read_file"].prepare({"path": "way-out/hostname"}, tree)

    (effect,) = prepared.effects
    assert effect == ReadPath(path=os.path.realpath("/etc/hostname"), outside=True)  # noqa: TID251


async def test_a_directory_is_listed_with_kinds_and_sizes(
    call: Call, tools: dict[str, Tool], tree: ToolPlace
) -> None:
    flat = await call(tools["list_dir"], {})
    deep = await call(tools["list_dir"], {"path": ".", "depth": 2})

    assert flat.text.splitlines() == ["README.md  (35 bytes)", "empty.txt  (0 bytes)", "src/"]
    assert isinstance(deep.structured, dict)
    assert {"name": "src/crane.py", "kind": "file", "size_bytes": 34} in deep.structured["entries"]


async def test_files_are_found_by_pattern_and_named_from_the_workdir(
    call: Call, tools: dict[str, Tool], tree: ToolPlace
) -> None:
    everywhere = await call(tools["glob"], {"pattern": "**/*.py"})
    below = await call(tools["glob"], {"pattern": "*.py", "path": "src"})
    nothing = await call(tools["glob"], {"pattern": "*.rs"})

    assert everywhere.text == below.text == "src/crane.py\nsrc/ship.py"
    assert nothing.structured == {"path": ".", "files": [], "more": False}


async def test_matches_are_named_with_file_and_line(
    call: Call, tools: dict[str, Tool], tree: ToolPlace
) -> None:
    found = await call(tools["grep"], {"pattern": r"lift\(", "include": "*.py"})
    around = await call(tools["grep"], {"pattern": "LIMIT", "path": "src/crane.py", "context": 1})
    nothing = await call(tools["grep"], {"pattern": "xyzzy"})

    assert found.text == "src/crane.py:4:def lift():\nsrc/ship.py:3:lift()"
    assert around.text == "src/crane.py:1:LIMIT = 42\nsrc/crane.py-2-"
    assert nothing.text.startswith("[no match in ")
    assert isinstance(found.structured, dict)
    assert found.structured["matches"] == [
        {"path": "src/crane.py", "line": 4, "text": "def lift():"},
        {"path": "src/ship.py", "line": 3, "text": "lift()"},
    ]


async def test_a_wrong_pattern_is_told(call: Call, tools: dict[str, Tool], tree: ToolPlace) -> None:
    with pytest.raises(ToolError):
        await call(tools["grep"], {"pattern": "("})


async def test_looking_is_read_only(tools: dict[str, Tool], tree: ToolPlace) -> None:
    for name, arguments in (
        ("read_file", {"path": "README.md"}),
        ("list_dir", {}),
        ("glob", {"pattern": "*"}),
        ("grep", {"pattern": "x"}),
    ):
        prepared = await tools[name].prepare(dict(arguments), tree)
        assert prepared.read_only
        assert all(isinstance(effect, ReadPath) and not effect.outside for effect in prepared.effects)


async def test_a_pattern_under_the_workdir_may_be_absolute(
    call: Call, tools: dict[str, Tool], place: ToolPlace
) -> None:
    (place.workdir / "a.py").write_text("x")

    output = await call(tools["glob"], {"pattern": f"{place.workdir}/*.py"})

    assert output.text == "a.py"


async def test_a_name_that_is_no_text_is_not_proposed_as_if_it_were(
    call: Call, tools: dict[str, Tool], place: ToolPlace
) -> None:
    (place.workdir / os.fsdecode(b"caf\xe9.txt")).write_text("x")

    with pytest.raises(ToolError, match="wildcard in a shell command"):
        await call(tools["read_file"], {"path": "caf\\xe9.txt"})
