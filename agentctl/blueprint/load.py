"""A blueprint file into a `Blueprint`, or every problem of the file at once."""

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Final

from agentctl.blueprint.model import Blueprint, FoundBy, Source, StageTable
from agentctl.blueprint.rules import findings_of
from agentctl.blueprint.tool_rules import problems_of_rules
from agentctl.errors import InvalidInput
from agentctl.toml.read import parse, read_file
from agentctl.toml.validate import Reader

_USER_ONLY: Final = "only the user can set this, in their config.toml (agentctl config path)"
ELSEWHERE: Final = {
    "sandbox.auto_allow": f"{_USER_ONLY} or with a flag: a blueprint can only tighten the sandbox",
    "environment": _USER_ONLY,
    "security": _USER_ONLY,
    "remembered": _USER_ONLY,
    "providers": f"{_USER_ONLY}: a key belongs to an address that the user named",
    "agents": f"{_USER_ONLY}; inside a blueprint rules stand in [tool_permissions]",
    "safe_commands.defaults": _USER_ONLY,
}
"""Keys that people look for here and that live in another file."""


def load_blueprint(path: Path, *, found_by: FoundBy = "path") -> Blueprint:
    """Return the blueprint in the file at `path`. May block. Runs and imports nothing that it names.

    Raises:
        UsageError: the file is missing, not a regular file, or can't be read.
        InvalidInput: it is too large or invalid; holds every problem, in file order.
    """
    return parse_blueprint(read_file(path, what="blueprint"), path=path, found_by=found_by)


def parse_blueprint(data: bytes, *, path: Path, found_by: FoundBy) -> Blueprint:
    """Return the blueprint in `data`, as if it stood at `path`: how `resume` takes it from the journal. Pure.

    Raises:
        InvalidInput: as `load_blueprint`.
    """
    table = parse(data, file=str(path))
    source = Source(
        path=path.absolute(),
        text=table.positions.text,
        sha256=hashlib.sha256(data).hexdigest(),
        found_by=found_by,
        table=table,
    )
    reader = Reader(table, ELSEWHERE)
    blueprint = reader.read(Blueprint, {"source": source})
    blueprint = replace(
        blueprint,
        stages={
            name: _placed(stage, name, index) for index, (name, stage) in enumerate(blueprint.stages.items())
        },
    )
    problems = reader.problems(findings_of(blueprint), problems_of_rules(blueprint))
    if problems:
        raise InvalidInput(
            problems, hint="agentctl schema blueprint  prints the format; docs/blueprints.md explains it"
        )
    return blueprint


def _placed(stage: StageTable, name: str, index: int) -> StageTable:
    edges = {target: replace(edge, to=target) for target, edge in stage.transitions.items()}
    return replace(stage, name=name, index=index, transitions=edges)
