"""Machines over tool calls: gates that only narrow, moves, words, holds, and what is checked at load."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentctl.errors import StateConflict
from agentctl.protocol.commands import Command, SetValue
from agentctl.state.cells import Cells
from agentctl.state.commit import Origin, assemble
from agentctl.state.machine import Bound, Emit, Machine, Move, When
from agentctl.state.machine_check import check_machines
from agentctl.state.machine_keys import Normaliser, normalised
from agentctl.state.machines import (
    Called,
    GateOutcome,
    advance,
    advance_on_event,
    gate,
    unfinished,
)

ORIGIN = Origin(run_id="r-1", thread_id="t-1")


def moves(on: str, origin: str, to: str, **more: object) -> Move:
    return Move(on=on, origin=frozenset(origin.split()), to=to, **more)  # type: ignore[arg-type]


def read_before_write(**more: object) -> Machine:
    fields: dict[str, object] = {
        "name": "rbw",
        "key": "{path}",
        "key_normaliser": "path",
        "initial": "unread",
        "moves": (
            moves("read_file", "unread read written", "read"),
            moves("write_file", "read written", "written", reason="Read {path} before writing."),
        ),
    }
    return Machine(**{**fields, **more})  # type: ignore[arg-type]


def after(machines: list[Machine], *calls: Called, cells: Cells | None = None) -> tuple[Cells, list[str]]:
    cells = cells or Cells()
    said: list[str] = []
    for call in calls:
        moved = advance(machines, call, cells.view("r-1"))
        said += [one.say for one in moved if one.say]
        commands = [command for one in moved for command in one.commands]
        cells = assemble(ORIGIN, (), commands, cells=cells).cells
    return cells, said


def call(tool: str, path: str = "a.rs", *, success: bool = True, text: str = "", step: int = 0) -> Called:
    return Called(tool=tool, arguments={"path": path}, success=success, text=text, step=step)


def word(machines: list[Machine], tool: str, cells: Cells, **arguments: str) -> GateOutcome:
    return gate(machines, tool, arguments, cells.view("r-1"))


def test_a_write_before_a_read_is_denied_and_after_it_allowed() -> None:
    machines = [read_before_write()]
    fresh = Cells()

    denied = word(machines, "write_file", fresh, path="a.rs")
    cells, _ = after(machines, call("read_file"))
    cells_written, _ = after(machines, call("write_file"), cells=cells)

    assert (denied.verdict, denied.reason) == ("deny", "Read a.rs before writing.")
    assert word(machines, "write_file", cells, path="a.rs").verdict == "allow"
    assert word(machines, "write_file", cells, path="other.rs").verdict == "deny"
    assert word(machines, "write_file", cells_written, path="a.rs").verdict == "allow"


def test_without_words_of_its_own_the_reason_says_what_must_come_first() -> None:
    machine = read_before_write(moves=(moves("write_file", "read", "written"),))

    assert word([machine], "write_file", Cells(), path="a").reason == (
        "rbw for a is unread; write_file comes after read."
    )


def test_a_call_without_the_key_is_none_of_the_machines_business_unless_strict() -> None:
    assert gate([read_before_write()], "write_file", {"x": 1}, Cells().view("r")).verdict == "allow"
    assert (
        advance(
            [read_before_write()], Called(tool="write_file", arguments={}, success=True), Cells().view("r")
        )
        == []
    )
    assert gate([read_before_write(strict=True)], "write_file", {}, Cells().view("r")).verdict == "deny"


def test_a_strict_machine_denies_what_no_move_is_about_but_never_the_way_out() -> None:
    strict, lax = read_before_write(strict=True), read_before_write()

    assert word([strict], "edit_file", Cells(), path="a").verdict == "deny"
    assert word([lax], "edit_file", Cells(), path="a").verdict == "allow"
    assert word([read_before_write(strict=True, key="")], "transition", Cells()).verdict == "allow"


def test_the_strongest_violation_counts_whatever_the_order() -> None:
    soft = moves("write_file", "other", "x", on_violation="warn", reason="soft")
    hard = moves("write_file", "other", "x", reason="hard")
    ask = moves("write_file", "other", "x", on_violation="ask", reason="ask")

    for listed in ((soft, hard), (hard, soft), (ask, hard), (hard, ask)):
        assert word([read_before_write(moves=listed)], "write_file", Cells(), path="a").reason == "hard"
    one, other = read_before_write(moves=(ask,)), read_before_write(name="b", moves=(hard,))
    for machines in ([one, other], [other, one]):
        assert word(machines, "write_file", Cells(), path="a") == GateOutcome(
            verdict="deny", reason="hard", machine="b"
        )


def test_a_warning_lets_the_call_through_and_says_its_words_after_it() -> None:
    machine = read_before_write(
        moves=(moves("write_file", "read", "w", on_violation="warn", reason="careful with {path}"),)
    )

    assert word([machine], "write_file", Cells(), path="a").verdict == "allow"
    cells, said = after([machine], call("write_file", "a"))
    assert said == ["careful with a"]
    assert len(cells) == 0


def test_keys_that_name_one_path_are_one_instance() -> None:
    cells, _ = after([read_before_write()], call("read_file", "./src/../src/main.rs"))

    assert [address.key for address in cells] == ["agentctl/machine/rbw/src/main.rs"]


def test_a_move_to_where_it_stands_writes_nothing_but_the_first_makes_the_instance() -> None:
    machine = read_before_write(initial="tracking", moves=(moves("read_file", "tracking", "tracking"),))
    cells, _ = after([machine], call("read_file"))

    assert len(cells) == 1
    assert advance([machine], call("read_file"), cells.view("r-1")) == []


@pytest.mark.parametrize(
    ("success", "text", "state"),
    [(True, "all fine", "passing"), (False, "boom", "failing"), (True, "hm", "flaky")],
)
def test_the_end_of_the_call_chooses_the_move(success: bool, text: str, state: str) -> None:  # noqa: FBT001
    machine = Machine(
        name="tests",
        initial="none",
        on_unmatched="flaky",
        moves=(
            moves("shell", "none", "passing", when=When(content="*fine*")),
            moves("shell", "none", "failing", when=When(status="error")),
        ),
    )

    cells, _ = after([machine], call("shell", success=success, text=text))

    value = cells.view("r-1").get("run", "agentctl/machine/tests/")
    assert isinstance(value, dict)
    assert value["state"] == state


def test_a_failed_call_moves_nothing_by_default() -> None:
    cells, _ = after([read_before_write()], call("read_file", success=False))

    assert len(cells) == 0


def test_counters_hold_a_move_but_not_the_gate() -> None:
    machine = Machine(
        name="review",
        initial="open",
        moves=(
            moves("work", "open", "open", increment=("steps",)),
            moves("close", "open", "closed", counters={"steps": Bound(gte=2, lte=3)}, reset=("steps",)),
        ),
    )
    cells, _ = after([machine], call("work"), call("close"))
    assert word([machine], "close", cells).verdict == "allow"
    cells, _ = after([machine], call("work"), call("close"), cells=cells)

    value = cells.view("r-1").get("run", "agentctl/machine/review/")
    assert value == {"state": "closed", "counters": {"steps": 0}, "data": {}, "said": {}}


def test_words_can_name_what_was_captured_and_wait_their_turn() -> None:
    machine = Machine(
        name="todo",
        initial="idle",
        moves=(
            moves("note", "idle open", "open", capture={"snapshot": "{path}"}),
            moves("work", "open", "open", emit=Emit(content="TODO: {instance.data.snapshot}", cooldown=2)),
        ),
    )

    _, said = after(
        [machine],
        call("note", "ship backend"),
        call("work", step=1),
        call("work", step=2),
        call("work", step=3),
    )

    assert said == ["TODO: ship backend", "TODO: ship backend"]


def test_events_of_the_harness_drive_the_same_machines() -> None:
    machine = Machine(
        name="pace",
        initial="on",
        moves=(
            moves("event:after_model", "on", "on", increment=("steps",)),
            moves(
                "event:before_model",
                "on",
                "on",
                counters={"steps": Bound(gte=1)},
                emit=Emit(content="review todos at {counters.steps}", target="context"),
            ),
        ),
    )
    cells = Cells()

    def event(name: str, step: int) -> list[str]:
        nonlocal cells
        moved = advance_on_event([machine], name, {}, step, cells.view("r-1"))
        commands = [command for one in moved for command in one.commands]
        cells = assemble(ORIGIN, (), commands, cells=cells).cells
        assert all(one.say_in == "context" for one in moved)
        return [one.say for one in moved if one.say]

    assert event("before_model", 1) == []
    assert event("after_model", 1) == []
    assert event("before_model", 2) == ["review todos at 1"]
    assert event("other", 2) == []


def test_a_run_is_held_while_an_instance_is_not_done() -> None:
    machine = read_before_write(terminal=frozenset({"written"}), max_continuations=5)
    cells, _ = after([machine], call("read_file", "b.rs"), call("read_file", "a.rs"))

    assert unfinished([machine], cells.view("r-1")) == ["rbw[a.rs]=read", "rbw[b.rs]=read"]
    cells, _ = after([machine], call("write_file", "a.rs"), call("write_file", "b.rs"), cells=cells)
    assert unfinished([machine], cells.view("r-1")) == []
    assert unfinished([read_before_write()], cells.view("r-1")) == []


def test_a_call_that_a_person_let_through_moves_the_machine() -> None:
    machine = read_before_write(moves=(moves("write_file", "read", "written", on_violation="ask"),))
    assert word([machine], "write_file", Cells(), path="a").verdict == "ask"

    cells, _ = after([machine], call("write_file", "a"))

    value = cells.view("r-1").get("run", "agentctl/machine/rbw/a")
    assert isinstance(value, dict)
    assert value["state"] == "written"


def test_thread_machines_outlive_the_run() -> None:
    machine = read_before_write(scope="thread")
    cells, _ = after([machine], call("read_file"))

    assert gate([machine], "write_file", {"path": "a.rs"}, cells.view("r-2")).verdict == "allow"
    run_machine = read_before_write()
    run_cells, _ = after([run_machine], call("read_file"))
    assert gate([run_machine], "write_file", {"path": "a.rs"}, run_cells.view("r-2")).verdict == "deny"


def test_a_machine_whose_state_cannot_be_read_holds_and_does_not_start_over() -> None:
    broken = Command(scope="run", key="agentctl/machine/rbw/a.rs", action=SetValue(value=[1]))
    cells = assemble(ORIGIN, (), (broken,)).cells

    with pytest.raises(StateConflict, match="declared shape"):
        word([read_before_write()], "write_file", cells, path="a.rs")


@pytest.mark.parametrize(
    ("how", "key", "expected"),
    [
        ("none", " A ", " A "),
        ("trim", " A ", "A"),
        ("lowercase", " A ", "a"),
        ("path", "a//b/./c/../d", "a/b/d"),
        ("path", "//etc/x", "/etc/x"),
        ("path", "", ""),
        ("url", "HTTPS://Example.com:443/a/#frag", "https://example.com/a"),
        ("url", "http://h:8080/?q=1", "http://h:8080?q=1"),
        ("url", "not a url", "not a url"),
        ("url", "http://[::1", "http://[::1"),
    ],
)
def test_keys_are_made_comparable(how: Normaliser, key: str, expected: str) -> None:
    assert normalised(key, how) == expected
    assert normalised(expected, how) == expected


def test_what_is_wrong_with_a_machine_is_found_before_anything_runs() -> None:
    wrong = Machine(
        name="m",
        key="{path",
        initial="a",
        terminal=frozenset({"never"}),
        moves=(
            moves("read file(", "a", "b"),
            moves("x", "lost", "c", counters={"n": Bound(gte=3, lte=2)}),
            moves("event:before_model", "a", "a", emit=Emit(content="x")),
            Move(on="y", origin=frozenset(), to="b"),
            moves("event:e", "a", "a"),
        ),
    )

    problems = check_machines([wrong, read_before_write(), read_before_write()])

    texts = [(problem.machine, problem.level, problem.text) for problem in problems]
    assert any("'read file(' goes on after the tool's name" in text for _, _, text in texts)
    assert ("m", "error", "counter 'n': gte 3 is above lte 2") in texts
    assert ("m", "error", "an event has no result; write target = 'context'") in texts
    assert ("m", "error", "names no state") in texts
    told = "machines are told of no 'event:e'; there is event:before_model and event:after_model"
    assert ("m", "error", told) in texts
    assert any("brace" in text for _, _, text in texts)
    assert ("m", "warning", "no move leads to the state 'never'") in texts
    assert ("m", "warning", "'x' is denied in every state that can be reached") in texts
    assert ("rbw", "error", "two machines have this name") in texts


def test_a_state_that_mere_reading_leaves_open_is_warned_about() -> None:
    machine = read_before_write(terminal=frozenset({"written"}), max_continuations=3)
    dead = Machine(
        name="d",
        initial="a",
        terminal=frozenset({"z"}),
        max_continuations=1,
        moves=(moves("t", "a", "b"), moves("u", "a", "z")),
    )

    texts = [problem.text for problem in check_machines([machine, dead], read_only_tools=["read_file"])]

    assert any("a mere read_file leads to 'read'" in text for text in texts)
    assert "nothing leads out of 'b', which is not terminal" in texts
    assert check_machines([read_before_write()]) == ()


TOOLS = ("read_file", "write_file", "edit_file", "other")


@given(
    st.lists(st.tuples(st.sampled_from(TOOLS), st.sampled_from("ab"), st.booleans()), max_size=8),
    st.booleans(),
)
@settings(max_examples=150, deadline=None)
def test_another_machine_never_loosens_what_one_denies(
    history: list[tuple[str, str, bool]],
    strict: bool,  # noqa: FBT001
) -> None:
    one = read_before_write(strict=strict)
    other = read_before_write(
        name="other",
        moves=(
            moves("write_file", "unread", "w", on_violation="ask"),
            moves("edit_file", "w", "w", on_violation="warn"),
        ),
    )
    cells, _ = after([one, other], *(call(tool, path, success=ok) for tool, path, ok in history))
    order = {"allow": 0, "ask": 1, "deny": 2}

    for tool in TOOLS:
        alone = order[word([one], tool, cells, path="a").verdict]
        both = order[word([one, other], tool, cells, path="a").verdict]
        assert both >= alone
        assert both == order[word([other, one], tool, cells, path="a").verdict]
