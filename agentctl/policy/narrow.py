"""Takes in what a machine over tool calls says: it can only make a decision stricter."""

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
