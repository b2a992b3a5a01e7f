"""JSON as types: what tools, state and the journal exchange."""

from typing import TypeAlias

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"
"""Any JSON value. Never shared between owners: take a copy before changing one."""

JsonObject: TypeAlias = dict[str, JsonValue]
"""A JSON object."""
