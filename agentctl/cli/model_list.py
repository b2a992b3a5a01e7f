"""What `agentctl models list` prints: services, whether they are ready, and their models."""

import json
from collections.abc import Sequence
from dataclasses import asdict

import anyio
import typer

from agentctl.cli.providers import service_config
from agentctl.errors import UsageError
from agentctl.llm.catalogue import Price, load_catalogue
from agentctl.llm.listing import ListedModel, ListedProvider, list_providers
from agentctl.llm.local_catalogue import known_models, obstacle_to
from agentctl.settings.load import load_settings
from agentctl.toml.words import nearest

_LOCAL = "local"
_THOUSAND, _MILLION = 1000, 1_000_000


def print_models(providers: Sequence[str], *, as_json: bool) -> None:
    """Print the services of these names with their models; without names all, and the models of those ready.

    A service that is named, and every one on this machine, is asked.

    Raises:
        UsageError: a name is not known.
    """
    found = [_embedded()] if not providers or _LOCAL in providers else []
    others = [name for name in providers if name != _LOCAL]
    if others or not providers:
        settings = load_settings()
        config = service_config(settings)
        catalogue = load_catalogue(settings.config.models)
        _check_known(others, (*catalogue.services, *config.providers))
        found += anyio.run(list_providers, config, catalogue, others)
    if as_json:
        typer.echo(json.dumps([asdict(one) for one in found], indent=2, ensure_ascii=False))
        return
    for provider in found:
        mark = "ready" if provider.ready else "not ready"
        typer.echo(f"{provider.name} ({provider.title}): {mark}; {provider.state}; {provider.origin}")
        for model in provider.models if provider.ready or providers else ():
            typer.echo(f"  {_line(model)}")


def _check_known(names: Sequence[str], known: Sequence[str]) -> None:
    for name in names:
        if name not in known:
            near = nearest(name, [_LOCAL, *known])
            meant = f" Did you mean {near!r}?" if near else ""
            raise UsageError(
                f"There is no model service {name!r}.{meant}",
                hint="agentctl models list  shows all; [providers.NAME] in your config adds others",
            )


def _embedded() -> ListedProvider:
    models = tuple(
        ListedModel(
            name=f"{_LOCAL}:{model.name}",
            price=Price(input=0.0, output=0.0),
            served=not obstacle_to(model.name),
        )
        for model in known_models().values()
    )
    obstacles = [obstacle_to(model.name) for model in known_models().values()]
    ready = not all(obstacles)
    return ListedProvider(
        name=_LOCAL,
        title="embedded, on this machine",
        origin="no address",
        ready=ready,
        state="installed" if ready else next(filter(None, obstacles), "nothing is installed"),
        models=models,
    )


def _line(model: ListedModel) -> str:
    told = [model.name]
    if model.context_window:
        told.append(_tokens(model.context_window))
    if model.price is not None:
        told.append(_price(model.price))
    if model.served is False:
        told.append("not served")
    return ", ".join(told)


def _tokens(count: int) -> str:
    return f"{count / _MILLION:.3g}M tokens" if count >= _MILLION else f"{count // _THOUSAND}k tokens"


def _price(price: Price) -> str:
    if not price.input and not price.output:
        return "free"
    return f"${price.input:g} in, ${price.output:g} out a million"
