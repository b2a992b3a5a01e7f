"""What commands wrote, for write budgets."""

import os
from pathlib import Path

import pytest

from agentctl.executor import written
from agentctl.executor.api import CommandRequest, Edit, Roots, SandboxPolicy, WorkdirChange
from agentctl.executor.local import LocalExecutor
from tests.executor.conftest import NO_SANDBOX, Hands

pytestmark = pytest.mark.anyio
BOTH = pytest.mark.parametrize("sandbox", [NO_SANDBOX, SandboxPolicy()], ids=["bare", "in the sandbox"])


async def changed_by(hands: Hands, command: str, sandbox: SandboxPolicy = NO_SANDBOX) -> WorkdirChange:
    before = await hands.executor.measure(hands.roots)
    await hands.run(command, sandbox)
    return await hands.executor.changed_since(before, hands.roots)


@BOTH
@pytest.mark.parametrize(
    ("command", "counted", "files"),
    [
        ("cat old", 0, 0),
        ("printf 1234567890 > out.txt", 10, 1),
        ("printf 123 >> old", 3, 1),
        ("printf 12 > old", 0, 1),
        ("cp old new", 100, 1),
        ("mv old moved", 0, 2),
        ("rm old", 0, 1),
        ("touch empty", 0, 1),
        ("sed -i s/a/b/ old", 100, 1),
        ("mkdir -p a/b && printf x > a/b/c", 1, 1),
        ("printf x > $TMPDIR/t", 1, 1),
        ("cat > f <<EOF\n$(head -c 1000 /dev/zero | tr '\\0' x)\nEOF", 1001, 1),
        ("cat > f <<-EOF\n$(head -c 1000 /dev/zero | tr '\\0' x)\nEOF", 1001, 1),
        ("dd if=old of=b status=none", 100, 1),
        ("ln -s old link", 0, 1),
        ("exit 1", 0, 0),
    ],
)
async def test_a_command_counts(
    hands: Hands, workdir: Path, sandbox: SandboxPolicy, command: str, counted: int, files: int
) -> None:
    (workdir / "old").write_text("a" * 99 + "\n")
    change = await changed_by(hands, command, sandbox)

    assert (change.counted_bytes, change.files) == (counted, files)


async def test_what_somebody_else_changed_between_calls_is_not_counted(hands: Hands, workdir: Path) -> None:
    await changed_by(hands, "true")
    (workdir / "theirs").write_text("x" * 1000)
    while (await hands.executor.measure(hands.roots)).taken_ns < (
        workdir / "theirs"
    ).stat().st_ctime_ns + 30_000_000:
        pass

    change = await changed_by(hands, "printf 12 > mine")

    assert change == WorkdirChange(counted_bytes=2, files=1, paths=(str(workdir / "mine"),))


async def test_what_agentctl_wrote_itself_is_not_counted_again(hands: Hands, workdir: Path) -> None:
    before = await hands.executor.measure(hands.roots)
    await hands.write("a", "one")
    await hands.edit("a", Edit(old="one", new="two"))
    await hands.run("printf 12 > b; seq 1 50000")

    change = await hands.executor.changed_since(before, hands.roots)

    assert change == WorkdirChange(counted_bytes=2, files=1, paths=(str(workdir / "b"),))


async def test_a_background_process_is_counted_while_it_runs(hands: Hands, workdir: Path) -> None:
    before = await hands.executor.measure(hands.roots)
    status = await hands.executor.start(
        CommandRequest(command="printf 123 > f; exec sleep 64.1", roots=hands.roots, sandbox=NO_SANDBOX)
    )
    while not (workdir / "f").exists() or (workdir / "f").stat().st_size < 3:
        pass

    change = await hands.executor.changed_since(before, hands.roots)

    await hands.executor.kill(status.process_id)
    assert str(workdir / "f") in change.paths
    assert change.counted_bytes == 3


async def test_a_quiet_command_costs_no_walk(
    hands: Hands, workdir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workdir / "f").write_text("x")
    await changed_by(hands, "cat f")
    walks = 0
    real = written.take_state

    def counting(*arguments: object) -> object:
        nonlocal walks
        walks += 1
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(written, "take_state", counting)

    await changed_by(hands, "cat f; ls; grep x f")

    if os.stat(workdir).st_dev and not walks:
        assert walks == 0
    else:
        pytest.skip("this file system's writes are not counted by the kernel")


async def test_output_that_agentctl_keeps_is_not_counted(hands: Hands, workdir: Path) -> None:
    before = await hands.executor.measure(hands.roots)
    status = await hands.executor.start(
        CommandRequest(command="seq 1 50000; exec sleep 64.2", roots=hands.roots, sandbox=NO_SANDBOX)
    )
    await hands.run("seq 1 50000; printf x > f")

    change = await hands.executor.changed_since(before, hands.roots)

    await hands.executor.kill(status.process_id)
    assert change == WorkdirChange(counted_bytes=1, files=1, paths=(str(workdir / "f"),))


async def test_changes_of_many_commands_are_told_with_some_of_their_names(hands: Hands) -> None:
    change = await changed_by(hands, "for n in $(seq 1 150); do echo $n > f$n; done")

    assert (change.files, len(change.paths)) == (150, 100)


async def test_a_temp_folder_inside_the_workdir_is_counted_once(workdir: Path) -> None:
    executor = LocalExecutor()
    hands = Hands(executor, Roots(workdir=workdir, temp=workdir / ".tmp"))

    change = await changed_by(hands, "printf 1 > $TMPDIR/x; printf 1 > y")

    await executor.aclose()
    assert (change.counted_bytes, change.files) == (2, 2)


async def test_free_bytes_of_a_place_that_is_not_there_yet(hands: Hands, workdir: Path) -> None:
    free = await hands.executor.free_bytes(workdir / "not" / "yet")

    assert abs(free - await hands.executor.free_bytes(workdir)) < 1 << 30
    assert free > 0


@pytest.mark.parametrize(
    ("line", "counted"),
    [
        ("mv src dst", 0),
        ("mv dir other", 0),
        ("ln src dst", 0),
        ("ln -s src dst", 0),
        ("mv src dir/f", 0),
        ("cp src dst", 3000),
        ("cp -p src dst", 3000),
        ("mv src dst; printf 12345 >> dst", 3005),
        ("rm src; head -c 3000 /dev/zero > dst", 3000),
        ("truncate -s 1M src", (1 << 20) - 3000),
    ],
)
async def test_a_rename_or_a_link_costs_no_bytes(
    hands: Hands, workdir: Path, line: str, counted: int
) -> None:
    (workdir / "dir").mkdir()
    for name in ("src", "dir/f"):
        (workdir / name).write_text("s" * 3000)
        os.utime(workdir / name, (1_000_000_000, 1_000_000_000))

    assert (await changed_by(hands, line)).counted_bytes == counted
