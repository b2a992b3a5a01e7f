"""Compare what real programs write and start with what the analysis lists.

Where `shell_fuzz` replaces every program by a recorder, this runs the real ones with random options and
operands, inside bubblewrap with a folder of their own (and not at all without it): each file that a clear line
makes, changes or removes has to be among the writes, and each recorder that a wrapper starts among the programs.

    python bench/shell_tools.py --lines 3000 --seed 7
"""
# ruff: noqa: E501 - tables of options

import argparse
import random
import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from shell_fuzz import bubblewrap, covers

from agentctl.policy.shell.analyse import analyse
from agentctl.protocol.effects import RunProgram, WritePath

BATCH = 100
FILES = ["a.txt", "b.txt", "sub/c.txt", "sub/d.txt", "-n", "x y", "z.gz", "t.tar", "p.patch"]
NAMES = [
    "a.txt",
    "b.txt",
    "sub",
    "sub/c.txt",
    "new",
    "sub/new",
    "./a.txt",
    "'x y'",
    "z.gz",
    "t.tar",
    "*.txt",
    "-",
    ".",
    "out",
]
_RECORDER = "#!/bin/bash\nprintf '%s\\0' \"$PWD\" \"${0##*/}\" \"$@\" $'\\1' >>'@LOG@'.$$\n"

TOOLS: dict[str, str] = {
    # program → options to draw from; a trailing = takes a word
    "cp": "-r -a -f -n -u -v -t= --target-directory= --backup --parents -T -S= --suffix= -rT -rt=",
    "mv": "-f -n -u -v -t= --target-directory= -T -b -S=",
    "rm": "-f -r -rf -v -d -- --preserve-root -i",
    "ln": "-s -f -sf -t= -T -r -v -b",
    "install": "-m= -d -D -t= -v -p -C",
    "mkdir": "-p -m= -v -pv",
    "rmdir": "-p -v --ignore-fail-on-non-empty",
    "touch": "-a -m -c -t= -d= -r= --reference=",
    "truncate": "-s= --size= -c -r=",
    "tee": "-a -i --append",
    "dd": "if=a.txt of=new of=sub/c.txt bs=1 count=3 conv=notrunc status=none if=b.txt",
    "sort": "-u -r -n -k= -t= -o= --output= --out= -uo= -c -m -S= -T= -z -of1 --parallel=",
    "uniq": "-c -d -u -f= -s= -w= -i",
    "sed": "-n -i -i.bak -e= -E -s -ni --in-place --in-p -u -z --expression=",
    "split": "-l= -b= -n= -d -a= --additional-suffix= -e",
    "csplit": "-f= -n= -k -s -z",
    "shuf": "-n= -o= --output= -e -r -i=",
    "cat": "-n -A -s",
    "head": "-n= -c= -5 -q", "tail": "-n= -c= -3 -q", "cut": "-d= -f= -c= -b=", "paste": "-d= -s", "tr": "-d -s",
    "tac": "-s= -r", "nl": "-b=", "fold": "-w=", "wc": "-l -c", "comm": "-1 -2", "join": "-1= -2= -t=", "od": "-c -N=",
    "base64": "-d -w=", "md5sum": "-c", "expand": "-t=", "fmt": "-w=", "pr": "-2", "cmp": "-s -n=", "diff": "-u -q -r",
    "chmod": "+x -R -v 600 u+w --reference=", "unlink": "", "shred": "-u -n= -z", "mktemp": "-p= -d -u -t",
    "tar": "-cf= -xf= -tf= -czf= -xzf= -C= -v --exclude= --create --file= -rf= --remove-files --delete -x -c -t",
    "gzip": "-k -d -c -f -9 -r -S= -t -l", "gunzip": "-k -c -f", "bzip2": "-k -z -f", "xz": "-k -z -f",
    "find": "-name= -type= -delete -fprint= -fprint0= -fls= -print -maxdepth= -newer= -o -not -exec -fprintf= -path=",
    "grep": "-n -r -l -f= -e= -c -v --include= -A= -m=", "egrep": "-n -o", "xxd": "-r -p -l= -s= -i", "patch": "-p= -i= -o= -s -R -b",
    "awk": "-F= -v= -f=", "dircolors": "-p", "numfmt": "--to=", "seq": "-w -s=", "stat": "-c=", "realpath": "-s",
    "env": "-i -u= -C= A=1 B=2 - --unset= -0 -v",
    "timeout": "-s= -k= --signal= --kill-after= --foreground --preserve-status -v",
    "nice": "-n= -5 --adjustment= -n", "nohup": "", "stdbuf": "-o= -i= -e= -oL --output=", "setsid": "-w -f", "ionice": "-c= -n= -t",
    "xargs": "-0 -n= -I= -r -P= -L= -t -d= -a= -i --max-args= -x -s= -E=", "flock": "-n -x -w=", "chrt": "-b -i", "taskset": "-c",
    "command": "-p -v -V", "exec": "-a= -c -l", "builtin": "", "sh": "-c= -x -e", "bash": "-c= -lc= -x --norc -o=",
}  # fmt: skip
WRAPPERS = {
    "env",
    "timeout",
    "nice",
    "nohup",
    "stdbuf",
    "setsid",
    "ionice",
    "xargs",
    "flock",
    "chrt",
    "taskset",
    "command",
    "exec",
}
VALUES = {
    "sed": ["'s/a/b/'", "'w new'", "'1d'", "'s/a/b/w out'", "'p'", "'1!G;h;$!d'", "'/a/w sub/new'", "'s|a|b|g'", "'y/a/b/'",
            "'$!N;w out'", "'r b.txt'", "'1i x'", "'a\\\nx'", "'s/x/y/e'", "'1e c0 x'", "'{p;w new\n}'", "'/a/,/b/{s/a/b/w new\n}'"],
    "awk": ["'{print $1}'", "'{print > \"new\"}'", "'{print >> \"out\"}'", "'BEGIN{print 1}'", "'{printf \"%s\", $1 > \"sub/new\"}'"],
    "sh": ["'c0 x'", "'c0 > new'", "'echo a; c1 \"b c\"'", "'rm a.txt'"],
    "timeout": ["5", "1s", "0.5", "KILL"], "nice": ["5", "10"], "stdbuf": ["L", "0"], "flock": ["new", "a.txt"],
    "taskset": ["0", "1"], "chrt": ["0"], "ionice": ["3"], "mkdir": ["755"], "install": ["644"], "head": ["2"], "csplit": ["1", "2"],
}  # fmt: skip
VALUES["bash"] = VALUES["sh"]


def line_of(rng: random.Random) -> str:
    """Return a command of one of the tools, or two in a pipe."""
    program = rng.choice(list(TOOLS))
    words = [program]
    options = TOOLS[program].split()
    for _ in range(rng.choice([0, 1, 1, 2, 3])):
        if options:
            words += _option(program, rng.choice(options), rng)
    if program == "dd":
        return " ".join(words)
    if program in WRAPPERS:
        if program in VALUES and rng.random() < 0.9:
            words.append(rng.choice(VALUES[program]))
        inner = rng.choice(
            ["c0 a", "c1 'b c' -x", "c0", "rm a.txt", "tee new", "c0 {} +", "timeout 5 c0 z", "env c1"]
        )
        words.append(inner)
    else:
        if program in {"sed", "awk", "sh", "bash"} and rng.random() < 0.7:
            words.append(rng.choice(VALUES[program]))
        if program == "find" and rng.random() < 0.4:
            words += ["-exec", rng.choice(["c0 {} \\;", "c0 {} +", "rm {} \\;", "c1 x ';'"])]
        words += [rng.choice(NAMES) for _ in range(rng.choice([0, 1, 1, 2, 2, 3]))]
    line = " ".join(words)
    if rng.random() < 0.15:
        line = f"{rng.choice(['cat a.txt', 'printf a', 'find . -name a.txt', 'echo a b'])} | {line}"
    return line + rng.choice(["", "", "", " < a.txt", " > out", " 2>new"])


def _option(program: str, option: str, rng: random.Random) -> list[str]:
    if not option.endswith("="):
        return [option]
    value = rng.choice([*VALUES.get(program, []), *NAMES, "1", "2"])
    name = option[:-1]
    if name.startswith("--"):
        return [rng.choice([f"{name}={value}", f"{name} {value}"])]
    return [rng.choice([f"{name}{value}", f"{name} {value}"])]


def _prepare(place: Path) -> None:
    (place / "w" / "sub").mkdir(parents=True)
    (place / "home").mkdir()
    (place / "bin").mkdir()
    for name in FILES:
        (place / "w" / name).write_text(f"{name} a b\nline a\nb\n", encoding="utf-8")
    subprocess.run(["tar", "cf", "t.tar", "sub"], cwd=place / "w", check=True)
    for name in ("c0", "c1"):
        script = place / "bin" / name
        script.write_text(_RECORDER.replace("@LOG@", str(place / "log")), encoding="utf-8")
        script.chmod(0o755)


def _state(folder: Path) -> dict[str, object]:
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        stat = path.lstat()
        content = (
            path.read_bytes() if path.is_file() and not path.is_symlink() and stat.st_mode & 0o400 else b""
        )
        found[str(path)] = (stat.st_mode, str(path.readlink()) if path.is_symlink() else content, stat.st_ino)
    return found


def check(line: str, place: Path, inside: list[str]) -> tuple[bool, list[str]]:
    """Run `line` and return whether it was clear, and what was not listed."""
    start = place / "w"
    analysis = analyse(line, cwd=str(start), home=str(place / "home"))
    before = _state(start) | _state(place / "home")
    env = {
        "PATH": f"{place}/bin:/usr/bin:/bin",
        "HOME": str(place / "home"),
        "LC_ALL": "C.UTF-8",
        "TMPDIR": str(place),
    }
    # SAFETY: inside bubblewrap, with everything but `place` read-only and no network.
    with suppress(subprocess.TimeoutExpired):
        subprocess.run(
            [*inside, "/bin/bash", "-c", line], cwd=start, env=env, stdin=subprocess.DEVNULL,
            capture_output=True, timeout=5, check=False,
        )  # fmt: skip
    if analysis.opaque_reason:
        return False, []
    after = _state(start) | _state(place / "home")
    changed = [path for path in before.keys() | after.keys() if before.get(path) != after.get(path)]
    writes = [effect for effect in analysis.effects if isinstance(effect, WritePath)]
    wrong = [
        f"changed {path}"
        for path in sorted(changed)
        if not any(_covers_path(one, Path(path)) for one in writes)
    ]
    runs = [effect for effect in analysis.effects if isinstance(effect, RunProgram)]
    for log in place.glob("log.*"):
        for record in log.read_bytes().split(b"\x01\x00")[:-1]:
            words = [word.decode("utf-8", "surrogateescape") for word in record.split(b"\x00")[:-1]]
            if not any(covers(one, tuple(words[1:]), words[0], str(start)) for one in runs):
                wrong.append(f"ran {words[1:]} in {words[0]}")
    return True, [text.replace(str(place), "ROOT") for text in wrong]


def _covers_path(effect: WritePath, path: Path) -> bool:
    listed = re.sub(r"/\./|/+", "/", effect.path).rstrip("/")
    if effect.glob:
        pattern = re.escape(listed).replace(r"\*", "[^/]*").replace(r"\?", "[^/]")
        return re.fullmatch(f"{pattern}(/.*)?", str(path)) is not None
    return path == Path(listed) or Path(listed) in path.parents or path == Path(listed).parent


def main() -> int:
    """Print what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    clear = holes = 0
    for _ in range(arguments.lines):
        with tempfile.TemporaryDirectory(prefix="tools") as folder:
            place = Path(folder).resolve()
            inside = bubblewrap(place)
            if not inside or not shutil.which("bash"):
                print("bubblewrap does not work here: nothing was run")
                return 0
            _prepare(place)
            line = line_of(rng)
            was_clear, wrong = check(line, place, inside)
            clear += was_clear
            if wrong:
                holes += 1
                print(f"HOLE {line!r}\n     {wrong[:4]}")
    print(f"seed {arguments.seed}: {arguments.lines} lines, {clear} clear, {holes} holes")
    return 1 if holes else 0


if __name__ == "__main__":
    raise SystemExit(main())
