"""The shell's own commands: those that evaluate text or change the shell are flagged."""

import re
from collections.abc import Callable

from agentctl.policy.shell.calls import Call, Sink, text_of
from agentctl.policy.shell.names import (
    changes_the_shell,
    inert_before_command,
    names_a_program,
    own_variable,
)
from agentctl.policy.shell.options import Grammar, take_apart
from agentctl.policy.shell.places import UNKNOWN
from agentctl.policy.shell.words import AnyWord, Word

Builtin = Callable[[Sink, Call], None]
"""Those that only steer the shell, set what the line itself uses, or look a name up need no rule of their own
in the forms that are not flagged: deny and ask rules still reach them."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_COUNTS = re.compile(r"(?<!%)(?:%%)*%[-+ #0-9.*]*[hlLjzt]*n")
_HARMLESS_SETS = re.compile(r"[-+][euvxf]+o?|[-+]o|--")
_HARMLESS_LONG = frozenset({"pipefail", "errexit", "nounset", "xtrace", "verbose", "noglob"})
_UNARY_LIST = "-a -b -c -d -e -f -g -h -k -p -r -s -t -u -w -x -G -L -N -O -S -z -n -o"
_UNARY = frozenset(_UNARY_LIST.split())
_BINARY_LIST = "= == != < > -eq -ne -lt -le -gt -ge -nt -ot -ef"
_BINARY = frozenset(_BINARY_LIST.split())


def _change_directory(sink: Sink, call: Call) -> None:
    places = sink.places
    words = [word for word in call.words[1:] if word not in {"-L", "--", "-e", "-@"}]
    if call.prefixed or len(words) > 1 or any(not isinstance(word, str) for word in words):
        word = words[0] if len(words) == 1 and not call.prefixed else ""
        if isinstance(word, Word) and word.path and not word.glob and not word.spread:
            words = [word.path]
        else:
            _lost(sink, call)
            return
    target = text_of(words[0]) if words else sink.home
    if target.startswith("-"):
        _lost(sink, call)
        return
    if not target:
        target = "."
    to = places.target(target)
    sink.emit(call, needs_rule=not all(place != UNKNOWN and places.inside(place) for place in to))
    places.moved(to)


def _lost(sink: Sink, call: Call) -> None:
    sink.flag("the directory it changes to is known only to the shell")
    sink.emit(call)
    sink.places.moved((UNKNOWN,))


def _steers(sink: Sink, call: Call) -> None:
    sink.emit(call, needs_rule=any(not isinstance(word, str) and not word.numeric for word in call.words))


def _leave(sink: Sink, call: Call) -> None:
    _steers(sink, call)
    if len(call.words) == 1 or (len(call.words) == 2 and str(call.words[1]).isdecimal()):  # noqa: PLR2004
        sink.places.gone()


def _evaluates(reason: str) -> Builtin:
    def builtin(sink: Sink, call: Call) -> None:
        sink.flag(f"`{call.program}` {reason}")
        sink.emit(call)

    return builtin


def _eval(sink: Sink, call: Call) -> None:
    sink.flag("`eval` runs the text it is given")
    sink.emit(call)
    if all(isinstance(word, str) for word in call.words):
        sink.script(" ".join(text_of(word) for word in call.words[1:]), call)


def _trap(sink: Sink, call: Call) -> None:
    sink.flag("`trap` runs the text it is given later")
    sink.emit(call)
    if len(call.words) > 2 and isinstance(call.words[1], str) and call.words[1] != "-":  # noqa: PLR2004
        sink.script(call.words[1], call)


def _alias(sink: Sink, call: Call) -> None:
    sink.flag("`alias` changes what names mean")
    sink.emit(call)
    for word in call.words[1:]:
        if isinstance(word, str) and "=" in word:
            sink.script(word.partition("=")[2], call)


def _passes_on(reason: str) -> Builtin:
    """`exec x`, `builtin x`: flagged, and looked through for deny."""

    def builtin(sink: Sink, call: Call) -> None:
        sink.flag(f"`{call.program}` {reason}")
        sink.emit(call)
        words = call.words[1:]
        while words and (text_of(words[0]).startswith("-")):
            words = words[2:] if words[0] == "-a" else words[1:]
        if words:
            sink.run(call.inner(words, needs_rule=False))

    return builtin


def _builtin(sink: Sink, call: Call) -> None:
    """`builtin cd x` is `cd x`, past functions; of a program it finds none."""
    words = call.words[1:]
    if not words or text_of(words[0]).startswith("-"):
        _BUILTIN_ODD(sink, call)
        return
    sink.emit(call, needs_rule=False)
    inner = call.inner(words, needs_rule=True)
    inner.direct = call.direct
    sink.run(inner)


def _command(sink: Sink, call: Call) -> None:
    """`command -v x` looks a name up; `command x` runs x, past functions."""
    words = call.words[1:]
    lookup = False
    while words and isinstance(words[0], str) and re.fullmatch(r"-[pvV]+|--", words[0]):
        lookup = lookup or "v" in words[0].lower()
        words = words[1:]
    if lookup or not words:
        sink.emit(call, needs_rule=False)
        return
    if len(words) + 1 < len(call.words):
        sink.emit(call)
    else:
        sink.emit(call, needs_rule=False)
    inner = call.inner(words, needs_rule=True)
    inner.direct = call.direct
    sink.run(inner)


def _declares(sink: Sink, call: Call) -> None:
    """`export`, `declare` and their like: the shell's own names and attributes that evaluate are flagged."""
    arrays, free = False, len(call.words) > 1
    for word in call.words[1:]:
        text = word if isinstance(word, str) else word.lead
        if text.startswith(("-", "+")):
            arrays = arrays or bool({"a", "A"} & set(text))
            if not re.fullmatch(r"-[pxrgfFaA]+|--", text) or not isinstance(word, str):
                sink.flag(f"`{call.program} {text_of(word)}` changes how variables are evaluated")
            free = free and text == "-r"
            continue
        name, equals, value = text.partition("=")
        name = name.removesuffix("+")
        if call.program == "export":
            free = free and isinstance(word, str) and inert_before_command(name, value)
        else:
            free = free and own_variable(name)
        arrays = arrays or sink.may_be_array(name)
        sink.holds(name, None)
        if not _NAME.fullmatch(name):
            sink.flag(f"`{call.program}` is given a name that is evaluated")
        elif changes_the_shell(name) or (call.program != "readonly" and names_a_program(name)):
            sink.flag(f"it sets `{name}`, which changes what later commands do")
        elif equals and (arrays or value.startswith("(")) and not _plain_array(word):
            sink.flag(f"`{call.program}` evaluates what it puts into an array")
    sink.emit(call, needs_rule=not free)


def _plain_array(word: AnyWord) -> bool:
    """Whether the value is `(…)` outside quotes: its words were read like any others."""
    return isinstance(word, Word) and "=(" in word.text.partition("$")[0] and not word.quoted


def _sets_names(grammar: Grammar, *, runs: str = "", array: str = "") -> Builtin:
    """A builtin that sets the variables it names.

    Args:
        grammar: its options.
        runs: the letter of an option whose value it runs.
        array: the letter of an option whose value is a name, too.
    """

    def builtin(sink: Sink, call: Call) -> None:
        sink.emit(call, needs_rule=False)
        parsed = take_apart(call.words[1:], grammar, first_ends=True)
        names = [*parsed.operands, *(value for name, value in parsed.options if name == array and value)]
        for name, value in parsed.options:
            if name == runs and value is not None:
                sink.flag(f"`{call.program} -{runs}` runs the text it is given")
                sink.script(text_of(value), call)
        for word in names:
            sink.holds(text_of(word), None)
            if not isinstance(word, str) or not _NAME.fullmatch(word) or not own_variable(word):
                sink.flag(f"`{call.program}` is given a name that is evaluated or that others read")

    return builtin


def _printf(sink: Sink, call: Call) -> None:
    sink.emit(call)
    words = call.words[1:]
    if words and words[0] == "--":
        words = words[1:]
    elif words and text_of(words[0]).startswith("-v"):
        name = text_of(words[1]) if words[0] == "-v" and len(words) > 1 else text_of(words[0])[2:]
        sink.holds(name, None)
        if not _NAME.fullmatch(name) or not own_variable(name):
            sink.flag("`printf -v` evaluates the name it is given")
        words = words[2:] if words[0] == "-v" else words[1:]
    first = words[0] if words else ""
    if isinstance(first, Word):
        if len(words) > 1 or first.spread:
            sink.flag("the format of `printf`, which can set variables, is known only to the shell")
    elif _COUNTS.search(first):
        sink.flag("`printf %n` sets the variable that it is given")


def _set(sink: Sink, call: Call) -> None:
    sink.emit(call, needs_rule=False)
    named = False
    for word in call.words[1:]:
        if word in {"--", "-"}:
            return
        if named:
            named = False
            if word not in _HARMLESS_LONG:
                sink.flag("`set` changes how the shell reads or evaluates")
        elif isinstance(word, str) and not word.startswith(("-", "+")):
            return
        elif not isinstance(word, str) or not _HARMLESS_SETS.fullmatch(word):
            sink.flag("`set` changes how the shell reads or evaluates")
        else:
            named = word.endswith("o")


def _shopt(sink: Sink, call: Call) -> None:
    sink.emit(call, needs_rule=False)
    allowed = {"-s", "-u", "-q", "-p", "nullglob", "globstar", "dotglob", "failglob", "nocaseglob"}
    if any(word not in allowed for word in call.words[1:]):
        sink.flag("`shopt` changes how the shell reads or evaluates")


def _test(sink: Sink, call: Call) -> None:
    """`test` and `[` evaluate a name behind `-v`, so their shape has to be certain."""
    sink.emit(call, needs_rule=False)
    words = list(call.words[1:])
    if call.program == "[":
        if not words or words[-1] != "]":
            return
        words.pop()
    if not _is_certain(sink, words):
        sink.flag(f"`{call.program}` may evaluate a name, as its operators are not certain")


def _is_certain(sink: Sink, words: list[AnyWord]) -> bool:
    if words and words[0] == "!":
        return _is_certain(sink, words[1:])
    for joint in ("-a", "-o"):
        if len(words) > 3 and joint in words[1:-1]:  # noqa: PLR2004 - longer than a comparison
            at = words.index(joint, 1)
            return _is_certain(sink, words[:at]) and _is_certain(sink, words[at + 1 :])
    if any(
        isinstance(word, Word) and word.spread and not word.glob and not sink.counts(word) for word in words
    ):
        return False
    match words:
        case [] | [_]:
            return True
        case [str() as operator, _]:
            return operator in _UNARY
        case [_, str() as operator, _]:
            return operator in _BINARY
    return False


def _unset(sink: Sink, call: Call) -> None:
    sink.emit(call, needs_rule=False)
    for word in call.words[1:]:
        text = text_of(word)
        sink.holds(text, None)
        if word in {"-v", "-f", "-n"}:
            continue
        if not isinstance(word, str) or not _NAME.fullmatch(text) or changes_the_shell(text):
            sink.flag("`unset` is given a name that is evaluated or belongs to the shell")


def _let(sink: Sink, call: Call) -> None:
    sink.flag("`let` evaluates what a variable holds")
    sink.emit(call)


def _wait(sink: Sink, call: Call) -> None:
    sink.emit(call, needs_rule=False)
    options, _ = _options(sink, call)
    if options is None or "p" in options:
        sink.flag("`wait -p` evaluates the name it is given")


def _jobs(sink: Sink, call: Call) -> None:
    sink.emit(call)
    options, rest = _options(sink, call)
    if options is None or "x" in options:
        sink.flag("`jobs -x` runs the command it is given")
        if rest:
            sink.run(call.inner(rest, needs_rule=False))


def _options(sink: Sink, call: Call) -> tuple[str | None, list[AnyWord]]:
    """Return the letters before the first operand, None where a word may be either, and what follows."""
    letters = ""
    for at, word in enumerate(call.words[1:], 1):
        if word == "--":
            return letters, call.words[at + 1 :]
        if not isinstance(word, str):
            return letters if sink.counts(word) else None, call.words[at + 1 :]
        if not word.startswith("-") or word == "-":
            return letters, call.words[at:]
        letters += word[1:]
    return letters, []


_BUILTIN_ODD = _passes_on("runs a command of the shell")
_CHANGES = _evaluates("changes what names mean")
_KEEPS = _evaluates("changes what the shell keeps or runs later")
_COMPLETES = _evaluates("may evaluate the text it is given")

BUILTINS: dict[str, Builtin] = {
    ":": _steers,
    "true": _steers,
    "false": _steers,
    "break": _steers,
    "continue": _steers,
    "shift": _steers,
    "type": _steers,
    "cd": _change_directory,
    "pushd": _lost,
    "popd": _lost,
    "exit": _leave,
    "return": _leave,
    "logout": _leave,
    "eval": _eval,
    "trap": _trap,
    "alias": _alias,
    "unalias": _CHANGES,
    "hash": _CHANGES,
    "enable": _CHANGES,
    "source": _evaluates("runs the file it is given in this shell"),
    ".": _evaluates("runs the file it is given in this shell"),
    "exec": _passes_on("replaces the shell"),
    "builtin": _builtin,
    "command": _command,
    "let": _let,
    "declare": _declares,
    "typeset": _declares,
    "local": _declares,
    "export": _declares,
    "readonly": _declares,
    "read": _sets_names(Grammar(values="adinNptu"), array="a"),
    "mapfile": _sets_names(Grammar(values="dnOsuCc"), runs="C"),
    "readarray": _sets_names(Grammar(values="dnOsuCc"), runs="C"),
    "getopts": _evaluates("sets variables that the shell evaluates"),
    "compgen": _COMPLETES,
    "complete": _COMPLETES,
    "compopt": _COMPLETES,
    "history": _KEEPS,
    "fc": _KEEPS,
    "bind": _KEEPS,
    "printf": _printf,
    "set": _set,
    "shopt": _shopt,
    "unset": _unset,
    "test": _test,
    "[": _test,
    "wait": _wait,
    "jobs": _jobs,
}
