"""Small languages inside a command's words: is this sed script, awk program, test or format only looking?

Each checker knows a part of its language and says no to everything else.
"""

import re

from agentctl.policy.safe_options import Check, Parsed, Words

_SED_PLAIN = frozenset("=dDgGhHnNpPxzF")
_SED_NUMBER = frozenset("qQlL")
_SED_LABEL = frozenset("btT:")
_SED_TEXT = frozenset("aic")
_SED_FLAGS = re.compile(r"[gpiImM0-9]*")
_SED_ADDRESS_END = re.compile(r"[0-9]+(?:~[0-9]+)?|\$|[+~][0-9]+")
_BLANKS = " \t"

_AWK_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n]+|\\\n)|(?P<comment>\#[^\n]*)|(?P<string>"(?:\\.|[^"\\\n])*")
    |(?P<number>[0-9.]+(?:[eE][+-]?[0-9]+)?)|(?P<name>[A-Za-z_]\w*)
    |(?P<operator>\|\||&&|>=|<=|==|!=|!~|\+\+|--|[-+*/%^]=|\*\*=?|[-+*/%^=!~<>?:,;(){}\[\]$|&@])""",
    re.VERBOSE,
)
_AWK_CALLS = frozenset({"system", "getline", "close", "fflush"})
_AWK_KEYWORDS = frozenset("print printf return else do exit in case BEGIN END".split())  # noqa: SIM905
"""Names behind which a slash begins a regular expression and does not divide."""
_AWK_CONDITIONS = frozenset({"if", "while"})
_AWK_UNSURE = frozenset({")", "++", "--", "length"})
"""Words behind which a slash could be either."""

_TEST_UNARY = frozenset(
    "-a -b -c -d -e -f -g -h -k -p -r -s -t -u -w -x -G -L -N -O -S -n -z -o".split()  # noqa: SIM905
)
_TEST_BINARY = frozenset(
    "= == != < > -eq -ne -lt -le -gt -ge -nt -ot -ef".split()  # noqa: SIM905
)
_GIT_FORMATS = frozenset(
    "oneline short medium full fuller reference email mboxrd raw".split()  # noqa: SIM905
)
_GIT_SIGNATURE = re.compile(r"%[-+ ]?G")
_LONGEST = 4096


def sed_looks(words: Words, parsed: Parsed) -> bool:
    """Return whether every sed script of the command prints and edits its stream, and does nothing else."""
    del words
    scripts = [value for name, value in parsed.options if name in {"-e", "--expression"}]
    if not scripts:
        if not parsed.operands:
            return False
        scripts = [parsed.operands[0]]
    known = [script for script in scripts if script is not None]
    return len(known) == len(scripts) and sed_script_looks("\n".join(known))


def sed_script_looks(script: str) -> bool:
    """Return whether a sed script reads and writes nothing but its stream, and runs nothing."""
    if len(script) > _LONGEST:
        return False
    at, end = 0, len(script)
    while at < end:
        if script[at] in _BLANKS + ";\n{}":
            at += 1
            continue
        at = _sed_addresses(script, at)
        if at < 0 or at >= end:
            return False
        at = _sed_command(script, at)
        if at < 0:
            return False
    return True


def _sed_addresses(script: str, at: int) -> int:
    """Return where the command behind up to two addresses begins, or -1."""
    for _ in range(2):
        found = _sed_address(script, at)
        if found < 0:
            return -1
        at = _skip(script, found)
        if script[at : at + 1] != ",":
            break
        at = _skip(script, at + 1)
    while script[at : at + 1] and script[at] in _BLANKS + "!":
        at += 1
    return at


def _sed_address(script: str, at: int) -> int:
    if script[at : at + 1] == "/":
        at = _delimited(script, at + 1, "/")
    elif script[at : at + 1] == "\\":
        at = _delimited(script, at + 2, script[at + 1 : at + 2])
    else:
        match = _SED_ADDRESS_END.match(script, at)
        return match.end() if match else at
    while at >= 0 and script[at : at + 1] in {"I", "M"}:
        at += 1
    return at


def _sed_command(script: str, at: int) -> int:
    command, at = script[at], at + 1
    if command == "{":
        return at
    if command == "#":
        return _line_end(script, at)
    if command in _SED_PLAIN:
        return _sed_end(script, at)
    if command in _SED_NUMBER:
        at = _skip(script, at)
        while script[at : at + 1].isdecimal():
            at += 1
        return _sed_end(script, at)
    if command in _SED_LABEL:
        label = re.compile(r"[ \t]*[\w.-]*").match(script, at)
        return _sed_end(script, label.end() if label else at)
    if command in _SED_TEXT:
        end = _line_end(script, at)
        while script[end - 1 : end] == "\\" and end < len(script):
            if script[end - 2 : end] == "\\\\":
                return -1
            end = _line_end(script, end + 1)
        return end
    if command in {"s", "y"}:
        return _sed_substitution(script, at, command)
    return -1


def _sed_substitution(script: str, at: int, command: str) -> int:
    delimiter = script[at : at + 1]
    if not delimiter or delimiter in "\n\\" or delimiter.isalnum():
        return -1
    middle = _delimited(script, at + 1, delimiter)
    if middle < 0:
        return -1
    end = _delimited(script, middle, delimiter)
    if end < 0:
        return -1
    if command == "s":
        flags = _SED_FLAGS.match(script, end)
        end = flags.end() if flags else end
    return _sed_end(script, end)


def _delimited(script: str, at: int, delimiter: str) -> int:
    """Return the place behind the next `delimiter` that no backslash stands before, or -1.

    Seds differ about a delimiter inside brackets, so a text in which a bracket is open there is refused.
    """
    start = at
    while at < len(script):
        if script[at] == "\\":
            at += 2
        elif script[at] == "\n":
            return -1
        elif script[at] == delimiter:
            return at + 1 if _brackets_closed(script[start:at]) else -1
        else:
            at += 1
    return -1


def _brackets_closed(regex: str) -> bool:
    """Return whether no bracket expression can still be open at the end, by any reading."""
    if "[" not in regex:
        return True
    bare = re.sub(r"\\.", "", regex)
    if any(odd in bare for odd in ("[]", "[^]", "[.", "[=")):
        return False
    return bare.count("[") == bare.count("]") and bare.rfind("[") < bare.rfind("]")


def _skip(script: str, at: int) -> int:
    while script[at : at + 1] and script[at] in _BLANKS:
        at += 1
    return at


def _line_end(script: str, at: int) -> int:
    found = script.find("\n", at)
    return len(script) if found < 0 else found


def _sed_end(script: str, at: int) -> int:
    """Return where the next command may begin, or -1 where more stands behind this one."""
    at = _skip(script, at)
    if at >= len(script) or script[at] in ";\n}":
        return at
    return _line_end(script, at) if script[at] == "#" else -1


def awk_looks(words: Words, parsed: Parsed) -> bool:
    """Return whether the awk program of the command prints to its output and does nothing else."""
    del words
    program = parsed.operands[0] if parsed.operands else None
    return program is not None and awk_program_looks(program)


def awk_program_looks(program: str) -> bool:
    """Return whether an awk program starts nothing, writes no file and reads its operands only."""
    if len(program) > _LONGEST:
        return False
    at, depth, before = 0, 0, ""
    compares: list[bool] = []
    while at < len(program):
        if program[at] == "/" and before != "value":
            at = -1 if before in _AWK_UNSURE else _awk_regex_end(program, at)
            if at < 0:
                return False
            before = "value"
            continue
        token = _AWK_TOKEN.match(program, at)
        if token is None:
            return False
        kind, text, at = token.lastgroup or "", token[0], token.end()
        if kind in {"space", "comment"}:
            # A newline ends a statement, and what follows a statement begins one.
            before = "\n" if "\n" in text.replace("\\\n", "") else before
            continue
        if text == "(":
            compares.append(before in _AWK_CONDITIONS or (bool(compares) and compares[-1]))
        elif text == ")" and compares:
            compares.pop()
        # Behind `print`, `>` opens a file; it surely compares in a pattern and in a condition's parentheses.
        writes = text == ">" and depth > 0 and not (compares and compares[-1])
        if text in {"|", "@", "&"} or text in _AWK_CALLS or writes:
            return False
        depth += (text == "{") - (text == "}")
        named = kind == "name" and not (
            text in _AWK_KEYWORDS or text in _AWK_UNSURE or text in _AWK_CONDITIONS
        )
        before = "value" if named or kind in {"number", "string"} or text == "]" else text
    return depth == 0


def _awk_regex_end(program: str, at: int) -> int:
    """Return the place behind a `/regex/`, or -1; a slash inside brackets is refused, as awks differ."""
    start = at = at + 1
    while at < len(program) and program[at] not in "/\n":
        at += 2 if program[at] == "\\" else 1
    if at >= len(program) or program[at] == "\n":
        return -1
    return at + 1 if _brackets_closed(program[start:at]) else -1


def test_looks(words: Words, parsed: Parsed) -> bool:
    """Return whether `test` or `[` compares and looks at files; `-v` and `-R` would evaluate a subscript."""
    del parsed
    if words.spread:
        return False
    given: list[str | None] = [word if words.known(at) else None for at, word in enumerate(words.words)]
    if given and given[-1] == "]":
        given.pop()
    parts: list[list[str | None]] = [[]]
    for word in given:
        if word in {"-a", "-o"} and len(parts[-1]) > 1:
            parts.append([])
        else:
            parts[-1].append(word)
    return all(_test_part(part) for part in parts)


def _test_part(part: list[str | None]) -> bool:
    while len(part) > 1 and part[0] == "!":
        part = part[1:]
    match part:
        case [] | [_]:
            return True
        case [operator, _]:
            return operator in _TEST_UNARY
        case [_, operator, _]:
            return operator in _TEST_BINARY
        case _:
            return False


def printf_looks(words: Words, parsed: Parsed) -> bool:
    """Return whether `printf` prints: `-v` and the conversion `%n` set a variable."""
    del parsed
    first = 1 if words.words[:1] == ("--",) else 0
    if len(words.words) <= first or first in words.unknown:
        return False
    text = words.words[first]
    if first == 0 and text.startswith("-") and text != "-":
        return False
    return re.search(r"%[^A-Za-z%]*[hlLjzt]*n", text) is None


def git_format_looks(words: Words, parsed: Parsed) -> bool:
    """Return whether a git format is written out or built in, and asks for no signature: that runs gpg."""
    del words
    return all(
        value is None
        or (
            ("%" in value or value in _GIT_FORMATS or value.startswith(("format:", "tformat:")))
            and _GIT_SIGNATURE.search(value) is None
        )
        for name, value in parsed.options
        if name in {"--format", "--pretty"}
    )


CHECKS: dict[str, Check] = {
    "sed": sed_looks,
    "awk": awk_looks,
    "test": test_looks,
    "printf": printf_looks,
    "git-format": git_format_looks,
}
"""By the name that the list's data uses."""
