"""`find` and `fd`: their words are a language of their own, with actions that run, write and remove."""

from collections.abc import Callable

from agentctl.policy.shell.calls import Call, Sink, text_of
from agentctl.policy.shell.options import Grammar, abbreviates, names, take_apart
from agentctl.policy.shell.words import AnyWord, Word

_RUNS = names("-exec -execdir -ok -okdir")
_WRITES = names("-fprint -fprint0 -fls -fprintf")
_READS = names("-newer -anewer -cnewer -samefile -files0-from")


def _starts_expression(word: AnyWord) -> bool:
    text = word if isinstance(word, str) else word.lead
    return text.startswith(("-", "(", "!", ","))


def _find(sink: Sink, call: Call) -> None:
    words = call.words[1:]
    at = 0
    while at < len(words) and text_of(words[at]) in {"-H", "-L", "-P", "-E", "-X", "-x", "-d", "-s"}:
        at += 1
    starts: list[AnyWord] = []
    while at < len(words) and not _starts_expression(words[at]):
        start = words[at]
        if isinstance(start, Word) and start.dashed:
            sink.flag("an expansion could be an action of `find`")
        starts.append(start)
        at += 1
    starts = starts or ["."]
    sink.read_all(starts)
    while at < len(words):
        at += _expression(sink, call, words, at, starts)


def _expression(sink: Sink, call: Call, words: list[AnyWord], at: int, starts: list[AnyWord]) -> int:
    """Take one word of the expression; returns how many words belong to it."""
    word = words[at]
    if isinstance(word, Word):
        if word.dashed:
            sink.flag("an expansion could be an action of `find`")
        return 1
    following = words[at + 1] if at + 1 < len(words) else ""
    if word in _RUNS:
        end = _end_of_command(words, at + 1)
        inner = [_found(part, starts) for part in words[at + 1 : end]]
        if inner:
            sink.run(call.inner(inner, needs_rule=True, last=False))
        return end - at + 1
    if word == "-delete":
        # With a test it takes what fits, without one the whole tree.
        untested = {"-delete", "-depth", "-H", "-L", "-P"}
        tested = any(_starts_expression(one) and text_of(one) not in untested for one in words)
        sink.write_all(starts, tree=not tested)
    elif word in _WRITES:
        sink.write(following)
        return 2
    elif word in _READS or word.startswith("-newer"):
        sink.read(following)
        return 2
    elif word in _VALUES:
        if isinstance(following, Word) and following.spread:
            sink.flag("an expansion could be an action of `find`")
        return 2
    return 1


_VALUE_LIST = """
    -name -iname -path -ipath -wholename -iwholename -regex -iregex -lname -ilname -type -xtype -size
    -perm -user -group -uid -gid -mtime -atime -ctime -mmin -amin -cmin -maxdepth -mindepth -links -inum
    -fstype -printf -regextype -used -context -D -O
"""
_VALUES = names(_VALUE_LIST)


def _end_of_command(words: list[AnyWord], at: int) -> int:
    while at < len(words):
        if words[at] == ";" or (words[at] == "+" and words[at - 1] == "{}"):
            return at
        at += 1
    return at


def _found(word: AnyWord, starts: list[AnyWord]) -> AnyWord:
    """`{}` stands for what is found below `starts`."""
    if not isinstance(word, str) or "{}" not in word:
        return word
    unknown = Word(word)
    unknown.lead = word.partition("{}")[0]
    unknown.spread = word == "{}"
    unknown.firm = word == "{}"
    if word == "{}" and len(starts) == 1 and isinstance(starts[0], str):
        unknown.below = starts[0]
    return unknown


_FD = Grammar(
    values="detcEjSo",
    long_values=names(
        "max-depth min-depth exact-depth exclude type extension size changed-within changed-before"
        " owner color threads ignore-file base-directory path-separator search-path max-results"
        " format batch-size"
    ),
)


def _fd(sink: Sink, call: Call) -> None:
    words = call.words[1:]
    for at, word in enumerate(words):
        if isinstance(word, Word) and word.dashed:
            sink.flag(f"an expansion could be an option of `{call.program}` that runs a program")
        text = text_of(word)
        cluster = text.startswith("-") and not text.startswith("--") and set(text[1:]) & set("xX")
        if cluster or abbreviates(text, "--exec-batch"):
            glued = text.partition("=")[2]
            inner: list[AnyWord] = [glued, *words[at + 1 :]] if glued else list(words[at + 1 :])
            if inner:
                sink.run(call.inner([_found(part, ["."]) for part in inner], needs_rule=True, last=False))
            words = words[:at]
            break
    sink.read_all(take_apart(words, _FD).operands[1:] or ["."])


FINDERS: dict[str, Callable[[Sink, Call], None]] = {"find": _find, "gfind": _find, "fd": _fd, "fdfind": _fd}
