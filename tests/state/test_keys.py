"""Typed keys: reads, writes, drift, definitions that differ."""

from dataclasses import dataclass, field

import pytest

from agentctl.errors import StateConflict
from agentctl.protocol.commands import Command, FoldValue, Merge, SetValue
from agentctl.state.cells import Cells
from agentctl.state.commit import Origin, assemble
from agentctl.state.key_classes import FoldStateKey, StateKey, table_of
from agentctl.state.keys import KeyDefinition, KeyTable

ORIGIN = Origin(run_id="r-1", thread_id="t-1")


@dataclass
class Review:
    approved: bool = False
    notes: list[str] = field(default_factory=list)


class ReviewKey(StateKey[Review]):
    name = "review"
    scope = "thread"


class Counter(StateKey[int]):
    name = "counter"


class Limit(StateKey[int]):
    name = "limit"
    default = 7


class Total(FoldStateKey[int, int]):
    name = "total"

    @classmethod
    def apply(cls, value: int, update: int) -> int:
        return value + update


class Seen(FoldStateKey[list[str], str]):
    name = "seen"
    scope = "thread"
    fold = "append"


def stored(*commands: Command) -> Cells:
    return assemble(ORIGIN, (), commands).cells


def test_an_absent_cell_gives_the_default_of_its_type() -> None:
    view = Cells().view("r-1")

    assert ReviewKey.load(view) == Review()
    assert Counter.load(view) == 0
    assert Limit.load(view) == 7
    assert Seen.load(view) == []


def test_a_key_that_may_hold_nothing_holds_nothing_where_it_is_absent() -> None:
    class Chosen(StateKey[int | None]):
        name = "chosen"

    keys = table_of(Chosen)
    view = assemble(ORIGIN, (), (Chosen.write(3),), keys=keys).cells.view("r-1")

    assert Chosen.load(Cells().view("r-1")) is None
    assert Chosen.load(view) == 3


def test_a_type_that_gives_nothing_by_itself_needs_a_default() -> None:
    class Mixed(StateKey[int | str]):
        name = "mixed"

    with pytest.raises(TypeError, match="Mixed needs a default"):
        table_of(Mixed)


def test_a_default_that_a_caller_changes_stays_the_default() -> None:
    ReviewKey.load(Cells()).notes.append("mine")

    assert ReviewKey.load(Cells()) == Review()


def test_a_written_value_is_read_back_as_its_type() -> None:
    cells = stored(ReviewKey.try_write(Review(approved=True, notes=["ok"])))

    assert ReviewKey.load(cells) == Review(approved=True, notes=["ok"])
    assert cells.get("thread", "review") == {"approved": True, "notes": ["ok"]}


def test_a_removed_cell_is_absent() -> None:
    cells = stored(ReviewKey.write(Review(approved=True)), ReviewKey.remove())

    assert len(cells) == 0


def test_drift_is_an_error_that_names_key_scope_and_detail_unless_tolerated() -> None:
    cells = stored(Command(scope="run", key="counter", action=SetValue(value="not a number")))

    with pytest.raises(StateConflict, match=r"'counter' in scope 'run'.*'not a number' is not int"):
        Counter.load(cells.view("r-1"))
    assert Counter.load_or_default(cells.view("r-1")) == 0


def test_a_missing_field_is_drift_and_an_unknown_one_is_not() -> None:
    @dataclass
    class Strict:
        needed: int

    class StrictKey(StateKey[Strict]):
        name = "strict"
        scope = "thread"

        @classmethod
        def _default(cls) -> Strict:
            return Strict(needed=1)

    def cell(value: dict[str, int]) -> Cells:
        return stored(Command(scope="thread", key="strict", action=SetValue(value={**value})))

    with pytest.raises(StateConflict):
        StrictKey.load(cell({"other": 1}))
    assert StrictKey.load(cell({"needed": 2, "later": 3})) == Strict(needed=2)


def test_a_value_of_another_version_is_drift() -> None:
    class Newer(Counter):
        version = 2

    cells = stored(Counter.write(5))

    with pytest.raises(StateConflict, match="stored by version 1"):
        Newer.load(cells.view("r-1"))


def test_a_value_without_a_form_in_json_is_refused_and_never_stored_as_null() -> None:
    class Loose(StateKey[dict]):  # type: ignore[type-arg]
        name = "loose"

    for value in ({"a": object()}, {1: 2}, {"x": float("nan")}):
        with pytest.raises(StateConflict, match="'loose'"):
            Loose.try_write(value)
        with pytest.raises(TypeError):
            Loose.write(value)


def test_updates_of_a_fold_key_in_one_commit_are_all_counted() -> None:
    keys = table_of(Total, Seen)

    assembled = assemble(
        ORIGIN, (), (Total.commit(2), Total.commit(3), Seen.commit("a"), Seen.commit("b")), keys=keys
    )

    assert Total.load(assembled.cells.view("r-1")) == 5
    assert Seen.load(assembled.cells) == ["a", "b"]


def test_a_fold_of_a_function_is_replayed_without_the_function() -> None:
    assembled = assemble(ORIGIN, (), (Total.commit(2), Total.commit(3)), keys=table_of(Total))

    assert Total.load(Cells().after(assembled.commit.commands).view("r-1")) == 5


def test_a_fold_starts_from_the_default_also_when_replayed() -> None:
    class Budget(FoldStateKey[int, int]):
        name = "budget"
        fold = "sum"
        default = 100

    assembled = assemble(ORIGIN, (), (Budget.commit(-1), Budget.commit(-2)), keys=table_of(Budget))

    assert Budget.load(assembled.cells.view("r-1")) == 97
    assert Cells().after(assembled.commit.commands) == assembled.cells


def test_a_fold_without_a_known_function_is_refused() -> None:
    with pytest.raises(StateConflict, match="not known here"):
        assemble(ORIGIN, (), (Total.commit(1),))


def test_a_fold_function_that_raises_refuses_the_commit() -> None:
    class Bad(FoldStateKey[int, int]):
        name = "bad"

        @classmethod
        def apply(cls, value: int, update: int) -> int:
            return value // update

    with pytest.raises(StateConflict, match="cannot take the update"):
        assemble(ORIGIN, (), (Bad.commit(0),), keys=table_of(Bad))


def test_a_key_that_says_too_little_is_a_mistake_of_its_author() -> None:
    class Untyped(StateKey):  # type: ignore[type-arg]
        name = "untyped"

    with pytest.raises(TypeError, match="StateKey"):
        Untyped.load(Cells())

    class NoApply(FoldStateKey[int, int]):
        name = "noapply"

    with pytest.raises(StateConflict, match="apply"):
        assemble(ORIGIN, (), (NoApply.commit(1),), keys=table_of(NoApply))


def test_two_definitions_that_differ_are_a_load_error() -> None:
    one = KeyDefinition(name="k", scope="run", merge=Merge.DISJOINT, schema={"type": "integer"})
    same = KeyDefinition(name="k", scope="run", merge=Merge.DISJOINT, schema={"type": "integer"})
    other_scope = KeyDefinition(name="k", scope="thread", merge=Merge.EXCLUSIVE)

    assert KeyTable((one, same, other_scope)).named("k") == one
    for different in (
        KeyDefinition(name="k", merge=Merge.EXCLUSIVE, schema={"type": "integer"}),
        KeyDefinition(name="k", schema={"type": "string"}),
        KeyDefinition(name="k", schema={"type": "integer"}, version=2),
        KeyDefinition(name="k", schema={"type": "integer"}, default=1),
    ):
        with pytest.raises(StateConflict, match="defined twice"):
            KeyTable((one, different))


def test_a_definition_loads_like_a_class() -> None:
    definition = KeyDefinition(
        name="k", scope="thread", default=[], shape=lambda value: "" if isinstance(value, list) else "no list"
    )

    assert definition.load(Cells()) == []
    assert definition.load(stored(Command(scope="thread", key="k", action=SetValue(value=[1])))) == [1]
    with pytest.raises(StateConflict, match="no list"):
        definition.load(stored(Command(scope="thread", key="k", action=SetValue(value=1))))


def test_a_fold_command_without_a_fold_gets_that_of_its_key() -> None:
    definition = KeyDefinition(name="n", merge=Merge.FOLD, fold="max")
    command = Command(scope="run", key="n", action=FoldValue(value=3), merge=Merge.FOLD)

    assembled = assemble(ORIGIN, (), (command, command), keys=KeyTable((definition,)))

    assert assembled.cells.get("run", "n", run_id="r-1") == 3
