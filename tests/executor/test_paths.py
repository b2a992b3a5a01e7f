"""Where a path leads, and what is opened: by component, links resolved once and never followed again."""

import contextlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from time import monotonic

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentctl.errors import ToolError
from agentctl.executor.api import (
    Edit,
    GlobRequest,
    GrepRequest,
    PageRequest,
    PathKind,
    ResolvedPath,
    Roots,
    WriteMode,
)
from agentctl.executor.paths import RootPins, follow, open_file, resolve
from tests.executor.conftest import Hands

pytestmark = pytest.mark.anyio


async def read(hands: Hands, text: str) -> tuple[str, ...]:
    page = await hands.executor.read_page(await hands.resolve(text), PageRequest())
    return page.lines


async def test_a_sibling_with_the_same_prefix_is_outside(hands: Hands, workdir: Path) -> None:
    (workdir.parent / "app-secret").mkdir()
    (workdir.parent / "app-secret" / "key").write_text("TOPSECRET")

    path = await hands.resolve(str(workdir.parent / "app-secret" / "key"))

    assert not path.inside
    assert not path.readable
    with pytest.raises(ToolError, match="outside"):
        await hands.executor.read_page(path, PageRequest())


async def test_an_absolute_path_in_the_workdir_is_inside(hands: Hands, workdir: Path) -> None:
    (workdir / "a.txt").write_text("x")

    path = await hands.resolve(str(workdir / "a.txt"))

    assert (path.path, path.shown, path.inside) == (workdir / "a.txt", "a.txt", True)


async def test_a_link_to_a_file_outside_is_refused(hands: Hands, workdir: Path) -> None:
    (workdir / "out").symlink_to("/etc/passwd")

    with pytest.raises(ToolError, match="outside"):
        await read(hands, "out")


async def test_a_linked_directory_on_the_way_out_is_refused(
    hands: Hands, workdir: Path, outside: Path
) -> None:
    (outside / "passwd").write_text("TOPSECRET")
    (workdir / "escape").symlink_to(outside)

    with pytest.raises(ToolError, match="outside"):
        await read(hands, "escape/passwd")
    with pytest.raises(ToolError, match="outside"):
        await hands.write("escape/x", "y")
    assert sorted(os.listdir(outside)) == ["passwd"]


async def test_searches_do_not_enter_links(hands: Hands, workdir: Path, outside: Path) -> None:
    (outside / "secret.txt").write_text("TOPSECRET")
    (workdir / "escape").symlink_to(outside)
    (workdir / "leak").symlink_to(outside / "secret.txt")
    base = await hands.resolve(".")

    listing = await hands.executor.glob(base, GlobRequest(pattern="escape/*.txt"))
    found = await hands.executor.grep(base, GrepRequest(pattern="TOPSECRET"))

    assert listing.entries == ()
    assert found.matches == ()


async def test_a_dangling_link_to_outside_makes_no_file_there(
    hands: Hands, workdir: Path, outside: Path
) -> None:
    (workdir / "l").symlink_to(outside / "missing")

    with pytest.raises(ToolError, match="outside"):
        await hands.write("l", "x")

    assert not (outside / "missing").exists()


async def test_a_link_inside_is_followed_to_its_target(hands: Hands, workdir: Path) -> None:
    (workdir / "real").mkdir()
    (workdir / "real" / "f.txt").write_text("hello\n")
    (workdir / "l").symlink_to(workdir / "real")

    path = await hands.resolve("l/f.txt")

    assert path.path == workdir / "real" / "f.txt"
    assert path.through_link
    assert await read(hands, "l/f.txt") == ("hello",)


async def test_a_workdir_given_through_a_link_is_the_same_workdir(tmp_path: Path, workdir: Path) -> None:
    alias = tmp_path / "alias"
    alias.symlink_to(workdir)
    (workdir / "f.txt").write_text("x")
    pins = RootPins()

    paths = [
        resolve(text, Roots(workdir=root, temp=tmp_path / "t"), pins)
        for root in (alias, workdir)
        for text in ("f.txt", str(alias / "f.txt"), str(workdir / "f.txt"))
    ]

    assert {path.path for path in paths} == {workdir / "f.txt"}
    assert all(path.inside for path in paths)


@pytest.mark.parametrize(
    "text", ["test\0.txt", "path/with\nnewline", "a\rb", "a\x1b[2Jb", "\ud800", "", "  "]
)
async def test_text_that_reads_differently_than_it_looks_is_no_path(hands: Hands, text: str) -> None:
    with pytest.raises(ToolError):
        await hands.resolve(text)


@pytest.mark.parametrize(
    "name", ["..test", "test..", "te..st", "...", ".gitignore", ".env.example", "a b", "ü"]
)
async def test_names_that_merely_contain_dots_are_names(hands: Hands, workdir: Path, name: str) -> None:
    path = await hands.resolve(name)

    assert (path.path, path.inside) == (workdir / name, True)


async def test_dots_that_lead_out_are_outside(hands: Hands) -> None:
    for text in ("..", "../x", "a/../../x", "missing/../../x", "./../app-secret"):
        assert not (await hands.resolve(text)).inside


async def test_a_tilde_is_the_home_directory_and_outside(hands: Hands, roots: Roots) -> None:
    (roots.home / ".ssh").mkdir()
    (roots.home / ".ssh" / "id_rsa").write_text("TOPSECRET")

    assert not (await hands.resolve("~")).inside
    with pytest.raises(ToolError, match="outside"):
        await read(hands, "~/.ssh/id_rsa")


async def test_another_users_tilde_is_a_plain_name(hands: Hands, workdir: Path) -> None:
    assert (await hands.resolve("~root/x")).path == workdir / "~root" / "x"


async def test_a_loop_of_links_is_told(hands: Hands, workdir: Path) -> None:
    (workdir / "a").symlink_to("b")
    (workdir / "b").symlink_to("a")

    with pytest.raises(ToolError, match="loop"):
        await hands.resolve("a")


async def test_a_pipe_is_refused_without_waiting(hands: Hands, workdir: Path) -> None:
    os.mkfifo(workdir / "p")

    with pytest.raises(ToolError, match="not a regular file"):
        await read(hands, "p")


async def test_a_directory_is_refused_as_a_file(hands: Hands, workdir: Path) -> None:
    (workdir / "d").mkdir()

    with pytest.raises(ToolError, match="directory"):
        await read(hands, "d")


async def test_a_link_swapped_in_after_the_check_is_not_followed(
    hands: Hands, workdir: Path, outside: Path
) -> None:
    (outside / "f").write_text("TOPSECRET")
    (workdir / "f.txt").write_text("old")
    path = await hands.resolve("f.txt")
    planned = await hands.executor.plan_write(path, "new", WriteMode.REPLACE)
    (workdir / "f.txt").unlink()
    (workdir / "f.txt").symlink_to(outside / "f")

    with pytest.raises(ToolError):
        await hands.executor.read_page(path, PageRequest())
    with pytest.raises(ToolError):
        await hands.executor.apply_write(planned)

    assert (outside / "f").read_text() == "TOPSECRET"


async def test_a_directory_swapped_for_a_link_after_the_check_is_not_entered(
    hands: Hands, workdir: Path, outside: Path
) -> None:
    (outside / "f").write_text("TOPSECRET")
    (workdir / "d").mkdir()
    (workdir / "d" / "f").write_text("old")
    path = await hands.resolve("d/f")
    new = await hands.executor.plan_write(await hands.resolve("d/new"), "x", WriteMode.CREATE)
    shutil.rmtree(workdir / "d")
    (workdir / "d").symlink_to(outside)

    with pytest.raises(ToolError):
        await hands.executor.read_page(path, PageRequest())
    with pytest.raises(ToolError):
        await hands.executor.apply_write(new)

    assert sorted(os.listdir(outside)) == ["f"]


async def test_a_workdir_that_was_replaced_is_noticed(hands: Hands, workdir: Path) -> None:
    (workdir / "f").write_text("x")
    path = await hands.resolve("f")
    workdir.rename(workdir.parent / "moved")
    workdir.mkdir()
    (workdir / "f").write_text("y")

    for attempt in (hands.resolve("f"), hands.executor.read_page(path, PageRequest()), hands.run("true")):
        with pytest.raises(ToolError, match="replaced"):
            await attempt


async def test_a_workdir_that_was_removed_is_noticed(hands: Hands, workdir: Path) -> None:
    path = await hands.resolve("f")
    planned = await hands.executor.plan_write(path, "x", WriteMode.CREATE)
    shutil.rmtree(workdir)

    for attempt in (hands.resolve("f"), hands.executor.apply_write(planned), hands.run("true")):
        with pytest.raises(ToolError, match="gone"):
            await attempt
    assert not workdir.exists()


async def test_a_granted_read_path_is_readable_and_not_writable(tmp_path: Path, roots: Roots) -> None:
    granted = tmp_path / "docs"
    granted.mkdir()
    (granted / "a.md").write_text("x")
    pins = RootPins()

    path = resolve(
        str(granted / "a.md"), Roots(workdir=roots.workdir, temp=roots.temp, read_paths=(granted,)), pins
    )

    assert (path.inside, path.readable, path.root) == (False, True, granted)


async def test_a_single_file_can_be_a_granted_read_path(hands: Hands, tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("hello\n")
    hands.roots = Roots(workdir=hands.roots.workdir, temp=hands.roots.temp, read_paths=(file,))

    assert await read(hands, str(file)) == ("hello",)
    with pytest.raises(ToolError, match="outside"):
        await read(hands, str(tmp_path / "notes.txt2"))


async def test_the_runs_temp_folder_counts_as_workdir(hands: Hands, roots: Roots) -> None:
    await hands.write(str(roots.temp / "x"), "y")

    assert (roots.temp / "x").read_text() == "y"


async def test_a_name_that_is_no_text_is_shown_and_not_fatal(hands: Hands, workdir: Path) -> None:
    Path(os.fsdecode(os.fsencode(workdir) + b"/caf\xe9")).write_text("x")

    listing = await hands.executor.list_dir(await hands.resolve("."))

    assert [entry.name for entry in listing.entries] == ["caf\\xe9"]


names = st.sampled_from(["a", "b", "..", ".", "link", "loop", "file", "out", "~", "dir"])


@settings(max_examples=300, deadline=None)
@given(parts=st.lists(names, min_size=1, max_size=6), absolute=st.booleans())
def test_what_is_called_inside_is_inside_for_the_kernel_too(
    parts: list[str], absolute: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    top = tmp_path_factory.getbasetemp() / "fuzz"
    workdir = top / "app"
    if not workdir.exists():
        (workdir / "a" / "b").mkdir(parents=True)
        (workdir / "dir").mkdir()
        (top / "out").mkdir()
        (workdir / "link").symlink_to("a/b")
        (workdir / "out").symlink_to("../out")
        (workdir / "loop").symlink_to("loop")
        (workdir / "a" / "b" / "link").symlink_to("../../../out")
        (workdir / "file").write_text("x")
    text = "/".join(parts)
    text = f"{workdir}/{text}" if absolute else text
    pins = RootPins()
    try:
        path = resolve(text, Roots(workdir=workdir, temp=top / "t", home=top), pins)
    except ToolError:
        return
    spelled = Path(f"{top}{text[1:]}") if parts[0] == "~" and not absolute else workdir / text
    try:
        real = Path(os.path.realpath(spelled, strict=True))  # noqa: TID251 - the oracle
    except OSError:
        assert path.kind in (PathKind.MISSING, PathKind.FILE, PathKind.DIRECTORY)
        return
    assert path.path == real
    assert path.inside == real.is_relative_to(workdir)


def test_open_file_refuses_every_link_on_the_way(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "f").write_text("x")
    (tmp_path / "l").symlink_to("d")
    (tmp_path / "d" / "lf").symlink_to("f")

    os.close(open_file(tmp_path / "d" / "f", root=tmp_path))
    for path in (tmp_path / "l" / "f", tmp_path / "d" / "lf"):
        with pytest.raises(OSError, match=r"link|directory"):
            open_file(path, root=tmp_path)


def test_follow_walks_as_the_kernel_does(tmp_path: Path) -> None:
    (tmp_path / "x" / "y").mkdir(parents=True)
    (tmp_path / "l").symlink_to("x/y")

    led = follow(tmp_path / "l" / ".." / "z")

    assert (led.path, led.kind, led.through_link) == (tmp_path / "x" / "z", PathKind.MISSING, True)


async def test_a_root_that_is_a_mount_of_everything_contains_all(tmp_path: Path) -> None:
    pins = RootPins()

    path: ResolvedPath = resolve("etc", Roots(workdir=Path("/"), temp=tmp_path), pins)

    assert path.inside


async def test_a_workdir_made_anew_with_the_same_number_is_noticed(hands: Hands, workdir: Path) -> None:
    await hands.resolve("f")
    number = workdir.stat().st_ino
    for _ in range(50):
        workdir.rmdir()
        workdir.mkdir()
        if workdir.stat().st_ino == number:
            break

    with pytest.raises(ToolError, match="replaced"):
        await hands.resolve("f")


@pytest.mark.parametrize(
    "text",
    ["/proc/self/root/etc/passwd", "/proc/self/cwd", "/dev/fd/0", "/dev/stdin", "file/../../x", "..//..//x"],
)
async def test_detours_of_the_system_lead_outside(hands: Hands, workdir: Path, text: str) -> None:
    (workdir / "file").write_text("x")

    path = await hands.resolve(text)

    assert not path.inside


@pytest.mark.parametrize(
    "text", ["file:///etc/passwd", "%2e%2e/x", "C:\\x", "\uff0e\uff0e/x", "-", "--help", "a" * 300]
)
async def test_spellings_of_other_systems_are_plain_names(hands: Hands, workdir: Path, text: str) -> None:
    path = await hands.resolve(text)

    assert path.inside
    assert path.kind is PathKind.MISSING


async def test_a_file_is_no_directory(hands: Hands, workdir: Path) -> None:
    (workdir / "f").write_text("x")

    with pytest.raises(ToolError, match="not a directory"):
        await hands.write("f/g", "y")
    with pytest.raises(ToolError, match=r"not a directory|does not exist"):
        await read(hands, "f/g")
    assert (workdir / "f").read_text() == "x"


async def test_a_name_longer_than_the_disk_takes_is_told(hands: Hands) -> None:
    with pytest.raises(ToolError, match="too long"):
        await hands.write("a" * 300, "x")


SWAPPER = """
import ctypes, sys
libc = ctypes.CDLL(None)
one, two = (name.encode() for name in sys.argv[1:])
while True:
    libc.renameat2(-100, one, -100, two, 2)
"""


async def test_a_directory_swapped_back_and_forth_never_leads_out(
    hands: Hands, workdir: Path, outside: Path
) -> None:
    (outside / "f").write_text("TOPSECRET\n")
    (workdir / "d").mkdir()
    (workdir / "d" / "f").write_text("fine\n")
    (workdir / "link").symlink_to(outside)
    swapper = subprocess.Popen(
        [
            sys.executable,
            "-c",
            SWAPPER,
            str(workdir / "d"),
            str(workdir / "link"),
        ]
    )
    try:
        end = monotonic() + 1.5
        reads = refused = 0
        while monotonic() < end:
            try:
                assert await read(hands, "d/f") == ("fine",)
                reads += 1
            except ToolError:
                refused += 1
            with contextlib.suppress(ToolError):
                await hands.write("d/new", "x")
            with contextlib.suppress(ToolError):
                await hands.edit("d/f", Edit(old="fine", new="fine"))
    finally:
        swapper.kill()
        swapper.wait()

    assert sorted(path.name for path in outside.iterdir()) == ["f"]
    assert (outside / "f").read_text() == "TOPSECRET\n"
    assert refused
