"""The JSON Schemas inside a blueprint: valid themselves, and defaults that satisfy them."""

from collections.abc import Iterator

import jsonschema_rs

from agentctl.blueprint.model import Blueprint
from agentctl.protocol.values import JsonObject, JsonValue
from agentctl.toml.positions import Path
from agentctl.toml.validate import Finding

_LONGEST = 200


def schema_findings(blueprint: Blueprint) -> Iterator[Finding]:
    """Yield what is wrong with the schemas of answers and of `[[state_keys]]`. Pure; fetches nothing."""
    for stage in blueprint.in_order:
        if stage.fan_out is not None and stage.fan_out.output_schema is not None:
            yield from _schema(
                ("stages", stage.name, "fan_out", "output_schema"), stage.fan_out.output_schema
            )
        if stage.output is not None:
            yield from _schema(("stages", stage.name, "output"), stage.output)
    for index, key in enumerate(blueprint.state_keys):
        at: Path = ("state_keys", index, "schema")
        wrong = list(_schema(at, key.schema))
        yield from wrong
        if not wrong and key.schema and key.default is not None:
            yield from _default(("state_keys", index, "default"), key.default, key.schema)


def _schema(at: Path, schema: JsonObject) -> Iterator[Finding]:
    try:
        jsonschema_rs.meta.validate(schema)
        _validator(schema)
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
        yield Finding(path=at, message=f"not a JSON Schema: {_first_line(error)}", needs=(at,))


def _default(at: Path, value: JsonValue, schema: JsonObject) -> Iterator[Finding]:
    for error in _validator(schema).iter_errors(value):
        message = f"the default does not satisfy the schema: {_first_line(error)}"
        yield Finding(path=at, message=message, at_value=True, needs=(at,))
        return


def _validator(schema: JsonObject) -> jsonschema_rs.Validator:
    return jsonschema_rs.validator_for(schema, retriever=_refuse)


def _refuse(address: str) -> JsonObject:
    raise ValueError(f"{address!r} is outside the blueprint; references are never fetched")


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0][:_LONGEST]
