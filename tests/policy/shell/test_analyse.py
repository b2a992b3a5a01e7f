"""What a line runs, in the analysis's own words."""

import pytest

from agentctl.policy.shell.analyse import LineAnalysis, analyse
from agentctl.protocol.effects import OpaqueCommand, RunProgram, WritePath


def look(line: str) -> LineAnalysis:
    return analyse(line, cwd="/repo/app", home="/home/u")


def runs(line: str) -> list[tuple[str, ...]]:
    return [effect.argv for effect in look(line).effects if isinstance(effect, RunProgram)]


def writes(line: str) -> list[str]:
    return [effect.path for effect in look(line).effects if isinstance(effect, WritePath)]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("git status", [("git", "status")]),
        ("a;b&c|d||e&&f\ng", [(name,) for name in "abcdefg"]),
        ("echo 'a b' \"c d\" e\\ f $'g\\th'", [("echo", "a b", "c d", "e f", "g\th")]),
        ("r\\\nm x", [("rm", "x")]),
        ("'git status'", [("git status",)]),
        ("if a; then b; elif c; then d; else e; fi", [(name,) for name in "abcde"]),
        ("while a; do b; done; until c; do d; done", [(name,) for name in "abcd"]),
        ("case x in a) b;; (c|d) e;& *) f; esac", [("b",), ("e",), ("f",)]),
        ("( a; { b; } )", [("a",), ("b",)]),
        ("! time -p a", [("a",)]),
        ("time -- a b", [("a", "b")]),
        ("time -p -- >f a", [("a",)]),
        ("time -\\\np\\\n -\\\n-\\\n a", [("a",)]),
        ("time -- -p a", [("-p", "a")]),
        ("time '--' a", [("--", "a")]),
        ("a & p=$!; wait $p", [("a",), ("wait", "$p")]),
        ("a & wait $! %1", [("a",), ("wait", "$!", "%1")]),
        ("cp f{,.bak}", [("cp", "f", "f.bak")]),
        ("echo x # it's\nrm y", [("echo", "x"), ("rm", "y")]),
        ("cat <<'E' | sh2\n$(rm x)\nE\nnext", [("cat",), ("sh2",), ("next",)]),
        ("cat <<E\n$(rm x)\nE", [("cat",), ("rm", "x")]),
        (">f for x", [("for", "x")]),
        ("[[ $a > $b && -f x ]]", []),
    ],
)
def test_every_command_of_a_clear_line_is_listed(line: str, expected: list[tuple[str, ...]]) -> None:
    analysis = look(line)

    assert analysis.opaque_reason == ""
    assert runs(line) == expected


@pytest.mark.parametrize(
    "line",
    [
        "$x", "`x`", "eval rm", "f() { rm; }", "coproc rm", "echo $((x))", "echo ${!x}", "echo ${x@P}",
        "trap rm EXIT",
        "[[ $x -eq 1 ]]", "let x", "test -v 'a[$(rm)]'", "printf -v 'a[$(rm)]' x", "ls\rrm", "PATH=/x",
        "git log &&&",
        "ls &&", "{ && ls; }", "ls *(e:x:)", "echo x >& '$(rm)'", "echo x > $f", "'open", "cat <<E",
        "echo $(time -p [[ a > f ]])",
        "jobs -sx rm f", "jobs -s -x -- rm f", "jobs $x rm f", "wait -np 'a[$(rm)]'",
        "v='-p a[$(rm)]'; wait $v",
        "cat <(time ! [[ a > f ]])",
    ],
)  # fmt: skip
def test_what_cannot_be_told_is_opaque(line: str) -> None:
    analysis = look(line)

    assert analysis.opaque_reason
    assert isinstance(analysis.effects[-1], OpaqueCommand)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("a > f", ["/repo/app/f"]),
        ("a >> /x/f 2>&1 2>/dev/null", ["/x/f"]),
        ("a 3>f >&3", ["/repo/app/f"]),
        ("a >| f", ["/repo/app/f"]),
        ("a &> f", ["/repo/app/f"]),
        ("cd sub && a > f", ["/repo/app/sub/f"]),
        ("false && cd /tmp; a > f", ["/tmp/f", "/repo/app/f"]),
        ("(cd sub; a); b > f", ["/repo/app/f"]),
        ("a > ~/.bashrc", ["/home/u/.bashrc"]),
        ("{ a; } > f", ["/repo/app/f"]),
        ("[[ a > b ]]", []),
        ("a 2>&-", []),
        ("cat <> f", ["/repo/app/f"]),
    ],
)
def test_redirections_are_writes_where_the_line_would_be(line: str, expected: list[str]) -> None:
    assert writes(line) == expected


@pytest.mark.parametrize(
    ("line", "spread"),
    [
        ("f a $! b", (2,)),
        ("f ${!}", (1,)),
        ('f "$!" $? $$ $#', ()),
        ("f <( ) b", (1,)),
        ("f <(#c\n) >(\n)", (1, 2)),
        ("f <(g)", ()),
    ],
)
def test_what_bash_may_make_no_word_of_is_not_counted_on(line: str, spread: tuple[int, ...]) -> None:
    last = [effect for effect in look(line).effects if isinstance(effect, RunProgram)][-1]

    assert last.spread == spread
