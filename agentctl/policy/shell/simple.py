"""Reads a simple command: assignments, words and redirections, in the order bash takes them."""

import re
from abc import abstractmethod
from string import ascii_letters
from typing import Protocol

from agentctl.policy.shell.calls import Call
from agentctl.policy.shell.lexing import PLAIN, Lexer
from agentctl.policy.shell.parameters import read_parameter
from agentctl.policy.shell.places import Places
from agentctl.policy.shell.redirects import Heredoc, Redirect, read_redirect
from agentctl.policy.shell.words import AnyWord, Refused, Word

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?:\[[0-9]+\])?\+?=")
_SUBSCRIPT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\[")
_NO_COMMAND = re.compile(r"(?:[ \t\n]|\\\n|#[^\n]*\n)*")
_DESCRIPTOR = re.compile(r"[0-9]{1,4}(?=[<>])")
_VARIABLE_DESCRIPTOR = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}(?=[<>])")
_ORDINARY = frozenset(ascii_letters + "./-_+@%,:^'\"$")
"""What most words begin with: never a descriptor, an operator or a comment."""
_PARENTHESES = re.compile(r"(?:[ \t]|\\\n)*\((?:[ \t]|\\\n)*\)")
_KEYWORDS_LIST = "if then elif else fi while until do done for case esac select function coproc time { } ! [["
KEYWORDS = frozenset(_KEYWORDS_LIST.split())
_DECLARES = frozenset({"export", "declare", "typeset", "local", "readonly"})


class Assignment:
    """`name=value` in front of a command or alone; `value` is None for an array."""

    __slots__ = ("as_written", "name", "value")

    def __init__(self, name: str, value: AnyWord | None, as_written: str) -> None:
        self.name = name
        self.value = value
        self.as_written = as_written


class Listener(Protocol):
    """Hears what a line does, in the order of the line."""

    places: Places

    def command(self, assignments: list[Assignment], words: list[AnyWord], redirects: list[Redirect]) -> None:
        """A simple command, after the commands of its substitutions."""

    def redirect(self, redirect: Redirect) -> None:
        """A redirection of a compound command, before its commands."""

    def sets(self, name: str, values: list[AnyWord] | None) -> None:
        """A variable is set by a loop to each of `values`; None where they are not in the line."""

    def script(self, text: str, call: Call, *, needs_rule: bool = False) -> None:
        """A shell is given `text` to run by a heredoc."""

    def pipe(self, *, simple: bool) -> None:
        """What was heard last is piped into what comes next; `simple` where that is one simple command."""

    def no_pipe(self) -> None:
        """Nothing is piped into what comes next."""

    def flag(self, reason: str) -> None:
        """The line is opaque because of `reason`."""

    def known(self, name: str) -> str | None:
        """The value of a variable where it is certain."""

    def bind(self, name: str, value: str) -> None:
        """A loop's variable holds `value` while the body is read once; empty: the loop is over."""

    def bound(self, name: str) -> str | None:
        """What a loop's variable holds in this reading of the body."""

    def evaluates(self, used: set[str], changed: set[str]) -> None:
        """Arithmetic evaluates the variables `used`, and sets those in `changed` to a number."""

    def counts(self, word: AnyWord) -> bool:
        """Whether `word` is a number, or a variable that holds nothing else in this line."""


class SimpleReader(Lexer):
    """Reads simple commands and tells `listener`."""

    def __init__(self, text: str, listener: Listener, *, depth: int = 0) -> None:
        super().__init__(text, depth=depth)
        self.listener = listener
        self.heard = 0
        """How many simple commands have been read."""
        self.places = listener.places
        self.heredocs: list[Heredoc] = []
        """Those whose body is still to come."""

    @abstractmethod
    def newline(self) -> None:
        """Read a newline, and the heredoc bodies behind it."""

    @abstractmethod
    def space(self) -> None:
        """Skip blanks, comments and newlines."""

    @abstractmethod
    def function(self) -> None:
        """Read a function's body; the position is behind its parentheses."""

    def flag(self, reason: str) -> None:
        """See Lexer."""
        self.listener.flag(reason)

    def known(self, name: str) -> str | None:
        """See Lexer."""
        return self.listener.known(name)

    def bound(self, name: str) -> str | None:
        """See Lexer."""
        return self.listener.bound(name)

    def evaluates(self, used: set[str], changed: set[str]) -> None:
        """See Lexer."""
        self.listener.evaluates(used, changed)

    def counts(self, word: AnyWord) -> bool:
        """See Lexer."""
        return self.listener.counts(word)

    def parameter(self, *, quoted: bool) -> tuple[str, bool, bool]:
        """See Lexer."""
        return read_parameter(self, quoted=quoted)

    def simple_command(self) -> None:
        """Read one simple command or function definition."""
        assignments: list[Assignment] = []
        words: list[AnyWord] = []
        redirects: list[Redirect] = []
        try:
            if self._parts(assignments, words, redirects):
                return
        except Refused:
            if words:
                # What has been read of it is shown to deny rules.
                self.listener.command(assignments, words, redirects)
            raise
        if not (assignments or words or redirects):
            raise Refused("a command is missing")
        self.heard += 1
        self.listener.command(assignments, words, redirects)

    def _parts(self, assignments: list[Assignment], words: list[AnyWord], redirects: list[Redirect]) -> bool:
        """Read the parts of a simple command; returns whether they were a function's definition."""
        text, end = self.text, self.end
        while True:
            self.blanks()
            pos = self.pos
            char = text[pos] if pos < end else "\n"
            if char in _ORDINARY:
                plain = PLAIN.match(text, pos) if words and words[0] not in _DECLARES else None
                if plain is None:
                    self._word(assignments, words, fresh=not (assignments or redirects))
                else:
                    words.append(plain[0])
                    self.pos = plain.end()
            elif char in "\n;|)" or (char == "&" and not text.startswith("&>", pos)):
                return False
            elif char in "<>&":
                self._redirect_or_substitution(words, redirects, char)
            elif char == "#":
                close = text.find("\n", pos)
                self.pos = end if close < 0 else close
            elif char == "(":
                self._parenthesis_behind(assignments, words, redirects)
                return True
            elif not self._descriptor(redirects, char):
                self._word(assignments, words, fresh=not (assignments or redirects))

    def _word(self, assignments: list[Assignment], words: list[AnyWord], *, fresh: bool) -> None:
        if (not words or words[0] in _DECLARES) and self._assignment(assignments, words):
            return
        start = self.pos
        word = self.word()
        if not words and "\\\n" in self.text[start : self.pos] and "=" in self.text[start : self.pos]:
            raise Refused("a line continuation stands in what may be an assignment")
        if isinstance(word, str):
            if word in KEYWORDS and not words and fresh:
                raise Refused(f"the keyword `{word}` stands where a command is expected")
        else:
            if word.alts:
                words.extend(word.alts)
                return
            if word.literal and words:
                word = word.text
        words.append(word)

    def _assignment(self, assignments: list[Assignment], words: list[AnyWord]) -> bool:
        """Read `name=value` where one may stand; behind `export` it becomes a word of the command."""
        match = _ASSIGNMENT.match(self.text, self.pos)
        if match is None:
            if _SUBSCRIPT.match(self.text, self.pos):
                raise Refused("an array's subscript is evaluated")
            return False
        start = self.pos
        self.pos = match.end()
        value: AnyWord | None = None
        if self.text.startswith("(", self.pos):
            self._array()
        else:
            value = self.word()
        as_written = self.text[start : self.pos]
        if words:
            words.append(_declared(match[0], value, as_written))
        else:
            assignments.append(Assignment(match[1], value, as_written))
        return True

    def _array(self) -> None:
        """Read `(word …)` behind `name=`."""
        self.pos += 1
        while True:
            self.space()
            char = self.text[self.pos : self.pos + 1]
            if char == ")":
                self.pos += 1
                if self.text[self.pos : self.pos + 1] not in {"", " ", "\t", "\n", ";", "&", "|", ")"}:
                    raise Refused("something is glued to an array")
                return
            if char == "[":
                raise Refused("an array with subscripts or without an end cannot be read")
            if self.text.startswith(("<(", ">("), self.pos):
                self.pos += 2
                self.commands_in_parentheses()
            elif self.word() == "":
                raise Refused("an array cannot be read")

    def _descriptor(self, redirects: list[Redirect], char: str) -> bool:
        """Read a redirection that begins with a descriptor's number, or with a variable for one."""
        if char.isdecimal():
            match = _DESCRIPTOR.match(self.text, self.pos)
        elif char == "{":
            match = _VARIABLE_DESCRIPTOR.match(self.text, self.pos)
        else:
            return False
        if match is None:
            return False
        self.pos = match.end()
        redirect = read_redirect(self, self.heredocs)
        if char == "{":
            redirect.variable = match[1]
            self.flag("a redirection stores its descriptor in a variable")
        redirects.append(redirect)
        return True

    def _redirect_or_substitution(self, words: list[AnyWord], redirects: list[Redirect], char: str) -> None:
        if char == "&" or not self.text.startswith("(", self.pos + 1):
            redirects.append(read_redirect(self, self.heredocs))
            return
        start = self.pos
        if start and self.text[start - 1] not in " \t\n;&|()<>":
            raise Refused("a process substitution is glued to a word")
        self.pos += 2
        self.commands_in_parentheses()
        if self.text[self.pos : self.pos + 1] not in ("", " ", "\t", "\n", ";", "&", "|", ")"):
            raise Refused("a process substitution is glued to a word")
        word = Word(self.text[start : self.pos])
        word.lead = "/dev/fd/"
        word.path = "/dev/fd/63"
        # Bash 5.2 makes no word at all of one without a command.
        word.spread = _NO_COMMAND.fullmatch(self.text, start + 2, self.pos - 1) is not None
        words.append(word)

    def _parenthesis_behind(
        self, assignments: list[Assignment], words: list[AnyWord], redirects: list[Redirect]
    ) -> None:
        """`name ()` defines a function; any other opening parenthesis here is an error."""
        match = _PARENTHESES.match(self.text, self.pos)
        if match is None or assignments or redirects or len(words) != 1 or type(words[0]) is not str:
            raise Refused("a parenthesis stands where none may")
        if words[0] in KEYWORDS:
            raise Refused("a keyword stands where a name is expected")
        self.flag("it defines a function")
        self.pos = match.end()
        self.function()


def _declared(lead: str, value: AnyWord | None, as_written: str) -> AnyWord:
    if value is None:
        word = Word(as_written)
        word.lead = lead
        return word
    if isinstance(value, str):
        return lead + value
    if value.literal:
        return lead + value.text
    word = Word(as_written)
    word.lead = lead + value.lead
    return word
