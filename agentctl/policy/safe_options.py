"""One accepted form of a program: which options and operands it may have, and nothing else.

Options are read as getopt_long reads them: clusters of letters, values attached or as the next word, `--`,
options behind operands. Abbreviated long options are refused, like all else that the form does not list.
"""

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Final

from agentctl.records import dataclass

ANY_NUMBER: Final = 1_000_000
"""As many operands as there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """The words of a command behind its program and sub-command."""

    words: tuple[str, ...]
    unknown: frozenset[int] = frozenset()
    """Positions whose value only the shell will know."""
    spread: frozenset[int] = frozenset()
    """Those that may become any number of words."""
    dashed: frozenset[int] = frozenset()
    """Those that may turn into an option."""

    def known(self, at: int) -> bool:
        """Return whether the word at a position is what it will be."""
        return at not in self.unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """The words of a command, told apart."""

    options: tuple[tuple[str, str | None], ...]
    """Each option with its value: `("-n", "5")`, `("--cached", None)`."""
    operands: tuple[str | None, ...]
    """None stands for one that is not known."""
    open_ended: bool
    """Some operand may become any number of them."""


Check = Callable[[Words, Parsed], bool]
"""Looks deeper than options do: a sed script, an awk program, a printf format."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """A way to call a program that only looks."""

    flags: str = ""
    """Letters of options without a value; they may stand together behind one dash."""
    values: str = ""
    """Letters of options with a value, attached or as the next word."""
    attached: str = ""
    """Letters of options whose value, if any, is attached: `-U3`, `-M`."""
    long: frozenset[str] = frozenset()
    """Long options, with their dashes, without a value or with one behind `=`."""
    long_values: frozenset[str] = frozenset()
    """Long options with a value behind `=` or as the next word."""
    operands: int = ANY_NUMBER
    """The most operands."""
    prefix: str = ""
    """What every operand must begin with."""
    operands_with: str = ""
    """What every operand must hold."""
    numbers: bool = False
    """`-5` is a number."""
    raw: bool = False
    """Every word is an operand, for programs whose words are a language of their own."""
    words: Mapping[str, int] = field(default_factory=dict)
    """For programs like `find`: each word that begins with a dash, and how many words belong to it."""
    needs: frozenset[str] = frozenset()
    """At least one of these options must be there."""
    only: int = ANY_NUMBER
    """The most words of any kind."""
    without: tuple[str, ...] = ()
    """Texts that no option's value may hold."""
    checks: tuple[Check, ...] = ()

    def accepts(self, words: Words) -> bool:
        """Return whether a command with these words behind its program is of this form. Pure and total."""
        if len(words.words) > self.only:
            return False
        parsed = self._parse(words)
        if parsed is None:
            return False
        if len(parsed.operands) > self.operands or (parsed.open_ended and self.operands < ANY_NUMBER):
            return False
        if not all(
            operand.startswith(self.prefix) and self.operands_with in operand
            if operand is not None
            else not self.prefix and not self.operands_with
            for operand in parsed.operands
        ):
            return False
        if self.needs and not any(name in self.needs for name, _ in parsed.options):
            return False
        if any(text in (value or "") for _, value in parsed.options for text in self.without):
            return False
        return all(check(words, parsed) for check in self.checks)

    def _parse(self, words: Words) -> Parsed | None:
        if self.raw:
            return Parsed(options=(), operands=words.words, open_ended=bool(words.spread))
        return self._by_words(words) if self.words else self._by_getopt(words)

    def _by_getopt(self, words: Words) -> Parsed | None:
        options: list[tuple[str, str | None]] = []
        operands: list[str | None] = []
        at, count, open_ended = 0, len(words.words), False
        only_operands = False
        while at < count:
            word = words.words[at]
            if not words.known(at):
                if at in words.dashed and not only_operands:
                    return None
                operands.append(None)
                open_ended = open_ended or at in words.spread
                at += 1
            elif only_operands or word == "-" or not word.startswith("-"):
                operands.append(word)
                at += 1
            elif word == "--":
                only_operands = True
                at += 1
            else:
                # Some programs take what follows an operand as operands: where their number counts, it is
                # not clear what such a word is.
                taken = self._option(word, words, at, options)
                if taken == 0 or (operands and self.operands < ANY_NUMBER):
                    return None
                at += taken
        return Parsed(options=tuple(options), operands=tuple(operands), open_ended=open_ended)

    def _option(self, word: str, words: Words, at: int, options: list[tuple[str, str | None]]) -> int:
        """Take one option word, and its value; return how many words that were, 0 if it is not accepted."""
        if word.startswith("--"):
            name, equals, value = word.partition("=")
            if name in self.long_values and not equals:
                return self._next(name, words, at, options)
            if name not in self.long and name not in self.long_values:
                return 0
            options.append((name, value if equals else None))
            return 1
        if self.numbers and word[1:].isdecimal():
            options.append(("-NUMBER", word[1:]))
            return 1
        for index, letter in enumerate(word[1:], start=1):
            rest = word[index + 1 :]
            if letter in self.flags:
                options.append((f"-{letter}", None))
            elif letter in self.attached:
                options.append((f"-{letter}", rest or None))
                return 1
            elif letter in self.values:
                if not rest:
                    return self._next(f"-{letter}", words, at, options)
                options.append((f"-{letter}", rest))
                return 1
            else:
                return 0
        return 1

    def _next(self, name: str, words: Words, at: int, options: list[tuple[str, str | None]]) -> int:
        """Take the next word as the value of `name`; it may be unknown if it is one word for certain."""
        following = at + 1
        if following >= len(words.words) or following in words.spread:
            return 0
        known = words.known(following)
        if not known and self.without:
            return 0
        options.append((name, words.words[following] if known else None))
        return 2

    def _by_words(self, words: Words) -> Parsed | None:
        options: list[tuple[str, str | None]] = []
        operands: list[str | None] = []
        at, count, open_ended = 0, len(words.words), False
        while at < count:
            word = words.words[at]
            if not words.known(at):
                if at in words.dashed:
                    return None
                operands.append(None)
                open_ended = open_ended or at in words.spread
                at += 1
                continue
            if not word.startswith("-") or word == "-":
                operands.append(word)
                at += 1
                continue
            if word not in self.words:
                return None
            taken = self.words[word]
            values = range(at + 1, at + 1 + taken)
            if at + taken >= count or any(value in words.spread for value in values):
                return None
            options.append((word, words.words[at + 1] if taken and words.known(at + 1) else None))
            at += 1 + taken
        return Parsed(options=tuple(options), operands=tuple(operands), open_ended=open_ended)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnyForm:
    """Whatever its words are, the program only looks."""

    def accepts(self, words: Words) -> bool:
        """Accept."""
        del words
        return True
