"""`agentctl schema`: the JSON Schema of blueprints or of the user's config."""

import json
from enum import StrEnum
from typing import Annotated, assert_never

import typer

from agentctl.blueprint.model import Blueprint
from agentctl.cli.command_app import command_app
from agentctl.settings.model import ConfigTable
from agentctl.toml.json_schema import schema_of
from agentctl.toml.reference import reference_of

app = command_app()


class Kind(StrEnum):
    """What a schema is of."""

    BLUEPRINT = "blueprint"
    CONFIG = "config"


def schema_text(kind: Kind) -> str:
    """Return the schema as `config/` holds it: JSON with two spaces, and a final newline."""
    match kind:
        case Kind.BLUEPRINT:
            found = schema_of(Blueprint, title="agentctl blueprint")
        case Kind.CONFIG:
            found = schema_of(ConfigTable, title="agentctl config.toml")
        case other:
            assert_never(other)
    return json.dumps(found, indent=2, ensure_ascii=False) + "\n"


def reference_text(kind: Kind) -> str:
    """Return every key as Markdown tables: what docs/ has between its reference marks."""
    return reference_of(Blueprint if kind is Kind.BLUEPRINT else ConfigTable)


@app.command()
def schema(
    kind: Kind,
    *,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Every key with its meaning, as Markdown tables.")
    ] = False,
) -> None:
    """Print the JSON Schema of a blueprint or of config.toml, for editors and other tools.

    An editor with a TOML language server checks and completes a file that begins with
    "#:schema PATH"; `agentctl new` writes that line.
    """
    typer.echo(reference_text(kind) if markdown else schema_text(kind), nl=False)
