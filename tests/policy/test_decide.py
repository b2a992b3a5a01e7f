"""What each layer may say, and which of them wins."""

from collections.abc import Callable
from typing import TypeAlias

import pytest

from agentctl.policy.decide import decide
from agentctl.policy.layers import Layers
from agentctl.protocol.decisions import Verdict
from agentctl.protocol.effects import (
    Effect,
    OpaqueCommand,
    ReachHost,
    ReadPath,
    RunProgram,
    SpawnAgent,
    WritePath,
)

MakeLayers: TypeAlias = Callable[..., Layers]


def run(line: str, **more: object) -> RunProgram:
    return RunProgram(argv=tuple(line.split()), **more)


def write(path: str, **more: object) -> WritePath:
    return WritePath(path=f"/repo/app/{path}", **more)


OPAQUE = OpaqueCommand(line="$X", reason="a variable stands where the program is expected")
DENY, ASK, ALLOW = Verdict.DENY, Verdict.ASK, Verdict.ALLOW


def judged(tool: str, *effects: Effect, by: Layers) -> Verdict:
    return decide(tool, effects, by).verdict


def test_one_denied_part_denies_the_whole_line(layers: MakeLayers) -> None:
    by = layers(user='shell = { default = "allow", deny = ["git push *"] }')

    decision = decide("shell", (run("ls"), run("git push")), by)

    assert decision.verdict is DENY
    assert decision.rule == "shell(git push *)"
    assert (decision.layer, decision.position.file, decision.position.line) == ("user", "user.toml", 2)


@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        ({}, ASK),
        ({"blueprint": 'shell = "allow"'}, ASK),
        ({"blueprint": 'shell = "allow"', "allow_blueprint_permissions": True}, ALLOW),
        ({"blueprint": 'shell = "allow"', "user": 'shell = "allow"'}, ALLOW),
        ({"blueprint": 'shell = "ask"', "user": 'shell = "allow"'}, ASK),
        ({"blueprint": 'shell = "allow"', "user": 'shell = "ask"'}, ASK),
        ({"user": 'shell = "allow"'}, ALLOW),
        ({"user": 'bash = "allow"'}, ALLOW),
        ({"stage": 'shell = "allow"', "blueprint": 'shell = "ask"', "user": 'shell = "allow"'}, ALLOW),
        ({"stage": 'shell = "allow"', "blueprint": 'shell = "deny"', "user": 'shell = "allow"'}, DENY),
        ({"user": 'shell = "ask"', "user_for_agent": 'shell = "allow"', "found_by_name": True}, ALLOW),
        ({"user": 'shell = "ask"', "user_for_agent": 'shell = "allow"'}, ASK),
        ({"user_for_agent": 'shell = "allow"'}, ASK),
        ({"user": 'shell = "allow"', "user_for_agent": 'shell = "ask"'}, ASK),
        ({"user": 'shell = "deny"', "user_for_agent": 'shell = "allow"', "found_by_name": True}, DENY),
        ({"user": 'shell = "ask"', "yolo": True}, ALLOW),
        ({"user": 'shell = "deny"', "yolo": True, "allow": ["shell"]}, DENY),
        ({"allow": ["shell"]}, ALLOW),
        ({"allow": ["shell(ls *)"]}, ALLOW),
        ({"allow": ["shell(cat *)"]}, ASK),
        ({"allow": ["shell"], "ask": ["shell(ls *)"]}, ASK),
        ({"yolo": True, "ask": ["shell"]}, ASK),
        ({"user": 'shell = "allow"', "deny": ["shell(ls *)"], "yolo": True}, DENY),
        ({"user": '"*" = "deny"', "blueprint": 'shell = "allow"'}, DENY),
    ],
)
def test_layers_combine_as_designed(layers: MakeLayers, said: dict[str, object], verdict: Verdict) -> None:
    assert judged("shell", run("ls -la"), by=layers(**said)) is verdict


def test_a_parents_word_on_a_tool_that_follows_another_comes_down(layers: MakeLayers) -> None:
    above = layers(blueprint='edit_file = "deny"', user='write_file = "allow"').for_children()
    child = layers(user='write_file = "allow"', parent=above)

    assert judged("edit_file", write("a.txt"), by=child) is DENY
    loose = layers(stage='edit_file = "allow"', user='write_file = "allow"').for_children()
    assert judged("edit_file", write("a.txt"), by=layers(user='write_file = "allow"', parent=loose)) is ALLOW
    named = layers(user='write_file = "allow"\nedit_file = "allow"').for_children()
    assert judged("edit_file", write("a.txt"), by=layers(user='write_file = "allow"', parent=named)) is ALLOW
    assert judged("shell", by=layers(parent=layers(stage='shell = "deny"').for_children())) is DENY


def test_effects_answer_to_their_entry_whatever_tool_has_them(layers: MakeLayers) -> None:
    by = layers(user='write_file = "deny"\nnetwork = { allow = ["*.example.com"] }')

    assert judged("edit_file", write("a"), by=by) is DENY
    assert judged("shell", run("echo x"), write("a"), by=by) is DENY
    assert judged("shell", run("ls"), ReachHost(host="a.example.com"), by=layers(yolo=True)) is ALLOW
    assert decide("web", (ReachHost(host="a.example.com"),), by).judgements[1].verdict is ALLOW
    assert decide("web", (ReachHost(host="evil.test"),), by).judgements[1].verdict is ASK


def test_edit_file_and_fan_out_follow_unless_somebody_names_them(layers: MakeLayers) -> None:
    by = layers(user='write_file = "allow"\nspawn_agent = "allow"\n"*" = "ask"')

    assert judged("edit_file", write("a"), by=by) is ALLOW
    assert judged("fan_out", SpawnAgent(agent="x"), by=by) is ALLOW
    assert judged("edit_file", write("a"), by=layers(user='write_file = "allow"\nedit_file = "ask"')) is ASK
    mine = layers(user='write_file = "allow"', blueprint='edit_file = "allow"')
    assert judged("edit_file", write("a"), by=mine) is ALLOW
    assert judged("edit_file", write("a"), by=layers(user='write_file = "allow"', deny=["edit_file"])) is DENY


def test_one_entry_speaks_for_a_tool_in_a_layer(layers: MakeLayers) -> None:
    by = layers(user='"*" = "deny"\nshell = { allow = ["ls *"] }\n"git*__*" = "ask"\n"github__*" = "allow"')

    assert judged("shell", run("ls"), by=by) is ALLOW
    assert judged("shell", run("make"), by=by) is ASK  # the exact entry says nothing, and no glob steps in
    assert judged("github__create", by=by) is ALLOW
    assert judged("gitlab__x", by=by) is ASK
    assert judged("other", by=by) is DENY
    assert judged("transition", by=by) is ALLOW  # globs do not reach it


def test_in_an_entry_deny_comes_before_ask_before_allow_before_default(layers: MakeLayers) -> None:
    lists = 'allow = ["git *"], ask = ["git push *"], deny = ["git push --force *"]'
    by = layers(user=f'shell = {{ default = "allow", {lists} }}')

    assert judged("shell", run("git push --force x"), by=by) is DENY
    assert judged("shell", run("git push x"), by=by) is ASK
    assert judged("shell", run("git log"), by=by) is ALLOW
    assert judged("shell", run("make"), by=by) is ALLOW


@pytest.mark.parametrize(
    ("pattern", "argv", "allows"),
    [
        ("git status", "git status", True),
        ("git status", "git status -s", False),
        ("git log *", "git log", True),
        ("git log *", "git logout", False),
        ("git * main", "git push main", True),
        ("git * main", "git push origin main", False),
        ("ls*", "lsof", True),
        ("ls*", "lsof -i", False),
        ("npm run a.b", "npm run axb", False),
        ("echo *", "./echo hi", False),
        ("*", "anything at all", True),
    ],
)
def test_shell_patterns_match_words(layers: MakeLayers, pattern: str, argv: str, allows: bool) -> None:  # noqa: FBT001
    by = layers(user=f'shell = {{ allow = ["{pattern}"] }}')

    assert (judged("shell", run(argv), by=by) is ALLOW) is allows


def test_quotes_in_a_pattern_make_text_literal(layers: MakeLayers) -> None:
    by = layers(user="""shell = { allow = ["git commit -m 'a * b' *", "echo '*'"] }""")

    assert judged("shell", RunProgram(argv=("git", "commit", "-m", "a * b", "x")), by=by) is ALLOW
    assert judged("shell", RunProgram(argv=("git", "commit", "-m", "a x b")), by=by) is ASK
    assert judged("shell", RunProgram(argv=("echo", "*")), by=by) is ALLOW
    assert judged("shell", RunProgram(argv=("echo", "x")), by=by) is ASK


def test_a_deny_reaches_a_program_under_any_path_and_an_allow_does_not(layers: MakeLayers) -> None:
    by = layers(user='shell = { default = "allow", deny = ["rm *", "/opt/x/run *"] }')

    assert judged("shell", run("/bin/rm -rf x"), by=by) is DENY
    assert judged("shell", run("RM -rf x"), by=by) is DENY
    assert judged("shell", run("run"), by=by) is DENY
    assert judged("shell", run("/other/run"), by=by) is ALLOW
    assert judged("shell", run("/bin/ls"), by=layers(user='shell = { allow = ["ls *"] }')) is ASK


def test_words_not_known_yet_are_covered_by_a_star_and_restricted_by_what_they_could_be(
    layers: MakeLayers,
) -> None:
    allow = layers(user='shell = { allow = ["pytest *", "cp * dest", "echo a"] }')
    spread = {"unknown": (1,), "spread": (1,)}

    assert judged("shell", run("pytest $x", **spread), by=allow) is ALLOW
    assert judged("shell", run("echo $x", **spread), by=allow) is ASK
    assert judged("shell", run("cp $x dest", unknown=(1,)), by=allow) is ALLOW
    assert judged("shell", run("cp $x dest", **spread), by=allow) is ASK

    deny = layers(user='shell = { default = "allow", deny = ["git push *"] }')
    assert judged("shell", run("git $x", **spread), by=deny) is DENY
    assert judged("shell", run("git $x push", **spread), by=deny) is DENY
    assert judged("shell", run("git log $x", unknown=(2,), spread=(2,)), by=deny) is ALLOW


def test_an_allow_reaches_through_a_wrapper_only_as_far_as_its_words_do(layers: MakeLayers) -> None:
    wrapped = RunProgram(argv=("rm", "x"), outer=(("nohup", "rm", "x"),))

    assert judged("shell", wrapped, by=layers(user='shell = { allow = ["nohup *"] }')) is ASK
    assert judged("shell", wrapped, by=layers(user='shell = { allow = ["nohup rm *"] }')) is ALLOW


def test_a_command_seen_inside_needs_no_allow_but_meets_every_deny_and_ask(layers: MakeLayers) -> None:
    inside = (run("sudo rm x"), run("rm x", seen_inside=True))

    assert judged("shell", *inside, by=layers(user='shell = { allow = ["sudo *"] }')) is ALLOW
    assert judged("shell", *inside, by=layers(user='shell = { allow = ["sudo *"], ask = ["rm *"] }')) is ASK
    assert judged("shell", *inside, by=layers(user='shell = { allow = ["sudo *"], deny = ["rm *"] }')) is DENY


@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        ({}, ASK),
        ({"user": 'shell = "allow"'}, ALLOW),
        ({"user": 'shell = { allow = ["*"] }'}, ASK),
        ({"user": 'shell = "allow"\nwrite_file = "ask"'}, ASK),
        ({"user": 'shell = "allow"\nnetwork = { deny = ["x.com"] }'}, ASK),
        ({"user": 'shell = "allow"', "stage": 'read_file = "ask"'}, ASK),
        ({"user": 'shell = "allow"\nspawn_agent = "deny"'}, ALLOW),
        ({"allow": ["shell"]}, ALLOW),
        ({"allow": ["shell"], "user": 'shell = { ask = ["git push *"] }'}, ASK),
        ({"allow": ["shell(*)"]}, ASK),
        ({"yolo": True, "user": 'shell = { ask = ["git push *"] }'}, ALLOW),
        ({"yolo": True, "user": 'write_file = { deny = ["x"] }'}, ASK),
        ({"yolo": True, "ask": ["shell"]}, ASK),
        ({"user": 'shell = "deny"', "yolo": True}, DENY),
    ],
)
def test_a_line_that_cannot_be_told_is_covered_by_bare_words_only(
    layers: MakeLayers, said: dict[str, object], verdict: Verdict
) -> None:
    assert judged("shell", OPAQUE, by=layers(**said)) is verdict


def test_held_asks_are_lifted_by_no_flag(layers: MakeLayers) -> None:
    flags = {"yolo": True, "allow": ["shell", "write_file", "read_file"], "user": 'write_file = "allow"'}

    for effect, held in (
        (write(".git/config", protected="git internals"), "protected"),
        (ReadPath(path="/etc/passwd", outside=True), "outside"),
    ):
        decision = decide("shell", (effect, run("ls")), layers(**flags))
        assert (decision.verdict, decision.held) == (ASK, held)
    asked = decide("shell", (run("ls"),), layers(yolo=True, ask=["shell(ls *)"]))
    assert (asked.verdict, asked.held, asked.rule) == (ASK, "launch", "--ask shell(ls *)")


def test_a_trace_tells_what_became_of_each_layers_word(layers: MakeLayers) -> None:
    by = layers(blueprint='shell = "allow"', user='shell = "ask"', allow=["shell(ls *)"])

    asked = decide("shell", (run("make"),), by).judgements[0]
    lifted = decide("shell", (run("ls"),), by).judgements[0]

    assert [(say.layer, say.verdict, say.note) for say in asked.says] == [
        ("blueprint", ALLOW, "made stricter by user"),
        ("user", ASK, ""),
        ("built-in", ASK, "blueprint speaks instead"),
    ]
    assert (lifted.layer, lifted.rule) == ("launch", "--allow shell(ls *)")
    assert {say.note for say in lifted.says[1:]} == {"lifted by --allow shell(ls *)"}


def test_a_line_that_touches_nothing_asks_nobody_unless_the_shell_is_denied(layers: MakeLayers) -> None:
    assert judged("shell", by=layers()) is ALLOW
    assert judged("shell", by=layers(user='shell = "deny"', yolo=True)) is DENY
    assert judged("shell", write("out.txt"), by=layers(user='write_file = "allow"')) is ASK


def test_a_line_that_only_steers_the_shell_asks_nobody_unless_the_shell_is_denied(layers: MakeLayers) -> None:
    steers = run("set -e", seen_inside=True)

    assert judged("shell", steers, by=layers(user='shell = "ask"')) is ALLOW
    assert judged("shell", steers, by=layers(user='shell = "deny"')) is DENY
    assert judged("shell", steers, by=layers(user='shell = "allow"', deny=["shell"])) is DENY
    assert judged("shell", steers, run("ls"), by=layers(user='shell = "ask"')) is ASK


def test_a_deny_on_a_path_counts_under_any_spelling_of_it_and_an_allow_does_not(layers: MakeLayers) -> None:
    by = layers(user='write_file = { default = "ask", allow = ["src/**"], deny = ["Secrets/**"] }')

    assert judged("write_file", write("SECRETS/key"), by=by) is DENY
    assert judged("write_file", write("SRC/a"), by=by) is ASK


def test_a_reason_tells_who_would_allow_and_who_has_to_say_so(layers: MakeLayers) -> None:
    def reason(**said: object) -> str:
        return decide("shell", (run("make all"),), layers(**said)).reason

    assert reason() == "Running `make all` needs your word: no rule allows it."
    assert reason(blueprint='shell = "allow"') == (
        "Running `make all` needs your word: the blueprint allows it, your config does not say so."
    )
    assert reason(user='shell = { ask = ["make *"] }') == (
        "Running `make all` needs your word by the rule shell(make *) (your config, user.toml:2:18)."
    )
    assert reason(deny=["shell(make *)"]) == (
        "Running `make all` is denied by the rule --deny shell(make *) (the command line)."
    )
