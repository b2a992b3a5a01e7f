"""The flags and lines that would have let a call through are tried before they are told."""

from collections.abc import Callable
from typing import TypeAlias

import pytest

from agentctl.policy.decide import decide, decide_as_a_whole
from agentctl.policy.layers import Layers
from agentctl.policy.rules import parse_rules
from agentctl.policy.way_out import flags_for, lines_for, with_flags
from agentctl.protocol.decisions import Verdict
from agentctl.protocol.effects import Effect, OpaqueCommand, ReadPath, RunProgram, WritePath

MakeLayers: TypeAlias = Callable[..., Layers]
OPAQUE = OpaqueCommand(line="$X", reason="cannot tell")


def run(line: str, **more: object) -> RunProgram:
    return RunProgram(argv=tuple(line.split()), **more)


@pytest.mark.parametrize(
    ("effects", "flags"),
    [
        ((run("git push origin x"),), ("shell(git push *)",)),
        ((run("python3"),), ("shell(python3)",)),
        ((run("rm $x", unknown=(1,), spread=(1,)),), ("shell(rm *)",)),
        ((run("make"), WritePath(path="/repo/app/src/a")), ("shell(make)", "write_file(/repo/app/src/*)")),
        ((OPAQUE,), ("shell",)),
        ((ReadPath(path="/etc/hosts", outside=True),), ()),
        ((WritePath(path="/repo/app/.git/x", protected="git internals"),), ()),
    ],
)
def test_the_flags_that_are_told_let_the_call_through(
    layers: MakeLayers, effects: tuple[Effect, ...], flags: tuple[str, ...]
) -> None:
    by = layers()

    found = flags_for(decide("shell", effects, by), by)

    assert found == flags
    if found:
        assert decide("shell", effects, layers(allow=list(found))).verdict is Verdict.ALLOW


def test_where_only_yolo_helps_it_is_told_and_where_nothing_does_nothing_is(layers: MakeLayers) -> None:
    asks, denies = layers(user='shell = { ask = ["git push *"] }'), layers(user='write_file = "deny"')

    assert flags_for(decide("shell", (OPAQUE,), asks), asks) == ("--yolo",)
    assert flags_for(decide("shell", (OPAQUE,), denies), denies) == ()


def test_flags_reach_the_parents_run_as_they_do_in_a_run(layers: MakeLayers, built_in: object) -> None:
    by = layers(parent=layers().for_children())
    (rule,) = flags_for(decide("shell", (run("make"),), by), by)

    names = built_in.names  # type: ignore[attr-defined]
    tried = with_flags(by, allow=parse_rules([rule], names=names, source="--allow"))

    assert decide("shell", (run("make"),), tried).verdict is Verdict.ALLOW


def test_the_lines_that_are_told_allow_the_call(layers: MakeLayers) -> None:
    effects = (run("git push"), run("make"), WritePath(path="/repo/app/src/a"))

    lines = lines_for(decide("shell", effects, layers()))

    assert lines == (
        'shell = { default = "ask", allow = ["git push *", "make"] }',
        'write_file = { default = "ask", allow = ["/repo/app/src/*"] }',
    )
    assert decide("shell", effects, layers(user="\n".join(lines))).verdict is Verdict.ALLOW
    assert lines_for(decide("github__x", (), layers())) == ('github__x = "allow"',)
    assert lines_for(decide("shell", (OPAQUE,), layers())) == ()


def test_a_tool_as_a_whole_is_judged_by_its_words(layers: MakeLayers) -> None:
    by = layers(user='write_file = "allow"\nshell = { default = "deny", allow = ["ls *"] }')

    assert decide_as_a_whole("shell", by).verdict is Verdict.DENY
    assert decide_as_a_whole("edit_file", by).verdict is Verdict.ALLOW
    assert decide_as_a_whole("edit_file", layers(user='edit_file = "deny"')).verdict is Verdict.DENY
    assert decide_as_a_whole("nobody_knows", by).verdict is Verdict.ASK
