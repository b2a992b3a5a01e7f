"""Judge one effect, or a tool's own entry, by every layer, and keep what each of them said."""

from collections.abc import Sequence
from dataclasses import replace

from agentctl.errors import Position
from agentctl.policy.layers import BoundRule, Layers, Saying
from agentctl.protocol.decisions import Held, Judgement, LayerName, Say, Verdict
from agentctl.protocol.effects import Effect, OpaqueCommand, ReadPath, RunProgram, WritePath

HELD_RANK: dict[Held, int] = {"": 0, "pattern": 1, "outside": 2, "launch": 3, "opaque": 4, "protected": 5}
"""How firmly an ask is held; where two parts ask, the firmer one is the reason that is shown."""

_ALLOW, _ASK, _DENY = Verdict.ALLOW, Verdict.ASK, Verdict.DENY
_FLAG = Position(file="command line")
_NOBODY_ASKED = Saying(verdict=_ALLOW, rule="", position=Position(file=""), by_pattern=False)
"""For a command that only deny and ask rules are looked up for: what is around it was allowed or not."""
_UNKNOWN_TOOL = Saying(verdict=_ASK, rule="*", position=Position(file="built-in"), by_pattern=False)

_Heard = list[tuple[LayerName, Saying]]


def judge(entry: str, effect: Effect | None, layers: Layers) -> Judgement:
    """Return the judgement of these layers, made stricter by the parent's where there is one.

    `entry` is the tool whose entry answers; `effect` None asks about the tool itself. Pure and total.
    """
    own = _judge_alone(entry, effect, layers)
    if layers.parent is None:
        return own
    above = judge(entry, effect, layers.parent)
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


def _judge_alone(entry: str, effect: Effect | None, layers: Layers) -> Judgement:
    heard = _hear(entry, effect, layers)
    counted = _counted(entry, heard, layers)
    layer, saying = _strictest(counted)
    held: Held = "pattern" if saying.verdict is _ASK and saying.by_pattern else ""
    flag = _limiting_flag(entry, effect, layers)
    if flag is not None and saying.verdict is not _DENY:
        heard.insert(0, ("launch", flag))
        counted.insert(0, ("launch", flag))
        layer, saying = "launch", flag
        held = "launch" if flag.verdict is _ASK else ""
    verdict = saying.verdict
    hold = _hold_of(effect)
    if hold and verdict is not _DENY:
        verdict, held = _hold(hold, verdict, held, layers)
    lifted_by = ""
    if verdict is _ASK:
        lift = _lifting_flag(entry, effect, held, layers)
        if lift is not None:
            heard.insert(0, ("launch", lift))
            lifted_by, layer, saying, verdict, held = lift.rule, "launch", lift, _ALLOW, ""
    return Judgement(
        entry=entry,
        effect=effect,
        verdict=verdict,
        rule=saying.rule,
        layer=layer,
        position=saying.position,
        says=tuple(
            [
                Say(
                    layer=name,
                    verdict=said.verdict,
                    rule=said.rule,
                    position=said.position,
                    note=_note(name, said, counted, lifted_by),
                )
                for name, said in heard
            ]
        ),
        held=held,
    )


def _hear(entry: str, effect: Effect | None, layers: Layers) -> _Heard:
    """Return what each layer says, narrow to wide; of globs that tie in one layer, the stricter."""
    heard: _Heard = []
    only_patterns = isinstance(effect, RunProgram) and effect.seen_inside
    for speaker in layers.speakers(entry):
        said = None if effect is None else speaker.by_pattern(effect)
        if said is None and not only_patterns:
            said = speaker.default
        if said is None:
            continue
        if heard and heard[-1][0] == speaker.layer:
            if said.verdict > heard[-1][1].verdict:
                heard[-1] = (speaker.layer, said)
        else:
            heard.append((speaker.layer, said))
    if not heard:
        heard.append(("built-in", _NOBODY_ASKED if only_patterns else _UNKNOWN_TOOL))
    return heard


def _counted(entry: str, heard: _Heard, layers: Layers) -> _Heard:
    """Return the sayings that count, of which the strictest is the verdict of the rules."""
    if any(said.verdict is _DENY for _, said in heard):
        return [(name, said) for name, said in heard if said.verdict is _DENY]
    if len(heard) == 1:
        return list(heard)
    by_layer = dict(heard)
    for_agent = by_layer.get("user-for-agent")
    author = _first(("stage", "blueprint"), by_layer)
    wide: tuple[LayerName, ...] = ("user-for-agent", "user") if layers.found_by_name else ("user",)
    ceiling = _first(wide, by_layer)
    built_in = _first(("built-in",), by_layer)
    counted = author + ceiling
    loosens = layers.allow_blueprint_permissions or entry in layers.loosenable
    if not counted or not (ceiling or loosens):
        counted = author + built_in
    if for_agent is not None and not layers.found_by_name:
        # A blueprint names itself, so what the user wrote for that name can only tighten.
        counted.append(("user-for-agent", for_agent))
    return counted


def _first(names: tuple[LayerName, ...], by_layer: dict[LayerName, Saying]) -> _Heard:
    for name in names:
        said = by_layer.get(name)
        if said is not None:
            return [(name, said)]
    return []


def _strictest(counted: _Heard) -> tuple[LayerName, Saying]:
    """Return the strictest, narrowest first; of equals one that was written as a pattern."""
    best = counted[0]
    for candidate in counted[1:]:
        if candidate[1].verdict > best[1].verdict or (
            candidate[1].verdict is best[1].verdict and candidate[1].by_pattern and not best[1].by_pattern
        ):
            best = candidate
    return best


def _hold_of(effect: Effect | None) -> Held:
    """Return what keeps an ask about this effect from being lifted, whatever the rules say."""
    match effect:
        case WritePath(protected=protected, unresolved=unresolved):
            return "protected" if protected else "opaque" if unresolved else ""
        case ReadPath(outside=True):
            return "outside"
        case OpaqueCommand():
            return "opaque"
        case _:
            return ""


def _hold(hold: Held, verdict: Verdict, held: Held, layers: Layers) -> tuple[Verdict, Held]:
    if hold == "opaque" and verdict is _ALLOW and layers.strictest_shell_word() is _ALLOW:
        return _ALLOW, ""
    return _ASK, hold if HELD_RANK[hold] > HELD_RANK[held] else held


def _limiting_flag(entry: str, effect: Effect | None, layers: Layers) -> Saying | None:
    """Return the `--deny` that matches, else the `--ask`."""
    flags = layers.launch_speaker(entry)
    for verdict, name, rules in ((_DENY, "--deny", flags.deny), (_ASK, "--ask", flags.ask)):
        for rule in rules:
            if _matches(rule, effect) or (
                rule.pattern is not None and effect is not None and rule.pattern.restricts(effect)
            ):
                return Saying(verdict=verdict, rule=f"{name} {rule.text}", position=_FLAG, by_pattern=False)
    return None


def _matches(rule: BoundRule, effect: Effect | None) -> bool:
    """Return whether a flag without a pattern reaches the effect."""
    return rule.pattern is None and not (isinstance(effect, RunProgram) and effect.seen_inside)


def _lifting_flag(entry: str, effect: Effect | None, held: Held, layers: Layers) -> Saying | None:
    """Return the `--allow` or `--yolo` that turns the ask into an allow."""
    launch = layers.launch
    if not (launch.allow or launch.yolo) or held not in {"", "pattern", "opaque"}:
        return None
    opaque = held == "opaque"
    flags = layers.launch_speaker(entry)
    if opaque and flags.ask:
        return None
    if not opaque or layers.strictest_shell_word() is _ALLOW:
        for rule in flags.allow:
            if rule.pattern is None or (effect is not None and rule.pattern.allows(effect)):
                return Saying(verdict=_ALLOW, rule=f"--allow {rule.text}", position=_FLAG, by_pattern=False)
    if launch.yolo and not (opaque and layers.shell_word_denied()):
        return Saying(verdict=_ALLOW, rule="--yolo", position=_FLAG, by_pattern=False)
    return None


def _note(name: LayerName, said: Saying, counted: Sequence[tuple[LayerName, Saying]], lifted_by: str) -> str:
    """Say what became of one layer's word; empty where it counted as it is."""
    if lifted_by:
        return "" if name == "launch" and said.verdict is _ALLOW else f"lifted by {lifted_by}"
    strictest = max(other.verdict for _, other in counted)
    if all(other is not said for _, other in counted):
        return "a deny is final" if strictest is _DENY else "a narrower or wider layer speaks instead"
    if said.verdict < strictest:
        stricter = next(other for other, saying in counted if saying.verdict is strictest)
        return f"made stricter by {stricter}"
    return ""
