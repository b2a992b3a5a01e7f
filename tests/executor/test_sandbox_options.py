"""What `[sandbox]` can say, and what the sandbox then does."""

import os
import subprocess
from functools import partial
from pathlib import Path

import anyio
import pytest

from agentctl.executor.api import (
    CommandRequest,
    CommandResult,
    OnUnavailable,
    Roots,
    SandboxKind,
    SandboxLayer,
    SandboxPolicy,
    SandboxUnavailable,
    effective_policy,
)
from agentctl.executor.call_filter import call_filter
from agentctl.executor.sandbox_places import places_for
from agentctl.executor.sandbox_policy import common_paths
from agentctl.executor.seatbelt import seatbelt_profile
from tests.executor.conftest import Hands

pytestmark = pytest.mark.anyio


@pytest.fixture
async def boxed(hands: Hands) -> Hands:
    if await hands.executor.sandbox_in_force(SandboxPolicy()) is not SandboxKind.BUBBLEWRAP:
        pytest.skip("this kernel refuses bubblewrap")
    return hands


def hidden_from(result: CommandResult) -> bool:
    return "TOPSECRET" not in result.output.text


def test_the_default_is_a_sandbox_where_there_is_one() -> None:
    policy = effective_policy(SandboxLayer())

    assert policy == SandboxPolicy()
    assert (policy.kind, policy.network, policy.on_unavailable) == (
        SandboxKind.AUTO,
        False,
        OnUnavailable.WARN,
    )


def test_whoever_names_a_sandbox_demands_it_unless_they_say_otherwise() -> None:
    named = effective_policy(SandboxLayer(kind=SandboxKind.BUBBLEWRAP))
    warned = effective_policy(SandboxLayer(kind=SandboxKind.AUTO, on_unavailable=OnUnavailable.WARN))

    assert named.on_unavailable is OnUnavailable.ERROR
    assert warned.on_unavailable is OnUnavailable.WARN


def test_a_blueprint_tightens_and_never_weakens() -> None:
    user = SandboxLayer(
        kind=SandboxKind.BUBBLEWRAP,
        network=True,
        read=("/srv", "~/docs"),
        write=("/srv/data",),
        hide=("/srv/keys",),
        on_unavailable=OnUnavailable.ERROR,
        auto_allow=True,
    )
    blueprint = SandboxLayer(
        kind=SandboxKind.NONE,
        network=True,
        read=("/", "/srv/x"),
        write=("/", "/srv/data/in"),
        hide=("/srv/more",),
        on_unavailable=OnUnavailable.WARN,
        auto_allow=True,
    )

    policy = effective_policy(user, blueprint, SandboxLayer(network=False, write=()))

    assert policy == SandboxPolicy(
        kind=SandboxKind.BUBBLEWRAP,
        network=False,
        read=("/srv", "~/docs", "/srv/x"),
        write=(),
        hide=("/srv/keys", "/srv/more"),
        on_unavailable=OnUnavailable.ERROR,
        auto_allow=True,
    )


def test_a_blueprint_cannot_open_what_the_user_left_closed() -> None:
    policy = effective_policy(
        SandboxLayer(), SandboxLayer(network=True, write=("/srv",), unix_sockets=True, auto_allow=True)
    )

    assert (policy.network, policy.write, policy.unix_sockets, policy.auto_allow) == (False, (), False, False)


def test_a_blueprint_may_ask_for_a_sandbox_that_the_user_switched_off() -> None:
    policy = effective_policy(
        SandboxLayer(kind=SandboxKind.NONE),
        SandboxLayer(kind=SandboxKind.AUTO, on_unavailable=OnUnavailable.ERROR),
    )

    assert (policy.kind, policy.on_unavailable) == (SandboxKind.AUTO, OnUnavailable.ERROR)


@pytest.mark.parametrize(
    ("wide", "narrow", "both"),
    [
        (("/",), ("/srv", "~/x"), ("/srv", "~/x")),
        (("/srv",), ("/",), ("/srv",)),
        (("/srv/a", "/srv/b"), ("/srv",), ("/srv/a", "/srv/b")),
        (("/srv",), ("/srv-other", "/var"), ()),
        (("~/x",), ("~/x/y", "~/z"), ("~/x/y",)),
        ((), ("/",), ()),
    ],
)
def test_what_two_lists_have_in_common(
    wide: tuple[str, ...], narrow: tuple[str, ...], both: tuple[str, ...]
) -> None:
    assert common_paths(wide, narrow) == both


@pytest.mark.parametrize("kind", [SandboxKind.SEATBELT])
async def test_a_demanded_sandbox_that_is_not_there_runs_nothing(
    hands: Hands, workdir: Path, kind: SandboxKind
) -> None:
    policy = SandboxPolicy(kind=kind, on_unavailable=OnUnavailable.ERROR)

    with pytest.raises(SandboxUnavailable, match="seatbelt"):
        await hands.run("touch ran", policy)

    assert not (workdir / "ran").exists()


async def test_where_no_sandbox_starts_the_default_runs_without_and_says_so(
    hands: Hands, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentctl.executor.sandbox.bubblewraps", list)
    monkeypatch.setattr("agentctl.executor.sandbox.landlock_available", lambda: False)

    result = await hands.run("echo x", SandboxPolicy())

    assert (result.sandbox, result.output.text) == (SandboxKind.NONE, "x\n")
    with pytest.raises(SandboxUnavailable):
        await hands.run("echo x", SandboxPolicy(on_unavailable=OnUnavailable.ERROR))


async def test_a_bubblewrap_that_can_not_start_falls_back(
    hands: Hands, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentctl.executor.sandbox.bubblewraps", lambda: ["/bin/false"])

    kind = await hands.executor.sandbox_in_force(SandboxPolicy())

    assert kind in (SandboxKind.LANDLOCK, SandboxKind.NONE)


async def test_the_workdir_can_be_read_only(boxed: Hands, workdir: Path) -> None:
    (workdir / "f").write_text("old")

    result = await boxed.run(
        "cat f; echo new > f; touch $TMPDIR/x && echo temp", SandboxPolicy(), read_only=True
    )

    assert result.output.text.startswith("old")
    assert result.output.text.endswith("temp\n")
    assert (workdir / "f").read_text() == "old"


async def test_kept_output_can_not_be_written_by_commands(boxed: Hands) -> None:
    await boxed.run("seq 1 50000", SandboxPolicy())

    result = await boxed.run(
        "echo x > $TMPDIR/output/new; rm -f $TMPDIR/output/*; ls $TMPDIR/output | wc -l", SandboxPolicy()
    )

    assert result.output.text.endswith("1\n")


async def test_a_place_can_be_made_writable_hidden_or_shown(boxed: Hands, tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "f").write_text("TOPSECRET")
    ssh = boxed.roots.home / ".ssh"
    ssh.mkdir()
    (ssh / "config").write_text("TOPSECRET")

    written = await boxed.run(
        f"echo x > {tmp_path}/a/g && echo done", SandboxPolicy(write=(str(tmp_path / "a"),))
    )
    hidden = await boxed.run(f"cat {tmp_path}/b/f", SandboxPolicy(hide=(str(tmp_path / "b"),)))
    default = await boxed.run(f"cat {ssh}/config", SandboxPolicy())
    shown = await boxed.run(f"cat {ssh}/config", SandboxPolicy(read=("/", "~/.ssh")))

    assert written.output.text == "done\n"
    assert (tmp_path / "a" / "g").exists()
    assert hidden_from(hidden)
    assert hidden_from(default)
    assert not hidden_from(shown)


async def test_reading_can_be_narrowed_to_the_system_and_some_places(boxed: Hands, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "f").write_text("TOPSECRET")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "f").write_text("fine\n")
    policy = SandboxPolicy(read=(str(tmp_path / "docs"),))

    result = await boxed.run(f"cat {tmp_path}/docs/f; cat {tmp_path}/other/f; echo x > made; ls", policy)

    assert result.output.text.startswith("fine\n")
    assert result.output.text.endswith("made\n")
    assert hidden_from(result)


async def test_a_hidden_place_inside_the_workdir_stays_hidden(boxed: Hands, workdir: Path) -> None:
    (workdir / "keys").mkdir()
    (workdir / "keys" / "k").write_text("TOPSECRET")
    (workdir / ".env").write_text("TOPSECRET")

    result = await boxed.run(
        "cat keys/k .env; touch keys/new; mv keys moved",
        SandboxPolicy(hide=(str(workdir / "keys"), str(workdir / ".env"))),
    )

    assert hidden_from(result)
    assert sorted(path.name for path in workdir.iterdir()) == [".env", "keys"]


async def test_a_workdir_that_is_the_home_directory_keeps_its_secrets(hands: Hands, roots: Roots) -> None:
    hands.roots = Roots(workdir=roots.home, temp=roots.temp, home=roots.home)
    (roots.home / ".ssh").mkdir()
    (roots.home / ".ssh" / "id").write_text("TOPSECRET")
    (roots.home / "real-netrc").write_text("TOPSECRET")
    (roots.home / ".netrc").symlink_to("real-netrc")

    result = await hands.run("cat ~/.ssh/id ~/.netrc real-netrc; echo x > f; cat f", SandboxPolicy())

    if result.sandbox is SandboxKind.NONE:
        pytest.skip("this machine has no sandbox")
    assert hidden_from(result)
    if result.sandbox is SandboxKind.BUBBLEWRAP:
        assert result.output.text.endswith("x\n")


async def test_a_linked_secret_is_hidden_at_its_target(boxed: Hands, tmp_path: Path) -> None:
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault" / "id").write_text("TOPSECRET")
    (boxed.roots.home / ".ssh").symlink_to(tmp_path / "vault")

    result = await boxed.run(f"cat ~/.ssh/id {tmp_path}/vault/id {boxed.roots.home}/.ssh/id", SandboxPolicy())

    assert hidden_from(result)


async def test_paths_are_the_same_inside_and_outside(boxed: Hands, workdir: Path) -> None:
    result = await boxed.run("pwd; echo $PWD; echo $TMPDIR; echo $HOME", SandboxPolicy())

    assert result.output.text.split() == [
        str(workdir),
        str(workdir),
        str(boxed.roots.temp),
        str(boxed.roots.home),
    ] or result.output.text.split()[:3] == [str(workdir), str(workdir), str(boxed.roots.temp)]


async def test_the_network_can_be_allowed(boxed: Hands) -> None:
    closed = await boxed.run("cat /proc/net/dev | wc -l", SandboxPolicy())
    opened = await boxed.run("cat /proc/net/dev | wc -l", SandboxPolicy(network=True))
    outside = len(Path("/proc/net/dev").read_text().splitlines())

    assert int(opened.output.text) == outside
    assert int(closed.output.text) == 3


async def test_unix_sockets_can_be_allowed(boxed: Hands) -> None:
    program = ("python3", "-c", "import socket; socket.socket(socket.AF_UNIX); print('made')")

    closed = await boxed.run(program, SandboxPolicy())
    opened = await boxed.run(program, SandboxPolicy(unix_sockets=True))

    assert "made" not in closed.output.text
    assert opened.output.text == "made\n"


async def test_a_repository_without_hooks_gets_none(hands: Hands, workdir: Path) -> None:
    subprocess.run(["git", "init", "-q", str(workdir)], check=True)
    for path in (workdir / ".git" / "hooks").iterdir():
        path.unlink()
    (workdir / ".git" / "hooks").rmdir()

    result = await hands.run(
        "mkdir .git/hooks; echo evil > .git/hooks/pre-commit; echo /evil > .git/commondir",
        SandboxPolicy(),
    )

    if result.sandbox is SandboxKind.NONE:
        pytest.skip("this machine has no sandbox")
    assert sorted(result.tampered) == [".git/commondir", ".git/hooks"]
    assert not (workdir / ".git" / "hooks").exists()
    assert not (workdir / ".git" / "commondir").exists()


async def test_what_landlock_can_not_hold_is_put_back(hands: Hands, workdir: Path) -> None:
    subprocess.run(["git", "init", "-q", str(workdir)], check=True)
    hook = workdir / ".git" / "hooks" / "pre-push"
    hook.write_text("#!/bin/sh\nexit 0\n")
    hook.chmod(0o755)
    config = (workdir / ".git" / "config").read_bytes()

    result = await hands.run(
        "git config core.fsmonitor /evil; chmod 600 .git/config; "
        "echo evil >> .git/hooks/pre-push; echo evil > .git/hooks/post-commit",
        SandboxPolicy(kind=SandboxKind.LANDLOCK, on_unavailable=OnUnavailable.WARN),
    )

    if result.sandbox is not SandboxKind.LANDLOCK:
        pytest.skip("this kernel's Landlock is too old or off")
    assert sorted(result.tampered) == [".git/config", ".git/hooks/post-commit", ".git/hooks/pre-push"]
    assert hook.read_text() == "#!/bin/sh\nexit 0\n"
    assert hook.stat().st_mode & 0o777 == 0o755
    assert (workdir / ".git" / "config").read_bytes() == config


async def test_a_linked_working_tree_can_commit(boxed: Hands, tmp_path: Path) -> None:
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    main = tmp_path / "main"
    subprocess.run([*git, "init", "-q", str(main)], check=True)
    subprocess.run([*git, "-C", str(main), "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    tree = tmp_path / "linked"
    subprocess.run([*git, "-C", str(main), "worktree", "add", "-q", str(tree)], check=True)
    boxed.roots = Roots(workdir=tree, temp=boxed.roots.temp, home=boxed.roots.home)

    result = await boxed.run(
        " ".join(git) + " commit -q --allow-empty -m y && git log --oneline | wc -l; "
        f"echo evil > {main}/.git/hooks/pre-commit; echo x >> {main}/.git/config; "
        "echo 'gitdir: /evil' > .git",
        SandboxPolicy(),
    )

    assert result.output.text.startswith("2\n")
    assert not (main / ".git" / "hooks" / "pre-commit").exists()
    assert (tree / ".git").read_text().startswith(f"gitdir: {main}")


async def test_a_git_file_that_a_command_wrote_opens_no_other_place(
    boxed: Hands, workdir: Path, outside: Path
) -> None:
    (workdir / ".git").write_text(f"gitdir: {outside}\n")

    result = await boxed.run(f"echo x > {outside}/made", SandboxPolicy())

    assert result.exit_code != 0
    assert list(outside.iterdir()) == []


async def test_programs_from_an_emptied_place_can_still_be_run(boxed: Hands, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "tool").write_text("#!/bin/sh\necho tooled\n")
    (tmp_path / "bin" / "tool").chmod(0o755)

    result = await boxed.run("tool", SandboxPolicy(), environment={"PATH": f"{tmp_path}/bin:/usr/bin:/bin"})

    assert result.output.text == "tooled\n"


def test_the_filter_is_whole_instructions_and_unknown_machines_have_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for machine in ("x86_64", "aarch64"):
        monkeypatch.setattr("platform.machine", lambda machine=machine: machine)
        program = call_filter(internet=False, unix_sockets=False)
        assert program is not None
        assert len(program) % 8 == 0
        assert len(program) // 8 < 4096
    monkeypatch.setattr("platform.machine", lambda: "pdp11")
    assert call_filter(internet=True, unix_sockets=True) is None


def test_the_seatbelt_profile_reads_as_written(tmp_path: Path, roots: Roots) -> None:
    (roots.home / ".ssh").mkdir()
    (roots.workdir / ".git" / "hooks").mkdir(parents=True)
    (roots.workdir / ".git" / "config").write_text("")
    request = CommandRequest(command="true", roots=roots)
    places = places_for(request, roots.workdir, {}, ())

    profile = seatbelt_profile(places, network=False, unix_sockets=False)

    lines = profile.splitlines()
    assert lines[:2] == ["(version 1)", "(deny default)"]
    assert "(allow file-read*)" in lines
    assert f'(allow file-write* (subpath "{roots.workdir}"))' in lines
    assert f'(deny file-write* (subpath "{roots.workdir}/.git/hooks"))' in lines
    assert lines[-1] == f'(deny file-read* file-write* (subpath "{places.hidden[-1]}"))'
    assert f'(deny file-read* file-write* (subpath "{roots.home}/.ssh"))' in lines
    assert not any(line.startswith("(allow network") for line in lines)
    assert "(allow network" in seatbelt_profile(places, network=True, unix_sockets=True)


def test_a_quote_in_a_path_does_not_end_the_profile(tmp_path: Path, roots: Roots) -> None:
    odd = tmp_path / 'a"b\\c'
    odd.mkdir()
    request = CommandRequest(command="true", roots=roots, sandbox=SandboxPolicy(hide=(str(odd),)))

    profile = seatbelt_profile(places_for(request, roots.workdir, {}, ()), network=False, unix_sockets=False)

    assert 'a\\"b\\\\c"))' in profile


async def test_what_a_cancelled_command_changed_is_put_back_too(hands: Hands, workdir: Path) -> None:
    subprocess.run(["git", "init", "-q", str(workdir)], check=True)
    policy = SandboxPolicy(kind=SandboxKind.LANDLOCK, on_unavailable=OnUnavailable.WARN)
    if (await hands.run("true", policy)).sandbox is not SandboxKind.LANDLOCK:
        pytest.skip("this kernel's Landlock is too old or off")
    evil = workdir / ".git" / "hooks" / "post-commit"

    async with anyio.create_task_group() as group:
        done = anyio.Event()
        line = f"echo evil > {evil}; echo done; sleep 60"
        group.start_soon(partial(hands.run, line, policy, on_output=lambda _: done.set()))
        await done.wait()
        group.cancel_scope.cancel()

    assert not evil.exists()


@pytest.mark.parametrize("kind", [SandboxKind.BUBBLEWRAP, SandboxKind.LANDLOCK])
async def test_a_command_cannot_write_on_a_persons_terminal(hands: Hands, kind: SandboxKind) -> None:
    policy = SandboxPolicy(kind=kind)
    if await hands.executor.sandbox_in_force(policy) is not kind:
        pytest.skip(f"this kernel refuses {kind.value}")
    ours, theirs = os.openpty()
    try:
        os.set_blocking(ours, False)
        name = os.ttyname(theirs)

        await hands.run(
            f"echo 'allow this? [y]' > {name}; for t in /dev/pts/*; do echo 'y?' > $t; done", policy
        )

        with pytest.raises(BlockingIOError):
            os.read(ours, 100)
    finally:
        os.close(ours)
        os.close(theirs)
