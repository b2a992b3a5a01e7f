"""What each layer may say, and which of them wins."""

from collections.abc import Callable
from typing import TypeAlias

import pytest

from agentctl.policy.decide import decide
from agentctl.policy.layers import Layers
from agentctl.protocol.decisions import Verdict
from agentctl.protocol.effects import (
    Effect,
    OpaqueCommand,
    RunProgram,
    WritePath,
)

MakeLayers: TypeAlias = Callable[..., Layers]


def run(line: str, **more: object) -> RunProgram:
    return RunProgram(argv=tuple(line.split()), **more)


def write(path: str, **more: object) -> WritePath:
    return WritePath(path=f"/repo/app/{path}", **more)


OPAQUE = OpaqueCommand(line="$X", reason="a variable stands where the program is expected")
DENY, ASK, ALLOW = Verdict.DENY, Verdict.ASK, Verdict.ALLOW


def judged(tool: str, *effects: Effect, by: Layers) -> Verdict:
    return decide(tool, effects, by).verdict


def test_one_denied_part_denies_the_whole_line(layers: MakeLayers) -> None:
    by = layers(user='shell = { default = "allow", deny = ["git push *"] }')

    decision = decide("shell", (run("ls"), run("git push")), by)

    assert decision.verdict is DENY
    assert decision.rule == "shell(git push *)"
    assert (decision.layer, decision.position.file, decision.position.line) == ("user", "user.toml", 2)


@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        ({}, ASK),
        ({"blueprint": 'shell = "allow"'}, ASK),
        ({"blueprint": 'shell = "allow"', "allow_blueprint_permissions": True}, ALLOW),
        ({"blueprint": 'shell = "allow"', "user": 'shell = "allow"'}, ALLOW),
        ({"blueprint": 'shell = "ask"', "user": 'shell = "allow"'}, ASK),
        ({"blueprint": 'shell = "allow"', "user": 'shell = "ask"'}, ASK),
        ({"user": 'shell = "allow"'}, ALLOW),
        ({"user": 'bash = "allow"'}, ALLOW),
        ({"stage": 'shell = "allow"', "blueprint": 'shell = "ask"', "user": 'shell = "allow"'}, ALLOW),
        ({"stage": 'shell = "allow"', "blueprint": 'shell = "deny"', "user": 'shell = "allow"'}, DENY),
        ({"user": 'shell = "ask"', "user_for_agent": 'shell = "allow"', "found_by_name": True}, ALLOW),
        ({"user": 'shell = "ask"', "user_for_agent": 'shell = "allow"'}, ASK),
        ({"user_for_agent": 'shell = "allow"'}, ASK),
        ({"user": 'shell = "allow"', "user_for_agent": 'shell = "ask"'}, ASK),
        ({"user": 'shell = "deny"', "user_for_agent": 'shell = "allow"', "found_by_name": True}, DENY),
        ({"user": 'shell = "ask"', "yolo": True}, ALLOW),
        ({"user": 'shell = "deny"', "yolo": True, "allow": ["shell"]}, DENY),
        ({"allow": ["shell"]}, ALLOW),
        ({"allow": ["shell(ls *)"]}, ALLOW),
        ({"allow": ["shell(cat *)"]}, ASK),
        ({"allow": ["shell"], "ask": ["shell(ls *)"]}, ASK),
        ({"yolo": True, "ask": ["shell"]}, ASK),
        ({"user": 'shell = "allow"', "deny": ["shell(ls *)"], "yolo": True}, DENY),
        ({"user": '"*" = "deny"', "blueprint": 'shell = "allow"'}, DENY),
    ],
)
def test_layers_combine_as_designed(layers: MakeLayers, said: dict[str, object], verdict: Verdict) -> None:
    assert judged("shell", run("ls -la"), by=layers(**said)) is verdict
