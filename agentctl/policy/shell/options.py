"""Takes a program's words apart into options and operands, the way GNU programs do."""

from collections.abc import Sequence
from dataclasses import field

from agentctl.policy.shell.words import AnyWord, Word
from agentctl.records import dataclass

_SHORTEST = len("--o")


@dataclass(frozen=True, slots=True, kw_only=True)
class Grammar:
    """Which options of a program take a value. Letters and long names, without dashes."""

    values: str = ""
    """Letters whose value is attached or the next word."""
    attached: str = ""
    """Letters whose value, if any, is attached: `-i.bak`."""
    long_values: frozenset[str] = frozenset()
    """Long names whose value stands behind `=` or is the next word."""
    long_flags: frozenset[str] = frozenset()
    """Further long names that an abbreviation may mean."""


@dataclass(slots=True, kw_only=True)
class Parsed:
    """The words of a program, told apart."""

    options: list[tuple[str, AnyWord | None]] = field(default_factory=list)
    """Each option's letter or full long name with its value."""
    operands: list[AnyWord] = field(default_factory=list)
    rest: list[AnyWord] = field(default_factory=list)
    """Everything from the first operand on, where reading stops there."""
    unsure: bool = False
    """A word that only the shell knows could be an option, or an option's name is not certain."""
    by_wildcard: bool = False
    """A wildcard could match a file whose name is read as an option; `unsure` says of all else."""

    def value(self, *names: str) -> AnyWord | None:
        """Return the value of the last option of these names, or None."""
        return next((value for name, value in reversed(self.options) if name in names), None)

    def has(self, *names: str) -> bool:
        """Return whether one of these options is there."""
        return any(name in names for name, _ in self.options)


def take_apart(words: Sequence[AnyWord], grammar: Grammar, *, first_ends: bool = False) -> Parsed:
    """Return the options and operands of `words`, the words behind a program's name.

    Args:
        words: what the program is given.
        grammar: which of its options take a value.
        first_ends: options end at the first operand, as for programs that run another.
    """
    parsed = Parsed()
    at = 0
    while at < len(words):
        word = words[at]
        lead = word if isinstance(word, str) else word.lead
        known = isinstance(word, str)
        if lead == "--" and known:
            parsed.rest = list(words[at + 1 :])
            parsed.operands += parsed.rest
            break
        if lead.startswith("--"):
            at += _long(words, at, grammar, parsed)
        elif lead.startswith("-") and (lead != "-" or not known):
            at += _short(words, at, grammar, parsed)
        else:
            if isinstance(word, Word) and word.dashed:
                parsed.by_wildcard = parsed.by_wildcard or word.glob
                parsed.unsure = parsed.unsure or not word.glob
            if first_ends:
                parsed.rest = list(words[at:])
                parsed.operands += parsed.rest
                break
            parsed.operands.append(word)
            at += 1
    return parsed


def full_name(name: str, grammar: Grammar) -> str:
    """Return the long option that `name` means, abbreviations included; the riskiest where several fit."""
    if name in grammar.long_values or name in grammar.long_flags:
        return name
    fitting = sorted(full for full in grammar.long_values if full.startswith(name))
    fitting += sorted(full for full in grammar.long_flags if full.startswith(name))
    return fitting[0] if fitting else name


def _long(words: Sequence[AnyWord], at: int, grammar: Grammar, parsed: Parsed) -> int:
    """Read a long option; returns how many words it takes."""
    word = words[at]
    lead = word if isinstance(word, str) else word.lead
    name, equals, attached = lead[2:].partition("=")
    value: AnyWord | None = None
    if isinstance(word, Word):
        if not equals:
            parsed.unsure = True
        value = _tail(word, attached)
    elif equals:
        value = attached
    name = full_name(name, grammar)
    if equals or name not in grammar.long_values:
        parsed.options.append((name, value))
        return 1
    parsed.options.append((name, _next(words, at, parsed)))
    return 2


def _short(words: Sequence[AnyWord], at: int, grammar: Grammar, parsed: Parsed) -> int:
    """Read a cluster of letters; returns how many words it takes."""
    word = words[at]
    lead = word if isinstance(word, str) else word.lead
    for index, letter in enumerate(lead[1:], start=2):
        tail = lead[index:]
        if letter in grammar.attached or letter in grammar.values:
            if isinstance(word, Word):
                parsed.options.append((letter, _tail(word, tail)))
                return 1
            if tail or letter in grammar.attached:
                parsed.options.append((letter, tail or None))
                return 1
            parsed.options.append((letter, _next(words, at, parsed)))
            return 2
        parsed.options.append((letter, None))
    if isinstance(word, Word):
        parsed.unsure = True
    return 1


def _next(words: Sequence[AnyWord], at: int, parsed: Parsed) -> AnyWord | None:
    """The word behind an option, as its value; where it may become several, what follows is not certain."""
    value = words[at + 1] if at + 1 < len(words) else None
    if isinstance(value, Word) and value.spread and not value.numeric:
        parsed.by_wildcard = parsed.by_wildcard or value.glob
        parsed.unsure = parsed.unsure or not value.glob
    return value


def _tail(word: Word, lead: str) -> Word:
    """The unknown value behind an option's name."""
    tail = Word(word.text)
    tail.lead = lead
    tail.numeric = word.numeric
    tail.spread = word.spread
    return tail


def names(text: str) -> frozenset[str]:
    """Return the names in `text`, which blanks separate."""
    return frozenset(text.split())


def abbreviates(word: str, full: str) -> bool:
    """Whether `word` is the long option `full`, its value cut off, or a beginning of it."""
    name = word.partition("=")[0]
    return len(name) > _SHORTEST and full.startswith(name)
