"""Reads `[[ … ]]`: comparisons run nothing, unless they evaluate what a variable holds."""

import re

from agentctl.policy.shell.lexing import Lexer
from agentctl.policy.shell.words import AnyWord, Refused

_REGEX = re.compile(r"(?:[A-Za-z0-9_.^*+?|()\[\]:/@%#,={}~<>&;!-]|\\[^\n])*\$?(?=[ \t\n])")
_ARITHMETIC = frozenset({"-eq", "-ne", "-lt", "-le", "-gt", "-ge"})
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def read_condition(lexer: Lexer) -> None:
    """Read from behind `[[` up to and with `]]`.

    Raises:
        Refused: it does not end, or compares with a regular expression that cannot be read.
    """
    words: list[AnyWord] = []
    text = lexer.text
    while lexer.pos < lexer.end:
        lexer.blanks()
        char = text[lexer.pos : lexer.pos + 1]
        if text.startswith(("&&", "||"), lexer.pos):
            lexer.pos += 2
            words.append("&&")
        elif char and char in "\n()<>":
            if text.startswith(("<(", ">("), lexer.pos):
                raise Refused("a process substitution stands in a condition")
            lexer.pos += 1
            words.append(char)
        else:
            word = lexer.word()
            if word == "]]":
                _check(lexer, words)
                return
            if word == "":
                break
            words.append(word)
            if word == "=~":
                words.append(_regular_expression(lexer))
    raise Refused("a condition, `[[`, cannot be read")


def _regular_expression(lexer: Lexer) -> AnyWord:
    lexer.blanks()
    match = _REGEX.match(lexer.text, lexer.pos)
    if match and match[0] and match[0].count("(") == match[0].count(")") and not set(match[0]) & set("<>&;"):
        lexer.pos = match.end()
        return match[0]
    word = lexer.word()
    if word == "" or lexer.text[lexer.pos : lexer.pos + 1] not in {" ", "\t"}:
        raise Refused("a regular expression cannot be read")
    return word


def _check(lexer: Lexer, words: list[AnyWord]) -> None:
    if not words:
        raise Refused("a condition, `[[`, is empty")
    for at, word in enumerate(words):
        if word in {"-v", "-R"} and not (at + 1 < len(words) and _is_name(words[at + 1])):
            lexer.flag("`-v` evaluates the name it is given")
        if word in _ARITHMETIC and not all(
            lexer.counts(near) for near in words[at - 1 : at] + words[at + 1 : at + 2]
        ):
            lexer.flag("a number's comparison evaluates what a variable holds")


def _is_name(word: AnyWord) -> bool:
    value = word if isinstance(word, str) else word.text if word.literal else ""
    return _PLAIN_NAME.fullmatch(value) is not None
