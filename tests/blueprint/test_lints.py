"""Lints find what loads and is most likely a mistake, and leave good blueprints alone."""

from pathlib import Path

import pytest

from agentctl.blueprint.graph import picture
from agentctl.blueprint.lints import lints_of
from agentctl.blueprint.load import parse_blueprint
from agentctl.blueprint.model import Blueprint


def load(text: str) -> Blueprint:
    return parse_blueprint(('[agent]\nname = "a"\n' + text).encode(), path=Path("b.toml"), found_by="path")


def codes(text: str) -> list[str]:
    return [f"{lint.code} {lint.problem.key}" for lint in lints_of(load(text))]


GOOD = """
[tool_permissions]
write_file = "ask"
network = "deny"
[inputs.area]
[stages.plan]
prompt = "Look at {inputs.area} and {this}."
available_tools = ["read_file", "shell"]
max_revisits = 2
[stages.plan.transitions.build]
[stages.build]
available_tools = ["edit_file"]
[stages.build.tool_permissions]
write_file = { allow = ["src/**"] }
[stages.build.transitions.plan]
[stages.build.transitions.done]
[stages.build.transitions.rescue]
condition = "error"
[stages.done]
[stages.rescue]
"""


def test_a_good_blueprint_has_no_lints() -> None:
    assert codes(GOOD) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[stages.one]\n[stages.two]", ["unreachable-stage stages.two"]),
        ("[stages.one]\n[stages.two]\nallow_as_worker = true", []),
        (
            '[stages.one]\n[[state_effects]]\ntool = "write_fle"\npath = "/a"',
            ["unknown-tool state_effects[0].tool"],
        ),
        (
            '[workspace]\nowner = "/a"\n[stages.one]\n[[state_effects]]\ntool = "write_*"\npath = "/ab"',
            ["outside-owner state_effects[0].path"],
        ),
        (
            "[stages.one.transitions.one]",
            ["cycle-without-max-revisits stages.one", "no-exit stages.one"],
        ),
        (
            "[stages.one.transitions.two]\n[stages.two.transitions.one]\n[stages.two.transitions.end]\n[stages.end]",
            ["cycle-without-max-revisits stages.one"],
        ),
        (
            "[stages.one]\nmax_revisits = 1\n[stages.one.transitions.two]\n[stages.two.transitions.one]",
            ["no-exit stages.one", "no-exit stages.two"],
        ),
        ("[stages.one.transitions.two]\ncondition = 'error'\n[stages.two]", []),
        (
            "[stages.one.tool_permissions]\nwrite_file = 'ask'",
            ["orphan-permission stages.one.tool_permissions.write_file"],
        ),
        ("[stages.one]\navailable_tools = ['bash']\n[stages.one.tool_permissions]\nwrite_file = 'ask'", []),
        ("[stages.one]\navailable_tools = ['gh__*']\n[stages.one.tool_permissions]\ngh__issue = 'ask'", []),
        (
            "[stages.one]\navailable_connectors = ['gh']\n[tool_permissions]\n'gh__*' = 'ask'",
            ["outside-server stages.one.available_connectors[0]"],
        ),
        ("[tool_permissions]\ngrep = 'ask'\n[stages.one]", ["orphan-permission tool_permissions.grep"]),
        ("[tool_permissions]\nwrite_file = 'deny'\n[stages.one]\navailable_tools = ['spawn_agent']", []),
        (
            "[stages.one]\nprompt = '{inputs.nme}'\n[inputs.name]",
            ["unknown-input stages.one.prompt", "unused-input inputs.name"],
        ),
        (
            "[stages.one]\navailable_tools = ['grep']\nrequired_tools = ['grep']",
            ["needless-required-tool stages.one.required_tools[0]"],
        ),
        (
            "[stages.one]\n[[stages.one.interaction_points]]\nname = 'p'\nprompt = '?'",
            ["holds-under-yolo stages.one.interaction_points[0]"],
        ),
        (
            "[stages.one]\n[[machines]]\nname='m'\ninitial='a'\ntransitions=[{on='grep',from='b',to='b'}]",
            ["unreachable-state machines[0]", "tool-denied-everywhere machines[0]"],
        ),
        ("[stages.one]\n[read_paths]\nallow = ['~/x']", ["read-paths-declared read_paths.allow"]),
        ("[stages.one]\n[safe_commands]\nshell = ['x']", ["safe-commands-declared safe_commands"]),
    ],
)
def test_a_lint_names_what_it_is_about(text: str, expected: list[str]) -> None:
    assert codes(text) == expected


def test_a_lint_reads_like_a_compilers_line() -> None:
    [lint] = lints_of(load("[stages.one]\n[stages.two]"))

    assert str(lint) == (
        "b.toml:4:9: warning: stages.two: no path leads here from the entry stage 'one' [unreachable-stage]"
    )


def test_the_graph_is_drawn_with_what_takes_each_edge() -> None:
    assert picture(
        load(GOOD.replace("transitions.build]", "transitions.build]\nhint = 'ready'\ncarry = 'clear'"))
    ) == (
        "plan  (entry, at most 2 more visits)\n"
        "  └─> build  ready  [clear]\n"
        "build\n"
        "  ├─> plan\n"
        "  ├─> done\n"
        "  └─> rescue  when error\n"
        "done\n"
        "  └─> end\n"
        "rescue\n"
        "  └─> end"
    )
