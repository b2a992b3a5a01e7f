"""What ships is in order: loads, has no warnings, satisfies the schema, and comes with its script."""

import json
import tomllib

import jsonschema_rs
import pytest

from agentctl.blueprint.catalogue import Entry, entries
from agentctl.blueprint.lints import lints_of
from agentctl.blueprint.load import load_blueprint
from agentctl.blueprint.trust import Trust, trust_needed
from agentctl.cli.providers import blueprint_script
from agentctl.cli.schema import Kind, schema_text

SHIPPED = [entry for entry in entries() if entry.found_by == "shipped"]


@pytest.mark.parametrize("entry", SHIPPED, ids=lambda entry: entry.name)
def test_a_shipped_blueprint_is_in_order(entry: Entry) -> None:
    blueprint = load_blueprint(entry.path, found_by=entry.found_by)
    schema = jsonschema_rs.validator_for(json.loads(schema_text(Kind.BLUEPRINT)))

    assert [str(lint) for lint in lints_of(blueprint) if lint.level == "warning"] == []
    assert schema.is_valid(tomllib.loads(blueprint.source.text))
    assert blueprint_script(blueprint) is not None
    assert blueprint.agent.description
    assert trust_needed(blueprint) == Trust()


def test_the_blueprints_of_the_readme_ship() -> None:
    named = {"coder", "reviewer", "log-analyzer", "release-notes", "researcher", "hello"}

    assert named <= {entry.name for entry in SHIPPED}
