"""A decision for a person and as JSON: the parts, what each layer said, and what would change it."""

from collections.abc import Iterator

from agentctl.interaction.unattended import quoted, what_instead
from agentctl.policy.grants import propose
from agentctl.policy.layers import Layers
from agentctl.policy.reasons import describe
from agentctl.policy.way_out import YOLO, flags_for, lines_for, narrowest_rule
from agentctl.protocol.codec import encode
from agentctl.protocol.decisions import Decision, Judgement, Say, Verdict
from agentctl.protocol.values import JsonObject, JsonValue
from agentctl.terminal.visible import one_line

_WIDEST = 400


def decision_lines(
    tool: str, decision: Decision, layers: Layers | None, *, refused: str = ""
) -> Iterator[str]:
    """Yield the lines for a person. `layers` are those to try flags against; None for a past call.

    `refused` is why the call is refused whatever the rules say.
    """
    verdict, reason = ("deny", refused) if refused else (decision.verdict.word, decision.reason)
    yield f"{verdict}: {one_line(reason, width=_WIDEST)}"
    for judgement in decision.judgements:
        yield ""
        what = one_line(describe(tool, judgement.effect), width=_WIDEST)
        yield f"  {judgement.verdict.word:<5}  {what}{_why_so(judgement)}"
        for say in judgement.says:
            yield f"         {_said(say)}"
    changes = () if refused else change_lines(tool, decision, layers)
    if changes:
        yield ""
        yield from changes


def decision_record(tool: str, decision: Decision, layers: Layers | None, *, refused: str = "") -> JsonObject:
    """Return a decision as one JSON object; the arguments are those of `decision_lines`."""
    return {
        "tool": tool,
        "verdict": "deny" if refused else decision.verdict.word,
        "reason": refused or decision.reason,
        "rule": decision.rule,
        "layer": decision.layer,
        "position": str(decision.position),
        "held": decision.held,
        "lift": decision.lift,
        "parts": [_part(tool, judgement) for judgement in decision.judgements],
        "flags": [] if refused else _flags(decision, layers),
        "lines": [] if refused else list(lines_for(decision)),
        "change": [] if refused else list(change_lines(tool, decision, layers)),
    }


def change_lines(tool: str, decision: Decision, layers: Layers | None) -> tuple[str, ...]:
    """Return what to type or write so that the same call is decided otherwise."""
    match decision.verdict:
        case Verdict.DENY:
            return tuple(dict.fromkeys(_undo(decision)))
        case Verdict.ASK:
            return tuple(_let_through(decision, layers))
        case Verdict.ALLOW:
            rule = narrowest_rule(decision.judgements[0]) if decision.judgements else tool
            return (f"to be asked:  --ask {quoted(rule)}", f"to refuse it: --deny {quoted(rule)}")


def _let_through(decision: Decision, layers: Layers | None) -> Iterator[str]:
    flags = _flags(decision, layers)
    if flags == [YOLO]:
        yield f"to let it through: {YOLO}"
    elif flags:
        yield "to let it through: " + " ".join(f"--allow {quoted(str(rule))}" for rule in flags)
    else:
        yield f"no flag lets it through; {what_instead(decision.held) or 'answer it on a terminal'}"
    lines = lines_for(decision)
    if lines:
        yield "or in your config, under [tool_permissions]:"
        yield from (f"  {line}" for line in lines)
    for say in _says(decision, Verdict.ASK):
        if say.layer in {"stage", "blueprint", "user", "user-for-agent"} and not say.note:
            yield f"the rule that asks: {say.rule} at {say.position}"


def _undo(decision: Decision) -> Iterator[str]:
    for say in _says(decision, Verdict.DENY):
        if say.layer == "launch":
            yield f"leave out {say.rule}"
        else:
            yield f"remove or narrow {say.rule} at {say.position}; nothing else lifts a deny"


def _says(decision: Decision, verdict: Verdict) -> Iterator[Say]:
    for judgement in decision.judgements:
        if judgement.verdict is verdict:
            yield from (say for say in judgement.says if say.verdict is verdict)


def _flags(decision: Decision, layers: Layers | None) -> list[JsonValue]:
    return list(propose(decision) if layers is None else flags_for(decision, layers))


def _why_so(judgement: Judgement) -> str:
    if judgement.lift:
        return f"  ({judgement.lift}{': ' + judgement.lifted_by if judgement.lifted_by else ''})"
    return f"  (held: {judgement.held})" if judgement.held else ""


def _said(say: Say) -> str:
    note = f"  {say.note}" if say.note else ""
    return f"{say.layer:<14} {say.verdict.word:<5}  {one_line(say.rule)}  {say.position}{note}"


def _part(tool: str, judgement: Judgement) -> JsonObject:
    return {
        "what": describe(tool, judgement.effect),
        "entry": judgement.entry,
        "effect": None if judgement.effect is None else encode(judgement.effect),
        "verdict": judgement.verdict.word,
        "rule": judgement.rule,
        "layer": judgement.layer,
        "position": str(judgement.position),
        "held": judgement.held,
        "lift": judgement.lift,
        "lifted_by": judgement.lifted_by,
        "says": [
            {
                "layer": say.layer,
                "verdict": say.verdict.word,
                "rule": say.rule,
                "position": str(say.position),
                "note": say.note,
            }
            for say in judgement.says
        ],
    }
