"""Which calls a machine's move is about: a tool's name, and what its arguments must be.

`TOOL`, `TOOL(GLOB)` on its main argument, `TOOL(FIELD = "x", a.b[*].c ~ "glob")` on fields that must
all hold. TOOL is a name or a glob over names. There are no regular expressions, so that none can be one that
matches nothing, and a field that is missing never matches, with `!=` and `!~` neither.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Literal, TypeAlias, get_args

from agentctl.protocol.values import JsonValue, compact_json
from agentctl.records import dataclass

Operator: TypeAlias = Literal["=", "!=", "~", "!~"]
MAIN_ARGUMENTS = (
    "command", "path", "file_path", "pattern", "question", "to", "agent", "url", "host", "task", "key",
    "query",
)  # fmt: skip
"""What a call is mainly about: the first of these that it has, else its only argument, else all of them."""
_OPERATORS: dict[str, Operator] = {one: one for one in get_args(Operator)}
_NAME = re.compile(r"[A-Za-z0-9_.*?\[\]!-]+")
_OPERATOR = re.compile(r"\s*([A-Za-z_][\w.\[\]*-]*)\s*(!=~|=~|!~|!=|~|=)\s*")
_VALUE = re.compile(r'"((?:[^"\\]|\\.)*)"\s*')
_STEP = re.compile(r"\.?([A-Za-z_][\w-]*)|\[(\*|\d+)\]")
_MOST_CROSSINGS = 6


class PatternError(ValueError):
    """A pattern that cannot be read; `str` says why and where."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldCondition:
    """What one field of the arguments must be."""

    path: tuple[str | int, ...]
    """Names and indices from the top; `*` is any index."""
    operator: Operator
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolPattern:
    """A pattern over calls, read."""

    tool: str
    """A name, or a glob over names."""
    main: str = ""
    """A glob over what the call is mainly about; anything where empty."""
    fields: tuple[FieldCondition, ...] = ()

    def matches(self, tool: str, arguments: Mapping[str, JsonValue], said: Sequence[str] = ()) -> bool:
        """Return whether a call is one of those. Pure.

        `said` are further forms of what it is mainly about, such as each command of a shell line.
        """
        if not fnmatchcase(tool, self.tool):
            return False
        if self.main:
            return any(_fits_main(text, self.main) for text in (main_text(arguments), *said))
        return all(_holds(condition, arguments) for condition in self.fields)


@lru_cache(maxsize=512)
def parse_tool_pattern(text: str) -> ToolPattern:
    """Read a pattern. Pure.

    Raises:
        PatternError: it is none.
    """
    name = _NAME.match(text)
    if name is None:
        raise PatternError(f"{text!r} does not begin with a tool's name")
    tool = name[0]
    if tool.count("[") != tool.count("]"):
        raise PatternError(f"{text!r} has a bracket without its partner")
    rest = text[name.end() :].strip()
    if not rest:
        return ToolPattern(tool=tool)
    if not rest.startswith("("):
        raise PatternError(f"{text!r} goes on after the tool's name: write {name[0]}(…)")
    if not rest.endswith(")") or len(rest) == 1:
        raise PatternError(f"{text!r} has a bracket that is not closed at its end")
    inner = rest[1:-1].strip()
    if not inner:
        raise PatternError(f"{text!r} has nothing between its brackets")
    if inner == "*":
        return ToolPattern(tool=tool)
    if _OPERATOR.match(inner) is None:
        return ToolPattern(tool=tool, main=inner)
    return ToolPattern(tool=tool, fields=tuple(_conditions(inner)))


def main_text(arguments: Mapping[str, JsonValue]) -> str:
    """Return what a call is mainly about, as text. Pure."""
    for name in MAIN_ARGUMENTS:
        if name in arguments:
            return _text(arguments[name])
    return _text(next(iter(arguments.values())) if len(arguments) == 1 else dict(arguments))


def _conditions(text: str) -> Iterator[FieldCondition]:
    position = 0
    while True:
        head = _OPERATOR.match(text, position)
        if head is None:
            raise PatternError(
                f'{text[position:]!r} is no condition: write FIELD = "value" or FIELD ~ "glob"'
            )
        path, operator = head[1], _OPERATORS.get(head[2])
        if operator is None:
            raise PatternError(
                f"{head[2]!r} in {text!r}: there are no regular expressions; write a glob with ~"
            )
        value = _VALUE.match(text, head.end())
        if value is None:
            raise PatternError(f"the value of {path!r} stands between double quotes")
        yield FieldCondition(path=_path(path), operator=operator, value=_unescaped(value[1]))
        position = value.end()
        if position == len(text):
            return
        if text[position] != ",":
            raise PatternError(f"a comma is missing before {text[position:]!r}")
        position += 1


def _path(text: str) -> tuple[str | int, ...]:
    steps: list[str | int] = []
    position = 0
    while position < len(text):
        step = _STEP.match(text, position)
        if step is None:
            raise PatternError(f"{text!r} is no field: write name, a.b or a[*].b")
        steps.append(step[1] or (step[2] if step[2] == "*" else int(step[2])))
        position = step.end()
    return tuple(steps)


def _unescaped(text: str) -> str:
    return re.sub(r'\\(["\\])', r"\1", text)


def _holds(condition: FieldCondition, arguments: Mapping[str, JsonValue]) -> bool:
    return any(_is(condition, _text(value)) for value in _values(dict(arguments), condition.path))


def _is(condition: FieldCondition, text: str) -> bool:
    match condition.operator:
        case "=":
            return text == condition.value
        case "!=":
            return text != condition.value
        case "~":
            return _fits(text, condition.value)
        case "!~":
            return not _fits(text, condition.value)


def _values(value: JsonValue, path: tuple[str | int, ...]) -> Iterator[JsonValue]:
    if not path:
        yield value
        return
    step, *rest = path
    if isinstance(value, list) and (step == "*" or isinstance(step, int)):
        below = value if step == "*" else value[step : step + 1] if isinstance(step, int) else []
        for one in below:
            yield from _values(one, tuple(rest))
    elif isinstance(value, dict) and isinstance(step, str) and step in value:
        yield from _values(value[step], tuple(rest))


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else compact_json(value)


def _fits_main(text: str, pattern: str) -> bool:
    # As in rules: a last word `*` is any further words or none.
    return _fits(text, pattern) or (pattern.endswith(" *") and _fits(text, pattern.removesuffix(" *")))


def _fits(text: str, pattern: str) -> bool:
    return any(fnmatchcase(text, one) for one in _readings(pattern))


@lru_cache(maxsize=512)
def _readings(pattern: str) -> tuple[str, ...]:
    """`a/**/b` is `a/b`, too: every way to leave out a `**/`."""
    parts = pattern.split("**/")
    if len(parts) > _MOST_CROSSINGS:
        return (pattern, "".join(parts))
    found = [parts[0]]
    for part in parts[1:]:
        found = [before + link + part for before in found for link in ("**/", "")]
    return tuple(found)
