"""Patterns of rules, compiled once: command words, paths by component, hosts and agent names.

A pattern answers two questions that differ when something is not known before the shell runs: `allows` is
true only if every value could do is covered, `restricts` is true as soon as one value would be.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Protocol, TypeAlias

from agentctl.policy.paths import Place, absolute_pattern, before_wildcard, normal_path, path_regex
from agentctl.protocol.effects import Effect, ReachHost, ReadPath, RunProgram, SpawnAgent, WritePath
from agentctl.records import dataclass

PATTERN_TOOLS = ("shell", "write_file", "read_file", "network", "spawn_agent")
"""The entries whose rules may carry a pattern, one for each kind of effect."""


class PatternError(ValueError):
    """A pattern cannot be meant as written; the text says what to write instead."""


class Pattern(Protocol):
    """One compiled pattern. Pure and total on every effect; another kind of effect never matches."""

    def allows(self, effect: Effect) -> bool:
        """Return whether everything this effect can turn out to be is covered."""

    def restricts(self, effect: Effect) -> bool:
        """Return whether something this effect can turn out to be is covered."""


Word: TypeAlias = "str | re.Pattern[str]"
"""A literal word, or one with `*` in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellPattern:
    """Words of one simple command."""

    words: tuple[Word, ...]
    open_end: bool
    """The pattern ended in a `*` word: any further words, or none."""
    literal: bool
    """No word holds a `*`."""
    program: str
    """The first word in lower case where it is a name without folder or wildcard; to say no early."""

    def allows(self, effect: Effect) -> bool:
        """Match the exact words; a word the shell has yet to make is covered by a `*` only.

        Through a wrapper (`nohup pytest`) only when the words reach the command inside it.
        """
        if not isinstance(effect, RunProgram):
            return False
        if self._covers(effect.argv, effect):
            return not self._climbs(effect.argv)
        return any(
            len(self.words) > len(outer) - len(effect.argv)
            and self._covers(outer, effect)
            and not self._climbs(outer)
            for outer in effect.outer
        )

    def _climbs(self, argv: tuple[str, ...]) -> bool:
        """Return whether a `*` inside a word stands for a way up: `./scripts/*` is not `./scripts/../x`."""
        return not self.literal and any(
            not (isinstance(word, str) or word.pattern == _ANYTHING or "\\.\\." in word.pattern)
            and _WAY_UP.search(given) is not None
            for word, given in zip(self.words, argv, strict=False)
        )

    def restricts(self, effect: Effect) -> bool:
        """Match the same, and the program under any path, and words that could turn out to match."""
        if not isinstance(effect, RunProgram):
            return False
        if self.program and not effect.unknown:
            program = effect.argv[0]
            if program != self.program and program.rsplit("/", 1)[-1].lower() != self.program:
                return False
        argv = _bare(effect.argv, self.words[:1])
        return self._could_cover(argv, effect) if effect.unknown else self._covers(argv, effect)

    def _covers(self, argv: tuple[str, ...], effect: RunProgram) -> bool:
        count = len(self.words)
        if len(argv) < count or (len(argv) > count and not self.open_end):
            return False
        if self.literal:
            if argv[:count] != self.words:
                return False
        elif not all(_fits(word, given) for word, given in zip(self.words, argv, strict=False)):
            return False
        return not effect.unknown or self._covers_unknown(argv, effect)

    def _covers_unknown(self, argv: tuple[str, ...], effect: RunProgram) -> bool:
        """Return whether each unknown word falls to a `*`: to the last one if it can become many words."""
        shift = len(argv) - len(effect.argv)
        for position in effect.unknown:
            place = position + shift
            if place >= len(self.words):
                continue
            word = self.words[place]
            if position in effect.spread or isinstance(word, str) or word.pattern != _ANYTHING:
                return False
        return True

    def _could_cover(self, argv: tuple[str, ...], effect: RunProgram) -> bool:
        """Match where an unknown word may be any word, and a spread one none, one or many."""
        count = len(self.words)
        reached = {0}  # how many of the pattern's words can have been used up so far
        for position, given in enumerate(argv):
            unknown = position in effect.unknown
            if unknown and position in effect.spread:
                reached = set(range(min(reached), count + 1))
                continue
            reached = {
                min(used + 1, count)
                for used in reached
                if (self.open_end if used == count else unknown or _fits(self.words[used], given))
            }
            if not reached:
                return False
        return count in reached


_WAY_UP = re.compile(r"(?:^|[/=:,])\.\.(?:/|$)")


def _fits(word: Word, given: str) -> bool:
    return word == given or (not isinstance(word, str) and word.fullmatch(given) is not None)


def _bare(argv: tuple[str, ...], first: tuple[Word, ...]) -> tuple[str, ...]:
    """Return `argv` with its program as the pattern spells it, where the two can be the same program."""
    if not first:
        return argv
    program, word = argv[0], first[0]
    if isinstance(word, str):
        return (word, *argv[1:]) if _same_program(program, word) else argv
    return (normal_path(program) if "/" in word.pattern else program.rsplit("/", 1)[-1], *argv[1:])


def _same_program(given: str, named: str) -> bool:
    """Compare by name unless both have a folder; some systems run `RM` as `rm`, so case does not count."""
    given, named = given.lower(), named.lower()
    if "/" in given and "/" in named:
        return normal_path(given) == normal_path(named)
    return given.rsplit("/", 1)[-1] == named.rsplit("/", 1)[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class PathPattern:
    """A path pattern bound to a place: a regular expression on the whole resolved path."""

    regex: re.Pattern[str]
    below: re.Pattern[str]
    """The same, and everything under what it matches: a deny on a folder is a deny on its content. Case does
    not count: some file systems open `.GIT` as `.git`."""
    text: str
    """The pattern as an absolute path."""
    inside: str
    """The folder that everything it matches is in."""

    def allows(self, effect: Effect) -> bool:
        """Match a resolved path by component; with wildcards the shell has yet to expand, all they can be."""
        match effect:
            case WritePath(path=path, unresolved=unresolved, glob=glob):
                return not unresolved and self._covers(path, glob=glob)
            case ReadPath(path=path, glob=glob):
                return self._covers(path, glob=glob)
            case _:
                return False

    def restricts(self, effect: Effect) -> bool:
        """Match the same and what lies under it; of wildcards anything they can be."""
        match effect:
            case WritePath(path=path, unresolved=unresolved, glob=glob, tree=tree):
                if unresolved:
                    return False
                if tree and self.inside.startswith(f"{path.rstrip('/')}/"):
                    return True
            case ReadPath(path=path, glob=glob):
                pass
            case _:
                return False
        return self.below.fullmatch(path) is not None or (glob and _could_meet(self.text, path))

    def _covers(self, path: str, *, glob: bool) -> bool:
        # What stands for a wildcard matches no literal of the pattern, only a wildcard of its own.
        return self.regex.fullmatch(_SHELL_WILDCARD.sub("\0", path) if glob else path) is not None


_SHELL_WILDCARD = re.compile(r"\*+|\?|\[[^/\]]*\]|\[")


def _could_meet(pattern: str, glob: str) -> bool:
    """Return whether some path could match both a pattern and a shell's wildcards; when unsure, true."""
    mine, theirs = pattern.split("/"), glob.split("/")
    for one, other in zip(mine, theirs, strict=False):
        if one == "**":
            return _could_meet_part(mine[-1], theirs[-1])
        if not _could_meet_part(one, other):
            return False
    return "**" in mine or len(mine) <= len(theirs)


def _could_meet_part(one: str, other: str) -> bool:
    """Compare what stands before the first and behind the last wildcard of two components."""
    if one == "**":
        return True
    first, second = re.split(r"[*?\[]", one), re.split(r"[*?\[]", other)
    heads = first[0], second[0]
    if len(first) == 1 and len(second) == 1:
        return one == other
    tails = re.split(r"[*?\]]", one)[-1], re.split(r"[*?\]]", other)[-1]
    return _compatible(*heads, str.startswith) and _compatible(*tails, str.endswith)


def _compatible(one: str, other: str, holds: Callable[[str, str], bool]) -> bool:
    return holds(one, other) or holds(other, one)


@dataclass(frozen=True, slots=True, kw_only=True)
class NamePattern:
    """A host or agent name: exact, or with `*`."""

    regex: re.Pattern[str]

    def allows(self, effect: Effect) -> bool:
        """Match the name."""
        match effect:
            case ReachHost(host=name):
                return self.regex.fullmatch(name.rstrip(".").lower()) is not None
            case SpawnAgent(agent=name):
                return self.regex.fullmatch(name) is not None
            case _:
                return False

    def restricts(self, effect: Effect) -> bool:
        """Match the name."""
        return self.allows(effect)


def compile_pattern(tool: str, text: str, place: Place) -> Pattern:
    """Return the pattern of a rule on `tool`, one of PATTERN_TOOLS.

    Raises:
        PatternError: `text` cannot be meant as written.
    """
    match tool:
        case "shell":
            return shell_pattern(text)
        case "write_file" | "read_file":
            return path_pattern(text, place)
        case "network":
            return _host_pattern(text)
        case _:
            return _agent_pattern(text)


@lru_cache(maxsize=4096)
def shell_pattern(text: str) -> ShellPattern:
    """Return the pattern of a simple command's words.

    Raises:
        PatternError: empty, an open quote, an operator that stands between commands, or a rule inside a rule.
    """
    if (nested := re.fullmatch(r"\s*[A-Z]\w*\((.+)\)\s*", text)) is not None:  # as other agents write it
        raise PatternError(f"a pattern is the command's words: write {nested[1]!r}, not {text.strip()!r}")
    words = [_word(pieces) for pieces in _split(text)]
    if not words:
        raise PatternError("the pattern is empty; write the command's words, or the tool without brackets")
    open_end = not isinstance(words[-1], str) and words[-1].pattern == _ANYTHING
    if open_end:
        words.pop()
    first = words[0] if words else ""
    return ShellPattern(
        words=tuple(words),
        open_end=open_end,
        literal=all(isinstance(word, str) for word in words),
        program=first.lower() if isinstance(first, str) and "/" not in first else "",
    )


@lru_cache(maxsize=4096)
def path_pattern(text: str, place: Place) -> PathPattern:
    """Return the path pattern `text`, bound to `place`.

    Raises:
        PatternError: empty, `~user`, or `..` after a wildcard.
    """
    try:
        source = path_regex(text, place)
    except ValueError as error:
        raise PatternError(str(error)) from None
    return PathPattern(
        regex=re.compile(source, re.DOTALL),
        below=re.compile(f"(?:{source})(?:/.*)?", re.DOTALL | re.IGNORECASE),
        text=absolute_pattern(text, place),
        inside=before_wildcard(absolute_pattern(text, place))[0],
    )


def _host_pattern(text: str) -> NamePattern:
    name = text.strip().lower().rstrip(".")
    inner = name.removeprefix("*.")
    if name == "*":
        return NamePattern(regex=re.compile(r".+"))
    has_port = ":" in inner and not inner.startswith("[")
    if not inner or "*" in inner or "/" in inner or has_port:
        raise PatternError("a host is written `example.com` or `*.example.com`, without scheme, port or path")
    prefix = r"[^/]+\." if name != inner else ""
    return NamePattern(regex=re.compile(prefix + re.escape(inner)))


def _agent_pattern(text: str) -> NamePattern:
    name = text.strip()
    if not name:
        raise PatternError("the pattern is empty; write an agent's name")
    return NamePattern(regex=re.compile(".*".join(re.escape(part) for part in name.split("*")), re.DOTALL))


_ANYTHING = "(?s:.*)"
_OPERATORS = frozenset({"&&", "||", "|", ";", "&", "|&", ";;", ">", ">>", "<", "2>", "&>", ">|"})


def _word(pieces: tuple[tuple[str, bool], ...]) -> Word:
    """Build one word from pieces of (text, quoted): a `*` outside quotes is the wildcard."""
    if all(quoted or "*" not in text for text, quoted in pieces):
        word = "".join(text for text, _ in pieces)
        if word in _OPERATORS and not any(quoted for _, quoted in pieces):
            raise PatternError(
                f"a pattern is one simple command, and {word!r} stands between two; write a rule for each"
            )
        return word
    source = "".join(
        re.escape(text) if quoted else ".*".join(re.escape(part) for part in text.split("*"))
        for text, quoted in pieces
    )
    return re.compile(f"(?s:{source})")


def _split(text: str) -> list[tuple[tuple[str, bool], ...]]:
    """Split a pattern into words as a shell would, keeping for each piece whether it was quoted."""
    words: list[tuple[tuple[str, bool], ...]] = []
    pieces: list[tuple[str, bool]] = []
    index = 0
    while index < len(text):
        char = text[index]
        if char in " \t\n":
            if pieces:
                words.append(tuple(pieces))
                pieces = []
            index += 1
        elif char in "'\"":
            end = text.find(char, index + 1)
            if end < 0:
                raise PatternError(f"the quote {char} is not closed")
            pieces.append((text[index + 1 : end], True))
            index = end + 1
        elif char == "\\":
            pieces.append((text[index + 1 : index + 2], True))
            index += 2
        else:
            end = index
            while end < len(text) and text[end] not in " \t\n'\"\\":
                end += 1
            pieces.append((text[index:end], False))
            index = end
    if pieces:
        words.append(tuple(pieces))
    return words


_PLAIN = re.compile(r"[A-Za-z0-9_./:@%+=,~^{}\[\]?!#$&;|<>()-]+")
_PLAIN_LINE = re.compile(
    r"[A-Za-z0-9_./:@%+=,~^{}\[\]?!#$&;|<>()-]+(?: [A-Za-z0-9_./:@%+=,~^{}\[\]?!#$&;|<>()-]+)*"
)


def quote_word(word: str) -> str:
    """Return `word` as a pattern that matches exactly it."""
    if _PLAIN.fullmatch(word) and word not in _OPERATORS:
        return word
    if "'" not in word:
        return f"'{word}'"
    return "'" + "'\"'\"'".join(word.split("'")) + "'"


def quote_words(words: tuple[str, ...]) -> str:
    """Return a pattern that matches exactly these words."""
    line = " ".join(words)
    if (
        _PLAIN_LINE.fullmatch(line)
        and line.count(" ") == len(words) - 1
        and not _OPERATORS.intersection(words)
    ):
        return line
    return " ".join(quote_word(word) for word in words)
