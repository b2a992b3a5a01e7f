"""Makes a decision stricter after the layers spoke: a machine over tool calls, a source nobody has seen."""

from dataclasses import replace
from typing import Literal

from agentctl.errors import Position
from agentctl.policy.decide import conclude
from agentctl.protocol.decisions import Decision, Judgement, Say, Verdict


def narrowed(
    tool: str, decision: Decision, verdict: Literal["ask", "deny"], *, machine: str, reason: str
) -> Decision:
    """Return the decision with a machine's word among its judgements; never looser than before. Pure.

    Its ask is held: no flag, grant or list lifts it, only an answer to this very call.
    """
    stricter = Verdict.DENY if verdict == "deny" else Verdict.ASK
    rule = f"machine {machine}"
    position = Position(file="the blueprint")
    said = Say(layer="machine", verdict=stricter, rule=rule, position=position, note=reason)
    judgement = Judgement(
        entry=tool,
        effect=None,
        verdict=stricter,
        rule=rule,
        layer="machine",
        position=position,
        says=(said,),
        held="machine" if stricter is Verdict.ASK else "",
    )
    return conclude(tool, (*decision.judgements, judgement))


def unseen(tool: str, decision: Decision, source_key: str) -> Decision:
    """Return the decision on a tool whose source no person has approved yet in this run. Pure.

    Where a rule, a grant or a remembered approval would let it through, it asks: they were given for the
    name, and the source under that name may have changed. `--yolo` and `--allow` still let it through.
    """
    if decision.verdict is not Verdict.ALLOW:
        return decision
    note = f"the source {source_key} was approved by nobody in this run"
    return conclude(
        tool,
        tuple(
            replace(
                judgement,
                verdict=Verdict.ASK,
                rule=source_key,
                layer="built-in",
                position=Position(file="the run"),
                says=(*judgement.says, _new_source(source_key, note)),
                held="launch",
                lift="",
                lifted_by="",
            )
            if judgement.effect is None and judgement.entry == tool and judgement.layer != "launch"
            else judgement
            for judgement in decision.judgements
        ),
    )


def _new_source(source_key: str, note: str) -> Say:
    position = Position(file="the run")
    return Say(layer="built-in", verdict=Verdict.ASK, rule=source_key, position=position, note=note)
