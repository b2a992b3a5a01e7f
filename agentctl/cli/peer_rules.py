"""Rules taken over from another tool: collected, and written as our TOML with a note where they differ."""

import json
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import field

from agentctl.policy.patterns import PatternError, shell_pattern
from agentctl.records import dataclass

LISTS = ("deny", "ask", "allow")
_STRICTEST_FIRST = LISTS
_PATTERN_TOOLS = frozenset({"shell", "write_file", "read_file", "network", "spawn_agent"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Why a rule is not, or not exactly, what it was."""

    rule: str
    """The rule as the other tool wrote it."""
    text: str
    carried: bool
    """Something of it is among our rules."""


@dataclass(slots=True, kw_only=True)
class Imported:
    """Rules as they are read, and what they come to."""

    patterns: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    """By tool and list (`deny`, `ask`, `allow`)."""
    words: dict[str, list[str]] = field(default_factory=dict)
    """The lists in which a tool stands as a whole."""
    read_paths: list[str] = field(default_factory=list)
    tests: list[tuple[str, str, str]] = field(default_factory=list)
    """Call, expected decision, reason."""
    notes: list[Note] = field(default_factory=list)

    @property
    def empty(self) -> bool:
        """Whether nothing at all was read."""
        return not (self.patterns or self.words or self.read_paths or self.tests or self.notes)

    def word(self, tool: str, into: str) -> None:
        """Add a rule for a tool as a whole."""
        self.words.setdefault(tool, []).append(into)

    def pattern(self, tool: str, into: str, text: str, *, rule: str) -> None:
        """Add a rule with a pattern; one that ours cannot be is noted."""
        if tool not in _PATTERN_TOOLS:
            self.note(rule, f"{tool} takes no pattern here; write the tool's name alone", carried=False)
            return
        if tool == "shell":
            try:
                shell_pattern(text)
            except PatternError as error:
                self.note(rule, f"not carried over: {error}", carried=False)
                return
        found = self.patterns.setdefault((tool, into), [])
        if text not in found:
            found.append(text)

    def note(self, rule: str, text: str, *, carried: bool = True) -> None:
        """Remember why `rule` is not exactly carried over."""
        self.notes.append(Note(rule=rule, text=text, carried=carried))

    def toml(self, source: str) -> str:
        """Return the rules as a TOML text for the user's config, notes first."""
        lines = [f"# Taken over from {source}. The strictest rule that matches decides, whatever its place."]
        for note in self.notes:
            kind = "note" if note.carried else "NOT CARRIED OVER"
            lines += [f"# {kind}: {_one_line(note.rule)}: {_one_line(note.text)}"]
        if self.read_paths:
            lines += ["", "[read_paths]", f"allow = {_array(self.read_paths)}"]
        lines += ["", "[tool_permissions]"]
        lines += self._tools()
        for call, expect, because in self.tests:
            lines += ["", "[[policy_tests]]", f"call = {_text(call)}", f"expect = {_text(expect)}"]
            if because:
                lines.append(f"because = {_text(because)}")
        return "\n".join(lines) + "\n"

    def _tools(self) -> Iterable[str]:
        tools = dict.fromkeys([*self.words, *(tool for tool, _ in self.patterns)])
        tables = []
        for tool in sorted(tools):
            default = next((name for name in _STRICTEST_FIRST if name in self.words.get(tool, ())), "")
            lists = {name: self.patterns[tool, name] for name in LISTS if (tool, name) in self.patterns}
            if not lists:
                yield f"{_key(tool)} = {_text(default)}"
            else:
                tables.append((tool, default, lists))
        for tool, default, lists in tables:
            yield ""
            yield f"[tool_permissions.{_key(tool)}]"
            if default:
                yield f"default = {_text(default)}"
            for name, texts in lists.items():
                yield f"{name} = {_array(texts)}"


def prefix_pattern(words: Iterable[str]) -> str:
    """Return the pattern of these words with any further ones behind them."""
    return " ".join([*map(quoted_word, words), "*"])


def quoted_word(word: str) -> str:
    """Return `word` as it stands for itself in a pattern."""
    return shlex.quote(word) if not word or any(char in " \t'\"\\*|&;<>()" for char in word) else word


def only_mapping(value: object) -> Mapping[str, object]:
    """Return `value` if it is an object, else an empty one."""
    return {str(key): item for key, item in value.items()} if isinstance(value, dict) else {}


def texts_of(value: object) -> list[str]:
    """Return the texts in a list, or the text itself as the only one."""
    if isinstance(value, str):
        return [value]
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def no_texts_of(value: object) -> list[str]:
    """Return as JSON what `texts_of` leaves out; null counts as nothing."""
    items = value if isinstance(value, list) else [value]
    return [json.dumps(item, default=str) for item in items if item is not None and not isinstance(item, str)]


def _key(name: str) -> str:
    return name if name.replace("_", "").replace("-", "").isalnum() and name.isascii() else _text(name)


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _array(texts: list[str]) -> str:
    if len(texts) == 1:
        return f"[{_text(texts[0])}]"
    return "[\n" + "".join(f"    {_text(text)},\n" for text in texts) + "]"


def _one_line(text: str) -> str:
    return " ".join(text.split())
