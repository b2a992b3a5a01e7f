"""Programs whose files stand in a script, a pair of words, or an archive."""

import re
from collections.abc import Callable

from agentctl.policy.safe_scripts import awk_program_looks
from agentctl.policy.shell.calls import Call, Sink, text_of
from agentctl.policy.shell.options import Grammar, Parsed, names, take_apart
from agentctl.policy.shell.sed import read_sed
from agentctl.policy.shell.words import AnyWord, Word

_SED = Grammar(
    values="efl",
    attached="iI",
    long_values=frozenset({"expression", "file", "line-length"}),
    long_flags=names("in-place quiet silent regexp-extended separate null-data sandbox posix"),
)


def _sed(sink: Sink, call: Call) -> None:
    parsed = take_apart(call.words[1:], _SED)
    if parsed.unsure or parsed.by_wildcard:
        sink.flag("an expansion could be an option of `sed` that writes a file, or a script that does")
    scripts = [value for name, value in parsed.options if name in {"e", "expression"} and value is not None]
    operands = parsed.operands
    for name, value in parsed.options:
        if name in {"f", "file"} and value is not None:
            sink.read(value)
    if not parsed.has("e", "expression", "f", "file"):
        scripts, operands = operands[:1], operands[1:]
    for script in scripts:
        _sed_script(sink, call, script)
    sink.read_all(operands)
    if parsed.has("i", "I", "in-place"):
        sink.write_all(operands)
        if any(value is not None for name, value in parsed.options if name in {"i", "I", "in-place"}):
            for word in operands:
                sink.write_beside(word)


def _sed_script(sink: Sink, call: Call, script: AnyWord) -> None:
    if isinstance(script, Word):
        # Text from a variable may hold `w FILE` or `e`.
        sink.flag("the script that `sed` runs is known only to the shell")
        return
    found = read_sed(script)
    for name in found.writes:
        sink.write(name)
    for name in found.reads:
        sink.read(name)
    if found.runs:
        sink.flag("a `sed` script runs a program")
        for text in found.commands:
            sink.script(text, call)


def _dd(sink: Sink, call: Call) -> None:
    for word in call.words[1:]:
        lead = word if isinstance(word, str) else word.lead
        key, _, value = lead.partition("=")
        if key not in {"if", "of"}:
            if isinstance(word, Word):
                sink.flag("an expansion could name a file that `dd` writes")
            continue
        target: AnyWord = value
        if isinstance(word, Word):
            target = Word(word.text.partition("=")[2])
            target.lead = value
        if key == "of":
            sink.write(target)
        else:
            sink.read(target)


_TAR = Grammar(
    values="fCTXIgKLNVHbF",
    long_values=names(
        "file directory files-from exclude-from use-compress-program to-command checkpoint-action"
        " info-script new-volume-script exclude transform strip-components owner group mode mtime"
        " one-top-level rsh-command listed-incremental index-file newer format blocking-factor label"
        " warning sort"
    ),
    long_flags=names(
        "create extract get list append update delete compare diff catenate concatenate verbose gzip"
        " bzip2 xz zstd checkpoint auto-compress absolute-names preserve-permissions same-owner"
    ),
)
_TAR_RUNS = names("I use-compress-program to-command F info-script new-volume-script rsh-command")


def _tar(sink: Sink, call: Call) -> None:
    words = list(call.words[1:])
    if words and isinstance(words[0], str) and words[0] and not words[0].startswith("-"):
        words = _old_style(words)
    parsed = take_apart(words, _TAR)
    if parsed.unsure or parsed.by_wildcard:
        sink.flag("an expansion could be an option of `tar` that runs a program")
    for name, value in parsed.options:
        text = text_of(value) if value is not None else ""
        if name in _TAR_RUNS:
            sink.script(text, call, needs_rule=True)
        elif name == "checkpoint-action" and text.startswith("exec="):
            sink.script(text[5:], call, needs_rule=True)
        elif name in {"T", "files-from", "X", "exclude-from"} and value is not None:
            sink.read(value)
    _archive(sink, parsed)


def _archive(sink: Sink, parsed: Parsed) -> None:
    archive = parsed.value("f", "file")
    reading = parsed.has("x", "extract", "get", "t", "list", "d", "compare", "diff")
    if archive is not None:
        (sink.read if reading else sink.write)(archive)
    if parsed.has("x", "extract", "get"):
        place = parsed.value("C", "directory")
        sink.write(place or ".", tree=place is not None)
    elif not reading:
        sink.read_all(parsed.operands)
        if parsed.has("remove-files"):
            sink.write_all(parsed.operands)


def _old_style(words: list[AnyWord]) -> list[AnyWord]:
    """`tar xf a.tar -v`: the letters of the first word take their values in turn."""
    letters, rest = text_of(words[0]), words[1:]
    out: list[AnyWord] = []
    for letter in letters:
        if letter in _TAR.values and rest:
            out += [f"-{letter}", rest[0]]
            rest = rest[1:]
        else:
            out.append(f"-{letter}")
    return out + rest


def _unzip(sink: Sink, call: Call) -> None:
    parsed = take_apart(call.words[1:], Grammar(values="dxP"))
    sink.read_all(parsed.operands[:1])
    if not parsed.has("l", "p", "t", "v", "Z", "z"):
        place = parsed.value("d")
        sink.write(place or ".", tree=place is not None)


def _ln(sink: Sink, call: Call) -> None:
    parsed = take_apart(
        call.words[1:], Grammar(values="tS", long_values=frozenset({"target-directory", "suffix"}))
    )
    into = parsed.value("t", "target-directory")
    if into is not None:
        sink.write(into, into=parsed.operands)
    elif len(parsed.operands) > 1:
        sink.write(parsed.operands[-1], into=parsed.operands[:-1])
    elif parsed.operands:
        only = parsed.operands[0]
        sink.write(only if isinstance(only, Word) else only.rstrip("/").rpartition("/")[2])
    if parsed.has("b", "backup", "S", "suffix") and parsed.operands:
        sink.write_beside(parsed.operands[-1])


def _patch(sink: Sink, call: Call) -> None:
    parsed = take_apart(
        call.words[1:],
        Grammar(
            values="iopdrBDFgVYz",
            long_values=names("input output directory strip reject-file"),
        ),
    )
    for value in (parsed.value("i", "input"), *parsed.operands[1:2]):
        if value is not None:
            sink.read(value)
    if not parsed.has("dry-run"):
        target = parsed.value("o", "output") or (parsed.operands[0] if parsed.operands else ".")
        sink.write(target)
        sink.write_beside(target)


_DIRECT = re.compile(r">>?\s*\"([^\"]+)\"")


_AWK_RUNS = re.compile(r"system\s*\(\s*\"([^\"]+)\"|\|&?\s*\"([^\"]+)\"|\"([^\"]+)\"\s*\|&?\s*getline")


def awk_writes(sink: Sink, call: Call) -> None:
    """What an awk program writes and runs, where it is written out, besides what its operands read."""
    parsed = take_apart(call.words[1:], Grammar(values="fvFieE"))
    for text in parsed.operands[:1]:
        if isinstance(text, str) and not awk_program_looks(text):
            for name in _DIRECT.findall(text):
                sink.write(name)
            for match in _AWK_RUNS.finditer(text):
                sink.script(next(part for part in match.groups() if part), call, needs_rule=True)


_EX_RUNS = re.compile(r"\+?:?(?:sil(?:ent)?!? *)?(?::?r(?:ead)? *)?! *(\S.*)", re.DOTALL)


def editor_runs(sink: Sink, call: Call) -> None:
    """`vim -c '!x'`, `vim +!x`: what an editor is told to run when it starts."""
    for at, word in enumerate(call.words[1:], start=1):
        match = _EX_RUNS.fullmatch(word) if isinstance(word, str) else None
        if match and (match[0].startswith("+") or call.words[at - 1] in {"-c", "--cmd", "-S"}):
            sink.script(match[1], call, needs_rule=True)


def pager_runs(sink: Sink, call: Call) -> None:
    """`less '+!x'`: what a pager is told to run when it starts."""
    for word in call.words[1:]:
        match = re.fullmatch(r"\+[^!|]*[!|](.+)", word, re.DOTALL) if isinstance(word, str) else None
        if match:
            sink.script(match[1], call, needs_rule=True)


_SSH_RUNS = re.compile(r"(?:proxycommand|localcommand|knownhostscommand)[ =]+(.+)", re.IGNORECASE | re.DOTALL)


def ssh_settings(sink: Sink, call: Call) -> None:
    """`ssh -o ProxyCommand=x`: settings that name a program."""
    for at, word in enumerate(call.words[1:], start=1):
        text = text_of(word)
        if text == "-o" and at + 1 < len(call.words):
            text += text_of(call.words[at + 1])
        match = _SSH_RUNS.fullmatch(text[2:].strip()) if text.startswith("-o") else None
        if match:
            sink.script(match[1], call, needs_rule=True)


_JQ_LOADS = re.compile(r"(?:^|[\s;|(])(?:import|include)\s+\"")
_JQ_RUNS = re.compile(r"(?<![.\w\"])system\s*\(")


def jq_loads(sink: Sink, call: Call) -> None:
    """A jq filter that loads files by name, which are not among its operands."""
    for word in call.words[1:]:
        text = text_of(word)
        sink.unseen = sink.unseen or _JQ_LOADS.search(text) is not None
        if _JQ_RUNS.search(text):
            sink.flag("a filter of `jq` runs a program")


def zip_tests(sink: Sink, call: Call) -> None:
    """`zip -T -TT x`: the program that tests what was packed."""
    for at, word in enumerate(call.words[1:-1], start=1):
        if word in {"-TT", "--unzip-command"}:
            sink.script(text_of(call.words[at + 1]), call, needs_rule=True)


def _in_place(letter: str) -> Callable[[Sink, Call], None]:
    """An interpreter with an option that edits its operands (`perl -i`)."""

    def program(sink: Sink, call: Call) -> None:
        parsed = take_apart(call.words[1:], Grammar(values="eEIMm", attached="i0lFCD"))
        if parsed.has(letter):
            scripted = parsed.has("e", "E")
            sink.write_all(parsed.operands if scripted else parsed.operands[1:])

    return program


_SPLIT_LONG = names(
    "filter bytes lines number line-bytes additional-suffix suffix-length separator prefix digits"
)


def _into_folder(sink: Sink, call: Call) -> None:
    """`split` and its like write files that begin with a prefix, and read one."""
    operands = take_apart(call.words[1:], Grammar(values="abClntdxf", long_values=_SPLIT_LONG))
    if any(isinstance(word, Word) and word.spread for word in operands.operands):
        sink.flag(f"the names of the files that `{call.program}` writes are known only to the shell")
    sink.read_all(operands.operands[:1])
    prefix: AnyWord = "xx"
    if call.program == "split":
        prefix = operands.operands[1] if len(operands.operands) > 1 else "x"
    sink.write_beside(operands.value("f", "prefix") or prefix)
    command = operands.value("filter")
    if command is not None:
        sink.script(text_of(command), call, needs_rule=True)


_OPENSSL_READS = names("in inkey key CAfile cert config")


def _openssl(sink: Sink, call: Call) -> None:
    for at, word in enumerate(call.words[:-1]):
        following = call.words[at + 1]
        if word in {"-out", "-keyout", "-writerand"}:
            sink.write(following)
        elif isinstance(word, str) and word[:1] == "-" and word[1:] in _OPENSSL_READS:
            sink.read(following)


SPECIAL: dict[str, Callable[[Sink, Call], None]] = {
    "sed": _sed,
    "gsed": _sed,
    "dd": _dd,
    "tar": _tar,
    "gtar": _tar,
    "bsdtar": _tar,
    "unzip": _unzip,
    "ln": _ln,
    "patch": _patch,
    "perl": _in_place("i"),
    "ruby": _in_place("i"),
    "csplit": _into_folder,
    "split": _into_folder,
    "openssl": _openssl,
}
