"""Models are chosen in one fixed order, and parameters never carry an address to another model."""

from collections.abc import Callable
from pathlib import Path

import pytest

from agentctl.settings.built_in import DEFAULT_MODEL
from agentctl.settings.load import load_settings
from agentctl.settings.model_choice import ModelChoice, WrittenModel, choose_model
from agentctl.settings.settings import Override
from agentctl.tables.declared import ModelTable

WriteConfig = Callable[[str], Path]
BLUEPRINT = WrittenModel(
    table=ModelTable(use=("openai:blueprint",), temperature=0.3, base_url="http://b/v1", extra={"b": 1}),
    source="b.toml:3:1",
)
STAGE = WrittenModel(table=ModelTable(use=("openai:stage",), max_output_tokens=9), source="b.toml:9:1")
FLAG = Override(path=("model", "use"), text="openai:flag", source="--model")
CONFIG = '[model]\nuse = "openai:config"\nbase_url = "http://c/v1"\nreasoning_effort = "low"\n'
ENVIRONMENT = {"AGENTCTL_MODEL": "openai:variable"}


def chosen(*written: WrittenModel, flags: tuple[Override, ...] = (), variable: bool = False) -> ModelChoice:
    settings = load_settings(flags, ENVIRONMENT if variable else {})
    return choose_model(settings, agent="coder", written=written)


def test_flag_then_variable_then_config_then_blueprint_then_default(write_config: WriteConfig) -> None:
    assert chosen().table.use == (DEFAULT_MODEL,)
    assert chosen(BLUEPRINT).table.use == ("openai:blueprint",)
    assert chosen(STAGE, BLUEPRINT).table.use == ("openai:stage",)

    file = write_config(CONFIG)
    assert (chosen(STAGE).table.use, chosen(STAGE).source) == (("openai:config",), f"{file}:2:1")

    by_variable = chosen(STAGE, variable=True)
    assert (by_variable.table.use, by_variable.source) == (("openai:variable",), "environment AGENTCTL_MODEL")

    by_flag = chosen(STAGE, flags=(FLAG,), variable=True)
    assert (by_flag.table.use, by_flag.source) == (("openai:flag",), "--model")


def test_what_the_user_says_for_an_agent_goes_before_what_holds_for_all(write_config: WriteConfig) -> None:
    write_config(CONFIG + '[agents.coder]\nmodel = "openai:coder"\n')

    assert chosen(STAGE).table.use == ("openai:coder",)
    assert chosen(STAGE, flags=(FLAG,)).table.use == ("openai:flag",)


def test_parameters_come_from_the_narrowest_table_whoever_named_the_model(write_config: WriteConfig) -> None:
    write_config(CONFIG)

    table = chosen(STAGE, BLUEPRINT).table

    assert (table.temperature, table.max_output_tokens, table.reasoning_effort) == (0.3, 9, "low")


def test_an_address_stays_with_the_models_it_was_written_for(write_config: WriteConfig) -> None:
    assert chosen(BLUEPRINT).table.base_url == "http://b/v1"
    assert chosen(BLUEPRINT).from_blueprint
    assert chosen(STAGE, BLUEPRINT).table.base_url == ""

    write_config(CONFIG)
    assert chosen(BLUEPRINT).table.base_url == "http://c/v1"
    assert not chosen(BLUEPRINT).from_blueprint
    assert chosen(BLUEPRINT, flags=(FLAG,)).table.base_url == ""
    assert chosen(BLUEPRINT, flags=(FLAG,)).table.extra == {}


def test_a_key_in_the_environment_never_chooses_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-made-up")

    assert chosen().table.use == (DEFAULT_MODEL,)
