from collections.abc import Awaitable, Callable

import pytest

from agentctl.errors import ToolError
from agentctl.executor.api import Executor
from agentctl.protocol.effects import WritePath
from agentctl.protocol.values import JsonObject
from agentctl.tools.change import change_tools
from agentctl.tools.definition import ActContext, Tool, ToolOutput, ToolPlace

pytestmark = pytest.mark.anyio
Call = Callable[[Tool, JsonObject], Awaitable[ToolOutput]]


@pytest.fixture
def tools(executor: Executor) -> dict[str, Tool]:
    return {tool.spec.name: tool for tool in change_tools(executor)}


async def test_a_new_file_is_written_with_the_directories_it_needs(
    call: Call, tools: dict[str, Tool], place: ToolPlace
) -> None:
    output = await call(tools["write_file"], {"path": "a/b/new.txt", "content": "one\ntwo\n"})

    path = place.workdir / "a/b/new.txt"
    assert path.read_text() == "one\ntwo\n"
    assert output.text == "Created a/b/new.txt (8 bytes)."
    assert (output.bytes_written, output.files_written) == (8, 1)


async def test_an_existing_file_is_left_alone_unless_overwrite_is_said(
    call: Call, tools: dict[str, Tool], place: ToolPlace
) -> None:
    path = place.workdir / "exists.txt"
    path.write_text("old\n")

    with pytest.raises(ToolError, match="exists and was left as it is"):
        await call(tools["write_file"], {"path": "exists.txt", "content": "new\n"})
    assert path.read_text() == "old\n"
    output = await call(tools["write_file"], {"path": "exists.txt", "content": "new\n", "overwrite": True})

    assert path.read_text() == "new\n"
    assert "-old\n+new" in output.text


async def test_an_edit_returns_its_diff_and_its_preview_is_the_same_diff(
    call: Call, tools: dict[str, Tool], place: ToolPlace, context: ActContext
) -> None:
    (place.workdir / "f.py").write_text("a = 1\nb = 2\nc = 3\n")

    prepared = await tools["edit_file"].prepare({"path": "f.py", "old": "b = 2", "new": "b = 22"}, place)
    output = await prepared.act(context)

    assert "-b = 2\n+b = 22" in prepared.preview
    assert output.text == f"Edited f.py (1 replacement).\n{prepared.preview}".rstrip()
    assert isinstance(output.structured, dict)
    assert output.structured["diff"] == prepared.preview


async def test_what_was_judged_is_what_is_written(tools: dict[str, Tool], place: ToolPlace) -> None:
    prepared = await tools["write_file"].prepare({"path": "x/../y.txt", "content": "abc"}, place)

    assert prepared.effects == (WritePath(path=str(place.workdir / "y.txt")),)
    assert (prepared.declared_bytes, prepared.declared_files, prepared.read_only) == (3, 1, False)


async def test_a_protected_path_is_marked(tools: dict[str, Tool], place: ToolPlace) -> None:
    (place.workdir / ".git").mkdir()

    prepared = await tools["write_file"].prepare({"path": ".git/config", "content": ""}, place)

    (effect,) = prepared.effects
    assert isinstance(effect, WritePath)
    assert effect.protected == "git internals"


@pytest.mark.parametrize("path", ["../out.txt", "/etc/passwd", "link/out.txt"])
async def test_nothing_is_written_outside(
    call: Call, tools: dict[str, Tool], place: ToolPlace, path: str
) -> None:
    (place.workdir / "link").symlink_to(place.workdir.parent)
    arguments: JsonObject = {"path": path, "content": "x"}

    prepared = await tools["write_file"].prepare(arguments, place)

    assert [type(effect) for effect in prepared.effects] == [WritePath]
    with pytest.raises(ToolError, match="You can write in the workdir"):
        await call(tools["write_file"], arguments)
    assert not (place.workdir.parent / "out.txt").exists()


async def test_an_edit_of_a_missing_file_tells_what_exists(
    call: Call, tools: dict[str, Tool], place: ToolPlace
) -> None:
    (place.workdir / "main.py").write_text("x\n")

    with pytest.raises(ToolError, match=r"Did you mean main\.py"):
        await call(tools["edit_file"], {"path": "mian.py", "old": "x", "new": "y"})


async def test_an_edit_that_changes_nothing_is_told(
    call: Call, tools: dict[str, Tool], place: ToolPlace
) -> None:
    (place.workdir / "f").write_text("x\n")

    with pytest.raises(ToolError, match="nothing to change"):
        await call(tools["edit_file"], {"path": "f", "old": "x", "new": "x"})


async def test_every_occurrence_is_replaced_on_request(
    call: Call, tools: dict[str, Tool], place: ToolPlace
) -> None:
    (place.workdir / "f").write_text("foo bar foo\n")

    output = await call(tools["edit_file"], {"path": "f", "old": "foo", "new": "baz", "replace_all": True})

    assert (place.workdir / "f").read_text() == "baz bar baz\n"
    assert output.text.startswith("Edited f (2 replacements).")


@pytest.mark.parametrize(("there", "asked"), [("cafe\u0301", "caf\u00e9"), ("caf\u00e9", "cafe\u0301")])
async def test_a_name_in_another_normal_form_is_the_same_name(
    call: Call, tools: dict[str, Tool], place: ToolPlace, there: str, asked: str
) -> None:
    file = place.workdir / there / f"{there}.txt"
    file.parent.mkdir()
    file.write_text("one\n")
    path = f"{asked}/{asked}.txt"

    await call(tools["edit_file"], {"path": path, "old": "one", "new": "two"})
    with pytest.raises(ToolError, match="exists and was left"):
        await call(tools["write_file"], {"path": path, "content": "three\n"})

    assert file.read_text() == "two\n"
    assert [one.name for one in place.workdir.iterdir()] == [there]


async def test_of_two_names_that_look_alike_neither_is_taken(
    call: Call, tools: dict[str, Tool], place: ToolPlace
) -> None:
    for name in ("\u1e9b\u0323", "\u017f\u0323\u0307"):
        (place.workdir / name).write_text("one\n")

    with pytest.raises(ToolError, match="There is no file"):
        await call(tools["edit_file"], {"path": "\u017f\u0307\u0323", "old": "one", "new": "two"})


async def test_a_path_that_ends_as_a_directory_makes_no_file(
    call: Call, tools: dict[str, Tool], place: ToolPlace
) -> None:
    with pytest.raises(ToolError, match="names a directory"):
        await call(tools["write_file"], {"path": "new/", "content": "x"})

    assert list(place.workdir.iterdir()) == []


@pytest.mark.parametrize(
    ("tool", "how"),
    [
        ("write_file", {"path": "other", "content": "new", "overwrite": True}),
        ("edit_file", {"path": "other", "old": "old", "new": "new"}),
    ],
)
async def test_every_name_of_the_file_is_judged(
    tools: dict[str, Tool], place: ToolPlace, tool: str, how: JsonObject
) -> None:
    (place.workdir / ".git").mkdir()
    config = place.workdir / ".git" / "config"
    config.write_text("old")
    (place.workdir / "other").hardlink_to(config)

    prepared = await tools[tool].prepare(how, place)

    assert prepared.effects == (
        WritePath(path=str(place.workdir / "other")),
        WritePath(path=str(config), protected="git internals"),
    )


async def test_a_name_that_a_file_got_after_it_was_judged_is_not_written(
    tools: dict[str, Tool], place: ToolPlace, context: ActContext
) -> None:
    (place.workdir / "a").write_text("old")
    prepared = await tools["write_file"].prepare({"path": "a", "content": "new", "overwrite": True}, place)
    (place.workdir / "b").hardlink_to(place.workdir / "a")

    with pytest.raises(ToolError, match="changed on disk"):
        await prepared.act(context)

    assert (place.workdir / "b").read_text() == "old"
