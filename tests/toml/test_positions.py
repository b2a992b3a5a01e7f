"""Every key and value of a valid TOML text has the right line and column."""

import json
import tomllib
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentctl.errors import Position
from agentctl.toml.positions import Path, Positions

SAMPLE = """\
# a comment with [brackets] and = signs
title = "x # not a comment"
a.b . "c d" = 1

[stages.plan]
prompt = \"\"\"
say "hi" \\" and [not.a.header]
key = 1 \"\"\"\"\"
plain = '''it's'''
when = 1979-05-27 07:32:00
numbers = [1, [2, 3], { x = 1, "y z" = ['a]', "b}"] }, # in between
  4,
]
[stages.plan.transitions.build]
[[hooks]]
name = "a"
[hooks.params]
x = { y = { z = true } }
[[hooks]]
name = "b"
"""


def walk(value: object, path: Path = ()) -> Iterator[Path]:
    if path:
        yield path
    if isinstance(value, dict):
        for key, item in value.items():
            yield from walk(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from walk(item, (*path, index))


def test_every_path_of_a_text_with_all_forms_has_a_position() -> None:
    found = Positions("f", SAMPLE).paths()

    assert found == frozenset(walk(tomllib.loads(SAMPLE)))


@pytest.mark.parametrize(
    ("path", "key", "value"),
    [
        (("title",), (2, 1), (2, 9)),
        (("a", "b", "c d"), (3, 7), (3, 15)),
        (("stages", "plan"), (5, 9), (5, 9)),
        (("stages", "plan", "prompt"), (6, 1), (6, 10)),
        (("stages", "plan", "plain"), (9, 1), (9, 9)),
        (("stages", "plan", "numbers", 1, 1), (11, 19), (11, 19)),
        (("stages", "plan", "numbers", 2, "y z"), (11, 32), (11, 40)),
        (("stages", "plan", "numbers", 3), (12, 3), (12, 3)),
        (("stages", "plan", "transitions", "build"), (14, 26), (14, 26)),
        (("hooks", 0, "params", "x", "y", "z"), (18, 13), (18, 17)),
        (("hooks", 1, "name"), (20, 1), (20, 8)),
    ],
)
def test_positions_are_exact(path: Path, key: tuple[int, int], value: tuple[int, int]) -> None:
    positions = Positions("f", SAMPLE)

    assert positions.of_key(path) == Position(file="f", line=key[0], column=key[1])
    assert positions.of_value(path) == Position(file="f", line=value[0], column=value[1])


def test_a_path_that_is_not_there_has_its_nearest_parents_position() -> None:
    positions = Positions("f", "[limits]\nsteps = 3\n")

    assert positions.of_key(("limits", "tokens")) == Position(file="f", line=1, column=2)
    assert positions.of_value(("limits", "steps", 0)) == Position(file="f", line=2, column=9)
    assert positions.of_key(("nowhere",)) == Position(file="f")


def test_columns_count_characters_and_not_bytes() -> None:
    assert Positions("f", '"ключ" = "значение"\n').of_value(("ключ",)) == Position(
        file="f", line=1, column=10
    )


scalars = st.one_of(
    st.booleans(),
    st.integers(-(2**60), 2**60),
    st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), max_size=12),
    st.sampled_from(['"""', "'''", "a = [1", "#", "\\", "]]", "}", "x\ty"]),
)
keys = st.one_of(st.sampled_from(["a", "b", "c-d", "x_1"]), st.text("ab .#\"'=[]é", max_size=4))
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=3)),
    max_leaves=8,
)


def inline(value: object) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {inline(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[\n  " + ",  # ] }\n  ".join(inline(item) for item in value) + "\n]"
    return json.dumps(value, ensure_ascii=False)


def headers(values: dict[str, object], path: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield lines that write tables as headers and everything else inline."""
    for key, value in values.items():
        if not isinstance(value, dict):
            yield f"{json.dumps(key)} = {inline(value)}"
    for key, value in values.items():
        if isinstance(value, dict):
            yield "[" + " . ".join(json.dumps(part) for part in (*path, key)) + "]  # ["
            yield from headers(value, (*path, key))


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(keys, values, max_size=4))
def test_any_written_document_has_a_position_for_each_path(document: dict[str, object]) -> None:
    for text in (
        "\n".join(headers(document)),
        "\n".join(f"{json.dumps(k)} = {inline(v)}" for k, v in document.items()),
    ):
        parsed = tomllib.loads(text)

        positions = Positions("f", text)

        assert positions.paths() == frozenset(walk(parsed))
        for path in walk(parsed):
            at = positions.of_value(path)
            rest = text.splitlines()[at.line - 1][at.column - 1 :] if text else ""
            assert rest, f"{path} has no text at {at}"
