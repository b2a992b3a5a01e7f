"""Rules as people write them: what is accepted, and how a mistake is told."""

from collections.abc import Callable
from typing import TypeAlias

import pytest

from agentctl.errors import InvalidInput, Problem
from agentctl.policy.decide import decide_as_a_whole
from agentctl.policy.defaults import BuiltInPolicy
from agentctl.policy.layers import Layers
from agentctl.policy.rules import Rule, RuleSet, parse_rule, parse_rules
from agentctl.protocol.decisions import Verdict
from agentctl.protocol.tool_names import BUILT_IN_TOOLS, CHILD_TOOLS

MakeRules: TypeAlias = Callable[..., RuleSet]
MakeLayers: TypeAlias = Callable[..., Layers]


def problems(rules: MakeRules, text: str) -> tuple[Problem, ...]:
    with pytest.raises(InvalidInput) as caught:
        rules(text)
    return caught.value.problems


@pytest.mark.parametrize(
    ("text", "message", "suggestion", "place"),
    [
        ('shel = "ask"', "unknown tool 'shel'", "shell", (2, 1)),
        ('shell = "alow"', "'alow' is not a verdict", "allow", (2, 1)),
        ('shell = "DENY"', "'DENY' is not a verdict", "deny", (2, 1)),
        ('shell = ""', "'' is not a verdict", "", (2, 1)),
        ("shell = true", "expected allow, ask or deny", "", (2, 1)),
        ('shell = { alow = ["ls"] }', "unknown key 'alow'", "allow", (2, 11)),
        ('shell = { allow = "ls" }', "expected a list of patterns", "", (2, 11)),
        ("shell = { allow = [1] }", "a pattern is a string", "", (2, 20)),
        ('shell = { deny = ["git commit -m don\'t"] }', "is not closed", "", (2, 19)),
        ('shell = { deny = [""] }', "the pattern is empty", "", (2, 19)),
        ('shell = { allow = ["ls && rm x"] }', "stands between two", "", (2, 20)),
        ('shell = { deny = ["echo * > *"] }', "stands between two", "", (2, 19)),
        ('shell = { allow = ["Bash(npm test)"] }', "write 'npm test', not 'Bash(npm test)'", "", (2, 20)),
        ('list_dir = { allow = ["src"] }', "takes no pattern", "read_file", (2, 23)),
        ('network = { allow = ["https://x.com"] }', "a host is written", "", (2, 22)),
        ('write_file = { deny = ["~bob/x"] }', "`~name`", "", (2, 24)),
        ('"*" = "allow"', "a rule cannot allow every tool", "", (2, 1)),
        ('shell = "ask"\nbash = "deny"', "the same tool as the entry", "", (3, 1)),
    ],
)
def test_a_mistake_is_told_with_its_place_and_the_nearest_right_word(
    rules: MakeRules, text: str, message: str, suggestion: str, place: tuple[int, int]
) -> None:
    (problem,) = problems(rules, text)

    assert message in problem.message
    assert problem.suggestion == suggestion
    assert (problem.position.line, problem.position.column) == place
    assert problem.key.startswith("tool_permissions.")


def test_all_mistakes_of_a_table_are_told_at_once(rules: MakeRules) -> None:
    found = problems(rules, 'shel = "ask"\nwrite_file = { allow = ["src/**"], dney = [] }\nread_file = 3')

    assert [problem.position.line for problem in found] == [2, 3, 4]


def test_tools_of_servers_may_be_named_before_the_server_is_there(rules: MakeRules) -> None:
    assert set(rules('github__create = "deny"\n"linear__*" = "ask"').entries) == {
        "github__create",
        "linear__*",
    }


def test_a_rule_is_split_at_the_first_and_the_last_bracket(built_in: BuiltInPolicy) -> None:
    def parsed(text: str) -> Rule:
        return parse_rule(text, names=built_in.names)

    assert str(parsed("bash( echo (a) )")) == "shell( echo (a) )"
    assert parsed("shell(f(x))").pattern == "f(x)"
    assert parsed("write_file").pattern is None
    assert parsed("write_file").speaks_for("write_file")
    assert parsed("github__*").speaks_for("github__x")
    assert not parsed("*").speaks_for("transition")


@pytest.mark.parametrize("text", ["", "shell(", "shell(ls) x", "shell()", "nope", "list_dir(x)", "(ls)"])
def test_a_flag_that_is_no_rule_is_refused(built_in: BuiltInPolicy, text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_rules([text], names=built_in.names, source="--allow")

    assert caught.value.problems[0].position.file == "--allow"
    assert "quote" in caught.value.hint


ALLOWED = frozenset(
    {
        *("read_file", "list_dir", "glob", "grep", "ask_user", "ask_user_choice", "ask_user_confirm"),
        *("ask_user_review", "ask_user_edit", "transition", "submit_output", "current_time", "run_info"),
        *("check_agent", "wait_agent", "send_agent", "kill_agent", "state_get", "state_set", "shared_state"),
    }
)
"""The reviewed list: a tool that is new here may do what it does without anybody being asked."""


def test_a_new_tool_asks_until_somebody_reviewed_it(layers: MakeLayers) -> None:
    allowed = {
        tool
        for tool in (*BUILT_IN_TOOLS, *CHILD_TOOLS, "anything_else", "github__create", "")
        if decide_as_a_whole(tool, layers()).verdict is Verdict.ALLOW
    }

    assert allowed == ALLOWED


def test_no_tool_may_be_loosened_by_a_blueprint_until_one_that_only_reads_the_web_ships(
    built_in: BuiltInPolicy,
) -> None:
    assert built_in.loosenable == frozenset()
