"""Two independent makers of nasty shell lines: one from a grammar, one from random tokens."""
# ruff: noqa: E501, C901, PLR0912 - tables of odd text, and one branch a construct

import random
from collections.abc import Callable

PROGRAMS = ["c0", "c1", "c2", "rm", "git", "f0", "f1", "x", "m", "say", "a-b", "c.d"]
"""Stand for any program; those that begin with f fail, `say` prints its arguments."""
BUILTINS = ["echo", "printf", "true", "false", ":", "test", "[", "cd", "export", "set", "unset", "read"] * 4
BUILTINS += [
    "eval",
    "command",
    "builtin",
    "exec",
    "exit",
    "return",
    "local",
    "declare",
    "wait",
    "type",
    "shift",
]
VARIABLES = ["x", "y", "files", "HOME", "PWD", "f", "1", "@", "*", "#", "?", "PATH", "IFS", "FOO", "nix"]
FILES = ["out", "a.py", "sub/o", "../o", "/dev/null", "'q r'", '"d"', "o\\ p", "~/h", "1", "sub", "-"]
LITERALS = [
    "a",
    "b",
    "-n",
    "--x=y",
    "1",
    "2",
    "a=b",
    "x=1",
    "é",
    "-",
    "--",
    "in",
    "do",
    "then",
    "fi",
    "%s",
    "@",
    "^",
]
HIDDEN = ["a[$(rm H)]", "a[`rm H`]", "$(rm H)", "`rm H`"]


class Grammar:
    """Lines that follow bash's grammar closely, most of them valid."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.heredocs: list[str] = []
        self.budget = 30

    def line(self) -> str:
        """Return one line, or several."""
        self.budget = self.rng.randint(2, 30)
        self.heredocs = []
        text = self.some(0)
        while self.heredocs:
            text += "\n" + self.heredocs.pop(0)
        return text

    def pick(self, *choices: str | Callable[[], str]) -> str:
        """Return one of `choices`, called if it can be."""
        choice = self.rng.choice(choices)
        return choice if isinstance(choice, str) else choice()

    def some(self, depth: int) -> str:
        """Return a list of commands."""
        out = self.and_or(depth)
        while self.budget > 0 and self.rng.random() < 0.45:
            separator = self.rng.choice(
                [";", "; ", " ; ", "&", " & ", "\n", "\n\n", ";\n", " # it's $(rm c)\n"]
            )
            if "\n" in separator and self.heredocs:
                separator += "\n".join(self.heredocs) + "\n"
                self.heredocs = []
            out += separator + self.and_or(depth)
        return out

    def and_or(self, depth: int) -> str:
        out = self.pipeline(depth)
        while self.rng.random() < 0.25 and self.budget > 0:
            out += self.rng.choice(["&&", " && ", "||", " || ", " && \\\n"]) + self.pipeline(depth)
        return out

    def pipeline(self, depth: int) -> str:
        out = self.pick("", "", "", "", "", "", "! ", "time ", "time -p ") + self.command(depth)
        while self.rng.random() < 0.15 and self.budget > 0:
            out += self.rng.choice(["|", " | ", " |& "]) + self.command(depth)
        return out

    def command(self, depth: int) -> str:
        self.budget -= 1
        if depth > 3 or self.budget < 0 or self.rng.random() < 0.7:
            return self.simple(depth)
        inner = depth + 1
        kind = self.rng.choice([0, 0, 1, 1, 2, 2, 2, 3, 3, 4, 4, 4, 5, 5, 6, 6, 7, 8, 9, 10, 11, 12, 13, 13])
        if kind == 0:
            return f"({self.some(inner)})" + self.redirects(depth)
        if kind == 1:
            return f"{{ {self.some(inner)}; }}" + self.redirects(depth)
        if kind == 2:
            tail = self.pick(
                "", lambda: f"; else {self.some(inner)}", lambda: f"; elif {self.some(inner)}; then x"
            )
            return f"if {self.some(inner)}; then {self.some(inner)}{tail}; fi" + self.redirects(depth)
        if kind == 3:
            return f"while {self.pick('f0', 'false', 'f1 a')}; do {self.some(inner)}; done" + self.redirects(
                depth
            )
        if kind == 4:
            words = " ".join(self.word(inner) for _ in range(self.rng.randint(0, 3)))
            name = self.rng.choice(["f", "x", "PATH", "IFS", "i"])
            return f"for {name} in {words}; do {self.some(inner)}; done" + self.redirects(depth)
        if kind == 5:
            clauses = " ".join(
                f"{self.pick('', '(')}{self.word(inner)}{self.pick('', '|b', '|*')}) {self.some(inner)};;"
                for _ in range(self.rng.randint(1, 3))
            )
            return f"case {self.word(inner)} in {clauses} esac"
        if kind == 6:
            return self.condition(inner)
        if kind == 7:
            return self.rng.choice(["fn() ", "function fn ", "fn () "]) + f"{{ {self.some(inner)}; }}; fn"
        if kind == 8:
            return f"(( {self.arithmetic(inner)} ))"
        if kind == 9:
            return f"coproc {self.simple(inner)}"
        if kind == 10:
            return f"until true; do {self.some(inner)}; done"
        if kind == 11:
            return f"for ((i={self.arithmetic(inner)};i<1;i++)); do {self.some(inner)}; done"
        if kind == 12 and self.rng.random() < 0.5:
            return f"i={self.rng.choice(['0', '1', '2', '$x', '$(say 1)', 'a'])}; {self.counting()}"
        if kind == 12:
            return f"x='{self.rng.choice(HIDDEN)}'; {self.evaluation()}"
        return f"if [[ {self.word(inner)} =~ {self.regex()} ]]; then {self.some(inner)}; fi"

    def counting(self) -> str:
        """Arithmetic on a variable that mostly holds a number."""
        return self.rng.choice(
            [
                "echo $((i+1))", "i=$((i+1)); echo $i", "[ $i -lt 3 ] && c0 $i", "[[ $i -lt 3 ]] && c1", "(( i++ )); c0 $i",
                "for ((i=0;i<2;i++)); do c0 $i; done", "echo $((i=x))", "echo $(($i*2))", "i+=5; echo $((i))", "i+=x; echo $((i))",
                "read i <<< 'a[$(rm H)]'; echo $((i))", "while [ $i -lt 2 ]; do i=$((i+1)); c0; done", "echo $((PATH=1)); c0",
                "i='a[$(rm H)]'; echo $((i))", "for i in 1 2; do echo $((i)); done", "for i in 'a[$(rm H)]'; do echo $((i)); done",
                "printf -v i 'a[$(rm H)]'; echo $((i))", "export i='a[$(rm H)]'; echo $((i))", "echo ${x:i:1}", "i=(a); echo $((i))",
                "echo $((i++ + ++i)) $i", "test $i -eq 1 || c0", "i='a[$(rm H)]' c0; echo $((i))", "echo $((j=i)); echo $((j))",
                "f=$i; echo $((f))", "i=x; x='a[$(rm H)]'; echo $((i))", "mapfile i <<< 'a[$(rm H)]'; echo $((i))", "echo $((i[0]))",
                "unset i; echo $((i))", "declare i='a[$(rm H)]'; echo $((i))", "case $i in 0) echo $((i));; esac", "let i=i+1",
            ]
        )  # fmt: skip

    def evaluation(self) -> str:
        """Something that evaluates what x holds."""
        return self.rng.choice(
            [
                "echo $((x))", "[[ $x -eq 1 ]]", "[[ x -eq 1 ]]", "let y=x", "(( x ))", "echo ${y[x]}", "echo ${!x}",
                "declare -i z=x", 'test -v "$x"', '[ -v "$x" ]', 'printf -v "$x" a', "echo ${x@P}", "echo ${y:x}",
                'unset "$x"', 'read "$x" <<< 1', "echo $[x]", 'export "$x"=1', "declare -n z=x; echo $z",
                "eval $x", "[ $x = 1 ]", "[ 1 -eq $x ]", "y[x]=1", 'wait -p "$x"', 'mapfile "$x" <<< 1', "y=(1); y[$x]=2",
                "echo ${#y[x]}", "[[ -v $x ]]", "test $x", "for ((i=x;i<1;i++)); do :; done", "echo ${x:0:x}",
                'trap "$x" EXIT', "declare -a z='($(rm H))'", "z=(1); declare z='($(rm H))'", "y='($(rm H))'; declare -a z=$y", 'readonly -a z="$x"', "declare -a z=($x)", "local -a z=$x", "PS4='$(rm H)'; set -x; :", "[[ -v y[x] ]]", 'echo "$x"', "say $x", 'getopts a "$x"',
            ]
        )  # fmt: skip

    def condition(self, depth: int) -> str:
        operator = self.rng.choice(["==", "=", "!=", "<", ">", "-nt", "-eq", "-lt"])
        return f"[[ {self.pick('', '! ', '-f ')}{self.word(depth)} {operator} {self.word(depth)} ]]"

    def regex(self) -> str:
        return self.rng.choice(
            ["^a+$", "^(a|b)$", "a.b", "[0-9]+", "\\.py$", '"$x"', "$x", "a\\ b", "(a|b)", "^[a-z]*;"]
        )

    def arithmetic(self, depth: int) -> str:
        return self.pick(
            "1+2",
            "x",
            "1",
            "x+1",
            "(1)*2",
            "1",
            "2*3",
            "7%4",
            lambda: f"$({self.simple(depth)})",
            "1<2",
            "a[0]",
            "16#f",
            "0",
        )

    def simple(self, depth: int) -> str:
        rng = self.rng
        parts: list[str] = []
        while rng.random() < 0.18:
            name = rng.choice(["FOO", "x", "y", "LANG", "PATH", "CI", "files", "PAGER"])
            parts.append(
                f"{name}{rng.choice(['=', '=', '+='])}{self.pick('', '1', '(a b)', lambda: self.word(depth))}"
            )
        if rng.random() < 0.12:
            parts.append(self.redirect(depth))
        if rng.random() < 0.93 or not parts:
            parts.append(self.program(depth))
            parts += [self.word(depth) for _ in range(rng.choice([0, 1, 1, 2, 2, 3]))]
        while rng.random() < 0.2:
            parts.insert(rng.randrange(len(parts) + 1), self.redirect(depth))
        return rng.choice([" ", " ", " ", " ", "  ", "\t", " \\\n"]).join(parts)

    def program(self, depth: int) -> str:
        name = self.rng.choice(PROGRAMS) if self.rng.random() < 0.75 else self.rng.choice(BUILTINS)
        if self.rng.random() < 0.12:
            return self.pick(
                lambda: f"'{name}'", lambda: f'"{name}"', lambda: f"\\{name}", lambda: f"{name[0]}\\\n{name[1:]}",
                lambda: f"{name[0]}''{name[1:]}", lambda: f"$'{name}'", lambda: f'{name}""', lambda: self.word(depth),
            )  # fmt: skip
        if name == "cd":
            return "cd " + self.rng.choice(
                ["sub", "sub", "..", "nix", "", "-", "$x", "/", "~", "sub/..", '"$PWD"']
            )
        return name

    def word(self, depth: int) -> str:
        self.budget -= 1
        if self.rng.random() < 0.5 or depth > 3 or self.budget < 0:
            return self.rng.choice(LITERALS + FILES)
        if self.rng.random() < 0.06:
            return f"{self.rng.choice('<>')}({self.simple(depth + 1)})"
        return "".join(self.piece(depth) for _ in range(self.rng.choice([1, 1, 1, 1, 1, 1, 2, 3])))

    def piece(self, depth: int) -> str:
        rng, inner = self.rng, depth + 1
        return self.pick(
            lambda: rng.choice(LITERALS), lambda: f"'{rng.choice(LITERALS + HIDDEN)}'",
            lambda: f'"{self.quoted(inner)}"', lambda: f'"{self.quoted(inner)}"', lambda: f"${rng.choice(VARIABLES)}",
            lambda: f"$({self.some(inner)})", lambda: f"`{self.plain(self.some(inner))}`",
            lambda: self.parameter(inner), lambda: rng.choice(["*", "?", "[ab]*", "*.py", "sub/*", "[", "]", "[!a]"]),
            lambda: rng.choice(["{a,b}", "{1..3}", "{}", "{a}", "{a,", "{,x}", "a{b,c}d", "{a..c}", "}", "{x,{y,z}}"]),
            lambda: rng.choice(["$'\\x41'", "$'a\\'b'", "$'\\n'", '$"t"', "$", "\\\\", "\\$", "\\`", "\\ ", "\\;", "\\&"]),
            lambda: f"$(({self.rng.choice(['1', '1+2', self.arithmetic(inner)])}))",
            lambda: rng.choice(["~", "~/a", "~root", "#", "a#b", "!", "a\\\nb", "=", "+", "~+", ":~", "x=~/b"]),
        )  # fmt: skip

    def plain(self, text: str) -> str:
        """What may stand in backticks, mostly without backslashes."""
        text = text.replace("`", "")
        return text if self.rng.random() < 0.2 else text.replace("\\", "")

    def quoted(self, depth: int) -> str:
        return "".join(
            self.pick(
                "a b", "it's", "; rm q", "\\$(rm q)", "\\`", '\\"', "\\\\", "#", "*", "\n", "\\\n", "$", "~", "!", "&& rm q",
                lambda: f"${self.rng.choice(VARIABLES)}", lambda: f"$({self.some(depth)})", lambda: self.parameter(depth),
                lambda: f"`{self.simple(depth).replace('`', '').replace(chr(34), '')}`",
                lambda: f"$(({self.arithmetic(depth)}))",
            )
            for _ in range(self.rng.randint(0, 3))
        )  # fmt: skip

    def parameter(self, depth: int) -> str:
        name = self.rng.choice(VARIABLES)
        return "${" + self.pick(
            name, name, f"#{name}", f"{name}[@]", f"{name}[0]", f"!{name}", f"{name}:-a b", f"{name}:-$(rm p)",
            f"{name}#*/", f"{name}%%.*", f"{name}/a/b", f"{name}//,/ ", f"{name}^^", f"{name}@Q", f"{name}:1:2",
            f"{name}:=v", f"{name}:+`rm p`", f"{name}/a/$(rm p)", f"{name}:-'a}}'", f'{name}:-"$(rm p)"', f"{name}:-${{y}}",
            f"{name}[x]", f"{name}: -1", lambda: f"{name}:-{self.word(depth)}", f"{name}:-<(rm p)",
        ) + "}"  # fmt: skip

    def redirects(self, depth: int) -> str:
        return self.pick("", "", "", lambda: " " + self.redirect(depth), lambda: self.redirect(depth))

    def redirect(self, depth: int) -> str:
        rng = self.rng
        operator = rng.choice([">", ">", ">>", "2>", "<", ">|", "&>", "&>>", "<>", "3>", "1<>"])
        kind = rng.randrange(12)
        if kind == 0:
            return rng.choice(["2>&1", ">&2", "2>&-", "<&-", ">&3", "3>&1-", "2>& 1", "1>&2"])
        if kind == 1:
            return self.heredoc(depth)
        if kind == 2:
            return f"<<<{rng.choice(['', ' '])}{self.word(depth)}"
        if kind == 3 and rng.random() < 0.3:
            return f"{{{rng.choice(['fd', 'PATH'])}}}>{rng.choice(FILES)}"
        if kind == 4 and rng.random() < 0.3:
            return f">&{rng.choice(FILES)}"
        if kind == 5:
            return f"{operator} {self.pick('<', '>')}({self.simple(depth + 1)})"
        target = self.word(depth) if rng.random() < 0.3 else rng.choice(FILES)
        return f"{operator}{rng.choice(['', ' '])}{target}"

    def heredoc(self, depth: int) -> str:
        delimiter = self.rng.choice(["E", "EOF", "'E'", '"EOF"', "\\E", "E-F", "E$x", "'E F'"])
        name = delimiter.strip("'\"").replace("\\", "")
        lines = [
            self.pick(
                "a",
                "it's `rm h`",
                "$(rm h)",
                "${x:-$(rm h)}",
                "\\$(rm h)",
                "; rm h",
                "\tE",
                "E ",
                "a\\",
                '"',
                "$x",
            )
            for _ in range(self.rng.randint(0, 3))
        ]
        del depth
        operator = self.rng.choice(["<<", "<<", "<<-"])
        self.heredocs.append("\n".join([*lines, name if self.rng.random() < 0.97 else "X"]))
        return f"{operator}{self.rng.choice(['', ' '])}{delimiter}"


_MUTANTS = [
    *" \t\n;&|<>(){}[]'\"\\$`*?~#!=\r-:,%",
    "\\\n", "&&", "||", "$(", "${", "<<E\n", "))", "]]", "[[", ";;", ">&", "2>", "do ", "done", "fi", " }", "{ ", "\x0b",
    " in ", "$'", '$"', "<(", ">(", "((", "!", "time ", "\\ ", "'\\''", "x=", "E\n",
]  # fmt: skip


def mutated(text: str, rng: random.Random) -> str:
    """Return `text` with a few characters put in, cut, swapped or doubled."""
    for _ in range(rng.choice([1, 1, 2, 3])):
        at = rng.randrange(len(text) + 1)
        end = min(len(text), at + rng.choice([0, 0, 1, 1, 2, 5]))
        piece = rng.choice([*_MUTANTS, text[at : at + 4], ""])
        text = text[:at] + piece + text[end:]
    return text


def from_grammar(rng: random.Random) -> str:
    """Return a line of the grammar, half of the time mutated."""
    line = Grammar(rng).line()
    return mutated(line, rng) if line and rng.random() < 0.35 else line


_TOKENS = [
    *PROGRAMS, *BUILTINS, *LITERALS, *FILES, *HIDDEN, *_MUTANTS, "if", "then", "else", "elif", "fi", "while", "until",
    "for", "case", "esac", "select", "function", "coproc", "f()", "$x", '"$x"', "${x}", "$((1+1))", "$((x))", "<<E", "<<'E'",
    "E", "<<<", "&>", ">|", "<>", "|&", "2>&1", ">/dev/null", "#", "$1", '"$@"', "x=1", "PATH=.", "a=(b", "c)", "x[0]=1",
    "y=(1 2)", "{a,b}", "{1..2}", "*.py", "~", "\\rm", "'rm'", "r\\\nm", "$'rm'", "(rm", "rm)", "{ rm; }", "-eq", "==", "=~",
    '"', "'", "`", "\\", "$(rm", "`rm`", '"$(rm)"', "${x:-", "}", "((", "))", "[[", "]]", "a;b", "a&b", "a|b", "a\nb",
]  # fmt: skip


def from_tokens(rng: random.Random) -> str:
    """Return random tokens in a row: mostly wrong, now and then surprising."""
    blanks = ["", " ", " ", " ", " ", "\n", "\t", ";", " \\\n"]
    return "".join(rng.choice(_TOKENS) + rng.choice(blanks) for _ in range(rng.randint(1, 12)))


_ALL_BUILTINS = (
    ". : [ alias bg bind break builtin caller cd command compgen complete compopt continue declare dirs disown echo"
    " enable eval exec exit export false fc fg getopts hash help history jobs kill let local logout mapfile popd"
    " printf pushd pwd read readarray readonly return set shift shopt source suspend test times trap true type"
    " typeset ulimit umask unalias unset wait"
)
_NASTY = [
    "a[$(rm H)]", "a[`rm H`]", "$(rm H)", "($(rm H))", "([$(rm H)]=1)", "v=($(rm H))", "a[$(rm H)]=1", "-v a[$(rm H)]", "-v",
    "x=$(rm H)", "v", "1", "-C rm", "-W $(rm H)", "rm H", "a[0]", "%n", "-F rm", "v[$(rm H)]+=1", "(", "!", "-a", "-eq",
]  # fmt: skip


def from_builtins(rng: random.Random) -> str:
    """Return calls of the shell's own commands with options and words that some of them evaluate."""
    lines = []
    for name in rng.sample("xyz", rng.randint(0, 3)):
        value = rng.choice(_NASTY)
        lines.append(f"{name}={rng.choice([f'{chr(39)}{value}{chr(39)}', '(1 2)', '1', '$x'])}")
    for _ in range(rng.randint(1, 3)):
        words = [rng.choice(_ALL_BUILTINS.split())]
        letters = "abcdefghijklmnopqrstuvwxyACEFPRTW"
        words += [
            rng.choice("-+") + "".join(rng.sample(letters, rng.randint(1, 2)))
            for _ in range(rng.randint(0, 2))
        ]
        for _ in range(rng.randint(0, 4)):
            value = rng.choice(_NASTY)
            words.append(
                rng.choice([f"'{value}'", f"'{value}'", "$x", '"$y"', "z", "x", "v", "1", "a", f"z='{value}'", "z=$x", 'z="$y"',
                            "z=($x)", "=", "-eq", "]", "<<< 1", "< a.py", f"<<< '{value}'", "v", '"$x"', "x=1", "c0"])
            )  # fmt: skip
        if words[0] == "[":
            words.append("]")
        lines.append(" ".join(words))
        if rng.random() < 0.3:
            lines.append(
                rng.choice(
                    [
                        "echo $((z))",
                        "echo $z",
                        "[[ $v -eq 1 ]]",
                        "c0 $v",
                        "ls",
                        "echo ${z[0]}",
                        "(( v ))",
                        "c1",
                    ]
                )
            )
    return "; ".join(lines)
