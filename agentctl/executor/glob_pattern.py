"""Globs matched a component at a time, so that a walk enters only where a match is still possible. Pure."""

import re
from dataclasses import dataclass

from agentctl.errors import ToolError
from agentctl.executor.ignore import translate

_MAX_ALTERNATIVES = 256


@dataclass(frozen=True, slots=True)
class GlobPattern:
    """Alternatives, each a row of component patterns; None stands for `**`."""

    rows: tuple[tuple[re.Pattern[str] | None, ...], ...]
    literals: frozenset[str]
    """Components written without any wildcard."""
    directories: bool
    """The pattern ends in `/`: directories are wanted."""

    @property
    def start(self) -> frozenset[int]:
        """Where every match begins. A state is row * 1000 + position in it."""
        return self._closed({row * 1000 for row in range(len(self.rows))})

    def advance(self, states: frozenset[int], name: str) -> frozenset[int]:
        """Return the states after one more component. Pure, total."""
        reached: set[int] = set()
        for state in states:
            row, position = divmod(state, 1000)
            if position == len(self.rows[row]):
                continue
            component = self.rows[row][position]
            if component is None:
                reached.add(state)
            elif component.fullmatch(name):
                reached.add(state + 1)
        return self._closed(reached)

    def matches(self, states: frozenset[int]) -> bool:
        """Tell whether a path that led here matches whole. A last `**` needs a component of its own."""
        return any(state % 1000 == len(self.rows[state // 1000]) for state in states)

    def open(self, states: frozenset[int]) -> bool:
        """Tell whether something below could match."""
        return any(state % 1000 < len(self.rows[state // 1000]) for state in states)

    def names(self, name: str) -> bool:
        """Tell whether the pattern spells this component out."""
        return name in self.literals

    def _closed(self, states: set[int]) -> frozenset[int]:
        waiting = list(states)
        while waiting:
            state = waiting.pop()
            row, position = divmod(state, 1000)
            if (
                position < len(self.rows[row])
                and self.rows[row][position] is None
                and state + 1 not in states
            ):
                states.add(state + 1)
                waiting.append(state + 1)
        return frozenset(states)


def compile_glob(pattern: str) -> GlobPattern:
    """Return a glob ready to match paths relative to a base. `{a,b}` gives alternatives.

    Raises:
        ToolError: empty, absolute, with `..`, or with too many alternatives.
    """
    if not pattern.strip() or "\0" in pattern:
        raise ToolError("The pattern is empty; write a glob such as 'src/**/*.py'.")
    rows: list[tuple[re.Pattern[str] | None, ...]] = []
    literals: set[str] = set()
    for alternative in _alternatives(pattern):
        if alternative.startswith("/"):
            raise ToolError(f"The pattern {pattern!r} is absolute; give the directory as the base instead.")
        parts = [part for part in alternative.split("/") if part not in {"", "."}]
        if ".." in parts:
            raise ToolError(f"The pattern {pattern!r} contains '..'; give the directory as the base instead.")
        parts = [
            part for part, before in zip(parts, ["", *parts], strict=False) if (part, before) != ("**", "**")
        ]
        if parts[-1:] == ["**"]:
            parts.append("*")
        literals.update(part for part in parts if not set("*?[\\") & set(part))
        rows.append(tuple(None if part == "**" else _component(part) for part in parts))
    return GlobPattern(tuple(rows), frozenset(literals), pattern.endswith("/"))


def _component(part: str) -> re.Pattern[str]:
    try:
        return re.compile(translate(part), re.DOTALL)
    except re.error as error:
        raise ToolError(f"The glob component {part!r} can't be read: {error}.") from error


def _alternatives(pattern: str) -> list[str]:
    """Return the pattern with its outermost braces written out, innermost first."""
    done: list[str] = []
    waiting = [pattern]
    while waiting:
        text = waiting.pop(0)
        inner = re.search(r"\{([^{}]*,[^{}]*)\}", text)
        if inner is None:
            done.append(text)
        else:
            choices = inner[1].split(",")
            waiting.extend(text[: inner.start()] + choice + text[inner.end() :] for choice in choices)
        if len(done) + len(waiting) > _MAX_ALTERNATIVES:
            raise ToolError(f"The pattern {pattern!r} has more than {_MAX_ALTERNATIVES} alternatives.")
    return list(dict.fromkeys(done))
