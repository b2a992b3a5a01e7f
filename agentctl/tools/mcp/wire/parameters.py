"""A server's schema of arguments as every model service takes it: one object, described at its top. Pure."""

from collections.abc import Iterator

from agentctl.protocol.values import JsonObject, JsonValue

_CHOICES = ("anyOf", "oneOf")
_REFUSED = (*_CHOICES, "allOf", "enum", "const", "not", "$schema")
"""What services refuse at the top of a tool's schema, though JSON Schema has it."""


def parameters_of(schema: JsonObject) -> JsonObject:
    """Return a schema whose top names every argument, whichever alternative it belongs to.

    Some services refuse each request that offers a tool with alternatives at the top. What is lost, which
    arguments go together, the server checks for itself. Some also want `properties`, and no dialect.
    """
    kept: JsonObject = {name: value for name, value in schema.items() if name not in _REFUSED}
    kept.pop("required", None)
    properties: JsonObject = dict(_properties(schema))
    required = dict.fromkeys(_texts(schema.get("required")))
    for part in _parts(schema, "allOf"):
        properties = {**dict(_properties(part)), **properties}
        required |= dict.fromkeys(_texts(part.get("required")))
    for choice in _CHOICES:
        parts = list(_parts(schema, choice))
        for part in parts:
            properties = {**dict(_properties(part)), **properties}
        always = [set(_texts(part.get("required"))) for part in parts]
        required |= dict.fromkeys(sorted(set.intersection(*always) if always else ()))
    kept |= {"type": "object", "properties": properties}
    if required:
        kept["required"] = list(required)
    return kept


def _parts(schema: JsonObject, key: str) -> Iterator[JsonObject]:
    parts = schema.get(key)
    for part in parts if isinstance(parts, list) else ():
        if isinstance(part, dict):
            yield part


def _properties(schema: JsonObject) -> JsonObject:
    given = schema.get("properties")
    return given if isinstance(given, dict) else {}


def _texts(value: JsonValue) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []
