"""Model names in a blueprint whose provider nobody knows: a run would end with exit 3."""

from collections.abc import Iterator

from agentctl.blueprint.model import Blueprint
from agentctl.errors import InvalidInput, Problem
from agentctl.llm.catalogue import load_catalogue
from agentctl.settings.settings import Settings
from agentctl.tables.declared import ModelTable
from agentctl.toml.positions import Path
from agentctl.toml.words import nearest

_WITHOUT_A_SERVICE = ("local", "scripted")


def check_models(blueprint: Blueprint, settings: Settings) -> None:
    """Return if the provider of every name ships or is the user's. May block.

    Raises:
        InvalidInput: holds a problem for each name of which that is not so.
    """
    known = {*load_catalogue({}).services, *settings.config.providers, *_WITHOUT_A_SERVICE}
    file = blueprint.source.table
    found = []
    for path, name in _names(blueprint):
        provider = name.partition(":")[0]
        if provider not in known:
            found.append(
                Problem(
                    position=file.value_position(*path),
                    key=file.key(*path),
                    message=f"unknown provider {provider!r}; agentctl models list  prints the known ones",
                    suggestion=nearest(provider, known),
                )
            )
    if found:
        raise InvalidInput(tuple(found))


def _names(blueprint: Blueprint) -> Iterator[tuple[Path, str]]:
    yield from _in_table(blueprint, ("model",), blueprint.model)
    for stage in blueprint.in_order:
        if stage.model is not None:
            yield from _in_table(blueprint, ("stages", stage.name, "model"), stage.model)


def _in_table(blueprint: Blueprint, at: Path, table: ModelTable) -> Iterator[tuple[Path, str]]:
    at = (*at, "use") if blueprint.source.table.has(*at, "use") else at  # or the table's short form
    for index, name in enumerate(table.use):
        yield (*at, index), name
