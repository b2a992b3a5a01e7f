"""What holds for every policy, call and flag: the algebra that people rely on without reading the code."""

import random
from dataclasses import replace
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from agentctl.errors import Position
from agentctl.policy.cover import Lifts, after_answer, cover
from agentctl.policy.decide import decide
from agentctl.policy.defaults import built_in_policy
from agentctl.policy.grants import GrantBook, propose
from agentctl.policy.layers import Launch, Layers
from agentctl.policy.paths import Place
from agentctl.policy.rules import Entry, Rule, RuleSet
from agentctl.policy.safe_data import safe_list
from agentctl.policy.shell.analyse import analyse
from agentctl.protocol.decisions import Decision, Grant, Verdict
from agentctl.protocol.effects import (
    Effect,
    OpaqueCommand,
    ReachHost,
    ReadPath,
    RunProgram,
    SpawnAgent,
    WritePath,
)
from agentctl.toml.read import parse

CONFIG = Path(__file__).resolve().parents[2] / "config"
BUILT_IN = built_in_policy(parse((CONFIG / "policy.toml").read_bytes(), file="policy.toml"))
SAFE = safe_list(parse((CONFIG / "safe_commands.toml").read_bytes(), file="safe.toml"), names=BUILT_IN.names)
PLACE = Place(workdir="/w", home="/h")
HERE = Position(file="x.toml", line=1, column=1)
EXAMPLES = settings(max_examples=60, deadline=None)

PATTERNS = {
    "shell": ["*", "git *", "git push *", "git push", "rm *", "ls -la", "git * main", "l*", "env rm *"],
    "write_file": ["**", "src/**", "src/*", "**/*.lock", "a.txt", "/etc/**", "~/x"],
    "read_file": ["**", "/etc/**", "src/*"],
    "network": ["*", "example.com", "*.example.com"],
    "spawn_agent": ["*", "researcher", "re*"],
}
PLAIN_TOOLS = ["edit_file", "github__*", "github__create", "*", "list_dir", "fan_out"]

verdicts = st.sampled_from(list(Verdict))
flags = st.booleans()


def rules_of(tool: str) -> st.SearchStrategy[tuple[Rule, ...]]:
    pattern = st.sampled_from(PATTERNS[tool])
    return st.lists(pattern, max_size=2).map(
        lambda texts: tuple(Rule(tool=tool, pattern=text, position=HERE) for text in texts)
    )


@st.composite
def entries(draw: st.DrawFn, tool: str) -> Entry:
    default = draw(st.none() | verdicts)
    if tool not in PATTERNS:
        return Entry(tool=tool, default=default or Verdict.ASK, position=HERE)
    deny, ask, allow = (draw(rules_of(tool)) for _ in range(3))
    return Entry(tool=tool, default=default, deny=deny, ask=ask, allow=allow, position=HERE)


@st.composite
def rule_sets(draw: st.DrawFn) -> RuleSet:
    tools = draw(st.lists(st.sampled_from([*PATTERNS, *PLAIN_TOOLS]), max_size=3, unique=True))
    return RuleSet(entries={tool: draw(entries(tool)) for tool in tools})


flag_rules = st.lists(
    st.sampled_from(
        [Rule(tool=tool, pattern=text) for tool, texts in PATTERNS.items() for text in (None, *texts)]
    ),
    max_size=2,
).map(tuple)
launches = st.builds(Launch, allow=flag_rules, ask=flag_rules, deny=flag_rules, yolo=flags)


@st.composite
def all_layers(draw: st.DrawFn, *, with_parent: bool = True) -> Layers:
    parent = draw(all_layers(with_parent=False)) if with_parent and draw(flags) else None
    return Layers(
        launch=draw(launches),
        stage=draw(rule_sets()),
        blueprint=draw(rule_sets()),
        user_for_agent=draw(rule_sets()),
        user=draw(rule_sets()),
        built_in=BUILT_IN.rules,
        follows=BUILT_IN.follows,
        place=PLACE,
        found_by_name=draw(flags),
        allow_blueprint_permissions=draw(flags),
        parent=parent.for_children() if parent else None,
    )


COMMANDS = ["git push origin main", "git status", "git push", "rm -rf x", "ls -la", "lsof", "make", "cat f"]
runs = st.builds(
    lambda line, inside: RunProgram(argv=tuple(line.split()), seen_inside=inside),
    st.sampled_from(COMMANDS),
    flags,
)
unknown_runs = st.builds(
    lambda line: RunProgram(
        argv=(*line.split(), "$x"), unknown=(len(line.split()),), spread=(len(line.split()),)
    ),
    st.sampled_from(COMMANDS),
)
writes = st.builds(
    lambda path, protected: WritePath(path=path, protected=protected),
    st.sampled_from(["/w/src/a", "/w/a.txt", "/w/uv.lock", "/etc/x", "/h/x"]),
    st.sampled_from(["", "", "git internals"]),
)
effects: st.SearchStrategy[Effect] = st.one_of(
    runs,
    unknown_runs,
    writes,
    st.builds(ReadPath, path=st.sampled_from(["/w/src/a", "/etc/passwd"]), outside=flags),
    st.builds(ReachHost, host=st.sampled_from(["example.com", "a.example.com", "evil.test"])),
    st.builds(SpawnAgent, agent=st.sampled_from(["researcher", "other"])),
    st.just(OpaqueCommand(line="$X", reason="cannot tell")),
)
some_effects = st.lists(effects, min_size=1, max_size=3).map(tuple)
tools = st.sampled_from(["shell", "edit_file", "github__create", "write_file", "spawn_agent", "unknown"])


def summary(decision: Decision) -> list[tuple[Verdict, str]]:
    return [(judgement.verdict, judgement.held) for judgement in decision.judgements]


@EXAMPLES
@given(all_layers(), tools, some_effects, st.integers())
def test_the_order_of_rules_and_entries_does_not_matter(
    layers: Layers, tool: str, effects: tuple[Effect, ...], seed: int
) -> None:
    shuffle = random.Random(seed)  # noqa: S311 - a shuffle, not a secret

    def shuffled(items: tuple[Rule, ...]) -> tuple[Rule, ...]:
        return tuple(shuffle.sample(items, len(items)))

    def mixed(rules: RuleSet) -> RuleSet:
        names = shuffle.sample(list(rules.entries), len(rules.entries))
        return RuleSet(
            entries={
                name: replace(
                    entry, deny=shuffled(entry.deny), ask=shuffled(entry.ask), allow=shuffled(entry.allow)
                )
                for name, entry in ((name, rules.entries[name]) for name in names)
            }
        )

    other = replace(
        layers,
        stage=mixed(layers.stage),
        blueprint=mixed(layers.blueprint),
        user_for_agent=mixed(layers.user_for_agent),
        user=mixed(layers.user),
        launch=replace(
            layers.launch,
            allow=shuffled(layers.launch.allow),
            ask=shuffled(layers.launch.ask),
            deny=shuffled(layers.launch.deny),
        ),
    )

    assert summary(decide(tool, effects, layers)) == summary(decide(tool, effects, other))


@EXAMPLES
@given(all_layers(), tools, some_effects, st.data())
def test_adding_a_deny_never_loosens(
    layers: Layers, tool: str, effects: tuple[Effect, ...], data: st.DataObject
) -> None:
    on = data.draw(st.sampled_from(list(PATTERNS)))
    deny = Rule(tool=on, pattern=data.draw(st.none() | st.sampled_from(PATTERNS[on])), position=HERE)
    layer = data.draw(st.sampled_from(["stage", "blueprint", "user_for_agent", "user", "launch"]))
    if layer == "launch":
        stricter = replace(layers, launch=replace(layers.launch, deny=(*layers.launch.deny, deny)))
    else:
        rules: RuleSet = {
            "stage": layers.stage,
            "blueprint": layers.blueprint,
            "user_for_agent": layers.user_for_agent,
            "user": layers.user,
        }[layer]
        speaking = rules.speaking(on)
        entry = speaking[0] if speaking else Entry(tool=on, default=None, position=HERE)
        if deny.pattern is None:
            entry = replace(entry, default=Verdict.DENY)
        elif entry.tool == on:
            entry = replace(entry, deny=(*entry.deny, deny))
        stricter = replace(layers, **{layer: RuleSet(entries={**rules.entries, entry.tool: entry})})

    assert decide(tool, effects, stricter).verdict >= decide(tool, effects, layers).verdict


@EXAMPLES
@given(all_layers(), tools, some_effects)
def test_a_blueprint_never_exceeds_what_holds_without_it(
    layers: Layers, tool: str, effects: tuple[Effect, ...]
) -> None:
    layers = replace(layers, allow_blueprint_permissions=False)
    without = replace(layers, stage=RuleSet(), blueprint=RuleSet())

    assert decide(tool, effects, layers).verdict >= decide(tool, effects, without).verdict


@EXAMPLES
@given(all_layers(), tools, some_effects)
def test_what_the_user_wrote_for_a_name_only_tightens_a_blueprint_loaded_by_path(
    layers: Layers, tool: str, effects: tuple[Effect, ...]
) -> None:
    layers = replace(layers, found_by_name=False)
    without = replace(layers, user_for_agent=RuleSet())

    assert decide(tool, effects, layers).verdict >= decide(tool, effects, without).verdict


@EXAMPLES
@given(all_layers(), launches, tools, some_effects)
def test_launch_flags_never_lift_a_deny(
    layers: Layers, launch: Launch, tool: str, effects: tuple[Effect, ...]
) -> None:
    plain = replace(layers, launch=Launch())

    if decide(tool, effects, plain).verdict is Verdict.DENY:
        assert decide(tool, effects, replace(layers, launch=launch)).verdict is Verdict.DENY


@EXAMPLES
@given(all_layers(), some_effects)
def test_a_line_is_exactly_as_permitted_as_its_strictest_part(
    layers: Layers, effects: tuple[Effect, ...]
) -> None:
    lifts = Lifts(safe_list=SAFE, grants=GrantBook(PLACE))

    def verdict(*parts: Effect) -> Verdict:
        return cover("shell", decide("shell", parts, layers), lifts).verdict

    alone = [verdict(effect) for effect in effects if isinstance(effect, RunProgram | OpaqueCommand)]
    assert verdict(*effects) >= max(alone, default=Verdict.ALLOW)
    if len(alone) == len(effects):
        assert verdict(*effects) == max(alone)


@EXAMPLES
@given(
    all_layers(with_parent=False),
    st.lists(st.sampled_from(COMMANDS), min_size=2, max_size=4),
    st.sampled_from([" && ", "; ", " || ", " | ", "\n"]),
)
def test_commands_joined_to_a_line_are_no_more_permitted_than_each(
    layers: Layers, commands: list[str], joint: str
) -> None:
    lifts = Lifts(safe_list=SAFE, grants=GrantBook(PLACE))

    def verdict(line: str) -> Verdict:
        seen = analyse(line, cwd="/w", home="/h").effects
        return cover("shell", decide("shell", seen, layers), lifts).verdict

    assert verdict(joint.join(commands)) == max(verdict(command) for command in commands)


@EXAMPLES
@given(all_layers(), tools, some_effects)
def test_an_answered_ask_never_asks_again(layers: Layers, tool: str, effects: tuple[Effect, ...]) -> None:
    decision = decide(tool, effects, layers)

    answered = after_answer(tool, decision)

    assert answered.verdict is not Verdict.ASK
    assert (answered.verdict is Verdict.DENY) == (decision.verdict is Verdict.DENY)
    assert after_answer(tool, answered) == answered


@EXAMPLES
@given(all_layers(), tools, some_effects)
def test_what_an_approval_offers_to_remember_covers_the_same_call(
    layers: Layers, tool: str, effects: tuple[Effect, ...]
) -> None:
    decision = decide(tool, effects, layers)
    keys = propose(decision)
    book = GrantBook(PLACE)
    for key in keys:
        book.give(Grant(key=key, scope="run"))

    covered = cover(tool, decision, Lifts(grants=book))

    if decision.verdict is Verdict.ASK:
        assert covered.verdict is (Verdict.ALLOW if keys else Verdict.ASK)
    else:
        assert not keys
        assert covered == decision


@EXAMPLES
@given(all_layers(), all_layers(with_parent=False), tools, some_effects)
def test_a_child_is_never_allowed_what_its_parents_run_would_be_refused(
    child: Layers, parent: Layers, tool: str, effects: tuple[Effect, ...]
) -> None:
    above = parent.for_children()

    verdict = decide(tool, effects, replace(child, parent=above)).verdict

    assert verdict >= decide(tool, effects, above).verdict
    if decide(tool, effects, parent).verdict is Verdict.DENY:
        assert verdict is Verdict.DENY


@EXAMPLES
@given(all_layers(), tools, some_effects)
def test_every_decision_names_its_rule_and_what_each_layer_said(
    layers: Layers, tool: str, effects: tuple[Effect, ...]
) -> None:
    decision = decide(tool, effects, layers)

    for judgement in decision.judgements:
        assert judgement.says
        assert (judgement.held == "") or judgement.verdict is Verdict.ASK
    assert decision.reason.endswith(".")
    assert decision.rule or decision.verdict is not Verdict.DENY
