"""What the safe list accepts is run for real, with options drawn at random: nothing may change on disk."""

import os
import random
import shutil
import string
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from agentctl.policy.defaults import built_in_policy
from agentctl.policy.safe_data import safe_list
from agentctl.policy.safe_options import AnyForm, Form
from agentctl.protocol.effects import RunProgram
from agentctl.toml.read import parse

CONFIG = Path(__file__).resolve().parents[2] / "config"
NAMES = built_in_policy(parse((CONFIG / "policy.toml").read_bytes(), file="policy.toml")).names
SAFE = safe_list(parse((CONFIG / "safe_commands.toml").read_bytes(), file="safe.toml"), names=NAMES)
VALUES = ["out.txt", "a.txt", "1", "./out2", "sub", "x=y", "HEAD", "-1", "%s"]
WORDS = ["out", "file", "write", "log", "save", "exec", "compress-program", "debug"]
SLOW = {"sleep", "seq"}
RUNS = 350


def words_for(form: Form | AnyForm, draw: random.Random) -> list[str]:
    """Draw options that the form knows; for a form without any, ones that write in other programs."""
    words: list[str] = []
    for _ in range(draw.randint(0, 3)):
        value = draw.choice(VALUES)
        if isinstance(form, AnyForm) or form.raw:
            letter = draw.choice(string.ascii_letters)
            words += draw.choice(
                [
                    [f"-{letter}"],
                    [f"-{letter}", value],
                    [f"-{letter}{value}"],
                    [f"--{draw.choice(WORDS)}={value}"],
                    ["-o", "out.txt"],
                ]
            )
        elif form.words:
            word = draw.choice(sorted(form.words))
            words += [word, *(draw.choice(VALUES) for _ in range(form.words[word]))]
        else:
            words += draw.choice(options_of(form, value)) if options_of(form, value) else []
    words += [draw.choice(VALUES) for _ in range(draw.randint(0, 2))]
    if draw.random() < 1 / 3:
        draw.shuffle(words)
    return words


def options_of(form: Form, value: str) -> list[list[str]]:
    return [
        *([f"-{letter}"] for letter in form.flags),
        *([f"-{letter}", value] for letter in form.values),
        *([f"-{letter}{value}"] for letter in form.attached),
        *([name] for name in sorted(form.long)),
        *([f"{name}={value}"] for name in sorted(form.long | form.long_values)),
        *([name, value] for name in sorted(form.long_values)),
    ]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with files and a repository, and an empty home beside it."""
    work = tmp_path / "work"
    (work / "sub").mkdir(parents=True)
    (tmp_path / "home").mkdir()
    (work / "a.txt").write_text("b\na\n", encoding="utf-8")
    (work / "sub" / "c").write_text("x", encoding="utf-8")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.com"]
    for arguments in (
        ["init", "-q"],
        ["add", "."],
        ["commit", "-qm", "m"],
        ["branch", "side"],
        ["tag", "v1"],
    ):
        subprocess.run([*git, *arguments], cwd=work, check=True)
    return work


def state_of(folder: Path) -> dict[str, tuple[int, int, int]]:
    """Everything in the folder and beside it; git refreshes its index while it looks."""
    found = {}
    for path in folder.parent.rglob("*"):
        stat = path.lstat()
        size, changed = (stat.st_size, stat.st_mtime_ns) if path.is_file() else (0, 0)
        if path.name != "index":
            found[str(path)] = (stat.st_mode, size, changed)
    return found


def run_quietly(argv: list[str], place: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": str(place.parent / "home"), "GIT_PAGER": "cat"}
    with suppress(subprocess.TimeoutExpired, OSError):
        subprocess.run(
            argv,
            cwd=place,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=1,
            check=False,
        )


@pytest.mark.parametrize("seed", [1, 2])
def test_no_accepted_command_changes_anything(place: Path, seed: int) -> None:
    draw = random.Random(seed)  # noqa: S311 - draws options, no secrets
    programs = [
        *(([name], one) for name, one in sorted(SAFE.programs.items()) if shutil.which(name)),
        *((["git", name], one) for name, one in sorted(SAFE.git.items())),
    ]
    before, ran = state_of(place), 0
    while ran < RUNS:
        name, program = draw.choice(programs)
        form, first = draw.choice(list(zip(program.forms, program.first, strict=True)))
        argv = [*name, *first[:1], *words_for(form, draw)]
        if name[0] in SLOW or not SAFE.covers(RunProgram(argv=tuple(argv))):
            continue
        ran += 1
        run_quietly(argv, place)
        assert state_of(place) == before, argv


SED = r"""
s / / / e w\x20out w a i c \ \\n \n ; { } 1 $ ! , x [ ] [^ p n N g I y b t # | s/a/b/
e\x20touch\x20pwn s/a/touch\x20pwn/ r\x20in \/ & \n q5 ~2 [[:alpha:]] s,a,touch\x20pwn,e w\x20out\n
a\x20foo\ z Q F touch\x20pwn
"""
AWK = r"""
{ } print\x20 " " / / system("touch\x20pwn") |\x20"sh" >\x20"out" "touch\x20pwn" ; \n ( ) if
else\x20 1 x $1 , > >= || && ~ ! BEGIN END in\x20 [ ] \ # return\x20 getline printf\x20 length ++ --
/"/ "/" a[1] ? : f(1) @ % ^ function\x20f(x) "\"" NR - /a/ "sh" print\x20>\x20"out" close("x")
gsub(/a/,"b")
"""
"""Pieces of scripts; what they make is mostly nonsense, and some of it runs."""


@pytest.mark.parametrize(("program", "pieces"), [("sed", SED), ("awk", AWK)])
def test_no_accepted_script_changes_anything(place: Path, program: str, pieces: str) -> None:
    draw = random.Random(7)  # noqa: S311 - draws pieces, no secrets
    words = [piece.replace("\\x20", " ").replace("\\n", "\n") for piece in pieces.split()]
    before, ran = state_of(place), 0
    while ran < RUNS:
        script = "".join(draw.choice(words) for _ in range(draw.randint(1, 9)))
        argv = [program, script, "a.txt"]
        if not SAFE.covers(RunProgram(argv=tuple(argv))):
            continue
        ran += 1
        run_quietly(argv, place)
        assert state_of(place) == before, argv
