"""The JSON Schemas in config/ are current, say something about every key, and agree with the loader."""

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path

import jsonschema_rs
import pytest

from agentctl.blueprint.load import parse_blueprint
from agentctl.cli.schema import Kind, schema_text
from agentctl.errors import InvalidInput
from agentctl.locations import shipped_dir

CORPUS = Path(__file__).resolve().parents[1] / "corpus" / "blueprints"


@pytest.mark.parametrize("kind", list(Kind))
def test_the_shipped_schema_is_what_the_code_says(kind: Kind) -> None:
    shipped = shipped_dir("config") / f"{kind.value}.schema.json"

    # agentctl schema KIND > config/KIND.schema.json  makes it current
    assert shipped.read_text(encoding="utf-8") == schema_text(kind)


@pytest.mark.parametrize("kind", list(Kind))
def test_the_schema_is_valid_and_describes_every_key(kind: Kind) -> None:
    schema = json.loads(schema_text(kind))

    jsonschema_rs.meta.validate(schema)

    assert list(silent(schema)) == []


def silent(schema: object, path: str = "") -> Iterator[str]:
    if isinstance(schema, dict):
        for key, shape in schema.get("properties", {}).items():
            if (
                path.count("definitions") <= 1
                and "description" not in shape
                and "tool_permissions" not in path
            ):
                yield f"{path}.{key}"
        for key, item in schema.items():
            if key == "definitions":
                for name, shape in item.items():
                    yield from silent(shape, name)


@pytest.mark.parametrize("file", sorted(CORPUS.glob("good-*.toml")), ids=lambda file: file.stem)
def test_what_loads_satisfies_the_schema(file: Path) -> None:
    validator = jsonschema_rs.validator_for(json.loads(schema_text(Kind.BLUEPRINT)))

    parse_blueprint(file.read_bytes(), path=file, found_by="path")

    assert [str(error) for error in validator.iter_errors(tomllib.loads(file.read_text("utf-8")))] == []


@pytest.mark.parametrize("file", sorted(CORPUS.glob("bad-*.toml")), ids=lambda file: file.stem)
def test_what_the_schema_refuses_the_loader_refuses_too(file: Path) -> None:
    validator = jsonschema_rs.validator_for(json.loads(schema_text(Kind.BLUEPRINT)))

    assert not validator.is_valid(tomllib.loads(file.read_text("utf-8")))

    with pytest.raises(InvalidInput):
        parse_blueprint(file.read_bytes(), path=file, found_by="path")
