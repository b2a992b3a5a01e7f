"""What well-known programs read, write, reach and start, by their options and operands."""
# ruff: noqa: E501 - rows of lines

import pytest

from agentctl.policy.shell.analyse import LineAnalysis, analyse
from agentctl.policy.shell.sed import read_sed
from agentctl.protocol.effects import ReachHost, ReadPath, RunProgram, WritePath

HERE = "/repo/app/"


def look(line: str) -> LineAnalysis:
    return analyse(line, cwd="/repo/app", home="/home/u")


def paths(line: str, kind: type[ReadPath] | type[WritePath]) -> list[str]:
    found = [effect.path for effect in look(line).effects if isinstance(effect, kind)]
    return [path.removeprefix(HERE) for path in found]


@pytest.mark.parametrize(
    ("line", "reads"),
    [
        ("cat a ./b /c - /dev/null", ["a", "b", "/c"]),
        ("grep -f p x y", ["p", "x", "y"]),
        ("grep -e p x", ["x"]),
        ("grep p", []),
        ("rg -f p x", ["p", "x"]),
        ("sed -n 1p a b", ["a", "b"]),
        ("sed -f s a", ["s", "a"]),
        ("sed -e 'r x' a", ["x", "a"]),
        ("awk -f p a", ["p", "a"]),
        ("awk '{print}' a", ["a"]),
        ("jq --from-file p a", ["p", "a"]),
        ("find -L a b -newer c", ["a", "b", "c"]),
        ("find -name x", ["/repo/app"]),
        ("fd x d", ["d"]),
        ("xargs -a list cat", ["list"]),
        ("tar tf a.tar", ["a.tar"]),
        ("curl -T a -d @b -F c=@d -K e http://h/", ["a", "b", "d", "e"]),
        ("curl file:///etc/x", ["/etc/x"]),
        ("wget -i a --post-file=b http://h/", ["a", "b"]),
        ("git diff --no-index a b", ["a", "b"]),
        ("diff --from-file=a b", ["a", "b"]),
        ("dd if=a", ["a"]),
        ("openssl dgst -sha256 -in a", ["a"]),
        ("bash s.sh x", ["s.sh"]),
        ("patch -i p", ["p"]),
        ("cat < a <<< b", ["a"]),
        ("cat {a,b}", ["a", "b"]),
        ("cat *.py", ["*.py"]),
        ('cat ~/x $HOME/y "$PWD"/z', ["/home/u/x", "/home/u/y", "z"]),
        ("for f in a b; do cat $f; done", ["a", "b"]),
        ('f=a; cat "$f"', ["a"]),
        ("cat d/$x", ["d/"]),
        ("cat $x", []),
        ("split a", ["a"]),
        ("base64 -d a", ["a"]),
        ("git --git-dir=/x/.git log", ["/x/.git"]),
    ],
)  # fmt: skip
def test_reads(line: str, reads: list[str]) -> None:
    assert paths(line, ReadPath) == reads


@pytest.mark.parametrize(
    ("line", "writes"),
    [
        ("cp a b c", ["c"]),
        ("cp -t d a b", ["d/", "d/a", "d/b"]),
        ("cp a d/", ["d/", "d/a"]),
        ("cp -b a c", ["c", "c*"]),
        ("mv a b", ["a", "b"]),
        ("install -d a b", ["a", "b"]),
        ("ln -s /x/y", ["y"]),
        ("ln -s x y", ["y"]),
        ("ln -t d x", ["d"]),
        ("sed -i s/a/b/ x y", ["x", "y"]),
        ("sed -i.bak s/a/b/ x", ["x", "x*"]),
        ("sed 's/a/b/w out' x", ["out"]),
        ("awk '{print > \"out\"}' x", ["out"]),
        ("perl -i -pe s/a/b/ x", ["x"]),
        ("perl -i s.pl x", ["x"]),
        ("dd of=a", ["a"]),
        ("tar xf a.tar -C d", ["d"]),
        ("tar xf a.tar", ["/repo/app"]),
        ("tar cf a.tar x --remove-files", ["a.tar", "x"]),
        ("unzip -d d a.zip", ["d"]),
        ("unzip -l a.zip", []),
        ("gzip a", ["a", "a*"]),
        ("gzip -c a", []),
        ("gunzip a.gz", ["a.gz", "a*"]),
        ("split a p", ["p*"]),
        ("csplit a 1", ["xx*"]),
        ("curl -o a http://h/", ["a"]),
        ("curl -sSLo a http://h/", ["a"]),
        ("curl -O http://h/x", ["/repo/app"]),
        ("wget -O a http://h/", ["a"]),
        ("wget -P d http://h/", ["d"]),
        ("http -o a GET http://h/", ["a"]),
        ("git clone https://h/r.git", ["r"]),
        ("git clone https://h/r d", ["d"]),
        ("git -C sub init", ["sub"]),
        ("git format-patch -o d HEAD", ["d"]),
        ("git worktree add d", ["d"]),
        ("git bundle create f HEAD", ["f"]),
        ("git archive --output=f HEAD", ["f"]),
        ("git config x y", [".git/config"]),
        ("git config --get x", []),
        ("git config --file f x y", ["f"]),
        ("git config --global x y", ["/home/u/.gitconfig"]),
        ("git config --system x y", ["/etc/gitconfig"]),
        ("git rm --cached f", []),
        ("git apply --check p", []),
        ("git restore --staged f", []),
        ("find a -delete", ["a"]),
        ("find a -fprintf f x", ["f"]),
        ("flock l true", ["l"]),
        ("patch -o f x", ["f", "f*"]),
        ("patch --dry-run", []),
        ("chmod +x a b", ["a", "b"]),
        ("chmod --reference r a", ["a"]),
        ("tee a /dev/stderr", ["a"]),
        ("tee >(cat)", []),
        ("mktemp -p d", ["d"]),
        ("openssl req -out a -keyout b", ["a", "b"]),
        ("sudo -e a", ["a"]),
        ("rsync a h:b", []),
        ("scp h:a b", ["b"]),
        ("strip -o a b", ["a", "b"]),
        ("uniq a b", ["b"]),
    ],
)
def test_writes(line: str, writes: list[str]) -> None:
    assert paths(line, WritePath) == writes


@pytest.mark.parametrize(
    ("line", "hosts"),
    [
        ("curl https://u:p@Example.com:8080/x?y 'http://[::1]:3/'", ["example.com", "::1"]),
        ("curl localhost:3000", ["localhost"]),
        ("curl -x proxy.example:1 http://a/", ["proxy.example", "a"]),
        ('curl "https://a.example/$x"', ["a.example"]),
        ("wget a.example/x", ["a.example"]),
        ("ssh -p 1 u@h ls", ["h"]),
        ("ssh -J j h", ["j", "h"]),
        ("scp a u@h:b", ["h"]),
        ("git clone git@h:o/r.git d", ["h"]),
        ("git push ssh://h/r", ["h"]),
        ("git fetch origin", []),
        ("nc h 1", ["h"]),
        ("ping -c 1 h", ["h"]),
        ("pip install git+https://h/r", ["h"]),
        ("xh POST https://h/", ["h"]),
        ("echo > /dev/tcp/h/1", ["h"]),
    ],
)
def test_hosts(line: str, hosts: list[str]) -> None:
    assert [effect.host for effect in look(line).effects if isinstance(effect, ReachHost)] == hosts


@pytest.mark.parametrize(
    "line",
    [
        "curl $url", 'curl "$scheme://h/"', "wget $x", "ssh $h", "nc $h 1", "ping $h", "sort $x", 'sed "$s" f', "tar $x",
        "find . $x", "find . -name *.py", "fd $x", "git diff $x", "git $x", "git -c $x log", "dd $x", "rsync -e $x a b",
        "rm $x", "cp a $x", 'tee "$x"', "sed -i s/a/b/ $f", "bash $x", "bash -c $x", "watch $x", "xargs -x $y z", "tar c *",
        "timeout $x y", "env $x", "nice --unknown 5 x", "curl -K f http://h", "wget -e x http://h", "curl 'http://{a,b}/'",
        "nc -e sh h 1", "split $x", "unzip -d $d a", "uniq *", "env -S 'a b'", "xargs --unknown=1 a",
    ],
)  # fmt: skip
def test_an_expansion_where_it_could_change_what_happens_is_opaque(line: str) -> None:
    assert look(line).opaque_reason


@pytest.mark.parametrize(
    "line",
    [
        'curl -d "$x" http://h/', 'grep "$x" f', "wc $x", "echo $x", 'git commit -m "$x"', "git diff $(git merge-base a b)",
        'head -n "$n" f', 'sort -k "$k" f', 'find . -name "$x"', "timeout 5 pytest $x", "cat $x", "mv *.txt d", "make -j$n",
        "sort -- $x", 'git log --format="$f"', "tar cf a.tar ./*", "rm ./*",
    ],
)  # fmt: skip
def test_an_expansion_elsewhere_is_not(line: str) -> None:
    assert look(line).opaque_reason == ""


@pytest.mark.parametrize(
    ("script", "writes", "reads", "runs"),
    [
        ("s/a/b/g; 1,5d; /x/,/y/!{p;q}", [], [], False),
        ("s#x#foo;woutput#", [], [], False),
        ("y/abc/xyz/; $!N; l 5; =; n", [], [], False),
        (":a;s/x/y/;ta;b end;: end", [], [], False),
        ("1~2{w f\n}", ["f"], [], False),
        ("s/a/b/gw f", ["f"], [], False),
        ("r f\nR g\nW h", ["h"], ["f", "g"], False),
        ("w /dev/stdout", [], [], False),
        ("\\,x,p; /[a]/d", [], [], False),
        ("a\\\nw f\ni w f", [], [], False),
        ("# w f\np", [], [], False),
        ("1e touch x", [], [], True),
        ("s/a/touch x/e", [], [], True),
        ("e", [], [], True),
        ("s/a/b", [], [], True),
        ("s", [], [], True),
        ("@", [], [], True),
        ("/a\\/b/I,+3p;s/\\//x/3", [], [], False),
    ],
)
def test_sed_scripts(script: str, writes: list[str], reads: list[str], runs: bool) -> None:  # noqa: FBT001
    found = read_sed(script)

    assert (found.writes, found.reads, found.runs) == (writes, reads, runs)


@pytest.mark.parametrize(
    ("line", "argv", "via"),
    [
        ("sudo -u x -E A=1 rm f", ("rm", "f"), ("sudo",)),
        ("env -C sub rm f", ("rm", "f"), ("env",)),
        ("timeout 5 nice -5 rm f", ("rm", "f"), ("timeout", "nice")),
        ("xargs -I % sh -c 'rm %'", ("rm", "%"), ("xargs", "sh")),
        ("bash -euo pipefail -c 'rm f' x", ("rm", "f"), ("bash",)),
        ("echo 'rm f' | sh", ("rm", "f"), ("sh",)),
        ("flock l -c 'rm f'", ("rm", "f"), ("flock",)),
        ("nix-shell -p x --run 'rm f'", ("rm", "f"), ("nix-shell",)),
        ("npx -c 'rm f'", ("rm", "f"), ("npx",)),
        ("docker exec -it c -- rm f", ("rm", "f"), ("docker",)),
        ("fd x -x rm f", ("rm", "f"), ("fd",)),
        ("fd --exec=rm f", ("rm", "f"), ("fd",)),
        ("command -p rm f", ("rm", "f"), ("command",)),
        ("git submodule foreach --recursive 'rm f'", ("rm", "f"), ("git",)),
        ("git clone ext::'rm f' d", ("rm", "f"), ("git",)),
        ("find a -ok rm f ';'", ("rm", "f"), ("find",)),
        ("FOO=1 rm f", ("rm", "f"), ("FOO=1",)),
    ],
)
def test_what_a_wrapper_runs_is_listed_with_the_way_to_it(
    line: str, argv: tuple[str, ...], via: tuple[str, ...]
) -> None:
    assert (argv, via) in [(one.argv, one.via) for one in look(line).effects if isinstance(one, RunProgram)]


def test_an_allow_for_a_transparent_wrapper_is_told_from_one_for_what_it_runs() -> None:
    outer, inner = (one for one in look("timeout 5 pytest -q").effects if isinstance(one, RunProgram))

    assert outer.seen_inside
    assert (inner.argv, inner.outer, inner.seen_inside) == (
        ("pytest", "-q"),
        (("timeout", "5", "pytest", "-q"),),
        False,
    )


def test_words_that_xargs_adds_may_be_any_number() -> None:
    inner = next(one for one in look("ls | xargs grep x").effects if isinstance(one, RunProgram) and one.via)

    assert (inner.argv[:2], inner.unknown, inner.spread) == (("grep", "x"), (2,), (2,))


def test_a_program_that_reads_what_only_the_shell_knows_is_not_for_the_safe_list() -> None:
    unsafe = [one.distrust for one in look('cat "$x"').effects if isinstance(one, RunProgram)]
    known = [
        one.distrust
        for one in look("for x in a *.py; do cat $x; done").effects
        if isinstance(one, RunProgram)
    ]

    assert unsafe == ["a file that it reads is known only to the shell"]
    assert known == [""]


def test_a_copy_into_what_may_be_a_folder_names_what_it_makes_there() -> None:
    written = next(one for one in look("cp a sub/b *.py d").effects if isinstance(one, WritePath))

    assert written.into == ("a", "b", "*.py")


@pytest.mark.parametrize(
    ("line", "places"),
    [
        ("cd a && x", ["/repo/app/a"]),
        ("cd a; x", ["/repo/app/a", "/repo/app"]),
        ("cd a || x", []),
        ("(cd a && y); x", []),
        ("cd a && cd .. && x", []),
        ("git -C a x", ["/repo/app/a"]),
        ("env -C a x", ["/repo/app/a"]),
        ("if cd a; then x; fi", ["/repo/app/a"]),
        ("cd a | x", []),
        ("cd a & x", []),
        ("cd a && exit; x", []),
    ],
)
def test_the_directory_is_followed(line: str, places: list[str]) -> None:
    last = [one for one in look(line).effects if isinstance(one, RunProgram)][-1]

    assert list(last.cwd) == places
