"""What one commit does to the cells: policies, scopes, binding, and that replay gives what was live."""

from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentctl.errors import StateConflict
from agentctl.protocol.commands import Command, FoldValue, Merge, RemoveValue, Scope, SetValue
from agentctl.protocol.events import Noted
from agentctl.protocol.values import JsonValue
from agentctl.state.cells import Cells
from agentctl.state.commit import Origin, assemble
from agentctl.state.keys import NO_KEYS, KeyDefinition, KeyTable

ORIGIN = Origin(run_id="r-1", thread_id="t-1")


def put(
    key: str,
    value: JsonValue,
    *,
    scope: Scope = "thread",
    merge: Merge = Merge.DISJOINT,
    writer: str = "",
) -> Command:
    return Command(scope=scope, key=key, action=SetValue(value=value), merge=merge, writer=writer)


def drop(key: str, *, scope: Scope = "thread", merge: Merge = Merge.DISJOINT) -> Command:
    return Command(scope=scope, key=key, action=RemoveValue(), merge=merge)


def after(*commands: Command) -> Cells:
    return assemble(ORIGIN, (), commands).cells


def test_commands_take_effect_in_order() -> None:
    cells = after(put("a", 1), put("b", 2), put("a", 3), drop("b"))

    assert cells.get("thread", "a") == 3
    assert len(cells) == 1


def test_one_key_in_two_scopes_is_two_cells() -> None:
    cells = after(put("k", "run", scope="run"), put("k", "thread"))

    assert cells.view("r-1").get("run", "k") == "run"
    assert cells.get("thread", "k") == "thread"


def test_run_cells_are_bound_to_their_run_and_unseen_by_others() -> None:
    assembled = assemble(ORIGIN, (), (put("k", 1, scope="run"), put("k", 2)))

    assert [command.run_id for command in assembled.commit.commands] == ["r-1", ""]
    assert assembled.cells.view("r-2").get("run", "k") is None
    assert assembled.cells.view("r-2").get("thread", "k") == 2


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([{"a": 1}, {"b": 2}], {"a": 1, "b": 2}),
        ([{"a": {"x": 1}}, {"a": {"y": 2}}], {"a": {"y": 2}}),
        ([{"a": 1}, {"a": 2}], {"a": 2}),
        ([1, 2], 2),
        ([1, {"a": 1}], {"a": 1}),
        ([{"a": 1}, 9], 9),
    ],
)
def test_commutative_values_merge_shallowly_or_replace(values: list[JsonValue], expected: JsonValue) -> None:
    cells = after(*(put("k", value, merge=Merge.COMMUTATIVE) for value in values))

    assert cells.get("thread", "k") == expected


def test_a_commutative_cell_starts_fresh_after_a_remove() -> None:
    merge = Merge.COMMUTATIVE
    cells = after(put("k", {"a": 1}, merge=merge), drop("k", merge=merge), put("k", {"b": 2}, merge=merge))

    assert cells.get("thread", "k") == {"b": 2}


def test_commutative_values_merge_across_commits() -> None:
    first = after(put("k", {"a": 1}, merge=Merge.COMMUTATIVE))
    second = assemble(ORIGIN, (), (put("k", {"b": 2}, merge=Merge.COMMUTATIVE),), cells=first)

    assert second.cells.get("thread", "k") == {"a": 1, "b": 2}
    assert first.get("thread", "k") == {"a": 1}


def test_a_second_set_of_an_exclusive_cell_refuses_the_commit_and_names_both_writers() -> None:
    merge = Merge.EXCLUSIVE
    with pytest.raises(StateConflict, match=r"'lock' in scope 'thread'.*by alice and by bob"):
        after(put("lock", 1, merge=merge, writer="alice"), put("lock", 2, merge=merge, writer="bob"))
    with pytest.raises(StateConflict, match="a remove between does not count"):
        after(put("lock", 1, merge=merge), drop("lock", merge=merge), put("lock", 2, merge=merge))


def test_removes_and_other_scopes_do_not_count_as_a_second_set() -> None:
    merge = Merge.EXCLUSIVE

    assert len(after(drop("lock", merge=merge), drop("lock", merge=merge))) == 0
    assert len(after(put("k", 1, merge=merge), put("k", 2, merge=merge, scope="run"))) == 2


def test_two_writers_of_a_disjoint_cell_are_named_in_a_warning_and_the_last_wins() -> None:
    assembled = assemble(ORIGIN, (), (put("k", 1, writer="c-1"), put("k", 2, writer="c-2")))

    assert assembled.cells.get("thread", "k") == 2
    assert len(assembled.warnings) == 1
    assert "c-1" in assembled.warnings[0]
    assert "c-2" in assembled.warnings[0]
    assert assembled.commit.events == (Noted(level="warning", text=assembled.warnings[0], source="state"),)


def test_two_policies_for_one_cell_in_one_commit_are_refused() -> None:
    with pytest.raises(StateConflict, match="two policies"):
        after(put("k", 1), put("k", 2, merge=Merge.EXCLUSIVE))


def test_a_command_under_another_policy_than_its_keys_is_refused() -> None:
    keys = KeyTable((KeyDefinition(name="k", scope="thread", merge=Merge.EXCLUSIVE),))

    with pytest.raises(StateConflict, match="declared exclusive"):
        assemble(ORIGIN, (), (put("k", 1),), keys=keys)


def test_a_value_that_does_not_fit_its_key_refuses_the_whole_commit() -> None:
    def shape(value: JsonValue) -> str:
        return "" if isinstance(value, int) else f"{value!r} is not an integer"

    keys = KeyTable((KeyDefinition(name="k", scope="thread", shape=shape),))

    with pytest.raises(StateConflict, match="'x' is not an integer"):
        assemble(ORIGIN, (), (put("other", 1), put("k", "x")), keys=keys)


@pytest.mark.parametrize("origin", [Origin(run_id="", thread_id="t"), Origin(run_id="r", thread_id="")])
def test_an_empty_id_is_refused(origin: Origin) -> None:
    with pytest.raises(StateConflict, match="must not be empty"):
        assemble(origin, ())


def test_a_remove_of_an_absent_cell_does_nothing() -> None:
    assert len(after(drop("ghost"))) == 0


def test_folds_that_do_not_fit_are_refused() -> None:
    def fold(name: str, value: JsonValue) -> Command:
        return Command(
            scope="thread", key="k", action=FoldValue(value=value, fold=name), merge=Merge.FOLD, writer="c-1"
        )

    for name, value in (("sum", "x"), ("sum", True), ("max", None), ("patch", [{"op": "spam"}])):
        with pytest.raises(StateConflict, match="update of c-1"):
            after(fold(name, value))
    assert after(fold("append", 1), fold("append", 1)).get("thread", "k") == [1, 1]
    assert after(fold("union", [1, True]), fold("union", 1)).get("thread", "k") == [1, True]
    assert after(fold("min", 3), fold("min", 2.5)).get("thread", "k") == 2.5
    with pytest.raises(StateConflict):
        after(fold("append", 1), fold("sum", 1))


def test_cells_are_scanned_by_exact_prefix_and_projected_by_name() -> None:
    cells = after(
        put("background_task/one", 1),
        put("background_task/two", 2, scope="run"),
        put("background_task/one", 1),
        put("background_task/two", 2, scope="run"),
        put("background_tasks/3", 3),
    )

    assert cells.scan("thread", "background_task/") == {"background_task/one": 1}
    assert cells.view("r-1").scan("run", "background_task/") == {"background_task/two": 2}
    assert len(cells.project(["background_task/*"])) == 2
    assert len(cells.project(["background_tasks/3"])) == 1


SCOPES: tuple[Scope, ...] = ("run", "thread", "shared", "profile")
VALUES: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
    max_leaves=4,
)
FOLDS: tuple[Literal["sum", "max", "min", "append", "union"], ...] = ("sum", "max", "min", "append", "union")
KEYS = KeyTable(
    [
        KeyDefinition(name=f"{merge}-key", scope=scope, merge=merge)
        for scope in SCOPES
        for merge in (Merge.DISJOINT, Merge.COMMUTATIVE, Merge.EXCLUSIVE)
    ]
    + [
        KeyDefinition(name=f"{fold}-key", scope=scope, merge=Merge.FOLD, fold=fold, default=default)
        for scope in SCOPES
        for fold, default in zip(FOLDS, (10, None, None, ["x"], None), strict=True)
    ]
)


@st.composite
def commands(draw: st.DrawFn) -> Command:
    definition = draw(st.sampled_from(KEYS.definitions))
    action: SetValue | RemoveValue | FoldValue
    if definition.merge is Merge.FOLD and draw(st.booleans()):
        number = definition.fold in ("sum", "max", "min")
        action = FoldValue(value=draw(st.integers(-5, 5) if number else VALUES), fold=definition.fold)
    elif definition.merge is not Merge.FOLD and draw(st.integers(0, 3)):
        action = SetValue(value=draw(VALUES))
    else:
        action = RemoveValue()
    return Command(scope=definition.scope, key=definition.name, action=action, merge=definition.merge)


@given(st.lists(st.tuples(st.sampled_from(["r-1", "r-2"]), st.lists(commands(), max_size=4)), max_size=6))
@settings(max_examples=300, deadline=None)
def test_replaying_the_commits_gives_the_live_cells(batches: list[tuple[str, list[Command]]]) -> None:
    live = Cells()
    journal: list[Command] = []
    for run_id, batch in batches:
        try:
            assembled = assemble(Origin(run_id=run_id, thread_id="t-1"), (), batch, keys=KEYS, cells=live)
        except StateConflict:
            continue  # a refused commit leaves nothing behind: the next one builds on the same cells
        live = assembled.cells
        journal.extend(assembled.commit.commands)

    assert Cells().after(journal) == live
    assert Cells.restore(live.dump()) == live


@given(st.lists(st.integers(-5, 5), min_size=2, max_size=6), st.randoms())
@settings(max_examples=50, deadline=None)
def test_calls_that_finish_in_any_order_reach_one_state_when_folded_in_call_order(
    updates: list[int], random: object
) -> None:
    def command(update: int) -> Command:
        return Command(
            scope="run", key="sum-key", action=FoldValue(value=update, fold="sum"), merge=Merge.FOLD
        )

    finished = list(enumerate(updates))
    random.shuffle(finished)  # type: ignore[attr-defined]
    parallel = assemble(ORIGIN, (), [command(update) for _, update in sorted(finished)], keys=KEYS).cells
    sequential = Cells()
    for update in updates:
        sequential = assemble(ORIGIN, (), [command(update)], keys=KEYS, cells=sequential).cells

    assert parallel == sequential


def test_no_keys_means_any_key_under_the_policy_of_its_command() -> None:
    assert NO_KEYS.definitions == ()
    assert after(put("anything", 1)).get("thread", "anything") == 1
