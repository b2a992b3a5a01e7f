"""Reads `${…}`: the forms that only look a value up or cut it; everything that evaluates is flagged."""

import re

from agentctl.policy.shell.draft import Draft
from agentctl.policy.shell.lexing import Lexer
from agentctl.policy.shell.words import Refused

_HEAD = re.compile(r"(#?)([A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*#?$!_-])(\[(?:[@*]|[0-9]+)\])?")
_COUNT = re.compile(r"#([A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*])(\[(?:[@*]|[0-9]+)\])?\}")
_SLICE = re.compile(r":[ ]*-?[0-9]+(?::[ ]*-?[0-9]+)?\}")
_SLICE_START = re.compile(r":(?![-=+?]) *[-0-9]")
_TRANSFORM = re.compile(r"@([A-Za-z])\}")
_HARMLESS_TRANSFORMS = "QULEuKka"
_OPERATOR = re.compile(r":?[-+?=]|##?|%%?|//?[#%]?|\^\^?|,,?")
_TEXT = re.compile(r"[A-Za-z0-9_./:@%+,=^ *?\[\]!#~-]+")


def read_parameter(lexer: Lexer, *, quoted: bool) -> tuple[str, bool, bool]:
    """Read from behind `${` up to and with `}`.

    Returns:
        The variable's name where nothing else is in the braces, else empty; whether the value is a number;
        whether it is several words even inside double quotes.

    Raises:
        Refused: the form is not one of those read here.
    """
    text = lexer.text
    counted = _COUNT.match(text, lexer.pos)
    if counted:
        lexer.pos = counted.end()
        return "", True, False
    if text.startswith("!", lexer.pos) and not text.startswith("!}", lexer.pos):
        raise Refused("an indirect expansion, `${!…}`, evaluates what a variable holds")
    head = _HEAD.match(text, lexer.pos)
    if head is None or head[1]:
        raise Refused("an expansion of this form cannot be read")
    name, index = head[2], head[3] or ""
    many = name == "@" or index == "[@]"
    lexer.pos = head.end()
    if text.startswith("}", lexer.pos):
        lexer.pos += 1
        return ("" if index else name), name in "#?$!", many
    _operation(lexer, quoted=quoted)
    return "", False, many or not quoted


def _operation(lexer: Lexer, *, quoted: bool) -> None:
    text = lexer.text
    if _SLICE_START.match(text, lexer.pos):
        cut = _SLICE.match(text, lexer.pos)
        if cut is None:
            raise Refused("a substring's bounds are evaluated")
        lexer.pos = cut.end()
        return
    transform = _TRANSFORM.match(text, lexer.pos)
    if transform:
        lexer.pos = transform.end()
        if transform[1] not in _HARMLESS_TRANSFORMS:
            lexer.flag("`${…@P}` evaluates what a variable holds")
        return
    operator = _OPERATOR.match(text, lexer.pos)
    if operator is None:
        raise Refused("an expansion of this form cannot be read")
    if "=" in operator[0]:
        lexer.flag("`${…=…}` sets a variable while it is expanded")
    lexer.pos = operator.end()
    _operand(lexer, quoted=quoted)


def _operand(lexer: Lexer, *, quoted: bool) -> None:
    """The word or pattern up to `}`: plain text and further expansions, no quotes."""
    draft = Draft()
    text = lexer.text
    while lexer.pos < lexer.end:
        run = _TEXT.match(text, lexer.pos)
        char = text[lexer.pos]
        if run:
            lexer.pos = run.end()
        elif char == "}":
            lexer.pos += 1
            return
        elif char in "$`":
            lexer.quoted_piece(draft, char, _TEXT, "")
        elif char == '"' and not quoted:
            lexer.double(draft)
        else:
            break
    raise Refused("the word in an expansion, `${…}`, cannot be read")
