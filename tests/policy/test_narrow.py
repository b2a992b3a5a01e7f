"""What may make a decision stricter after the layers spoke, and how it can be lifted."""

from collections.abc import Callable
from typing import TypeAlias

import pytest

from agentctl.policy.cover import Lifts, cover
from agentctl.policy.decide import decide
from agentctl.policy.grants import GrantBook, propose
from agentctl.policy.layers import Layers
from agentctl.policy.narrow import narrowed, unseen
from agentctl.policy.paths import Place
from agentctl.protocol.decisions import Grant, Verdict
from agentctl.protocol.effects import RunProgram

MakeLayers: TypeAlias = Callable[..., Layers]
DENY, ASK, ALLOW = Verdict.DENY, Verdict.ASK, Verdict.ALLOW
LS = (RunProgram(argv=("ls",)),)


@pytest.mark.parametrize(
    ("rule", "said", "verdict"),
    [
        ("allow", "ask", ASK),
        ("allow", "deny", DENY),
        ("ask", "ask", ASK),
        ("ask", "deny", DENY),
        ("deny", "ask", DENY),
        ("deny", "deny", DENY),
    ],
)
def test_a_machine_only_makes_stricter(layers: MakeLayers, rule: str, said: str, verdict: Verdict) -> None:
    decision = decide("shell", LS, layers(user=f'shell = "{rule}"'))

    stricter = narrowed("shell", decision, said, machine="m", reason="not now")  # type: ignore[arg-type]

    assert stricter.verdict is verdict
    if decision.verdict is not verdict:
        assert (stricter.rule, stricter.layer) == ("machine m", "machine")


def test_only_an_answer_lifts_what_a_machine_asks(layers: MakeLayers) -> None:
    decision = decide("shell", LS, layers(user='shell = "ask"', yolo=True))
    grants = GrantBook(Place(workdir="/repo/app", home="/home/u"))
    grants.give(Grant(key="shell(ls)", scope="run"))

    asked = narrowed("shell", decision, "ask", machine="m", reason="look first")

    assert decision.verdict is ALLOW
    assert cover("shell", asked, Lifts(grants=grants)).verdict is ASK
    assert propose(asked) == ()


def test_a_source_nobody_has_seen_asks_although_a_rule_allows_the_name(layers: MakeLayers) -> None:
    by_rule = decide("gh__issue", (), layers(user='"gh__*" = "allow"'))
    by_launch = decide("gh__issue", (), layers(allow=["gh__issue"]))
    denied = decide("gh__issue", (), layers(user='"gh__*" = "deny"'))

    assert unseen("gh__issue", by_rule, "mcp:gh@1").verdict is ASK
    assert unseen("gh__issue", by_launch, "mcp:gh@1").verdict is ALLOW
    assert unseen("gh__issue", denied, "mcp:gh@1").verdict is DENY
