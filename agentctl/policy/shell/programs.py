"""What well-known programs read, write and reach, by their options and operands."""

import posixpath
import re
from collections.abc import Callable
from dataclasses import field

from agentctl.policy.shell.builders import BUILDERS
from agentctl.policy.shell.calls import Call, Sink, text_of
from agentctl.policy.shell.fetchers import FETCHERS
from agentctl.policy.shell.finding import FINDERS
from agentctl.policy.shell.hosts import host_of
from agentctl.policy.shell.options import Grammar, Parsed, take_apart
from agentctl.policy.shell.special import (
    SPECIAL,
    awk_writes,
    editor_runs,
    jq_loads,
    pager_runs,
    ssh_settings,
    zip_tests,
)
from agentctl.policy.shell.tables import READS, WRITES
from agentctl.policy.shell.words import AnyWord, Word
from agentctl.records import dataclass

Program = Callable[[Sink, Call], None]


_MOST_WORDS = 24
_MOST_SEEN = 64
_PACKED = re.compile(r"\.(?:gz|z|Z|bz2?|xz|lzma|zst|lz4|br|tgz|tbz2?|txz|taz)\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Habits:
    """What a program does with its options and operands; see `tables`."""

    grammar: Grammar
    roles: dict[str, str]
    program_options: frozenset[str]
    """With one of these, the first operand is a file like the others."""
    operands: str
    risky: bool
    """It has an option that writes a file or runs a program."""
    wary: bool
    """A file name that is read as an option could do harm that its operands do not show."""
    seen: dict[tuple[str, ...], Parsed] = field(default_factory=dict, compare=False, repr=False)

    def _take_apart(self, words: list[AnyWord]) -> Parsed:
        """Take words apart; what all are known of is remembered, and never changed by those who read it."""
        known = [word for word in words if type(word) is str]
        if len(known) < len(words) or len(words) > _MOST_WORDS:
            return take_apart(words, self.grammar)
        key = tuple(known)
        parsed = self.seen.get(key)
        if parsed is None:
            if len(self.seen) >= _MOST_SEEN:
                self.seen.clear()
            parsed = self.seen[key] = take_apart(words, self.grammar)
        return parsed

    def effects(self, sink: Sink, call: Call) -> None:
        """Add what `call` reads and writes."""
        parsed = self._take_apart(call.words[1:])
        if (self.risky and parsed.unsure) or (self.wary and parsed.by_wildcard):
            sink.flag(
                f"an expansion could be an option of `{call.program}` that writes a file or runs a program"
            )
        if self.operands == "z":
            _packed(sink, parsed)
            return
        for name, value in parsed.options:
            role = self.roles.get(name, "")
            into = name in {"t", "target-directory"} and self.operands in {"cp", "mv", "in"}
            if value is None or not role or role == "v" or into:
                continue
            if role in {"r", "l"}:
                sink.read(value)
                sink.unseen = sink.unseen or role == "l"
            elif role == "w":
                sink.write(value)
            elif isinstance(value, str):
                sink.script(value, call, needs_rule=True)
            else:
                sink.flag(f"the program that `{call.program}` runs is known only to the shell")
        self._operands(sink, parsed)

    def _operands(self, sink: Sink, parsed: Parsed) -> None:
        words = parsed.operands
        kind = self.operands
        if kind == "pr":
            sink.read_all(words if parsed.has(*self.program_options) else words[1:])
        elif kind == "in" and parsed.has("d", "directory"):
            sink.write_all(words)
        elif kind in {"cp", "in"}:
            into = _folder(parsed.value("t", "target-directory"))
            sources = words if into else words[:-1]
            _read_or_reach(sink, sources)
            if into or words:
                _write_or_reach(sink, into or words[-1], sources)
        elif kind == "mv":
            into = _folder(parsed.value("t", "target-directory"))
            sources = words if into else words[:-1]
            sink.write_all(sources, tree=True)
            if into or words:
                sink.write(into or words[-1], tree=True, into=sources)
        else:
            if self.program_options and parsed.has(*self.program_options):
                kind = kind[1:]
            _by_role(sink, kind, words)
        if kind in {"cp", "mv", "in"} and words and parsed.has("b", "backup", "S", "suffix"):
            sink.write_beside(words[-1])


def _folder(word: AnyWord | None) -> AnyWord | None:
    return f"{word.rstrip('/')}/" if isinstance(word, str) else word


def _by_role(sink: Sink, roles: str, words: list[AnyWord]) -> None:
    """Each operand in its role; the last role is for all further ones."""
    for at, word in enumerate(words):
        role = roles[min(at, len(roles) - 1)]
        if role == "r":
            sink.read(word)
        elif role in {"w", "t"}:
            sink.write(word, tree=role == "t")
        if role == "t":
            _write_all_there(sink, word)


_EVERYTHING = re.compile(r"((?:.*/)?)(?:\*+|\.(?:\*|\?\*|\[[!^]\.\]\*))")


def _write_all_there(sink: Sink, word: AnyWord) -> None:
    """`rm -rf *` where the call starts, or above, goes for the folder as a whole."""
    match = _EVERYTHING.fullmatch(word.path) if isinstance(word, Word) and word.glob else None
    if match is None:
        return
    for place in sink.absolute(match[1] or "."):
        folder = posixpath.normpath(place)
        if sink.places.start == folder or sink.places.start.startswith(folder.rstrip("/") + "/"):
            sink.write(folder, tree=True)


def _packed(sink: Sink, parsed: Parsed) -> None:
    """`gzip` and its like replace a file by one with another ending."""
    reading = parsed.has("c", "stdout", "to-stdout", "l", "list", "t", "test")
    for word in parsed.operands:
        sink.read(word)
        if not reading:
            sink.write(word)
            sink.write_beside(word if isinstance(word, Word) else _PACKED.sub("", word))
    target = parsed.value("o", "output")
    if target is not None:
        sink.write(target)


def _read_or_reach(sink: Sink, words: list[AnyWord]) -> None:
    for word in words:
        host = host_of(text_of(word))
        if host:
            sink.reach(host)
        else:
            sink.read(word)


def _write_or_reach(sink: Sink, word: AnyWord, sources: list[AnyWord]) -> None:
    host = host_of(text_of(word))
    if host:
        sink.reach(host)
    else:
        sink.write(word, into=sources)


def _habits(options: str, operands: str) -> Habits:
    roles: dict[str, str] = {}
    attached: set[str] = set()
    program: set[str] = set()
    for entry in options.split():
        name, _, role = entry.rstrip("!?").partition("=")
        roles[name] = role or "v"
        if "!" in entry:
            program.add(name)
        if "?" in entry:
            attached.add(name)
    grammar = Grammar(
        values="".join(name for name in roles if len(name) == 1 and name not in attached),
        attached="".join(name for name in attached if len(name) == 1),
        long_values=frozenset(name for name in roles if len(name) > 1 and name not in attached),
        long_flags=frozenset(name for name in attached if len(name) > 1),
    )
    risky = any(role in "wx" for role in roles.values()) or operands == "rw"
    wary = risky and (operands not in {"cp", "mv", "w", "t"} or "x" in roles.values())
    return Habits(
        grammar=grammar,
        roles=roles,
        program_options=frozenset(program),
        operands=operands,
        risky=risky,
        wary=wary,
    )


def _read_tables(*tables: str) -> dict[str, Program]:
    programs: dict[str, Program] = {}
    for line in "".join(tables).replace("\n    ", " ").split("\n"):
        if not line:
            continue
        names, options, operands = line.split(":")
        effects = _habits(options, operands.strip()).effects
        programs.update(dict.fromkeys(names.split(), effects))
    return programs


def _both(first: Program, second: Program) -> Program:
    def effects(sink: Sink, call: Call) -> None:
        first(sink, call)
        second(sink, call)

    return effects


_TABLES = _read_tables(READS, WRITES)
_SCRIPTED = {
    **{name: _both(_TABLES[name], awk_writes) for name in ("awk", "gawk", "mawk", "nawk")},
    **{name: _both(_TABLES[name], editor_runs) for name in ("vim", "vi", "view", "nvim", "ex")},
    **{name: _both(_TABLES[name], pager_runs) for name in ("less", "more", "most")},
    **{name: _both(_TABLES[name], jq_loads) for name in ("jq", "gojq", "jaq", "yq")},
    "scp": _both(_TABLES["scp"], ssh_settings),
    "zip": _both(_TABLES["zip"], zip_tests),
}
PROGRAMS: dict[str, Program] = {**_TABLES, **BUILDERS, **FETCHERS, **FINDERS, **SPECIAL, **_SCRIPTED}
