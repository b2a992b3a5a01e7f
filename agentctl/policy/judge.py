"""Judge one effect, or a tool's own entry, by every layer, and keep what each of them said."""

from dataclasses import replace

from agentctl.errors import Position
from agentctl.policy.layers import Layers, Outcome, Saying
from agentctl.protocol.decisions import Held, Judgement, LayerName, Say, Verdict
from agentctl.protocol.effects import Effect, OpaqueCommand, ReadPath, RunProgram, WritePath

HELD_RANK: dict[Held, int] = {
    "": 0,
    "pattern": 1,
    "outside": 2,
    "launch": 3,
    "machine": 4,
    "opaque": 5,
    "protected": 6,
}
"""How firmly an ask is held; where two parts ask, the firmer one is the reason that is shown."""

_ALLOW, _ASK, _DENY = Verdict.ALLOW, Verdict.ASK, Verdict.DENY
_MOST_JUDGED = 512
_NOBODY_ASKED = Saying(layer="built-in", verdict=_ALLOW, rule="", position=Position(file=""))
"""For a command that only deny and ask rules are looked up for: what is around it was allowed or not."""
_UNKNOWN_TOOL = Saying(layer="built-in", verdict=_ASK, rule="*", position=Position(file="built-in"))


def judge(entry: str, effect: Effect | None, layers: Layers) -> Judgement:
    """Return the judgement of these layers, made stricter by the parent's where there is one.

    `entry` is the tool whose entry answers; `effect` None asks about the tool itself. Pure and total.
    """
    if not isinstance(effect, RunProgram) or effect.unknown or effect.distrust:
        return _judge(entry, effect, layers)
    key = (entry, effect.argv, effect.seen_inside, effect.via, effect.outer, effect.cwd)
    judged = layers.judged
    found = judged.get(key)
    if found is None:
        if len(judged) >= _MOST_JUDGED:
            judged.clear()
        found = judged[key] = _judge(entry, effect, layers)
    return found


def _judge(entry: str, effect: Effect | None, layers: Layers) -> Judgement:
    own = _alone(entry, effect, layers)
    return own if layers.parent is None else _stricter(own, judge(entry, effect, layers.parent))


def judge_where_named(tool: str, layers: Layers) -> Judgement | None:
    """Return the judgement on a tool's own entry by those layers, the parent's included, that name it.

    For a tool whose effects say all there is to judge: the built-in layer has no word, and None is returned
    where nobody has. Pure and total.
    """
    own = _alone(tool, None, layers, built_in=False) if layers.names(tool) else None
    above = None if layers.parent is None else judge_where_named(tool, layers.parent)
    if own is None:
        return None if above is None else replace(above, layer="parent")
    return own if above is None else _stricter(own, above)


def _alone(entry: str, effect: Effect | None, layers: Layers, *, built_in: bool = True) -> Judgement:
    outcome = _outcome(entry, effect, layers, built_in=built_in)
    decisive = outcome.decisive
    return Judgement(
        entry=entry,
        effect=effect,
        verdict=outcome.verdict,
        rule=decisive.rule,
        layer=decisive.layer,
        position=decisive.position,
        says=outcome.says,
        held=outcome.held,
    )


def _stricter(own: Judgement, above: Judgement) -> Judgement:
    """Return the stricter of a run's own judgement and its parent's, and what the other said."""
    said = Say(
        layer="parent",
        verdict=above.verdict,
        rule=above.rule,
        position=above.position,
        note=f"said by its {above.layer}",
    )
    if (above.verdict, HELD_RANK[above.held]) <= (own.verdict, HELD_RANK[own.held]):
        return replace(own, says=(*own.says, said))
    return replace(above, layer="parent", says=(*own.says, said))


def _outcome(entry: str, effect: Effect | None, layers: Layers, *, built_in: bool) -> Outcome:
    heard = _hear(entry, effect, layers, built_in=built_in)
    flag = _limiting_flag(entry, effect, layers)
    hold = _hold_of(effect)
    key = (entry, heard, flag, hold)
    outcome = layers.outcomes.get(key)
    if outcome is None:
        outcome = layers.outcomes[key] = _combined(entry, heard, flag, hold, layers)
    if outcome.verdict is not _ASK:
        return outcome
    lift = _lifting_flag(entry, effect, outcome.held, layers)
    if lift is None:
        return outcome
    lifted = layers.outcomes.get((outcome, lift))
    if lifted is None:
        lifted = layers.outcomes[outcome, lift] = _lifted(outcome, lift)
    return lifted


def _hear(entry: str, effect: Effect | None, layers: Layers, *, built_in: bool) -> tuple[Saying, ...]:
    """Return what each layer says, narrow to wide; of globs that tie in one layer, the stricter."""
    heard: list[Saying] = []
    only_patterns = isinstance(effect, RunProgram) and effect.seen_inside
    for speaker in layers.speakers(entry):
        said = None if effect is None else speaker.by_pattern(effect)
        if said is None:
            if only_patterns or speaker.default is None or (speaker.layer == "built-in" and not built_in):
                continue
            said = speaker.default
        if heard and heard[-1].layer == said.layer:
            if said.verdict > heard[-1].verdict:
                heard[-1] = said
        else:
            heard.append(said)
    if not heard:
        return (_NOBODY_ASKED,) if only_patterns or not built_in else (_UNKNOWN_TOOL,)
    return tuple(heard)


def _combined(
    entry: str, heard: tuple[Saying, ...], flag: Saying | None, hold: Held, layers: Layers
) -> Outcome:
    """Return what the layers' sayings and a limiting flag come to, before a flag lifts anything."""
    counted = _counted(entry, heard, layers)
    decisive = _strictest(counted)
    held: Held = "pattern" if decisive.verdict is _ASK and decisive.by_pattern else ""
    if flag is not None and decisive.verdict is not _DENY:
        heard, counted, decisive = (flag, *heard), (flag, *counted), flag
        held = "launch" if flag.verdict is _ASK else ""
    verdict = decisive.verdict
    if hold and verdict is not _DENY:
        bare = hold == "opaque" and verdict is _ALLOW and layers.strictest_shell_word() is _ALLOW
        if not bare:
            verdict, held = _ASK, hold if HELD_RANK[hold] > HELD_RANK[held] else held
    says = tuple(_say(saying, _note(saying, counted)) for saying in heard)
    return Outcome(verdict=verdict, held=held, decisive=decisive, says=says)


def _lifted(outcome: Outcome, lift: Saying) -> Outcome:
    note = f"lifted by {lift.rule}"
    says = (_say(lift, ""), *(replace(say, note=note) for say in outcome.says))
    return Outcome(verdict=_ALLOW, held="", decisive=lift, says=says)


def _counted(entry: str, heard: tuple[Saying, ...], layers: Layers) -> tuple[Saying, ...]:
    """Return the sayings that count, of which the strictest is the verdict of the rules."""
    denies = tuple(said for said in heard if said.verdict is _DENY)
    if denies or len(heard) == 1:
        return denies or heard
    by_layer = {said.layer: said for said in heard}
    author = _first(("stage", "blueprint"), by_layer)
    wide: tuple[LayerName, ...] = ("user-for-agent", "user") if layers.found_by_name else ("user",)
    ceiling = _first(wide, by_layer)
    loosens = layers.allow_blueprint_permissions or entry in layers.loosenable
    counted = author + ceiling
    if not counted or not (ceiling or loosens):
        counted = author + _first(("built-in",), by_layer)
    for_agent = by_layer.get("user-for-agent")
    if for_agent is not None and not layers.found_by_name:
        # A blueprint names itself, so what the user wrote for that name can only tighten.
        counted = (*counted, for_agent)
    return counted


def _first(names: tuple[LayerName, ...], by_layer: dict[LayerName, Saying]) -> tuple[Saying, ...]:
    for name in names:
        said = by_layer.get(name)
        if said is not None:
            return (said,)
    return ()


def _strictest(counted: tuple[Saying, ...]) -> Saying:
    """Return the strictest, narrowest first; of equals one that was written as a pattern."""
    best = counted[0]
    for other in counted[1:]:
        firmer = other.verdict is best.verdict and other.by_pattern and not best.by_pattern
        if other.verdict > best.verdict or firmer:
            best = other
    return best


def _hold_of(effect: Effect | None) -> Held:
    """Return what keeps an ask about this effect from being lifted, whatever the rules say."""
    match effect:
        case RunProgram() | None:
            return ""
        case WritePath(protected=protected, unresolved=unresolved):
            return "protected" if protected else "opaque" if unresolved else ""
        case ReadPath(outside=True):
            return "outside"
        case OpaqueCommand():
            return "opaque"
        case _:
            return ""


def _limiting_flag(entry: str, effect: Effect | None, layers: Layers) -> Saying | None:
    """Return the `--deny` that matches, else the `--ask`."""
    for pattern, saying in layers.launch_speaker(entry).limits:
        if pattern is None:
            # A command inside another that is judged itself: the flag reaches that one.
            if not (isinstance(effect, RunProgram) and effect.seen_inside):
                return saying
        elif effect is not None and pattern.restricts(effect):
            return saying
    return None


def _lifting_flag(entry: str, effect: Effect | None, held: Held, layers: Layers) -> Saying | None:
    """Return the `--allow` or `--yolo` that turns the ask into an allow."""
    flags = layers.launch_speaker(entry)
    if not (flags.allows or flags.yolo) or held not in {"", "pattern", "opaque"}:
        return None
    opaque = held == "opaque"
    if opaque and flags.limits:
        return None
    if not opaque or layers.strictest_shell_word() is _ALLOW:
        for pattern, saying in flags.allows:
            if pattern is None or (effect is not None and pattern.allows(effect)):
                return saying
    if flags.yolo is not None and not (opaque and layers.shell_word_denied()):
        return flags.yolo
    return None


def _say(saying: Saying, note: str) -> Say:
    return Say(
        layer=saying.layer, verdict=saying.verdict, rule=saying.rule, position=saying.position, note=note
    )


def _note(said: Saying, counted: tuple[Saying, ...]) -> str:
    """Say what became of one layer's word; empty where it counted as it is."""
    strictest = _strictest(counted)
    if said not in counted:
        return "a deny is final" if strictest.verdict is _DENY else f"{counted[0].layer} speaks instead"
    return f"made stricter by {strictest.layer}" if said.verdict < strictest.verdict else ""
