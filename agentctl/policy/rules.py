"""Rules as people write them: `[tool_permissions]` tables and `TOOL(PATTERN)`, checked when loaded."""

from collections.abc import Iterable, Mapping
from dataclasses import field, replace

from agentctl.errors import InvalidInput, Position, Problem
from agentctl.policy.paths import Place
from agentctl.policy.patterns import PATTERN_TOOLS, Pattern, PatternError, compile_pattern
from agentctl.protocol.decisions import Verdict
from agentctl.records import dataclass
from agentctl.toml.positions import Key
from agentctl.toml.table import EMPTY, Table, TomlValue
from agentctl.toml.words import nearest

VERDICTS = {verdict.word: verdict for verdict in Verdict}
NOT_BY_GLOB = frozenset({"transition", "submit_output"})
"""A glob would cut the run's own way out; only the exact name reaches these."""

_ANSWERS_TO = {
    "edit_file": "write_file",
    "list_dir": "read_file",
    "grep": "read_file",
    "glob": "read_file",
    "fan_out": "spawn_agent",
    "web_fetch": "network",
}
"""Tools that take no pattern, and the entry whose patterns reach what they do."""

COMMAND_LINE = Position(file="command line")
"""Where a rule of a launch flag was written."""

_CHECK_PLACE = Place(workdir="/w", home="/h")  # patterns are checked when loaded and bound to a place later


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolNames:
    """The names a rule may use, and which are other names of the same tool."""

    known: frozenset[str]
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Alias → canonical name, such as `bash` → `shell`."""

    def canonical(self, name: str) -> str:
        """Return the tool's own name."""
        return name if name in self.known else self.aliases.get(name, name)

    def plus(self, names: Iterable[str]) -> "ToolNames":
        """Return these names and more: script tools, or the tools of a connected server."""
        return replace(self, known=self.known | frozenset(names))

    def accepts(self, name: str) -> bool:
        """Return whether a rule may name this tool; `SERVER__TOOL` always, since servers connect later."""
        if "*" in name:
            glob = name.split("*")
            return "__" in name or any(_glob_fits(glob, known) for known in (*self.known, *self.aliases))
        return name in self.known or name in self.aliases or "__" in name

    def nearest(self, name: str) -> str:
        """Return the known name most like `name`, or empty."""
        return nearest(name, sorted({*self.known, *self.aliases}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A tool, or a tool with a pattern: `shell`, `github__*`, `shell(git push *)`."""

    tool: str
    """Canonical, or a glob."""
    pattern: str | None = None
    position: Position = COMMAND_LINE
    described: str = ""
    """Of a remembered approval of a tool server's tool: how the tool was described, as a digest."""

    def __str__(self) -> str:
        return self.tool if self.pattern is None else f"{self.tool}({self.pattern})"

    def speaks_for(self, tool: str) -> bool:
        """Return whether this rule is about `tool`, its pattern left aside."""
        if "*" not in self.tool:
            return self.tool == tool
        return tool not in NOT_BY_GLOB and _glob_fits(self.tool.split("*"), tool)

    def compiled(self, place: Place) -> Pattern | None:
        """Return the compiled pattern, or None for a rule on the tool as a whole."""
        return None if self.pattern is None else compile_pattern(self.tool, self.pattern, place)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What one layer says about one tool or glob."""

    tool: str
    default: Verdict | None
    """None: the entry says nothing where none of its patterns matches."""
    deny: tuple[Rule, ...] = ()
    ask: tuple[Rule, ...] = ()
    allow: tuple[Rule, ...] = ()
    position: Position

    @property
    def literal_length(self) -> int:
        """How many characters of a glob are literal: the more, the more exact."""
        return len(self.tool.replace("*", ""))

    def denies_only(self) -> "Entry":
        """Return the entry with nothing left but its denies; it still keeps globs from speaking."""
        default = Verdict.DENY if self.default is Verdict.DENY else None
        return replace(self, default=default, ask=(), allow=())


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleSet:
    """The entries of one layer, by canonical tool name or glob."""

    entries: Mapping[str, Entry] = field(default_factory=dict)

    def speaking(self, tool: str) -> tuple[Entry, ...]:
        """Return the entry that speaks for `tool`: its exact name, else the globs most like it.

        Of globs those with the most literal characters; more than one only where they tie, and then the
        strictest counts. Empty when the layer says nothing.
        """
        exact = self.entries.get(tool)
        if exact is not None:
            return (exact,)
        if tool in NOT_BY_GLOB:
            return ()
        globs = [
            entry for name, entry in self.entries.items() if "*" in name and _glob_fits(name.split("*"), tool)
        ]
        most = max((entry.literal_length for entry in globs), default=0)
        return tuple(entry for entry in globs if entry.literal_length == most)

    def denies_only(self) -> "RuleSet":
        """Return what of this layer comes down to a child although the rest stays: its denies."""
        return RuleSet(entries={name: entry.denies_only() for name, entry in self.entries.items()})


NO_RULES = RuleSet()
"""A layer that nobody wrote."""


def parse_rule(text: str, *, names: ToolNames, position: Position | None = None, key: str = "") -> Rule:
    """Return the rule `TOOL` or `TOOL(PATTERN)`, split at the first `(` and the last `)`.

    Raises:
        InvalidInput: an unknown tool, a pattern on a tool that takes none, or a pattern that cannot be meant.
    """
    reader = _Reader(names=names, at=position or COMMAND_LINE, key=key)
    tool, bracket, rest = text.strip().partition("(")
    pattern: str | None = None
    if bracket:
        pattern, closed, tail = rest.rpartition(")")
        if not closed or tail.strip():
            reader.report((), f"{text!r} is not `TOOL` or `TOOL(PATTERN)`")
            pattern = None  # what was cut out of it says nothing
    rule = reader.rule(tool.strip(), pattern, ())
    if reader.problems or rule is None:
        raise InvalidInput(tuple(reader.problems))
    return rule


def parse_rules(texts: Iterable[str], *, names: ToolNames, source: str) -> tuple[Rule, ...]:
    """Return the rules of a repeated flag, such as `--allow`; `source` is how it is named in a decision.

    Raises:
        InvalidInput: as `parse_rule`, with every problem found.
    """
    rules: list[Rule] = []
    problems: list[Problem] = []
    for text in texts:
        try:
            rules.append(parse_rule(text, names=names, position=Position(file=source)))
        except InvalidInput as error:
            problems += error.problems
    if problems:
        raise InvalidInput(
            tuple(problems),
            hint=f"{source} takes TOOL or TOOL(PATTERN), in quotes for your shell: 'shell(git push *)'",
        )
    return tuple(rules)


def parse_permissions(table: Table, *, names: ToolNames) -> RuleSet:
    """Return the layer that a `[tool_permissions]` table describes.

    Raises:
        InvalidInput: every unknown verdict, tool or key of the table, each with its place and a suggestion.
    """
    reader = _Reader(names=names, table=table)
    entries: dict[str, Entry] = {}
    for name, value in table.values.items():
        entry = reader.entry(name, value)
        if entry is None:
            continue
        twin = entries.setdefault(entry.tool, entry)
        if twin is not entry:
            reader.report(
                (name,),
                f"{name!r} is the same tool as the entry at {twin.position}, {entry.tool!r}; keep one",
            )
    if reader.problems:
        raise InvalidInput(tuple(reader.problems))
    return RuleSet(entries=entries)


def _glob_fits(parts: list[str], name: str) -> bool:
    """Match `name` against the literal parts between the stars of a glob; no regular expression needed."""
    if not name.startswith(parts[0]) or not name.endswith(parts[-1]):
        return False
    at, end = len(parts[0]), len(name) - len(parts[-1])
    for part in parts[1:-1]:
        at = name.find(part, at, end)
        if at < 0:
            return False
        at += len(part)
    return at <= end


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reader:
    """Reads what a person wrote, collecting every problem on the way."""

    names: ToolNames
    table: Table = EMPTY
    at: Position | None = None
    """Where a rule outside a table stands."""
    key: str = ""
    """The dotted key of a rule outside a table."""
    problems: list[Problem] = field(default_factory=list)

    def place(self, path: tuple[Key, ...]) -> Position:
        return self.at or self.table.value_position(*path)

    def report(self, path: tuple[Key, ...], message: str, suggestion: str = "") -> None:
        self.problems.append(
            Problem(
                position=self.at or self.table.position(*path),
                key=self.key if self.at else self.table.key(*path),
                message=message,
                suggestion=suggestion,
            )
        )

    def rule(self, tool: str, pattern: str | None, path: tuple[Key, ...]) -> Rule | None:
        canonical = self.names.canonical(tool)
        if not self.names.accepts(tool):
            self.report(path, f"unknown tool {tool!r}", self.names.nearest(tool))
            return None
        if pattern is None:
            return Rule(tool=canonical, position=self.place(path))
        if canonical not in PATTERN_TOOLS:
            known = ", ".join(PATTERN_TOOLS)
            meant = _ANSWERS_TO.get(canonical, "")
            self.report(path, f"a rule on {tool!r} takes no pattern; patterns exist for {known}", meant)
            return None
        try:
            compile_pattern(canonical, pattern, _CHECK_PLACE)
        except PatternError as error:
            self.report(path, f"{pattern!r}: {error}")
            return None
        return Rule(tool=canonical, pattern=pattern, position=self.place(path))

    def entry(self, name: str, value: TomlValue) -> Entry | None:
        rule = self.rule(name, None, (name,))
        tool = self.names.canonical(name)
        match value:
            case str():
                default = self.verdict(value, (name,))
                entry = Entry(tool=tool, default=default, position=self.place((name,)))
            case dict():
                entry = self.of_table(tool, name, value)
            case _:
                self.report((name,), "expected allow, ask or deny, or a table of them")
                return None
        if entry.default is Verdict.ALLOW and not tool.strip("*"):
            self.report((name,), "a rule cannot allow every tool; name the tools, or run with --yolo")
        return entry if rule is not None else None

    def of_table(self, tool: str, name: str, table: Mapping[str, TomlValue]) -> Entry:
        lists: dict[str, tuple[Rule, ...]] = {}
        default: Verdict | None = None
        for key, value in table.items():
            if key == "default":
                default = self.verdict(value, (name, key))
            elif key not in VERDICTS:
                self.report((name, key), f"unknown key {key!r}", nearest(key, (*VERDICTS, "default")))
            elif not isinstance(value, list):
                self.report((name, key), "expected a list of patterns")
            else:
                lists[key] = self.patterns(tool, value, (name, key))
        return Entry(
            tool=tool,
            default=default,
            deny=lists.get("deny", ()),
            ask=lists.get("ask", ()),
            allow=lists.get("allow", ()),
            position=self.place((name, "default") if default is not None else (name,)),
        )

    def patterns(self, tool: str, items: list[TomlValue], path: tuple[Key, ...]) -> tuple[Rule, ...]:
        rules: list[Rule] = []
        for index, item in enumerate(items):
            if not isinstance(item, str):
                self.report((*path, index), "a pattern is a string")
                continue
            rule = self.rule(tool, item, (*path, index))
            if rule is not None:
                rules.append(rule)
        return tuple(rules)

    def verdict(self, value: TomlValue, path: tuple[Key, ...]) -> Verdict | None:
        if isinstance(value, str) and value in VERDICTS:
            return VERDICTS[value]
        suggestion = nearest(value, VERDICTS) if isinstance(value, str) else ""
        self.report(path, f"{value!r} is not a verdict; it is one of allow, ask, deny", suggestion)
        return None
