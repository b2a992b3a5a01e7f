"""Settings come in layers, each value with its source; a broken config stops everything."""

from collections.abc import Callable
from pathlib import Path

import pytest

from agentctl.errors import ExitCode, InvalidInput, UsageError
from agentctl.policy.ceilings import BUILT_IN_CEILINGS
from agentctl.settings.effective import effective
from agentctl.settings.load import limit_overrides, load_settings, read_key
from agentctl.settings.rules import agent_rules, remembered_rules, user_rules
from agentctl.settings.settings import Override

WriteConfig = Callable[[str], Path]


def test_without_a_config_the_built_in_values_hold() -> None:
    settings = load_settings(environment={})

    assert settings.config.limits.steps == BUILT_IN_CEILINGS.steps
    assert settings.config.write_budget.per_call == 16 * 2**20
    assert settings.source_of("limits", "steps") == "built-in"


def test_each_layer_goes_over_the_one_before_and_names_itself(write_config: WriteConfig) -> None:
    file = write_config('model = "ollama:a"\n[limits]\nsteps = 5\ntokens = 7\n[terminal]\ncolor = "always"\n')
    flags = limit_overrides(["tokens=9"])

    settings = load_settings(flags, {"AGENTCTL_MODEL": "ollama:b, ollama:c", "NO_COLOR": "1"})

    config = settings.config
    assert (config.limits.steps, config.limits.tokens, config.limits.depth) == (5, 9, 3)
    assert config.model.use == ("ollama:b", "ollama:c")
    assert config.terminal.color == "never"
    assert settings.source_of("limits", "steps") == f"{file}:3:1"
    assert settings.source_of("limits", "tokens") == "--limit"
    assert settings.source_of("limits", "depth") == "built-in"
    assert settings.source_of("model", "use") == "environment AGENTCTL_MODEL"
    assert settings.source_of("terminal", "color") == "environment NO_COLOR"


def test_a_flag_goes_over_the_environment() -> None:
    flag = Override(path=("model", "use"), text="ollama:flag", source="--model")

    settings = load_settings([flag], {"AGENTCTL_MODEL": "ollama:env"})

    assert settings.config.model.use == ("ollama:flag",)
    assert settings.source_of("model", "use") == "--model"


def test_every_table_of_the_config_loads(write_config: WriteConfig) -> None:
    write_config(
        (Path(__file__).resolve().parents[1] / "corpus" / "config" / "everything.toml").read_text("utf-8")
    )

    config = load_settings(environment={}).config

    assert config.sandbox.auto_allow
    assert config.sandbox.kind is None
    assert config.environment.pass_ == ("GITHUB_TOKEN",)
    assert config.providers["mine"].base_url == "http://localhost:8080/v1"
    assert config.models["mine:big"] == {"context_window": 100000}
    assert config.mcp_servers[0].env == {"TOKEN": "${GITHUB_TOKEN}"}
    assert config.agents["coder"].read_paths.allow == ("~/notes",)


def test_all_problems_of_a_config_are_told_at_once(write_config: WriteConfig) -> None:
    file = write_config(
        '[tool_permissions]\nshel = "deny"\nshell = { dney = ["x"] }\n[limits]\nsteps = "x"\n[limits.calls]\n'
        '"grepp" = 1\n[[remembered]]\nrule = "shell(x"\n[stages.x]\n'
    )

    with pytest.raises(InvalidInput) as caught:
        load_settings(environment={})

    assert caught.value.exit_code is ExitCode.INVALID
    assert [str(problem).removeprefix(str(file)).split(": ")[0] for problem in caught.value.problems] == [
        ":2:1",
        ":3:11",
        ":5:9",
        ":7:1",
        ":9:8",
        ":10:2",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("steps", "is not KEY=VALUE"),
        ("stepz=3", "no limit 'stepz'. Did you mean 'steps'"),
        ("calls=3", "calls needs a rule"),
        ("steps.x=3", "steps takes no rule"),
    ],
)
def test_a_limit_flag_that_is_none_is_a_usage_error(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        limit_overrides([text])


@pytest.mark.parametrize("value", ["many", "-1", "1.5", "true", ""])
def test_a_limit_flag_with_a_wrong_value_names_flag_and_value(value: str) -> None:
    with pytest.raises(UsageError, match=r"--limit steps: .*expected a"):
        load_settings(limit_overrides([f"steps={value}"]), {})


def test_limit_flags_reach_every_ceiling(write_config: WriteConfig) -> None:
    write_config("")
    flags = limit_overrides(
        ["steps=1_000", "wall_time=5m", "per_call=1KiB", "write_budget.files=3", "calls.shell(a=b *)=2"]
    )

    config = load_settings(flags, {}).config

    assert (config.limits.steps, config.limits.wall_time) == (1000, 300.0)
    assert (config.write_budget.per_call, config.write_budget.files) == (1024, 3)
    assert config.limits.calls == {"shell(a=b *)": 2}


def test_a_wrong_variable_is_told_by_its_name() -> None:
    with pytest.raises(UsageError, match="environment AGENTCTL_MODEL"):
        load_settings(environment={"AGENTCTL_MODEL": "gpt"})


def test_a_config_that_is_a_directory_is_a_usage_error(agentctl_home: Path) -> None:
    (agentctl_home / "agentctl" / "config" / "config.toml").mkdir(parents=True)

    with pytest.raises(UsageError, match="is a directory"):
        load_settings(environment={})


def test_a_config_that_is_a_dangling_link_is_not_taken_for_empty(agentctl_home: Path) -> None:
    folder = agentctl_home / "agentctl" / "config"
    folder.mkdir(parents=True)
    (folder / "config.toml").symlink_to("gone.toml")

    with pytest.raises(UsageError, match="There is no config"):
        load_settings(environment={})


def test_effective_values_name_everything_that_holds(write_config: WriteConfig) -> None:
    file = write_config('[agents.x.tool_permissions]\n"gh__*" = "ask"\n')

    found = {one.key: (one.value, one.source) for one in effective(load_settings(environment={}))}

    assert found['agents.x.tool_permissions."gh__*"'] == ("ask", f"{file}:2:1")
    assert found["limits.steps"] == (100, "built-in")
    assert found["terminal.bell"] == (False, "built-in")
    assert found["model.use"][1] == "built-in"


def test_rules_of_the_user_carry_their_positions(write_config: WriteConfig) -> None:
    file = write_config(
        '[tool_permissions]\nbash = { deny = ["rm *"] }\n[agents.a.tool_permissions]\nmine = "ask"\n'
        '[[remembered]]\nrule = "shell(pytest *)"\n[[remembered]]\nrule = "gone_tool"\n'
    )
    settings = load_settings(environment={})

    [entry] = user_rules(settings).entries.values()
    assert (entry.tool, str(entry.deny[0].position)) == ("shell", f"{file}:2:18")
    assert list(agent_rules(settings, "a", ["mine"]).entries) == ["mine"]
    assert agent_rules(settings, "b").entries == {}
    assert [(str(rule), str(rule.position)) for rule in remembered_rules(settings)] == [
        ("shell(pytest *)", f"{file}:6:8")
    ]


def test_an_agents_rule_for_an_unknown_tool_is_told_when_the_agent_runs(write_config: WriteConfig) -> None:
    write_config('[agents.a.tool_permissions]\nshel = "deny"\n')
    settings = load_settings(environment={})

    with pytest.raises(InvalidInput, match="did you mean 'shell'"):
        agent_rules(settings, "a")


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("limits.steps", ("limits", "steps")),
        ('agents.coder.tool_permissions."github__*"', ("agents", "coder", "tool_permissions", "github__*")),
        ("a . 'b.c'", ("a", "b.c")),
    ],
)
def test_a_key_is_read_as_toml_reads_it(text: str, path: tuple[str, ...]) -> None:
    assert read_key(text) == path


@pytest.mark.parametrize("text", ["", "a..b", "a = 1\nb", "gh__*", "[a]", "a = {x"])
def test_what_is_not_a_key_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError, match="is not a TOML key"):
        read_key(text)
