"""Layers written as TOML text, as people write them."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from agentctl.policy.defaults import BuiltInPolicy, built_in_policy
from agentctl.policy.layers import Launch, Layers
from agentctl.policy.paths import Place
from agentctl.policy.rules import RuleSet, parse_permissions, parse_rules
from agentctl.toml.read import parse

CONFIG = Path(__file__).resolve().parents[2] / "config"
PLACE = Place(workdir="/repo/app", home="/home/u")

MakeRules: TypeAlias = Callable[..., RuleSet]
MakeLayers: TypeAlias = Callable[..., Layers]


@pytest.fixture(scope="session")
def built_in() -> BuiltInPolicy:
    """The policy that ships."""
    return built_in_policy(parse((CONFIG / "policy.toml").read_bytes(), file="policy.toml"))


@pytest.fixture(scope="session")
def rules(built_in: BuiltInPolicy) -> MakeRules:
    """`rules('shell = "ask"')`: the layer that this `[tool_permissions]` table describes."""

    def make(text: str, file: str = "rules.toml") -> RuleSet:
        table = parse(f"[tool_permissions]\n{text}\n".encode(), file=file)
        return parse_permissions(table.table("tool_permissions"), names=built_in.names)

    return make


@pytest.fixture(scope="session")
def layers(built_in: BuiltInPolicy, rules: MakeRules) -> MakeLayers:
    """`layers(user='shell = "ask"', allow=["shell"])`: layers from TOML texts and launch flags."""

    def make(**said: object) -> Layers:
        named = {
            layer: rules(said.pop(layer), file=f"{layer}.toml")
            for layer in ("stage", "blueprint", "user_for_agent", "user")
            if layer in said
        }
        flags = {
            flag: parse_rules(said.pop(flag, ()), names=built_in.names, source=f"--{flag}")
            for flag in ("allow", "ask", "deny")
        }
        return Layers(
            launch=Launch(**flags, yolo=bool(said.pop("yolo", False))),
            built_in=built_in.rules,
            loosenable=built_in.loosenable,
            follows=built_in.follows,
            place=PLACE,
            **named,
            **said,
        )

    return make
