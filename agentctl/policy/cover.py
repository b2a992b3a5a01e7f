"""Lift asks: by the safe list, a grant, a remembered rule, the sandbox, or a person's answer."""

from collections.abc import Sequence

from agentctl.policy.decide import conclude, judgements_on
from agentctl.policy.grants import GrantBook, rule_covers
from agentctl.policy.layers import BoundRule, Layers
from agentctl.policy.safe_list import NO_SAFE_LIST, SafeList
from agentctl.protocol.decisions import Decision, Judgement, Lift, Verdict
from agentctl.protocol.effects import Effect, RunProgram
from agentctl.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifts:
    """What can lift an ask for one agent in one stage."""

    safe_list: SafeList = NO_SAFE_LIST
    grants: GrantBook
    remembered: tuple[BoundRule, ...] = ()
    """The user's `[[remembered]]` rules, bound with `layers.bind_rules`."""
    sandbox_auto_allow: bool = False
    """The sandbox is active for shell calls and the user set `auto_allow`."""


def cover(tool: str, decision: Decision, lifts: Lifts) -> Decision:
    """Return the decision with every ask lifted that something covers; the verdict is allow if all are.

    A part that is not covered leaves the call asking. Grants with a number of uses are not counted down here
    (see `used_grants`).
    """
    if decision.verdict is not Verdict.ASK:
        return decision
    return conclude(tool, _all_covered(tool, decision.judgements, lifts))


def decide_and_cover(tool: str, effects: Sequence[Effect], layers: Layers, lifts: Lifts) -> Decision:
    """Return `cover(tool, decide(tool, effects, layers), lifts)`, in one go."""
    judgements = judgements_on(tool, effects, layers)
    if all(judgement.verdict is not Verdict.DENY for judgement in judgements):
        judgements = _all_covered(tool, judgements, lifts)
    return conclude(tool, judgements)


def _all_covered(tool: str, judgements: tuple[Judgement, ...], lifts: Lifts) -> tuple[Judgement, ...]:
    return tuple(
        [
            judgement if judgement.verdict is not Verdict.ASK else _covered(tool, judgement, lifts)
            for judgement in judgements
        ]
    )


def after_answer(tool: str, decision: Decision) -> Decision:
    """Return the decision after a person approved this very call: what still asks counts as allowed once.

    A deny stays a deny. Idempotent.
    """
    if decision.verdict is not Verdict.ASK:
        return decision
    return conclude(
        tool,
        tuple(
            _lifted(judgement, "answer", "") if judgement.verdict is Verdict.ASK else judgement
            for judgement in decision.judgements
        ),
    )


def used_grants(decision: Decision) -> tuple[str, ...]:
    """Return the keys of the grants that lifted a part of this call, each once."""
    keys = [judgement.lifted_by for judgement in decision.judgements if judgement.lift == "grant"]
    return tuple(dict.fromkeys(keys))


def _covered(tool: str, judgement: Judgement, lifts: Lifts) -> Judgement:
    if judgement.held in {"opaque", "protected"}:
        return judgement
    if judgement.held == "":
        safe = _safe(tool, judgement, lifts)
        if safe:
            return _lifted(judgement, "safe-list", safe)
        if lifts.sandbox_auto_allow and judgement.entry == "shell":
            return _lifted(judgement, "sandbox", "")
    for rule in lifts.remembered:
        if rule_covers(rule, judgement):
            return _lifted(judgement, "remembered", rule.text)
    key = lifts.grants.covering(judgement)
    return _lifted(judgement, "grant", key) if key else judgement


def _safe(tool: str, judgement: Judgement, lifts: Lifts) -> str:
    match judgement.effect:
        case RunProgram() as command:
            return lifts.safe_list.covers(command)
        case None:
            return lifts.safe_list.covers_tool(tool)
        case _:
            return ""


def _lifted(judgement: Judgement, lift: Lift, lifted_by: str) -> Judgement:
    return Judgement(  # spelled out: `replace` takes three times as long, and this is every call's path
        entry=judgement.entry,
        effect=judgement.effect,
        verdict=Verdict.ALLOW,
        rule=judgement.rule,
        layer=judgement.layer,
        position=judgement.position,
        says=judgement.says,
        held="",
        lift=lift,
        lifted_by=lifted_by,
    )
