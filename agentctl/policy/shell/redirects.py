"""Redirections: which open a file, which only move a descriptor, which are a heredoc."""

import re

from agentctl.policy.shell.calls import Call
from agentctl.policy.shell.lexing import Lexer
from agentctl.policy.shell.words import AnyWord, Refused, Word

_OPERATOR = re.compile(r"&>>|&>|<<<|<<-|<<|<>|<&|>>|>&|>\||<|>")
_DUPLICATE = re.compile(r"(?:[0-9]{1,4}-?|-)(?=[ \t\n;&|<>()]|\Z)")
_DELIMITER = re.compile(
    r"[ \t]*(?:'([A-Za-z0-9_.!-]+)'|\"([A-Za-z0-9_.!-]+)\"|\\([A-Za-z0-9_.!-]+)|([A-Za-z0-9_.!-]+))"
    r"(?=[ \t\n;&|<>()]|\Z)"
)


class Redirect:
    """One redirection. `word` is the file's name; None where no file is opened."""

    __slots__ = ("operator", "shell", "substitution", "variable", "word")

    def __init__(self, operator: str, word: AnyWord | None) -> None:
        self.operator = operator
        self.word = word
        self.variable = ""
        """The variable that `{name}>` stores a descriptor in."""
        self.shell: Call | None = None
        """The shell that will read the heredoc's body as its commands."""
        self.substitution = False
        """The file is a process substitution's pipe."""

    @property
    def writes(self) -> bool:
        """Whether it may make or change the file."""
        return self.operator not in ("<", "<<<", "<<", "<<-", "<&")


class Heredoc:
    """A heredoc whose body is still to come."""

    __slots__ = ("delimiter", "quoted", "redirect", "strip")

    def __init__(self, delimiter: str, redirect: Redirect, *, quoted: bool, strip: bool) -> None:
        self.delimiter = delimiter
        self.redirect = redirect
        self.quoted = quoted
        """The body is taken as it is."""
        self.strip = strip
        """Tabs in front of its lines are cut."""


def read_redirect(lexer: Lexer, heredocs: list[Heredoc]) -> Redirect:
    """Read a redirection from its operator on; a heredoc's delimiter is appended to `heredocs`.

    Raises:
        Refused: its form is not one of those read here.
    """
    match = _OPERATOR.match(lexer.text, lexer.pos)
    if match is None:
        raise Refused("a redirection cannot be read")
    operator = match[0]
    lexer.pos = match.end()
    if operator in ("<<", "<<-"):
        redirect = Redirect(operator, None)
        heredocs.append(_heredoc(lexer, redirect))
        return redirect
    lexer.blanks()
    if operator in (">&", "<&"):
        duplicate = _DUPLICATE.match(lexer.text, lexer.pos)
        if duplicate:
            lexer.pos = duplicate.end()
            return Redirect(operator, None)
    if lexer.text.startswith(("<(", ">("), lexer.pos):
        return _into_substitution(lexer, operator)
    word = lexer.word()
    if word == "":
        raise Refused("a redirection has no target")
    if operator in (">&", "<&"):
        lexer.flag(f"the target of `{operator}` is expanded twice")
    return Redirect(operator, word)


def _into_substitution(lexer: Lexer, operator: str) -> Redirect:
    lexer.pos += 2
    lexer.commands_in_parentheses()
    if lexer.text[lexer.pos : lexer.pos + 1] not in ("", " ", "\t", "\n", ";", "&", "|", ")"):
        raise Refused("a process substitution is glued to a word")
    redirect = Redirect(operator, Word("", quoted=True))
    redirect.substitution = True
    return redirect


def _heredoc(lexer: Lexer, redirect: Redirect) -> Heredoc:
    match = _DELIMITER.match(lexer.text, lexer.pos)
    if match is None:
        raise Refused("a heredoc's delimiter cannot be read")
    lexer.pos = match.end()
    single, double, escaped, plain = match.groups()
    name = single or double or escaped or plain
    return Heredoc(name, redirect, quoted=plain is None, strip=redirect.operator == "<<-")
