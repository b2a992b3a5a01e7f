"""The policy layers of an agent, from the settings, its blueprint and the launch flags."""

from agentctl.blueprint.model import Blueprint
from agentctl.blueprint.tool_rules import tool_names
from agentctl.policy.defaults import built_in_policy
from agentctl.policy.layers import NO_LAUNCH, Launch, Layers
from agentctl.policy.paths import Place
from agentctl.policy.rules import ToolNames, parse_permissions
from agentctl.settings.rules import agent_rules, shipped_table, user_rules
from agentctl.settings.settings import Settings


def layers_of(
    settings: Settings, blueprint: Blueprint, place: Place, *, launch: Launch = NO_LAUNCH
) -> Layers:
    """Return the layers without those of a stage. May block: reads the shipped policy.

    Raises:
        InvalidInput: a rule of the user's for this agent names a tool that there is not.
    """
    built_in = built_in_policy(shipped_table("policy.toml"))
    names = tool_names(blueprint)
    return Layers(
        launch=launch,
        blueprint=parse_permissions(blueprint.tool_permissions, names=names),
        user_for_agent=agent_rules(settings, blueprint.name, names.known),
        user=user_rules(settings, names.known),
        built_in=built_in.rules,
        place=place,
        found_by_name=blueprint.source.found_by != "path",
        allow_blueprint_permissions=settings.config.security.allow_blueprint_permissions,
        loosenable=built_in.loosenable,
        follows=built_in.follows,
    )


def in_stage(layers: Layers, blueprint: Blueprint, stage: str, names: ToolNames) -> Layers:
    """Return the layers as they are in a stage."""
    return layers.in_stage(parse_permissions(blueprint.stages[stage].tool_permissions, names=names))
