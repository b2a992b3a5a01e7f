"""Which places outside the workdir a run may read: what its blueprint declares and the user grants."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from agentctl.blueprint.model import Blueprint
from agentctl.errors import InvalidInput, Problem
from agentctl.policy.paths import Place, absolute_pattern
from agentctl.settings.settings import Settings
from agentctl.toml.table import Table


def granted_read_paths(settings: Settings, blueprint: Blueprint, place: Place) -> tuple[Path, ...]:
    """Return the folders and files outside that may be read, resolved. May block: follows links.

    A place counts if it is declared by the blueprint and granted by the user, for all agents or for this one;
    of two that contain each other the narrower counts. `~/` is home, a relative path is in the workdir, and
    `folder/**` is the folder with all in it.

    Raises:
        InvalidInput: an entry is no single place.
    """
    agent = settings.config.agents.get(blueprint.name)
    own = settings.table.table("agents").table(blueprint.name).table("read_paths")
    problems: list[Problem] = []
    granted = [
        *_places(settings.config.read_paths.allow, settings.table.table("read_paths"), place, problems),
        *_places(agent.read_paths.allow if agent else (), own, place, problems),
    ]
    wanted = list(
        _places(blueprint.read_paths.allow, blueprint.source.table.table("read_paths"), place, problems)
    )
    if problems:
        raise InvalidInput(tuple(problems))
    return both_allow(wanted, granted)


def both_allow(one: Sequence[Path], other: Sequence[Path]) -> tuple[Path, ...]:
    """Return the places that lie in both lists: of two that contain each other the narrower. Pure."""
    both = [
        max(first, second, key=lambda path: len(path.parts))
        for first in one
        for second in other
        if first.is_relative_to(second) or second.is_relative_to(first)
    ]
    return tuple(dict.fromkeys(both))


def _places(texts: Sequence[str], table: Table, place: Place, problems: list[Problem]) -> Iterator[Path]:
    for index, text in enumerate(texts):
        try:
            yield _single(text, place).resolve()
        except ValueError as error:
            where = table.value_position("allow", index)
            message = f"{text!r}: {error}"
            problems.append(Problem(position=where, key=table.key("allow", index), message=message))


def _single(text: str, place: Place) -> Path:
    pattern = absolute_pattern(text, place).removesuffix("/**")
    if "*" in pattern:
        raise ValueError("name the folder or file itself; all in a folder is meant anyway")
    return Path(pattern or "/")
