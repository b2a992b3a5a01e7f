"""Build tools: what their options let them run besides what they are for.

That they run what the project says is trust in the project, which the user's rule gives. A program that
stands in the command line is another matter: it needs a rule of its own.
"""

import re
from collections.abc import Callable, Sequence

from agentctl.policy.shell.calls import Call, Sink, text_of
from agentctl.policy.shell.words import AnyWord

_GO_OPTION = re.compile(r"--?(exec|toolexec|vettool|o)(?:=(.*))?", re.DOTALL)
_RUSTC = re.compile(r".*(?:rustc|wrapper|runner|linker|rustdoc|credential).*", re.DOTALL | re.IGNORECASE)


def _value(words: Sequence[AnyWord], at: int, attached: str | None) -> AnyWord:
    """Return the value of the option at `at`: what is attached to it, else the word behind it, if any."""
    if attached is not None:
        return attached
    return words[at + 1] if at + 1 < len(words) else ""


def _go(sink: Sink, call: Call) -> None:
    """`go test -exec x`, `go build -toolexec x -o f`."""
    words = call.words
    for at, word in enumerate(words[2:], start=2):
        if word in {"-args", "--args", "--"} or words[1] == "run":
            return
        match = _GO_OPTION.fullmatch(text_of(word))
        if match is None:
            continue
        value = _value(words, at, match[2])
        if match[1] == "o":
            sink.write(value)
        else:
            sink.script(text_of(value), call, needs_rule=True)


def _make(sink: Sink, call: Call) -> None:
    """`make --eval TEXT` reads rules from the line; `SHELL=x` is the shell of every recipe."""
    for word in call.words[1:]:
        text = text_of(word)
        if text.startswith(("--eval", "-E")):
            sink.flag(f"`{call.program} {text[:6]}` runs the text it is given")
        elif re.match(r"SHELL:*[?+!]?=", text):
            sink.script(text.partition("=")[2], call, needs_rule=True)


def _named_by(*options: str) -> Callable[[Sink, Call], None]:
    """A tool with options whose value is a program."""

    def program(sink: Sink, call: Call) -> None:
        for at, word in enumerate(call.words[1:], start=1):
            name, equals, value = text_of(word).partition("=")
            if name in options:
                given = text_of(_value(call.words, at, value if equals else None))
                sink.script(given.split(",")[0], call, needs_rule=True)

    return program


def _cargo(sink: Sink, call: Call) -> None:
    """`cargo --config target.x.runner="y"` names a program as a setting."""
    words = call.words
    for at, word in enumerate(words[1:], start=1):
        name, equals, value = text_of(word).partition("=")
        if word == "--":
            return
        if name == "--config":
            given = text_of(_value(words, at, value if equals else None))
            if _RUSTC.fullmatch(given) or "=" not in given:
                sink.flag("a setting of `cargo` may name a program")


_COMPILER = _named_by("-wrapper")

BUILDERS: dict[str, Callable[[Sink, Call], None]] = {
    "go": _go,
    "make": _make,
    "gmake": _make,
    "cargo": _cargo,
    **dict.fromkeys(("gcc", "g++", "cc", "c++"), _COMPILER),
    "npm": _named_by("--script-shell"),
    "pnpm": _named_by("--script-shell", "--shell-emulator"),
}
