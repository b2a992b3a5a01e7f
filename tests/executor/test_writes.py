"""Writes: planned, judged, and then made whole or not at all, with everything else of the file kept."""

import errno
import os
import stat
from pathlib import Path

import pytest

from agentctl.errors import ToolError
from agentctl.executor.api import Edit, WriteMode
from tests.executor.conftest import Hands

pytestmark = pytest.mark.anyio


def names(place: Path) -> list[str]:
    return sorted(path.name for path in place.iterdir())


async def test_a_new_file_gets_what_the_umask_says(hands: Hands, workdir: Path) -> None:
    before = os.umask(0o022)
    try:
        written = await hands.write("new.txt", "hello\n")
    finally:
        os.umask(before)

    assert (workdir / "new.txt").read_text() == "hello\n"
    assert stat.S_IMODE((workdir / "new.txt").stat().st_mode) == 0o644
    assert (written.counted_bytes, written.files, written.created) == (6, 1, True)
    assert names(workdir) == ["new.txt"]


async def test_an_empty_file_can_be_made(hands: Hands, workdir: Path) -> None:
    written = await hands.write("e.txt", "")

    assert (workdir / "e.txt").read_bytes() == b""
    assert written.counted_bytes == 0


async def test_missing_parents_are_made(hands: Hands, workdir: Path) -> None:
    written = await hands.write("a/b/c.txt", "x")

    assert (workdir / "a" / "b" / "c.txt").read_text() == "x"
    assert written.made_directories == (str(workdir / "a"), str(workdir / "a" / "b"))


async def test_creating_over_a_file_is_refused(hands: Hands, workdir: Path) -> None:
    (workdir / "exists.txt").write_text("old")

    with pytest.raises(ToolError, match="exists already"):
        await hands.write("exists.txt", "new", WriteMode.CREATE)

    assert (workdir / "exists.txt").read_text() == "old"


async def test_a_file_that_appeared_meanwhile_is_not_overwritten(hands: Hands, workdir: Path) -> None:
    planned = await hands.executor.plan_write(await hands.resolve("d/f"), "mine", WriteMode.REPLACE)
    (workdir / "d").mkdir()
    (workdir / "d" / "f").write_text("theirs")

    with pytest.raises(ToolError, match="made by something else"):
        await hands.executor.apply_write(planned)

    assert (workdir / "d" / "f").read_text() == "theirs"


async def test_a_file_that_changed_meanwhile_is_not_overwritten(hands: Hands, workdir: Path) -> None:
    (workdir / "f").write_text("one")
    planned = await hands.executor.plan_write(await hands.resolve("f"), "mine", WriteMode.REPLACE)
    (workdir / "f").write_text("two")

    with pytest.raises(ToolError, match="changed on disk"):
        await hands.executor.apply_write(planned)

    assert (workdir / "f").read_text() == "two"


async def test_an_edit_is_made_on_what_stands_there_now(hands: Hands, workdir: Path) -> None:
    (workdir / "f").write_text("a = 1\n")
    planned = await hands.executor.plan_edit(await hands.resolve("f"), (Edit(old="a = 1", new="a = 2"),))
    with (workdir / "f").open("a") as file:
        file.write("appended\n")

    await hands.executor.apply_write(planned)

    assert (workdir / "f").read_text() == "a = 2\nappended\n"


async def test_an_edit_that_no_longer_fits_changes_nothing(hands: Hands, workdir: Path) -> None:
    (workdir / "f").write_text("a\n")
    planned = await hands.executor.plan_edit(await hands.resolve("f"), (Edit(old="a", new="b"),))
    (workdir / "f").write_text("a\na\n")

    with pytest.raises(ToolError, match="2 occurrences"):
        await hands.executor.apply_write(planned)

    assert (workdir / "f").read_text() == "a\na\n"


async def test_two_edits_planned_together_are_both_made(hands: Hands, workdir: Path) -> None:
    (workdir / "f").write_text("one\ntwo\n")
    path = await hands.resolve("f")
    first = await hands.executor.plan_edit(path, (Edit(old="one", new="1"),))
    second = await hands.executor.plan_edit(path, (Edit(old="two", new="2"),))

    await hands.executor.apply_write(second)
    await hands.executor.apply_write(first)

    assert (workdir / "f").read_text() == "1\n2\n"


async def test_appending_adds_to_what_stands_there_now(hands: Hands, workdir: Path) -> None:
    (workdir / "log").write_text("one\n")
    planned = await hands.executor.plan_write(await hands.resolve("log"), "three\n", WriteMode.APPEND)
    (workdir / "log").write_text("one\ntwo\n")

    written = await hands.executor.apply_write(planned)

    assert (workdir / "log").read_text() == "one\ntwo\nthree\n"
    assert written.counted_bytes == 6


async def test_mode_and_extended_attributes_are_kept(hands: Hands, workdir: Path) -> None:
    script = workdir / "run.sh"
    script.write_text("#!/bin/sh\necho a\n")
    script.chmod(0o755)
    try:
        os.setxattr(script, "user.note", b"kept")
        attributes = True
    except OSError:
        attributes = False

    await hands.edit("run.sh", Edit(old="echo a", new="echo b"))

    assert script.read_text() == "#!/bin/sh\necho b\n"
    assert stat.S_IMODE(script.stat().st_mode) == 0o755
    if attributes:
        assert os.getxattr(script, "user.note") == b"kept"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to somebody else")
async def test_the_owner_is_kept(hands: Hands, workdir: Path) -> None:
    (workdir / "f").write_text("a")
    os.chown(workdir / "f", 4242, 4243)

    await hands.edit("f", Edit(old="a", new="b"))

    found = (workdir / "f").stat()
    assert (found.st_uid, found.st_gid) == (4242, 4243)


async def test_a_write_goes_through_a_link_that_stays_one(hands: Hands, workdir: Path) -> None:
    (workdir / "shared").mkdir()
    (workdir / "shared" / "conf.toml").write_text("old")
    (workdir / "conf.toml").symlink_to("shared/conf.toml")

    await hands.write("conf.toml", "new")

    assert (workdir / "conf.toml").is_symlink()
    assert (workdir / "shared" / "conf.toml").read_text() == "new"


async def test_hard_links_inside_stay_one_file(hands: Hands, workdir: Path) -> None:
    (workdir / "a").write_text("old")
    (workdir / "d").mkdir()
    os.link(workdir / "a", workdir / "d" / "b")

    await hands.write("a", "new")

    assert (workdir / "d" / "b").read_text() == "new"
    assert os.path.samefile(workdir / "a", workdir / "d" / "b")  # noqa: TID251 - the oracle
    assert (workdir / "a").stat().st_nlink == 2
    assert names(workdir) == ["a", "d"]


async def test_a_hard_link_to_outside_is_refused(hands: Hands, workdir: Path, outside: Path) -> None:
    (outside / "f").write_text("old")
    os.link(outside / "f", workdir / "f")

    for attempt in (hands.write("f", "new"), hands.edit("f", Edit(old="old", new="new"))):
        with pytest.raises(ToolError, match="hard links"):
            await attempt

    assert (outside / "f").read_text() == "old"


async def test_a_file_that_nobody_may_write_is_refused_to_the_superuser_as_well(
    hands: Hands, workdir: Path
) -> None:
    (workdir / "f").write_text("old")
    (workdir / "f").chmod(0o444)

    for attempt in (hands.write("f", "new"), hands.edit("f", Edit(old="old", new="new"))):
        with pytest.raises(ToolError, match=r"read-only \(mode 0444\)"):
            await attempt

    assert (workdir / "f").read_text() == "old"
    assert stat.S_IMODE((workdir / "f").stat().st_mode) == 0o444


async def test_a_full_disk_leaves_the_old_file_and_no_other(
    hands: Hands, workdir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workdir / "f").write_text("old")
    real = os.write

    def short_then_full(held: int, data: bytes) -> int:
        if len(data) > 100:
            return real(held, data[:50])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = await hands.resolve("f")
    planned = await hands.executor.plan_write(path, "n" * 1000, WriteMode.REPLACE)
    monkeypatch.setattr(os, "write", short_then_full)
    try:
        with pytest.raises(ToolError, match="no space left"):
            await hands.executor.apply_write(planned)
    finally:
        monkeypatch.undo()

    assert (workdir / "f").read_text() == "old"
    assert names(workdir) == ["f"]


async def test_a_short_write_is_finished(
    hands: Hands, workdir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.write
    planned = await hands.executor.plan_write(await hands.resolve("f"), "n" * 1000, WriteMode.CREATE)
    monkeypatch.setattr(os, "write", lambda held, data: real(held, bytes(data)[:7]))
    await hands.executor.apply_write(planned)
    monkeypatch.undo()

    assert (workdir / "f").read_text() == "n" * 1000


async def test_a_failed_write_takes_its_new_directories_along(
    hands: Hands, workdir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = await hands.executor.plan_write(await hands.resolve("a/b/f"), "x", WriteMode.CREATE)

    def full(held: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(ToolError, match="no space left"):
        await hands.executor.apply_write(planned)
    monkeypatch.undo()

    assert names(workdir) == []


async def test_a_disk_without_nameless_files_is_written_as_well(
    hands: Hands, workdir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentctl.executor.replace._NAMELESS", 0)
    (workdir / "f").write_text("old")

    await hands.write("f", "new")
    await hands.write("g", "made", WriteMode.CREATE)

    assert (workdir / "f").read_text() == "new"
    assert (workdir / "g").read_text() == "made"
    assert names(workdir) == ["f", "g"]


@pytest.mark.parametrize("text", ["nul\0", "half \ud83d"])
async def test_text_that_no_file_can_hold_is_refused(hands: Hands, workdir: Path, text: str) -> None:
    with pytest.raises(ToolError):
        await hands.write("f", text)

    assert names(workdir) == []


async def test_directories_and_pipes_are_not_written(hands: Hands, workdir: Path) -> None:
    (workdir / "d").mkdir()
    os.mkfifo(workdir / "p")

    for text in ("d", "p", "."):
        with pytest.raises(ToolError):
            await hands.write(text, "x")


async def test_growth_is_what_an_edit_counts(hands: Hands, workdir: Path) -> None:
    (workdir / "f").write_text("a" * 884)
    path = await hands.resolve("f")

    grown = await hands.executor.plan_edit(path, (Edit(old="a" * 884, new="a" * 894),))
    shrunk = await hands.executor.plan_edit(path, (Edit(old="a" * 884, new=""),))
    whole = await hands.executor.plan_write(path, "b" * 10, WriteMode.REPLACE)

    assert [plan.counted_bytes for plan in (grown, shrunk, whole)] == [10, 0, 10]
