"""A TOML table into a dataclass, with every problem of the table at once.

The dataclass is the schema: field names are keys, types and the marks of `toml/shapes.py` say what is taken.
One definition serves the loader, the program that uses the value, and the JSON Schema for editors.
"""

import dataclasses
import math
import re
from collections.abc import Iterable, Mapping
from typing import Final, Literal, TypeVar, get_args, get_origin

from agentctl.errors import Problem
from agentctl.toml.fields import fields_of, is_table_class, members_of, parts_of
from agentctl.toml.positions import Path
from agentctl.toml.shapes import OneOrMore, Range, Shorthand, Text
from agentctl.toml.table import Table, TomlValue, dotted, shown
from agentctl.toml.units import read_units
from agentctl.toml.words import nearest, one_of

MAX_FINDINGS: Final = 100
"""Problems that one file's report holds; what comes after is counted."""

_BAD: Final = object()

Kind = TypeVar("Kind")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something wrong at a path of a table."""

    path: Path
    message: str
    suggestion: str = ""
    at_value: bool = False
    """Whether the value is wrong and not the key."""
    needs: tuple[Path, ...] = ()
    """Paths it was judged by; a finding of the schema at or below one of them makes it void."""

    def problem(self, table: Table) -> Problem:
        """Return it as a problem of the file that `table` is the top of."""
        place = table.positions.of_value if self.at_value else table.positions.of_key
        return Problem(
            position=place(self.path),
            key=dotted(self.path),
            message=self.message,
            suggestion=self.suggestion,
        )


class Reader:
    """Reads one file's table, collecting findings."""

    def __init__(self, table: Table, elsewhere: Mapping[str, str]) -> None:
        self.table = table
        self.findings: list[Finding] = []
        self._elsewhere = elsewhere
        self._above: list[tuple[Path, frozenset[str]]] = []
        self._dropped = 0

    def read(self, kind: type[Kind], given: Mapping[str, object]) -> Kind:
        """Return the table as a `kind`. `given` fills fields that the loader sets.

        Where `findings` is not empty afterwards, something else stands in for what was wrong or missing: good
        enough for finding further faults, not for use.
        """
        built = self._dataclass(kind, self.table.values, (), given)
        if not isinstance(built, kind):
            raise TypeError(f"{kind.__name__} is not a dataclass of a table")
        return built

    def problems(
        self, further: Iterable[Finding] = (), others: Iterable[Problem] = ()
    ) -> tuple[Problem, ...]:
        """Return all findings and `others` in file order; `further` only where what they judged is sound."""
        broken = [finding.path for finding in self.findings]
        sound = [
            finding
            for finding in further
            if not any(path[: len(need)] == need for need in finding.needs for path in broken)
        ]
        problems = sorted(
            (*others, *(finding.problem(self.table) for finding in (*self.findings, *sound))),
            key=lambda problem: (problem.position.line, problem.position.column),
        )
        if self._dropped:
            file = dataclasses.replace(problems[0].position, line=0, column=0)
            problems.append(Problem(position=file, message=f"and {self._dropped:,} more problems"))
        return tuple(problems)

    def _found(self, path: Path, message: str, *, suggestion: str = "", at_value: bool = False) -> object:
        if len(self.findings) < MAX_FINDINGS:
            finding = Finding(path=path, message=message, suggestion=suggestion, at_value=at_value)
            self.findings.append(finding)
        else:
            self._dropped += 1
        return _BAD

    def _expected(self, path: Path, expected: str, value: object, *, suggestion: str = "") -> object:
        message = f"expected {expected}, found {describe(value)}"
        return self._found(path, message, suggestion=suggestion, at_value=True)

    def _value(self, hint: object, value: TomlValue, path: Path) -> object:
        hint, marks = parts_of(hint)
        if isinstance(hint, str):
            return self._json(value, path)
        if members := members_of(hint):
            return self._union(members, value, path)
        if hint is Table:
            return self._raw(value, path)
        if is_table_class(hint):
            return self._table(hint, marks, value, path)
        origin = get_origin(hint)
        if origin is tuple:
            return self._array(hint, marks, value, path)
        if origin is dict:
            return self._mapping(hint, value, path)
        if origin is Literal:
            return self._word(get_args(hint), value, path)
        return self._scalar(hint, marks, value, path)

    def _union(self, members: tuple[object, ...], value: TomlValue, path: Path) -> object:
        if len(members) == 1:
            return self._value(members[0], value, path)
        tables = [member for member in members if is_table_class(member)]
        if isinstance(value, dict) and tables:
            return self._value(tables[0], value, path)
        if isinstance(value, str) and str in members:
            return value
        return self._expected(path, "a text or a table", value)

    def _raw(self, value: TomlValue, path: Path) -> object:
        if not isinstance(value, dict):
            return self._expected(path, "a table", value)
        self._json(value, path)  # refuses dates, which rules don't know either
        return Table(values=value, positions=self.table.positions, path=path)

    def _table(self, kind: type, marks: tuple[object, ...], value: TomlValue, path: Path) -> object:
        if isinstance(value, dict):
            return self._dataclass(kind, value, path, {})
        short = next((mark.name for mark in marks if isinstance(mark, Shorthand)), "")
        if short and isinstance(value, str | list):
            field = fields_of(kind)[short]
            read = self._value(field.hint, value, path)
            return read if read is _BAD else kind(**{field.name: read})
        return self._expected(path, "a table", value)

    def _dataclass(
        self, kind: type, values: dict[str, TomlValue], path: Path, given: Mapping[str, object]
    ) -> object:
        fields = fields_of(kind)
        self._above.append((path, frozenset(fields)))
        for key in values:
            if key not in fields:
                self._unknown(key, path)
        arguments: dict[str, object] = dict(given)
        for key, field in fields.items():
            if key in values:
                read = self._value(field.hint, values[key], (*path, key))
                if read is not _BAD:
                    arguments[field.name] = read
                    continue
            elif field.required:
                kind_word = "table" if self._is_table(field.hint) else "key"
                self._found((*path, key), f"required {kind_word} is missing")
            if field.required:
                arguments[field.name] = _stand_in(field.hint)
        self._above.pop()
        return kind(**arguments)

    def _is_table(self, hint: object) -> bool:
        plain, _ = parts_of(hint)
        return is_table_class(plain) or get_origin(plain) is dict

    def _unknown(self, key: str, path: Path) -> None:
        if len(self.findings) >= MAX_FINDINGS:
            self._dropped += 1  # no suggestions for a file that is not meant for us
            return
        pattern = ".".join(part for part in (*path, key) if isinstance(part, str))
        where = f"in [{dotted(path)}]" if path else "at the top level of the file"
        for length in range(len(pattern.split(".")), 0, -1):
            tail = ".".join(pattern.split(".")[-length:])
            if tail in self._elsewhere:
                self._found((*path, key), self._elsewhere[tail])
                return
        for above, keys in reversed(self._above[:-1]):
            if key in keys:
                home = f"[{dotted(above)}]" if above else "the top level of the file"
                self._found(
                    (*path, key),
                    f"unknown key {where}; it belongs to {home}, above the headers of its sub-tables",
                )
                return
        known = sorted(self._above[-1][1])
        suggestion = nearest(key, known)
        tail = "" if suggestion else f"; known keys: {', '.join(known)}"
        self._found((*path, key), f"unknown key {where}{tail}", suggestion=suggestion)

    def _array(self, hint: object, marks: tuple[object, ...], value: TomlValue, path: Path) -> object:
        if isinstance(value, str) and any(isinstance(mark, OneOrMore) for mark in marks):
            value = [value]
        if not isinstance(value, list):
            return self._expected(path, "an array", value)
        item = get_args(hint)[0]
        read = [self._value(item, one, (*path, index)) for index, one in enumerate(value)]
        return tuple(one for one in read if one is not _BAD)

    def _mapping(self, hint: object, value: TomlValue, path: Path) -> object:
        if not isinstance(value, dict):
            return self._expected(path, "a table", value)
        key_hint, item_hint = get_args(hint)
        if isinstance(item_hint, str):
            return self._json(value, path)
        read = {}
        for key, one in value.items():
            plain, marks = parts_of(key_hint)
            words = get_args(plain) if get_origin(plain) is Literal else ()
            if words and key not in words:
                self._found((*path, key), f"expected {one_of(words)}", suggestion=nearest(key, words))
                continue
            for mark in marks:
                if isinstance(mark, Text) and not re.fullmatch(mark.pattern, key):
                    self._found((*path, key), f"expected a name of {mark.what}")
            item = self._value(item_hint, one, (*path, key))
            if item is not _BAD:
                read[key] = item
        return read

    def _word(self, words: tuple[object, ...], value: TomlValue, path: Path) -> object:
        if isinstance(value, str) and value in words:
            return value
        known = [word for word in words if isinstance(word, str) and word]
        suggestion = nearest(value, known) if isinstance(value, str) else ""
        self._expected(path, one_of(known), value, suggestion=suggestion)
        return value if isinstance(value, str) else _BAD

    def _scalar(self, hint: object, marks: tuple[object, ...], value: TomlValue, path: Path) -> object:
        if hint is bool:
            return value if isinstance(value, bool) else self._expected(path, "true or false", value)
        if hint is str:
            if not isinstance(value, str):
                return self._expected(path, "a text", value)
            return self._text(marks, value, path)
        number, expected = read_units(hint, marks, value)
        if number is None:
            return self._expected(path, expected, value)
        for mark in marks:
            if isinstance(mark, Range) and not mark.holds(number):
                self._expected(path, mark.words, value)
        return number

    def _text(self, marks: tuple[object, ...], value: str, path: Path) -> object:
        for mark in marks:
            if isinstance(mark, Text) and not re.fullmatch(mark.pattern, value):
                self._expected(path, mark.what, value)
        return value

    def _json(self, value: TomlValue, path: Path) -> object:
        if isinstance(value, dict):
            return {key: self._json(one, (*path, key)) for key, one in value.items()}
        if isinstance(value, list):
            return [self._json(one, (*path, index)) for index, one in enumerate(value)]
        if isinstance(value, float) and not math.isfinite(value):
            return self._expected(path, "a number that JSON knows", value)
        if not isinstance(value, str | bool | int | float):
            return self._expected(path, "a JSON value (write a date as text)", value)
        return value


def _stand_in(hint: object) -> object:
    """Return an empty value of the type, for a required key that is missing or wrong."""
    plain, _ = parts_of(hint)
    if is_table_class(plain):
        fields = fields_of(plain).values()
        return plain(**{field.name: _stand_in(field.hint) for field in fields if field.required})
    kind = get_origin(plain) or plain
    return kind() if kind in {str, int, float, bool, tuple, dict} else ""


def describe(value: object) -> str:
    """Return what `value` is, in a person's words: `the text "x"`, `the number 3`, `a table`."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return f"the text {shown(value)}"
        case int() | float():
            return f"the number {value}"
        case list():
            return "an array"
        case dict():
            return "a table"
        case _:
            return f"the date or time {value}"
