"""The reader finds every problem of a table at once, each with its place and what to write instead."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentctl.protocol.values import JsonObject, JsonValue
from agentctl.toml.read import parse
from agentctl.toml.shapes import Bytes, Name, Positive, Range, Seconds, Shorthand, Texts, written_as
from agentctl.toml.table import EMPTY, Table
from agentctl.toml.validate import MAX_FINDINGS, Finding, Reader


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """A table in a table."""

    kind: Literal["petrol", "diesel"] = "petrol"
    power: Positive = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Car:
    """A table with a field of every kind."""

    name: Name
    owner: str = ""
    doors: Annotated[int, Range(minimum=2, maximum=5)] = 4
    price: float | None = None
    sold: bool = False
    tags: Texts = ()
    wheels: tuple[int, ...] = ()
    engine: Annotated[Engine, Shorthand("kind")] = field(default_factory=Engine)
    spare: Engine | None = None
    engines: tuple[Engine, ...] = ()
    by_colour: dict[Name, Engine] = field(default_factory=dict)
    switches: dict[Literal["lights", "horn"], bool] = field(default_factory=dict)
    note: str | Engine = ""
    from_: str = field(default="", metadata=written_as("from"))
    trunk: Bytes = 0
    trip: Seconds = 0.0
    extra: JsonObject = field(default_factory=dict)
    anything: JsonValue = None
    raw: Table = EMPTY


def read(text: str) -> tuple[Car, list[str]]:
    table = parse(text.encode(), file="f")
    reader = Reader(table, {"gears": "gears stand in another file"})
    car = reader.read(Car, {})
    return car, [str(problem) for problem in reader.problems()]


def test_a_good_table_becomes_the_dataclass() -> None:
    car, problems = read(
        """
        name = "mini"
        doors = 3
        price = 9
        tags = "small"
        engine = "diesel"
        engines = [{ power = 3 }, {}]
        from = "Oxford"
        trunk = "2KiB"
        trip = "1m30s"
        note = { power = 9 }
        extra = { a = [1, { b = true }] }
        switches = { horn = true }
        [by_colour.red]
        power = 7
        [raw]
        any = "thing"
        """
    )

    assert problems == []
    assert car.raw.values == {"any": "thing"}
    assert car == Car(
        name="mini",
        doors=3,
        price=9.0,
        tags=("small",),
        engine=Engine(kind="diesel"),
        engines=(Engine(power=3), Engine()),
        from_="Oxford",
        trunk=2048,
        trip=90.0,
        note=Engine(power=9),
        extra={"a": [1, {"b": True}]},
        switches={"horn": True},
        by_colour={"red": Engine(power=7)},
        raw=car.raw,
    )


def test_all_problems_are_found_in_one_pass_and_in_file_order() -> None:
    _, problems = read(
        """name = 3
owner = true
doors = 9
price = "dear"
sold = 1
wheels = [1, "two", 3.0]
colour = "red"
engine = "diesl"
gears = 5
switches = { lihgts = true, horn = 1 }
trunk = "big"
trip = 1979-05-27
extra = { when = 1979-05-27, odds = nan }
engines = [{ powr = 1 }, 7]
[by_colour."dark red"]
[spare]
owner = "me"
"""
    )

    assert [tuple(problem.split(": ", 2)[:2]) for problem in problems] == [
        ("f:1:8", "name"),
        ("f:2:9", "owner"),
        ("f:3:9", "doors"),
        ("f:4:9", "price"),
        ("f:5:8", "sold"),
        ("f:6:14", "wheels[1]"),
        ("f:6:21", "wheels[2]"),
        ("f:7:1", "colour"),
        ("f:8:10", "engine"),
        ("f:9:1", "gears"),
        ("f:10:14", "switches.lihgts"),
        ("f:10:36", "switches.horn"),
        ("f:11:9", "trunk"),
        ("f:12:8", "trip"),
        ("f:13:18", "extra.when"),
        ("f:13:37", "extra.odds"),
        ("f:14:14", "engines[0].powr"),
        ("f:14:26", "engines[1]"),
        ("f:15:12", 'by_colour."dark red"'),
        ("f:17:1", "spare.owner"),
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("owner = 3", "expected a text, found the number 3"),
        ("doors = 9", "expected a number from 2 to 5, found the number 9"),
        ("wheels = [1.0]", "expected a whole number, found the number 1.0"),
        ("ownr = 1", "unknown key at the top level of the file (did you mean 'owner'?)"),
        ("gears = 5", "gears stand in another file"),
        (
            'engine = "diesl"',
            'expected "petrol" or "diesel", found the text "diesl" (did you mean \'diesel\'?)',
        ),
        ("spare.zzz = 1", "unknown key in [spare]; known keys: kind, power"),
        (
            'spare.owner = "me"',
            "unknown key in [spare]; it belongs to the top level of the file, above the headers",
        ),
        ("trip = 1979-05-27", "found the date or time 1979-05-27"),
        ("extra.x = 07:32:00", "expected a JSON value (write a date as text)"),
        ("raw.x = 07:32:00", "expected a JSON value (write a date as text)"),
    ],
)
def test_a_message_says_what_was_expected_and_what_stands_there(line: str, message: str) -> None:
    [problem] = read(f'name = "x"\n{line}')[1]

    assert message in problem


def test_a_missing_required_key_is_told_with_its_table() -> None:
    assert read("doors = 3")[1] == ["f: name: required key is missing"]


@pytest.mark.parametrize("number", ["64_000", "0xFA00", "64000"])
def test_integers_in_any_toml_form_are_taken(number: str) -> None:
    assert read(f'name = "x"\ntrunk = {number}')[0].trunk == 64000


@pytest.mark.parametrize("number", ["6.4e4", '"6.4e4"', "-1", "true"])
def test_a_number_that_is_not_meant_is_an_error_and_never_the_default(number: str) -> None:
    assert len(read(f'name = "x"\ntrunk = {number}')[1]) == 1


def test_names_like_pythons_own_are_plain_names() -> None:
    for word in ("items", "keys", "values", "get", "toString", "constructor", "None"):
        car, problems = read(f'name = "{word}"\n[by_colour.{word}]\n[raw]\n{word} = 1')

        assert problems == []
        assert list(car.by_colour) == [word]


def test_what_a_terminal_would_act_on_is_never_printed() -> None:
    _, problems = read('name = "x"\n"\\u001b[31mred" = 1\nsold = "\\u202e\\u0007"')

    assert all(line.isprintable() for line in problems)


def test_a_file_full_of_unknown_keys_is_cut_and_counted() -> None:
    lines = "\n".join(f"key{number} = 1" for number in range(20_000))

    _, problems = read(f'name = "x"\n{lines}')

    assert len(problems) == MAX_FINDINGS + 1
    assert problems[-1] == "f: and 19,900 more problems"


def test_a_finding_that_rests_on_broken_ground_is_left_out() -> None:
    table = parse(b'name = 3\nowner = "x"', file="f")
    reader = Reader(table, {})
    reader.read(Car, {})

    problems = reader.problems(
        [
            Finding(path=("owner",), message="void", needs=(("name",),)),
            Finding(path=("owner",), message="sound", needs=(("doors",),)),
        ]
    )

    assert [problem.message for problem in problems] == ["expected a text, found the number 3", "sound"]


json_like = st.recursive(
    st.one_of(st.booleans(), st.integers(), st.text(max_size=5), st.floats()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
names = st.one_of(
    st.sampled_from(["name", "engine", "engines", "by_colour", "raw", "extra", "trip"]), st.text(max_size=4)
)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(names, json_like, max_size=6))
def test_the_reader_is_total(values: dict[str, object]) -> None:
    reader = Reader(Table(values=values, positions=EMPTY.positions), {})  # type: ignore[arg-type]

    car = reader.read(Car, {})

    assert isinstance(car, Car)
    assert len(reader.problems()) == len(reader.findings)
