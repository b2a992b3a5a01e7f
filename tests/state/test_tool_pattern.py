"""Patterns over calls: what they are about, and what cannot be written."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentctl.api import FieldCondition, PatternError, ToolPattern, parse_tool_pattern


@pytest.mark.parametrize(
    ("pattern", "tool", "arguments", "expected"),
    [
        ("shell", "shell", {"command": "x"}, True),
        ("shell(*)", "shell", {}, True),
        ("write_*", "write_file", {}, True),
        ("shell(pytest *)", "shell", {"command": "pytest -q"}, True),
        ("shell(pytest *)", "shell", {"command": "pytest"}, True),
        ("shell(pytest *)", "shell", {"command": "pytest-3 -q"}, False),
        ("shell(rm *)", "shell", {"command": "rm -rf x", "timeout": 5}, True),
        ("write_file(src/**/*.py)", "write_file", {"path": "src/a.py", "content": "x"}, True),
        ("write_file(src/**/*.py)", "write_file", {"path": "src/b/c/a.py"}, True),
        ("write_file(src/**/*.py)", "write_file", {"path": "docs/a.py"}, False),
        ('t(n = "5")', "t", {"n": 5}, True),
        ('t(f = "true")', "t", {"f": True}, True),
        ('t(a = "x", b !~ "y*")', "t", {"a": "x", "b": "z"}, True),
        ('t(a = "x", b !~ "y*")', "t", {"a": "x"}, False),
        ('t(l[*].n = "2")', "t", {"l": [{"n": 1}, {"n": 2}]}, True),
        ('t(l[1].n = "1")', "t", {"l": [{"n": 1}, {"n": 2}]}, False),
        ('t(l[7] != "1")', "t", {"l": [1]}, False),
        ('t(command != "ls")', "t", {"command": "ls -la"}, True),
    ],
)
def test_a_pattern_is_about_those_calls(
    pattern: str, tool: str, arguments: dict[str, object], *, expected: bool
) -> None:
    assert parse_tool_pattern(pattern).matches(tool, arguments) is expected  # type: ignore[arg-type]


def test_each_command_of_a_line_counts() -> None:
    line = {"command": "cd x && git commit -m done"}
    pattern = parse_tool_pattern("shell(git commit *)")

    assert not pattern.matches("shell", line)
    assert pattern.matches("shell", line, said=("cd x", "git commit -m done"))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "does not begin with a tool's name"),
        ("(x)", "does not begin"),
        ("shell(git *", "not closed"),
        ("shell extra", "goes on after"),
        ("shell()", "nothing between"),
        ("shell(x) y", "not closed"),
        ("a[b", "without its partner"),
        ("t(f = x)", "between double quotes"),
        ('t(f = "x" g = "y")', "a comma is missing"),
        ('t(f = "x",)', "is no condition"),
        ('t(command =~ "rm")', "no regular expressions"),
        ('t(a..b = "x")', "is no field"),
        ('t(a[x].b = "x")', "is no field"),
    ],
)
def test_what_cannot_be_read_says_why(text: str, told: str) -> None:
    with pytest.raises(PatternError, match=told):
        parse_tool_pattern(text)


def test_escapes_are_those_of_quotes_and_backslashes() -> None:
    pattern = parse_tool_pattern(r't(f = "say \"hi\" \\ \n")')

    assert pattern == ToolPattern(
        tool="t", fields=(FieldCondition(path=("f",), operator="=", value=r'say "hi" \ \n'),)
    )


@given(st.text(max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(PatternError):
        parse_tool_pattern(text).matches("shell", {"command": text})
