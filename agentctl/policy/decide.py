"""Judge a call: its tool's own entry and each of its effects, by every layer; the strictest wins."""

from collections.abc import Callable, Sequence

from agentctl.errors import Position
from agentctl.policy.judge import HELD_RANK, judge, judge_where_named
from agentctl.policy.layers import Layers
from agentctl.policy.reasons import reason_for
from agentctl.protocol.decisions import Decision, Judgement, Verdict
from agentctl.protocol.effects import (
    Effect,
    OpaqueCommand,
    ReachHost,
    ReadPath,
    RunProgram,
    SpawnAgent,
    WritePath,
)


def decide(tool: str, effects: Sequence[Effect], layers: Layers) -> Decision:
    """Return the decision on a call of `tool` (its canonical name) that would have these effects.

    The judgements stand in the order of the effects, the tool's own first where it has one. Grants, the safe
    list and the sandbox are not in it: `cover` lifts what they cover. Pure and total.
    """
    return conclude(tool, judgements_on(tool, effects, layers))


def judgements_on(tool: str, effects: Sequence[Effect], layers: Layers) -> tuple[Judgement, ...]:
    """Return the judgements that `decide` draws its conclusion from, in the same order."""
    judgements = [judge(entry_of(effect), effect, layers) for effect in effects]
    own = _own_judgement(tool, effects, layers)
    return tuple(judgements) if own is None else (own, *judgements)


def decide_as_a_whole(tool: str, layers: Layers) -> Decision:
    """Return what holds for a tool before anything is known of a call: its entry without patterns. Pure.

    A tool that follows another's entry, as `edit_file` does `write_file`'s, is judged by both.
    """
    followed = layers.follows.get(tool)
    if followed is None:
        return conclude(tool, (judge(tool, None, layers),))
    own = judge_where_named(tool, layers)
    above = judge(followed, None, layers)
    return conclude(tool, (above,) if own is None else (own, above))


def readable_below(base: str, *, layers: Layers) -> Callable[[str], bool]:
    """Return what tells whether a path below `base` may be read as freely as `base` itself. Pure."""
    above = decide("read_file", (ReadPath(path=base),), layers).verdict

    def readable(path: str) -> bool:
        return decide("read_file", (ReadPath(path=path),), layers).verdict <= above

    return readable


def conclude(tool: str, judgements: tuple[Judgement, ...]) -> Decision:
    """Return the decision that these judgements make together: the strictest one's verdict and reason."""
    if not judgements:
        return Decision(
            verdict=Verdict.ALLOW,
            reason="The call touches nothing.",
            rule="",
            layer="built-in",
            position=Position(file=""),
            judgements=(),
        )
    worst = judgements[0]
    for judgement in judgements[1:]:
        if judgement.verdict > worst.verdict or (
            judgement.verdict is worst.verdict and HELD_RANK[judgement.held] > HELD_RANK[worst.held]
        ):
            worst = judgement
    return Decision(
        verdict=worst.verdict,
        reason=reason_for(tool, worst),
        rule=worst.rule,
        layer=worst.layer,
        position=worst.position,
        judgements=judgements,
        held=worst.held,
        lift=worst.lift,
    )


def entry_of(effect: Effect) -> str:
    """Return the tool whose entry answers for an effect."""
    match effect:
        case RunProgram() | OpaqueCommand():
            return "shell"
        case WritePath():
            return "write_file"
        case ReadPath():
            return "read_file"
        case ReachHost():
            return "network"
        case SpawnAgent():
            return "spawn_agent"


def _only_steers(effect: Effect) -> bool:
    """Whether it is a command that no rule has to allow, so that a word on its tool would not be asked."""
    return isinstance(effect, RunProgram) and effect.seen_inside


def _own_judgement(tool: str, effects: Sequence[Effect], layers: Layers) -> Judgement | None:
    """Return the judgement on the tool's own entry where that counts besides those of its effects."""
    own = [effect for effect in effects if entry_of(effect) == tool]
    if own and not (all(map(_only_steers, own)) and layers.denies_word(tool)):
        return None
    if tool == "shell" and not effects and not layers.denies_word(tool):
        return None  # a line that does nothing asks nobody; a shell that is denied as a whole stays denied
    followed = layers.follows.get(tool)
    if followed is not None and any(entry_of(effect) == followed for effect in effects):
        return judge_where_named(tool, layers)
    return judge(tool, None, layers)
