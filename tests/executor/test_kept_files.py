"""What runs outside a sandbox stays as it was, whatever a command inside does to it or puts in its way."""

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from agentctl.errors import ToolError
from agentctl.executor.api import CommandRequest, CommandResult, SandboxKind, SandboxPolicy
from tests.executor.conftest import Hands

pytestmark = pytest.mark.anyio

KINDS = [SandboxKind.BUBBLEWRAP, SandboxKind.LANDLOCK]
HOOKS = ("pre-commit", "post-merge")


async def try_in(hands: Hands, kind: SandboxKind, command: str, *kept: Path) -> CommandResult:
    policy = SandboxPolicy(kind=kind)
    if await hands.executor.sandbox_in_force(policy) is not kind:
        pytest.skip(f"this kernel refuses {kind.value}")
    roots = replace(hands.roots, kept=kept)
    return await hands.executor.run(CommandRequest(command=command, roots=roots, sandbox=policy))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "attempt",
    [
        "echo evil > deep/hooks/h.py",
        "rm -f deep/hooks/h.py; echo evil > deep/hooks/h.py",
        "mv deep/hooks deep/old; mkdir deep/hooks; echo evil > deep/hooks/h.py",
        "mv deep old; mkdir -p deep/hooks; echo evil > deep/hooks/h.py",
        "ln deep/hooks/h.py other && echo evil > other",
        'mv deep old; ln -s "$OUT" deep',
    ],
)
async def test_a_kept_file_is_the_same_after_a_command(
    hands: Hands, outside: Path, kind: SandboxKind, attempt: str
) -> None:
    file = hands.roots.workdir / "deep" / "hooks" / "h.py"
    file.parent.mkdir(parents=True)
    file.write_text("good\n")
    (outside / "hooks").mkdir()
    (outside / "hooks" / "h.py").write_text("theirs\n")

    await try_in(hands, kind, f"OUT={outside}; {attempt}", file)

    assert file.read_text() == "good\n"
    assert (outside / "hooks" / "h.py").read_text() == "theirs\n"


@pytest.mark.parametrize("kind", KINDS)
async def test_beside_a_kept_file_a_command_works_as_ever(hands: Hands, kind: SandboxKind) -> None:
    file = hands.roots.workdir / "deep" / "h.py"
    file.parent.mkdir()
    file.write_text("good\n")

    result = await try_in(hands, kind, "echo new > deep/other && mv deep/other deep/third", file)

    assert result.exit_code == 0, result.output.text
    assert (file.parent / "third").read_text() == "new\n"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "attempt",
    [
        'mv .git/hooks .git/old; ln -s "$OUT" .git/hooks',
        'rm -rf .git/hooks; ln -s "$OUT" .git/hooks',
        'mv .git .old; ln -s "$OUT" .git',
        "mv .git .old; ln -s .old .git",
        'rm -f .git/config; ln -s "$OUT/config" .git/config',
    ],
)
async def test_a_link_put_in_the_place_of_gits_files_leads_nobody_out(
    hands: Hands, outside: Path, kind: SandboxKind, attempt: str
) -> None:
    git = hands.roots.workdir / ".git"
    (git / "hooks").mkdir(parents=True)
    (git / "config").write_text("[core]\n")
    for name in HOOKS:
        (git / "hooks" / name).write_text("exit 0\n")
    for name in ("config", "precious", *HOOKS):
        (outside / name).write_text("theirs\n")
    (outside / "hooks").mkdir()
    (outside / "hooks" / "precious").write_text("theirs\n")

    await try_in(hands, kind, f"OUT={outside}; {attempt}")

    there = {str(path.relative_to(outside)) for path in outside.rglob("*")}
    assert there == {"config", "precious", *HOOKS, "hooks", "hooks/precious"}
    assert {path.read_text() for path in outside.rglob("*") if path.is_file()} == {"theirs\n"}
    assert not git.is_symlink()
    assert not (git / "hooks").is_symlink()
    assert sorted(path.name for path in (git / "hooks").iterdir()) == sorted(HOOKS)
    assert (git / "config").read_text() == "[core]\n"
    assert not (git / "config").is_symlink()


async def test_a_program_whose_trusted_file_changed_is_not_started(hands: Hands) -> None:
    file = hands.roots.workdir / "h.sh"
    file.write_text("echo good\n")
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    request = CommandRequest(
        command=("sh", str(file)),
        roots=hands.roots,
        sandbox=SandboxPolicy(kind=SandboxKind.NONE),
        pinned={file: digest},
    )

    assert (await hands.executor.run(request)).output.text == "good\n"
    file.write_text("echo evil\n")
    with pytest.raises(ToolError, match="is not what was trusted"):
        await hands.executor.run(request)
    file.unlink()
    with pytest.raises(ToolError, match="is not what was trusted"):
        await hands.executor.run(request)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "attempt",
    [
        "echo evil > .git/modules/lib/sub/config",
        "echo evil > .git/modules/lib/sub/hooks/post-checkout",
        "cd .git/modules && mv lib old && mkdir -p lib/sub && echo evil > lib/sub/config",
        "cd .git && mv modules old && mkdir -p modules/lib/sub && echo evil > modules/lib/sub/config",
    ],
)
async def test_a_submodules_configuration_stays_as_it_was(
    hands: Hands, kind: SandboxKind, attempt: str
) -> None:
    git = hands.roots.workdir / ".git"
    module = git / "modules" / "lib" / "sub"
    for directory in (git, module):
        (directory / "hooks").mkdir(parents=True)
        (directory / "objects").mkdir()
        (directory / "HEAD").write_text("ref: refs/heads/main\n")
        (directory / "config").write_text("[core]\n")

    await try_in(hands, kind, attempt)

    assert (module / "config").read_text() == "[core]\n"
    assert list((module / "hooks").iterdir()) == []
