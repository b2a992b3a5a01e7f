"""The layers of one agent: who said what, from the launch flags to the built-in defaults."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from typing import TypeAlias

from agentctl.errors import Position
from agentctl.policy.paths import Place
from agentctl.policy.patterns import Pattern, ShellPattern
from agentctl.policy.rules import COMMAND_LINE, NO_RULES, Entry, Rule, RuleSet
from agentctl.protocol.decisions import Held, Judgement, LayerName, Say, Verdict
from agentctl.protocol.effects import Effect, RunProgram
from agentctl.records import dataclass

SHELL_ENTRIES = ("shell", "write_file", "read_file", "network")
"""The entries for what a shell line can do; a deny or ask in one keeps an opaque line from being covered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What the command line says. Recorded with the run; children inherit it."""

    allow: tuple[Rule, ...] = ()
    ask: tuple[Rule, ...] = ()
    deny: tuple[Rule, ...] = ()
    yolo: bool = False


NO_LAUNCH = Launch()
"""A run started without a permission flag."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Saying:
    """A verdict, the layer and the rule that gave it. One object a rule: compared by identity."""

    layer: LayerName
    verdict: Verdict
    rule: str
    position: Position
    by_pattern: bool = False


Voice: TypeAlias = tuple["Pattern | None", Saying]
"""A rule, compiled for a place, and what it says; None for a rule on the tool as a whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundRule:
    """A rule compiled for a place, outside of any layer."""

    tool: str
    text: str
    pattern: Pattern | None
    position: Position
    described: str = ""
    """Of a remembered approval of a tool server's tool: how the tool was described, as a digest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Speaker:
    """One layer's entry for one tool, with its patterns compiled."""

    layer: LayerName
    tool: str
    """As written: the canonical name, or the glob."""
    default: Saying | None
    limits: tuple[Voice, ...]
    """Deny patterns, then ask patterns."""
    allows: tuple[Voice, ...]
    _by_program: dict[str, tuple[tuple[Voice, ...], tuple[Voice, ...]]] = field(
        init=False, default_factory=dict, compare=False, repr=False
    )
    """INVARIANT: for a program's name, those of `limits` and `allows` that can match a call of it."""

    @property
    def silent(self) -> bool:
        """Whether the entry says nothing at all: it only keeps globs from speaking."""
        return self.default is None and not self.limits and not self.allows

    def words(self) -> tuple[Verdict, ...]:
        """Return every verdict of the entry that is not an allow by pattern."""
        words = [saying.verdict for _, saying in self.limits]
        return (*words, self.default.verdict) if self.default is not None else tuple(words)

    def by_pattern(self, effect: Effect) -> Saying | None:
        """Return what a matching pattern says: a deny first, then ask, then allow."""
        limits, allows = self.limits, self.allows
        if isinstance(effect, RunProgram) and not effect.outer and not effect.unknown:
            limits, allows = self._about(effect.argv[0].rsplit("/", 1)[-1].lower())
        for pattern, saying in limits:
            if pattern is not None and pattern.restricts(effect):
                return saying
        for pattern, saying in allows:
            if pattern is not None and pattern.allows(effect):
                return saying
        return None

    def _about(self, program: str) -> tuple[tuple[Voice, ...], tuple[Voice, ...]]:
        """Return the rules that can match a call of this program; most rules are about other ones."""
        found = self._by_program.get(program)
        if found is None:
            if len(self._by_program) >= _MOST_PROGRAMS:
                self._by_program.clear()
            found = (
                tuple(voice for voice in self.limits if _may_name(voice[0], program)),
                tuple(voice for voice in self.allows if _may_name(voice[0], program)),
            )
            self._by_program[program] = found
        return found


_MOST_PROGRAMS = 512


def _may_name(pattern: Pattern | None, program: str) -> bool:
    """Return whether a pattern's first word can be this program, under any folder."""
    if not isinstance(pattern, ShellPattern) or not pattern.words:
        return True
    first = pattern.words[0]
    return not isinstance(first, str) or first.rsplit("/", 1)[-1].lower() == program


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchSpeaker:
    """The launch flags that speak for one tool, compiled."""

    limits: tuple[Voice, ...]
    """`--deny`, then `--ask`."""
    allows: tuple[Voice, ...]
    yolo: Saying | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcome:
    """What the sayings of all layers come to; the same sayings always come to the same."""

    verdict: Verdict
    held: Held
    decisive: Saying
    says: tuple[Say, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cache:
    """What follows from a Layers' fields and is asked for at every call."""

    speakers: dict[str, tuple[Speaker, ...]] = field(default_factory=dict)
    launch: dict[str, LaunchSpeaker] = field(default_factory=dict)
    shell_words: list[tuple[LayerName, Verdict]] = field(default_factory=list)
    outcomes: dict[tuple[object, ...], Outcome] = field(default_factory=dict)
    judged: dict[tuple[object, ...], Judgement] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layers:
    """All rules that hold for one agent in one stage, narrow to wide."""

    launch: Launch = NO_LAUNCH
    stage: RuleSet = NO_RULES
    blueprint: RuleSet = NO_RULES
    user_for_agent: RuleSet = NO_RULES
    user: RuleSet = NO_RULES
    built_in: RuleSet
    place: Place
    found_by_name: bool = False
    """The blueprint was found by name in a catalogue, so the user's table for it may loosen."""
    allow_blueprint_permissions: bool = False
    """[security] allow_blueprint_permissions: the blueprint may loosen what the user is silent about."""
    loosenable: frozenset[str] = frozenset()
    """Tools that a blueprint may loosen without it."""
    follows: Mapping[str, str] = field(default_factory=dict)
    """Tools whose own entry counts only where somebody wrote it, and the one they follow: `edit_file`."""
    parent: "Layers | None" = None
    """What the run that spawned this one is allowed, without its stage except its denies."""
    _cache: _Cache = field(init=False, default_factory=_Cache, compare=False, repr=False)
    """INVARIANT: holds only what follows from the fields above; filled on first use."""

    def in_stage(self, stage: RuleSet) -> "Layers":
        """Return the same layers with another stage's rules."""
        return replace(self, stage=stage)

    def for_children(self) -> "Layers":
        """Return what comes down to a child as its `parent`: all but the stage, of which only denies."""
        return self.in_stage(self.stage.denies_only())

    def speakers(self, tool: str) -> tuple[Speaker, ...]:
        """Return who speaks for `tool`, from the stage to the built-in layer; globs that tie appear each."""
        found = self._cache.speakers.get(tool)
        if found is None:
            found = tuple(
                _bind(layer, entry, self.place)
                for layer, rules in self.named()
                for entry in rules.speaking(tool)
            )
            self._cache.speakers[tool] = found
        return found

    def launch_speaker(self, tool: str) -> LaunchSpeaker:
        """Return the launch flags that speak for `tool`."""
        found = self._cache.launch.get(tool)
        if found is None:
            launch, place = self.launch, self.place
            found = LaunchSpeaker(
                limits=(
                    *_flag_voices("--deny", Verdict.DENY, launch.deny, tool, place),
                    *_flag_voices("--ask", Verdict.ASK, launch.ask, tool, place),
                ),
                allows=tuple(_flag_voices("--allow", Verdict.ALLOW, launch.allow, tool, place)),
                yolo=_YOLO if launch.yolo else None,
            )
            self._cache.launch[tool] = found
        return found

    @property
    def outcomes(self) -> dict[tuple[object, ...], Outcome]:
        """Outcomes found before, by what was said; for `judge` alone."""
        return self._cache.outcomes

    @property
    def judged(self) -> dict[tuple[object, ...], Judgement]:
        """Judgements on commands of known words, a bounded number; for `judge` alone."""
        return self._cache.judged

    def named(self) -> tuple[tuple[LayerName, RuleSet], ...]:
        """Return the layers of rules with their names, narrow to wide."""
        return (
            ("stage", self.stage),
            ("blueprint", self.blueprint),
            ("user-for-agent", self.user_for_agent),
            ("user", self.user),
            ("built-in", self.built_in),
        )

    def strictest_shell_word(self) -> Verdict:
        """Return the strictest word or pattern of anyone but the built-in layer for what a shell line can do.

        A bare allow covers a line that cannot be told only where this is allow.
        """
        return max((word for layer, word in self.shell_words() if layer != "built-in"), default=Verdict.ALLOW)

    def shell_word_denied(self) -> bool:
        """Return whether any layer denies some of it; `--yolo` then covers no line that cannot be told."""
        return any(word is Verdict.DENY for _, word in self.shell_words())

    def denies_word(self, tool: str) -> bool:
        """Return whether a layer, the parent's included, denies the tool as a whole."""
        if self.parent is not None and self.parent.denies_word(tool):
            return True
        flags = self.launch_speaker(tool).limits
        return any(pattern is None and saying.verdict is Verdict.DENY for pattern, saying in flags) or any(
            speaker.default is not None and speaker.default.verdict is Verdict.DENY
            for speaker in self.speakers(tool)
        )

    def names(self, tool: str) -> bool:
        """Return whether anyone but the built-in layer speaks of `tool`, by more than the glob for all."""
        return bool(self.launch_speaker(tool).limits) or any(
            speaker.layer != "built-in" and speaker.tool.strip("*") and not speaker.silent
            for speaker in self.speakers(tool)
        )

    def shell_words(self) -> tuple[tuple[LayerName, Verdict], ...]:
        """Return every verdict that stands anywhere for what a shell line can do, and whose it is."""
        found = self._cache.shell_words
        if not found:
            for tool in SHELL_ENTRIES:
                found += [
                    (speaker.layer, word) for speaker in self.speakers(tool) for word in speaker.words()
                ]
                found += [("launch", saying.verdict) for _, saying in self.launch_speaker(tool).limits]
            if self.parent is not None:
                found += self.parent.shell_words()
            found.append(("built-in", Verdict.ALLOW))  # so that an empty answer is remembered too
        return tuple(found)


_YOLO = Saying(layer="launch", verdict=Verdict.ALLOW, rule="--yolo", position=COMMAND_LINE)


def _bind(layer: LayerName, entry: Entry, place: Place) -> Speaker:
    default = entry.default
    return Speaker(
        layer=layer,
        tool=entry.tool,
        default=None
        if default is None
        else Saying(layer=layer, verdict=default, rule=entry.tool, position=entry.position),
        limits=(
            *_voices(layer, Verdict.DENY, entry.deny, place),
            *_voices(layer, Verdict.ASK, entry.ask, place),
        ),
        allows=tuple(_voices(layer, Verdict.ALLOW, entry.allow, place)),
    )


def _voices(layer: LayerName, verdict: Verdict, rules: Iterable[Rule], place: Place) -> Iterator[Voice]:
    for rule in rules:
        yield (
            rule.compiled(place),
            Saying(layer=layer, verdict=verdict, rule=str(rule), position=rule.position, by_pattern=True),
        )


def _flag_voices(
    flag: str, verdict: Verdict, rules: Iterable[Rule], tool: str, place: Place
) -> Iterator[Voice]:
    for rule in rules:
        if rule.speaks_for(tool):
            text = f"{flag} {rule}"
            yield (
                rule.compiled(place),
                Saying(layer="launch", verdict=verdict, rule=text, position=COMMAND_LINE),
            )


def bind_rules(rules: Iterable[Rule], place: Place) -> tuple[BoundRule, ...]:
    """Return the rules compiled for `place`."""
    return tuple(
        BoundRule(
            tool=rule.tool,
            text=str(rule),
            pattern=rule.compiled(place),
            position=rule.position,
            described=rule.described,
        )
        for rule in rules
    )
