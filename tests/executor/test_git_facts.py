"""Whether git could be made to run a program by the repository it is in."""

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agentctl.executor.git_config import NotAConfig, read_settings
from agentctl.executor.git_facts import git_facts

GIT = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always"]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    place = tmp_path / "repo"
    subprocess.run([*GIT, "init", "-q", str(place)], check=True)
    (place / "f").write_text("x\n")
    subprocess.run([*GIT, "-C", str(place), "add", "f"], check=True)
    subprocess.run([*GIT, "-C", str(place), "commit", "-q", "-m", "x"], check=True)
    return place


def configure(place: Path, text: str) -> None:
    with (place / ".git" / "config").open("a") as file:
        file.write(text)


def test_a_fresh_repository_runs_nothing(repository: Path) -> None:
    facts = git_facts(repository)

    assert (facts.repository, facts.runs_programs) == (repository / ".git", ())


def test_outside_a_repository_there_is_none(tmp_path: Path) -> None:
    assert git_facts(tmp_path).repository is None


@pytest.mark.parametrize(
    "text",
    [
        "[log]\n\tshowSignature\n",
        "[log]\n\tshowSignature = true\n",
        "[format]\n\tpretty = format:%h %G?\n",
        '[pretty]\n\tmine = "%h %GS"\n',
        "[core]\n\thooksPath = not/there\n",
    ],
)
def test_what_has_git_run_a_program_without_naming_one_counts(repository: Path, text: str) -> None:
    configure(repository, text)

    assert len(git_facts(repository).runs_programs) == 1


def test_ordinary_settings_run_nothing(repository: Path) -> None:
    (repository / ".husky/_").mkdir(parents=True)
    configure(
        repository,
        """
[remote "origin"]
    url = git@github.com:a/b.git
    fetch = +refs/heads/*:refs/remotes/origin/*
[branch "main"]
    remote = origin
    merge = refs/heads/main
[user]
    name = A
[core]
    autocrlf = input
    hooksPath = .husky/_
    fsmonitor = true
[alias]
    st = status
[filter "lfs"]
    clean = git-lfs clean -- %f
    smudge = git-lfs smudge -- %f
    process = git-lfs filter-process
    required = true
[diff]
    colorMoved = default
""",
    )

    assert git_facts(repository).runs_programs == ()


@pytest.mark.parametrize(
    "text",
    [
        "[core]\n\tfsmonitor = /evil\n",
        "[core] fsmonitor = /evil\n",
        "[CORE]\n\tFsMonitor=/evil\n",
        '[core]\n\tfsmonitor = "/ev\\\nil"\n',
        "[diff]\n\texternal = evil\n",
        '[diff "x"]\n\ttextconv = evil\n',
        '[diff "x"]\n\tcommand = evil\n',
        "[diff.x]\n\tcommand = evil\n",
        '[filter "x"]\n\tclean = evil\n',
        '[filter "x"]\n\tsmudge = evil\n',
        '[filter "x"]\n\tprocess = evil\n',
        "[core]\n\tpager = evil\n",
        "[pager]\n\tlog = evil\n",
        "[alias]\n\tst = !evil\n",
        "[gpg]\n\tprogram = evil\n",
        '[gpg "ssh"]\n\tprogram = evil\n',
        "[include]\n\tpath = /elsewhere\n",
        '[includeIf "gitdir:/"]\n\tpath = /elsewhere\n',
        '[merge "x"]\n\tdriver = evil\n',
        "[core]\n\teditor = evil\n",
        '[remote "o"]\n\tpromisor = true\n\tuploadpack = evil\n',
        '[remote "o"]\n\tpromisor = true\n[core]\n\tsshCommand = evil\n',
        "[core\n\tfsmonitor = x\n",
        "?garbage\n",
        '[core]\n\tx = "open\n',
        "[core]\n\tx = bad \\q escape\n",
    ],
)
def test_a_setting_that_names_a_program_is_told(repository: Path, text: str) -> None:
    configure(repository, text)

    assert git_facts(repository).runs_programs != ()


def test_the_setting_is_named_with_its_file(repository: Path) -> None:
    configure(repository, "[diff]\n\texternal = evil --now\n")

    assert git_facts(repository / "missing" / "below").runs_programs == (
        "diff.external in .git/config names 'evil --now'",
    )


def test_a_configuration_of_the_working_tree_counts(repository: Path) -> None:
    configure(repository, "[extensions]\n\tworktreeConfig = true\n")
    (repository / ".git" / "config.worktree").write_text("[core]\n\tfsmonitor = /evil\n")

    assert len(git_facts(repository).runs_programs) == 1


def test_a_common_directory_counts(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "evil" / "objects").mkdir(parents=True)
    (tmp_path / "evil" / "refs").mkdir()
    (tmp_path / "evil" / "config").write_text("[diff]\n\texternal = evil\n")
    (repository / ".git" / "commondir").write_text("../../evil\n")

    assert git_facts(repository).runs_programs != ()


def test_a_hook_of_readers_counts_and_others_do_not(repository: Path) -> None:
    hooks = repository / ".git" / "hooks"
    for name in ("pre-commit", "post-index-change"):
        (hooks / name).write_text("#!/bin/sh\n")
        (hooks / name).chmod(0o755)

    (reason,) = git_facts(repository).runs_programs

    assert "post-index-change" in reason


def test_a_hook_below_a_chosen_hooks_path_counts(repository: Path) -> None:
    configure(repository, "[core]\n\thooksPath = .githooks\n")
    (repository / ".githooks").mkdir()
    (repository / ".githooks" / "post-index-change").write_text("#!/bin/sh\n")
    (repository / ".githooks" / "post-index-change").chmod(0o755)

    assert git_facts(repository).runs_programs != ()


def test_a_pointer_file_is_followed_as_git_follows_it(repository: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / ".git").write_text(f"gitdir: {repository}/.git\n")
    configure(repository, "[diff]\n\texternal = evil\n")

    assert git_facts(elsewhere).repository == repository / ".git"
    assert git_facts(elsewhere).runs_programs != ()


def test_a_linked_working_tree_has_the_main_ones_facts(repository: Path, tmp_path: Path) -> None:
    subprocess.run([*GIT, "-C", str(repository), "worktree", "add", "-q", str(tmp_path / "tree")], check=True)
    assert git_facts(tmp_path / "tree").runs_programs == ()

    configure(repository, "[diff]\n\texternal = evil\n")

    assert git_facts(tmp_path / "tree").runs_programs != ()


def test_a_directory_that_looks_bare_is_a_repository(tmp_path: Path) -> None:
    bare = tmp_path / "docs"
    (bare / "objects").mkdir(parents=True)
    (bare / "refs").mkdir()
    (bare / "HEAD").write_text("ref: refs/heads/main\n")
    (bare / "config").write_text("[core]\n\tbare = false\n\tworktree = .\n\tfsmonitor = /evil\n")
    (bare / "sub").mkdir()

    assert git_facts(bare / "sub").runs_programs != ()


def test_a_submodules_own_configuration_counts(repository: Path, tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    subprocess.run([*GIT, "init", "-q", str(inner)], check=True)
    subprocess.run([*GIT, "-C", str(inner), "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    subprocess.run(
        [*GIT, "-C", str(repository), "submodule", "--quiet", "add", str(inner), "sub"], check=True
    )
    assert git_facts(repository).runs_programs == ()

    with (repository / ".git" / "modules" / "sub" / "config").open("a") as file:
        file.write("[core]\n\tfsmonitor = /evil\n")

    (reason,) = git_facts(repository).runs_programs
    assert "modules/sub/config" in reason


def test_a_repository_embedded_as_a_submodule_counts(repository: Path) -> None:
    inner = repository / "inner"
    subprocess.run([*GIT, "init", "-q", str(inner)], check=True)
    subprocess.run([*GIT, "-C", str(inner), "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    configure(inner, "[core]\n\tfsmonitor = /evil\n")
    subprocess.run([*GIT, "-C", str(repository), "add", "inner"], check=True, capture_output=True)

    assert git_facts(repository).runs_programs != ()


def test_an_index_that_can_not_be_read_is_told(repository: Path) -> None:
    subprocess.run([*GIT, "-C", str(repository), "update-index", "--split-index"], check=True)

    assert git_facts(repository).runs_programs != ()


def test_what_git_really_runs_is_what_was_told(repository: Path, tmp_path: Path) -> None:
    witness = tmp_path / "ran"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\necho ran >> {witness}\ncat >/dev/null 2>&1 </dev/null\nexit 0\n")
    program.chmod(0o755)
    for key in ("core.fsmonitor", "diff.external", "filter.x.clean"):
        subprocess.run([*GIT, "-C", str(repository), "config", key, str(program)], check=True)
        (repository / ".gitattributes").write_text("* filter=x\n")
        (repository / "f").write_text(f"{key}\n")
        witness.unlink(missing_ok=True)

        subprocess.run([*GIT, "-C", str(repository), "status"], capture_output=True, check=False)
        subprocess.run([*GIT, "-C", str(repository), "diff"], capture_output=True, check=False)

        assert witness.exists(), key
        assert any(key in reason for reason in git_facts(repository).runs_programs), key
        subprocess.run([*GIT, "-C", str(repository), "config", "--unset", key], check=True)


section_names = st.sampled_from(["core", "Diff", 'filter "a b"', 'x "q\\"uote"', "a.b-c"])
values = st.lists(
    st.sampled_from([*'ab"\\#;=\t \u00e9', '""', "\\\n", "\\t", '\\"', " \\\n "]), max_size=8
).map("".join)


@settings(max_examples=300, deadline=None)
@example(entries=[("core", "name", '= ""')])
@example(entries=[("core", "name", "\\\n a")])
@given(
    entries=st.lists(st.tuples(section_names, st.sampled_from(["name", "NAME", "a-b"]), values), max_size=4)
)
def test_settings_are_read_as_git_reads_them(
    entries: list[tuple[str, str, str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.getbasetemp() / "config-under-test"
    file.write_text("".join(f"[{section}] {name} = {value}\n" for section, name, value in entries), "utf-8")
    listed = subprocess.run(
        ["git", "config", "--file", str(file), "--list", "-z"],
        capture_output=True,
        check=False,
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent"},
    )

    try:
        ours = [f"{found.key}\n{found.value}" for found in read_settings(file.read_bytes())]
    except NotAConfig:
        assert listed.returncode != 0
        return
    assert listed.returncode == 0, file.read_text()
    # Git lists a key that stands alone without a value, and before 2.45 makes every blank a space.
    theirs = [
        row if "\n" in row else f"{row}\ntrue" for row in listed.stdout.decode("utf-8").split("\0") if row
    ]
    assert [row.replace("\t", " ") for row in ours] == [row.replace("\t", " ") for row in theirs]
