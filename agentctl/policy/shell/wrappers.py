"""Programs that run another program, and how to find it behind their options.

An allow rule for a transparent wrapper never covers what it runs: the inner command needs a rule of its own,
or one that names both (`timeout 30 pytest *`). Used with inert options only, the wrapper itself needs none.
"""

import re
from collections.abc import Callable

from agentctl.policy.shell.calls import Call, Sink, text_of
from agentctl.policy.shell.names import inert_before_command
from agentctl.policy.shell.options import Grammar, Parsed, names, take_apart
from agentctl.policy.shell.words import AnyWord, Word

Wrapper = Callable[[Sink, Call], None]

SHELLS = names("sh bash dash zsh ksh mksh ash rbash fish")
_GIVES_TEXT = re.compile(r"-[a-z]*c")


def pass_on(sink: Sink, call: Call, inner: list[AnyWord], *, inert: bool) -> None:
    """Add the wrapper and the command `inner` that it runs, which needs a rule of its own."""
    if not inner:
        sink.emit(call)
        return
    sink.emit(call, needs_rule=not inert)
    sink.run(call.inner(inner, needs_rule=True))


def pass_on_anything(sink: Sink, call: Call, inner: list[AnyWord]) -> None:
    """Add a wrapper whose own rule is enough; deny and ask rules still reach what it runs."""
    sink.emit(call)
    if inner and isinstance(inner[0], str):
        sink.run(call.inner(inner, needs_rule=False))


def pass_on_guess(sink: Sink, call: Call, words: list[AnyWord]) -> None:
    """The inner command cannot be found for certain: deny and ask rules try each place where it may begin."""
    sink.emit(call)
    for at, word in enumerate(words[:40]):
        if isinstance(word, str) and word and not word.startswith("-"):
            inner = call.inner(words[at:], needs_rule=False)
            sink.emit(inner)
            if inner.program in SHELLS:
                _given_to_shell(sink, inner)


def _given_to_shell(sink: Sink, call: Call) -> None:
    """What a shell that may be run here gets behind `-c`."""
    for at, word in enumerate(call.words[1:-1], start=1):
        text = call.words[at + 1]
        if isinstance(word, str) and isinstance(text, str) and _GIVES_TEXT.fullmatch(word):
            sink.script(text, call, only_runs=True)
            return


def _cannot_tell(sink: Sink, call: Call) -> None:
    sink.flag(f"an option of `{call.program}` is not known, nor where the program that it runs begins")
    pass_on_guess(sink, call, list(call.words[1:]))


def _transparent(grammar: Grammar, *, inert: frozenset[str] | None, operands: int = 0) -> Wrapper:
    """A wrapper whose first operand, behind `operands` others, is the program.

    With options of `inert` alone it needs no rule of its own; None: it always does.
    """

    def wrapper(sink: Sink, call: Call) -> None:
        parsed = take_apart(call.words[1:], grammar, first_ends=True)
        if parsed.unsure or parsed.by_wildcard:
            sink.flag(f"an expansion could be an option of `{call.program}`, or the program that it runs")
        known = inert is not None and all(name in inert for name, _ in parsed.options)
        plain = all(isinstance(word, str) for word in parsed.rest[:operands])
        if not known and not _all_known(parsed, grammar):
            _cannot_tell(sink, call)
            return
        pass_on(sink, call, parsed.rest[operands:], inert=known and plain)

    return wrapper


def _all_known(parsed: Parsed, grammar: Grammar) -> bool:
    letters = grammar.values + grammar.attached
    long = grammar.long_values | grammar.long_flags
    return all(name in letters if len(name) == 1 else name in long for name, _ in parsed.options)


_TIMEOUT = _transparent(
    Grammar(
        values="ks",
        long_values=names("kill-after signal"),
        long_flags=names("foreground preserve-status verbose"),
    ),
    inert=names("k s v kill-after signal foreground preserve-status verbose"),
    operands=1,
)
_STDBUF = _transparent(
    Grammar(values="ioe", long_values=names("input output error")), inert=names("i o e input output error")
)
_TIME = _transparent(
    Grammar(
        values="of", long_values=names("output format"), long_flags=names("append verbose portability quiet")
    ),
    inert=names("p v f q verbose portability format quiet"),
)
_SETSID = _transparent(Grammar(attached="cfw", long_flags=names("ctty fork wait")), inert=None)
_IONICE = _transparent(
    Grammar(values="cnpPu", long_values=names("class classdata pid pgid uid"), long_flags=names("ignore")),
    inert=names("c n t class classdata ignore"),
)
_CHRT = _transparent(
    Grammar(values="TPD", attached="abfiorRm", long_flags=names("batch fifo idle other rr")),
    inert=None,
    operands=1,
)
_TASKSET = _transparent(
    Grammar(long_flags=names("all-tasks cpu-list pid")), inert=names("c cpu-list"), operands=1
)
_CHROOT = _transparent(Grammar(long_values=names("userspec groups")), inert=None, operands=1)
_FLOCK_OPTIONS = Grammar(
    values="wE", attached="snuxeoF", long_values=names("timeout wait conflict-exit-code")
)
_TRACE = _transparent(
    Grammar(values="aeEIoOpPsSuXU", attached="cCdfFhiknqrtTvVwxyYzZ", long_values=names("output trace")),
    inert=None,
)


def _flock(sink: Sink, call: Call) -> None:
    """`flock FILE PROGRAM …` makes the file; with `-c` a shell gets one text."""
    parsed = take_apart(call.words[1:], _FLOCK_OPTIONS, first_ends=True)
    if parsed.unsure or parsed.by_wildcard:
        sink.flag("an expansion could be an option of `flock`, or the program that it runs")
    rest = parsed.rest
    if rest and not text_of(rest[0]).isdecimal():
        sink.write(rest[0])
    if len(rest) > 1 and rest[1] in {"-c", "--command"}:
        sink.emit(call)
        sink.script(text_of(rest[2]) if len(rest) > 2 else "", call, needs_rule=True)  # noqa: PLR2004 - FILE -c TEXT
    else:
        pass_on(sink, call, rest[1:], inert=False)


def _nice(sink: Sink, call: Call) -> None:
    words = call.words[1:]
    at = 0
    while at < len(words) and isinstance(words[at], str) and re.fullmatch(r"--?[0-9]+", text_of(words[at])):
        at += 1
    parsed = take_apart(words[at:], _NICE, first_ends=True)
    if parsed.unsure or parsed.by_wildcard:
        sink.flag("an expansion could be an option of `nice`, or the program that it runs")
    if all(name in _NICE_INERT for name, _ in parsed.options):
        pass_on(sink, call, parsed.rest, inert=True)
    else:
        _cannot_tell(sink, call)


_NICE = Grammar(values="n", long_values=names("adjustment"))
_NICE_INERT = names("n adjustment")
_ENV_GRAMMAR = Grammar(
    values="uCSa",
    long_values=names("unset chdir split-string argv0"),
    long_flags=names(
        "ignore-environment null debug default-signal ignore-signal block-signal list-signal-handling"
    ),
)


def _env(sink: Sink, call: Call) -> None:
    """`env [-i] [-u NAME] [NAME=VALUE …] [PROGRAM …]`."""
    parsed = take_apart(call.words[1:], _ENV_GRAMMAR, first_ends=True)
    rest = parsed.rest
    inert = not parsed.options
    if rest[:1] == ["-"]:
        rest, inert = rest[1:], False
    while rest and "=" in _lead(rest[0]):
        name, _, value = _lead(rest[0]).partition("=")
        inert = inert and isinstance(rest[0], str) and inert_before_command(name, value)
        rest = rest[1:]
    if rest and isinstance(rest[0], Word):
        sink.flag("an expansion stands where `env` expects a variable or a program")
    split = parsed.value("S", "split-string")
    if split is not None:
        sink.emit(call)
        sink.flag("`env -S` takes its text apart in a way of its own")
        sink.script(" ".join([text_of(split), *map(text_of, rest)]), call)
        return
    place = parsed.value("C", "chdir")
    before = sink.places.now
    if place is not None:
        sink.places.at(sink.places.target(text_of(place)) if isinstance(place, str) else ("",))
    pass_on(sink, call, rest, inert=inert)
    sink.places.at(before)


def _lead(word: AnyWord) -> str:
    return word if isinstance(word, str) else word.lead


_XARGS_GRAMMAR = Grammar(
    values="aEILnPsd",
    attached="eil",
    long_values=names("arg-file max-lines max-args max-procs max-chars delimiter process-slot-var"),
    long_flags=names("null eof replace exit interactive no-run-if-empty open-tty verbose show-limits"),
)
_XARGS_INERT = names("0 r null no-run-if-empty")
"""Others change how often and with what the inner command runs: they are a rule of their own."""
_XARGS_FLAGS = names("0 r x t p o")


def _xargs(sink: Sink, call: Call) -> None:
    """The words that xargs adds are known to nobody: they stand for any number of words at the end."""
    parsed = take_apart(call.words[1:], _XARGS_GRAMMAR, first_ends=True)
    file = parsed.value("a", "arg-file")
    if file is not None:
        sink.read(file)
    if parsed.unsure or parsed.by_wildcard:
        sink.flag("an expansion could be an option of `xargs`, or the program that it runs")
    known = all(
        name in _XARGS_GRAMMAR.values + _XARGS_GRAMMAR.attached
        or name in _XARGS_FLAGS
        or name in _XARGS_GRAMMAR.long_values | _XARGS_GRAMMAR.long_flags
        for name, _ in parsed.options
    )
    mark = parsed.value("I", "i", "replace")
    mark_text = text_of(mark) if mark is not None else "{}" if parsed.has("I", "i", "replace") else ""
    added = _added(sink.fed)
    inner = [_replaced(word, mark_text, added.below) for word in parsed.rest] or ["echo"]
    if not mark_text:
        inner.append(added)
    if not known:
        _cannot_tell(sink, call)
        return
    outer = Call([*call.words[: len(call.words) - len(parsed.rest)], *inner])
    outer.via, outer.outer, outer.inside, outer.direct = call.via, call.outer, call.inside, call.direct
    sink.emit(call, needs_rule=not all(name in _XARGS_INERT for name, _ in parsed.options))
    sink.run(outer.inner(inner, needs_rule=True))


def _replaced(word: AnyWord, mark: str, below: str) -> AnyWord:
    if not mark or not isinstance(word, str) or mark not in word:
        return word
    unknown = Word(word)
    unknown.lead = word.partition(mark)[0]
    if word == mark:
        unknown.below = below
    return unknown


_PLAIN_TESTS = names(
    "-name -iname -path -ipath -not -type -maxdepth -mindepth -print -print0 -size -mtime -mmin -o -a -prune"
    " -regex -iregex -empty"
)


def _added(fed: list[AnyWord]) -> Word:
    """The words that xargs adds: names of files below a directory where the command in front lists those."""
    word = Word("…")
    word.spread = True
    texts = [text_of(part) for part in fed]
    if texts[:2] == ["git", "ls-files"]:
        word.below = "."
    elif texts[:1] == ["find"] and not any(isinstance(part, Word) for part in fed):
        starts = 1 if len(texts) > 1 and not texts[1].startswith(("-", "(", "!")) else 0
        rest = texts[1 + starts :]
        operands = rest and not rest[0].startswith(("-", "(", "!"))
        if not operands and all(part in _PLAIN_TESTS for part in rest if part.startswith("-")):
            word.below = texts[1] if starts else "."
            word.firm = True
    return word


WRAPPERS: dict[str, Wrapper] = {
    "timeout": _TIMEOUT,
    "gtimeout": _TIMEOUT,
    "nice": _nice,
    "nohup": _transparent(Grammar(), inert=frozenset()),
    "time": _TIME,
    "gtime": _TIME,
    "stdbuf": _STDBUF,
    "setsid": _SETSID,
    "ionice": _IONICE,
    "chrt": _CHRT,
    "taskset": _TASKSET,
    "chroot": _CHROOT,
    "flock": _flock,
    "strace": _TRACE,
    "ltrace": _TRACE,
    "env": _env,
    "xargs": _xargs,
    "gxargs": _xargs,
}
