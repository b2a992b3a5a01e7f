"""A blueprint loads whole or tells every problem at once."""

import hashlib
from pathlib import Path

import pytest

from agentctl.blueprint.load import load_blueprint, parse_blueprint
from agentctl.blueprint.model import Blueprint, StageTable, TransitionTable
from agentctl.errors import InvalidInput

MINIMAL = '[agent]\nname = "a"\n[stages.one]\nprompt = "go"\n'

EVERYTHING = (
    Path(__file__).resolve().parents[1] / "corpus" / "blueprints" / "good-everything.toml"
).read_text(encoding="utf-8")


def load(text: str, where: Path = Path("b.toml")) -> Blueprint:
    return parse_blueprint(text.encode(), path=where, found_by="path")


def problems(text: str) -> list[str]:
    with pytest.raises(InvalidInput) as caught:
        load(text)
    return [str(problem) for problem in caught.value.problems]


def test_the_smallest_blueprint_has_an_agent_and_a_stage() -> None:
    blueprint = load(MINIMAL)

    assert blueprint.name == "a"
    assert blueprint.entry == StageTable(
        name="one", index=0, prompt="go", tool_permissions=blueprint.entry.tool_permissions
    )


def test_every_table_of_the_format_loads() -> None:
    blueprint = load(EVERYTHING)

    assert list(blueprint.stages) == ["plan", "build", "spread", "rescue"]
    assert [stage.index for stage in blueprint.in_order] == [0, 1, 2, 3]
    assert blueprint.stages["plan"].transitions == {
        "build": TransitionTable(to="build", hint="the plan is approved", carry="summary"),
        "rescue": TransitionTable(to="rescue", condition="error"),
    }
    assert blueprint.limits.wall_time == 1800.0
    assert blueprint.write_budget.per_call == 2**20
    assert blueprint.machines[0].transitions[1].from_ == ("read",)
    assert blueprint.stages["plan"].model is not None
    assert blueprint.stages["plan"].model.use == ("openai:gpt-5",)
    assert blueprint.stages["plan"].views == ()
    assert blueprint.stages["build"].views is None


def test_a_rule_knows_the_line_and_column_it_was_written_at() -> None:
    position = load(EVERYTHING).tool_permissions.value_position("bash", "deny", 0)

    assert position.file == "b.toml"
    assert EVERYTHING.splitlines()[position.line - 1][position.column - 1 :] == '"git push *"] }'


def test_the_hash_is_of_the_bytes_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "b.toml"
    data = MINIMAL.replace("\n", "\r\n").encode()
    file.write_bytes(data)

    blueprint = load_blueprint(file)

    assert blueprint.source.sha256 == hashlib.sha256(data).hexdigest()
    assert blueprint.source.path == file


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('[agnet]\nname = "x"', "agnet: unknown key at the top level of the file (did you mean 'agent'?)"),
        ("[stages.two.transitions.three]", "stages.two.transitions.three: there is no stage 'three'"),
        ("[stages.two.transitions.oen]", "there is no stage 'oen' (did you mean 'one'?)"),
        (
            '[stages.two]\navailable_tools = ["read_fil"]',
            "there is no tool 'read_fil' (did you mean 'read_file'?)",
        ),
        (
            '[stages.two]\nrequired_tools = ["ask_user"]',
            "'ask_user' is not among the stage's available_tools",
        ),
        ('[tool_permissions]\nshel = "deny"', "unknown tool 'shel' (did you mean 'shell'?)"),
        ('[tool_permissions]\nshell = "denny"', "(did you mean 'deny'?)"),
        ('[tool_permissions]\nshell = { dney = ["rm *"] }', "(did you mean 'deny'?)"),
        ('[tool_permissions]\ncurrent_time = { deny = ["x"] }', "takes no pattern"),
        ('[stages.two.tool_permissions]\nwrite_file = "alow"', "(did you mean 'allow'?)"),
        ('[limits.calls]\n"shel(git push *)" = 1', "unknown tool 'shel' (did you mean 'shell'?)"),
        ("[sandbox]\nauto_allow = true", "only the user can set this"),
        ('[environment]\npass = ["TOKEN"]', "only the user can set this"),
        ('[providers.x]\nbase_url = "http://x"', "only the user can set this"),
        ("[safe_commands]\ndefaults = false", "only the user can set this"),
        ('[[hooks]]\nname = "h"', "exactly one of use, command, builtin is needed; none of them is set"),
        ('[[hooks]]\nname = "h"\ncommand = ["x"]', "a command hook must say which events it gets"),
        ('[[mcp_servers]]\nname = "m"\ncommand = ["x"]\nurl = "http://x"', "command and url are set"),
        (
            '[[mcp_servers]]\nname = "m"\ncommand = ["x"]\nenv = { T = "${TOKEN}" }',
            "servers of the user's config only",
        ),
        ('[[state_effects]]\ntool = "x"', "exactly one of path, mapper, ops is needed"),
        ('[[state_keys]]\nname = "k"\nmerge = "fold"', 'merge = "fold" needs fold'),
        ('[[state_keys]]\nname = "k"\nmerge = "fold"\nfold = "summ"', "(did you mean 'sum'?)"),
        ('[[policy_tests]]\ncall = "shel(ls)"\nexpect = "ask"', "no tool 'shel' (did you mean 'shell'?)"),
        ('[[policy_tests]]\ncall = { tool = "read_fil" }\nexpect = "ask"', "(did you mean 'read_file'?)"),
        ('[[hooks]]\nname = "h"\nbuiltin = "redact"\ntools = ["shel"]', "(did you mean 'shell'?)"),
        ('[[hooks]]\nname = "h"\nbuiltin = "audit"', "the audit hook needs params.file"),
        ('[[hooks]]\nname = "h"\nbuiltin = "notify"\nparams = { comand = ["x"] }', "mean 'command'?"),
        ('[shared_state]\nbackend = "sqlte"', "backend 'sqlte' (did you mean 'sqlite'?)"),
        ('[shared_state]\nbackend = "memory"\nurl = "x.db"', 'backend = "memory" has no address'),
        ('[shared_state]\nbackend = "redis"\nurl = "localhost"', 'begins with "redis://"'),
        (
            '[[state_keys]]\nname = "k"\n[[state_keys]]\nname = "k"\nversion = 2',
            "has another definition above",
        ),
        ('[[state_keys]]\nname = "k"\nschema = { type = "intger" }', "not a JSON Schema"),
        (
            '[[state_keys]]\nname = "k"\nschema = { type = "integer" }\ndefault = "x"',
            "does not satisfy the schema",
        ),
        ("[stages.two.output]\ntype = 3", "not a JSON Schema"),
        ('[stages.two.output]\n"$ref" = "https://example.com/s.json"', "references are never fetched"),
        ('[stages.two]\nmode = "fan_out"', "needs the table [stages.NAME.fan_out]"),
        ('[stages.two]\nmode = "fan_out"\nfan_out = { worker = "one" }', "needs allow_as_worker = true"),
        (
            '[stages.two]\nmode = "fan_out"\nfan_out = { worker = "x", output_schema = { type = 5 } }',
            "stages.two.fan_out.output_schema: not a JSON Schema",
        ),
        ('[[policy_tests]]\ncall = "shell(x)"\nexpect = "allow"\nstage = "oen"', "(did you mean 'one'?)"),
        ('[stages.two.state]\nread = ["k"]', "there is no state key 'k'"),
        (
            '[[stages.two.interaction_points]]\nname = "p"\nprompt = "?"\nabort_options = ["Stop"]',
            "there is no option 'Stop'",
        ),
        (
            '[[machines]]\nname="m"\ninitial="a"\nterminal = "c"\ntransitions = [{on="x",from="a",to="a"}]',
            "there is no state 'c'",
        ),
        (
            '[[machines]]\nname="m"\ninitial="a"\ntransitions = [{on="x",from="a",to="a",reason="{p"}]',
            "a brace without its partner",
        ),
        (
            '[[machines]]\nname="m"\ninitial="a"\ntransitions = [{on="event:x",from="a",to="a"}]',
            "machines are told of no 'event:x'",
        ),
        ("[script]", "exactly one of file and replies is needed"),
        ('[model]\nuse = "gpt-5"', 'expected "provider:model"'),
        ('[stages."my stage"]', "expected a name of a letter"),
    ],
)
def test_a_mistake_is_told_with_what_was_expected(line: str, message: str) -> None:
    [problem] = problems(MINIMAL + line)

    assert message in problem
    assert problem.startswith("b.toml:")


def test_all_mistakes_of_a_file_are_told_at_once_in_file_order() -> None:
    found = problems(
        """
[agent]
name = "a b"
entry_stage = "pln"
[tool_permissions]
shell = "alow"
[stages.plan]
promt = "x"
max_steps = 0
[stages.plan.transitions.nowhere]
conditon = "error"
[[hooks]]
name = "h"
"""
    )

    assert [problem.split(": ")[1] for problem in found] == [
        "agent.name",
        "agent.entry_stage",
        "tool_permissions.shell",
        "stages.plan.promt",
        "stages.plan.max_steps",
        "stages.plan.transitions.nowhere",
        "stages.plan.transitions.nowhere.conditon",
        "hooks[0]",
    ]


def test_a_prompt_below_a_sub_tables_header_is_told_where_it_belongs() -> None:
    [problem] = problems('[agent]\nname = "a"\n[stages.one.model]\nuse = "x:y"\nprompt = "hello"\n')

    assert "it belongs to [stages.one], above the headers" in problem


def test_unknown_keys_in_a_stage_raise_no_false_alarm_about_the_rest_of_it() -> None:
    found = problems(MINIMAL + '[stages.two]\navailble_tools = ["ask_user"]\nrequired_tools = ["ask_user"]\n')

    assert len(found) == 1


def test_tools_from_scripts_beside_the_blueprint_and_from_servers_are_known(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    header = '# /// tool\n# description = "Count."\n# ///\n'
    (tmp_path / "tools" / "count_words.py").write_text(f"{header}def run():\n    return 1\n")
    (tmp_path / "tools" / "release.py").write_text("print('an ordinary program')\n")
    text = (
        MINIMAL
        + 'available_tools = ["count_words", "github__issue"]\n[tool_permissions]\ncount_words = "deny"\n'
    )

    blueprint = load(text, tmp_path / "b.toml")

    assert blueprint.entry.available_tools == ("count_words", "github__issue")


def test_a_fault_in_the_header_of_a_script_tool_is_a_problem_of_the_blueprint(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "count.py").write_text("# /// tool\n# nam = 1\n# ///\n")

    with pytest.raises(InvalidInput, match=r"tools/count\.py:2:3: nam: unknown key"):
        load(MINIMAL + "available_tools = []", tmp_path / "b.toml")


def test_the_users_own_script_tools_are_known(agentctl_home: Path) -> None:
    tools = agentctl_home / "agentctl" / "config" / "tools"
    tools.mkdir(parents=True)
    (tools / "mine.py").write_text("")

    assert load(MINIMAL + 'available_tools = ["mine"]').entry.available_tools == ("mine",)


def test_an_alias_in_available_and_required_tools_means_the_same_tool() -> None:
    text = MINIMAL + 'available_tools = ["bash", "ask_*"]\nrequired_tools = ["shell", "ask_user"]\n'

    assert load(text).entry.required_tools == ("shell", "ask_user")


def test_a_dynamic_blueprint_may_offer_tools_that_do_not_exist_yet() -> None:
    text = '[agent]\nname = "a"\ndynamic_tools = true\n[stages.one]\navailable_tools = ["to_be_written"]\n'

    assert load(text).entry.available_tools == ("to_be_written",)
