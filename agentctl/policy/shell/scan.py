"""A rough look at a line that is not read: which commands may stand in it, for deny and ask rules only."""

import re

from agentctl.protocol.effects import RunProgram

MAX_PIECES = 2000
_MAX_WORDS = 24
_MAX_WORD = 400
_SEPARATORS = str.maketrans(dict.fromkeys(";&|`(){}", "\n"))
_NOISE = str.maketrans("", "", "\"'\\")
_SKIPPED = re.compile(
    r"(?:[A-Za-z_][A-Za-z0-9_]*=\S*|if|then|elif|else|while|until|do|time|!|[0-9]*[<>]\S*|\$|function|coproc)\Z"
)


def rough_commands(text: str) -> list[RunProgram]:
    """Return what may be commands of `text`, cut at every separator, quoted or not. Bounded.

    Nothing is taken back by this: a line that is only looked at so stays opaque.
    """
    found: list[RunProgram] = []
    pieces = dict.fromkeys(text.replace("\\\n", "").translate(_SEPARATORS).split("\n"))
    for piece in pieces:
        words = piece[: _MAX_WORDS * _MAX_WORD].translate(_NOISE).split(maxsplit=_MAX_WORDS)[:_MAX_WORDS]
        while words and _SKIPPED.match(words[0]):
            del words[0]
        if words:
            found.append(RunProgram(argv=tuple(words), seen_inside=True))
        if len(found) >= MAX_PIECES:
            break
    return found
