"""What is configured and what answers: services with their keys, addresses and models."""

from collections.abc import Sequence

import anyio

from agentctl.llm.addresses import joined
from agentctl.llm.base import ModelCallFailed
from agentctl.llm.catalogue import Catalogue, ModelFacts, Price
from agentctl.llm.endpoints import ModelPlace, Resolved, resolve
from agentctl.llm.failures import read_error, status_failure
from agentctl.llm.http import Http, HttpCall, HttpOptions, is_loopback, origin_of
from agentctl.llm.provider_config import ProviderConfig
from agentctl.llm.stream import parse_json
from agentctl.protocol.values import JsonObject, JsonValue
from agentctl.records import dataclass

_ASK_LIMIT_S = 5.0
_MOST_BYTES = 4 * 1024 * 1024
_BAD = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedModel:
    """One model of a service."""

    name: str
    """`provider:model`."""
    context_window: int | None = None
    price: Price | None = None
    served: bool | None = None
    """Whether the service itself named it; None where it was not asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedProvider:
    """One service as it is set up here."""

    name: str
    title: str
    origin: str
    """Scheme, host and port."""
    ready: bool
    """Whether a call could be made: a key where one is needed, and an answer where it was asked."""
    state: str
    """In words: where the key comes from, what is missing, or what the service said."""
    models: tuple[ListedModel, ...] = ()


async def list_providers(
    config: ProviderConfig, catalogue: Catalogue, names: Sequence[str]
) -> list[ListedProvider]:
    """Return the services of these names in their order; all that are known when there are none.

    A service named here, and one on this machine, is asked for its models; others are not. Safe to cancel.

    Raises:
        InvalidInput: a name is not known.
    """
    known = list(dict.fromkeys([*catalogue.services, *config.providers]))
    wanted = {name: resolve(f"{name}:*", ModelPlace(), config, catalogue) for name in names or known}
    found: dict[str, ListedProvider] = {}
    http = Http(config.environment)

    async def one(name: str, resolved: Resolved) -> None:
        ask = bool(names) or is_loopback(resolved.endpoint.base_url)
        found[name] = await _listed(name, resolved, catalogue, http if ask else None)

    try:
        async with anyio.create_task_group() as group:
            for name, resolved in wanted.items():
                group.start_soon(one, name, resolved)
    finally:
        await http.aclose()
    return [found[name] for name in wanted]


async def _listed(name: str, resolved: Resolved, catalogue: Catalogue, http: Http | None) -> ListedProvider:
    service = catalogue.services.get(name)
    origin = origin_of(resolved.endpoint.base_url)
    state = resolved.missing_key or _key_state(resolved)
    ready = not resolved.missing_key
    served: dict[str, int | None] | None = None
    if http is not None and ready and (service is None or service.models_path):
        path = service.models_path if service else "/models"
        try:
            served = await _ask(resolved, path, http)
        except ModelCallFailed as failure:
            ready, state = False, failure.message
    return ListedProvider(
        name=name,
        title=service.title if service else "from your config",
        origin=origin,
        ready=ready,
        state=state,
        models=_models(name, catalogue, served),
    )


def _key_state(resolved: Resolved) -> str:
    return "has a key" if resolved.endpoint.key() else "needs no key"


def _models(name: str, catalogue: Catalogue, served: dict[str, int | None] | None) -> tuple[ListedModel, ...]:
    written = [entry.partition(":")[2] for entry in catalogue.models_of(name)]
    found = []
    for model in dict.fromkeys([*(served or {}), *written]):
        facts: ModelFacts = catalogue.facts(f"{name}:{model}")
        told = served.get(model) if served else None
        found.append(
            ListedModel(
                name=f"{name}:{model}",
                context_window=told or facts.context_window,
                price=facts.price,
                served=None if served is None else model in served,
            )
        )
    return tuple(found)


async def _ask(resolved: Resolved, path: str, http: Http) -> dict[str, int | None]:
    """Return the service's models with their windows where it tells them."""
    key = resolved.endpoint.key()
    call = HttpCall(
        method="GET",
        url=joined(resolved.endpoint.base_url, path, resolved.endpoint.query),
        headers={**resolved.protocol.fixed_headers(resolved.target), **resolved.endpoint.headers},
        secret_headers={
            **(resolved.protocol.key_headers(key) if key else {}),
            **resolved.endpoint.secret_headers,
        },
    )
    options = HttpOptions(
        stall_timeout_s=_ASK_LIMIT_S,
        connect_timeout_s=_ASK_LIMIT_S,
        proxy=resolved.endpoint.options.proxy,
        ca_file=resolved.endpoint.options.ca_file,
    )
    async with http.send(call, options) as response:
        raw = await response.read(_MOST_BYTES)
        status = response.status
    try:
        body = parse_json(raw)
    except ValueError:
        body = {"error": f"{len(raw)} bytes that are no JSON"}
    if status >= _BAD or not isinstance(body, dict):
        told = read_error(body)
        words = told.message.replace(key, "[key]") if key else told.message
        raise status_failure(status, f"answers HTTP {status}: {words}", code=told.code)
    return dict(_entry(one) for one in _entries(body))


def _entries(body: JsonObject) -> list[JsonObject]:
    listed: JsonValue = body.get("data", body.get("models"))
    return [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []


def _entry(one: JsonObject) -> tuple[str, int | None]:
    """OpenAI and Anthropic say `id`, Gemini and Ollama `name`; vLLM and llama.cpp tell the window."""
    name = str(one.get("id") or one.get("name") or "").removeprefix("models/")
    meta = one.get("meta")
    sizes = [one.get("max_model_len"), one.get("context_length"), one.get("inputTokenLimit")]
    if isinstance(meta, dict):
        sizes += [meta.get("n_ctx"), meta.get("n_ctx_train")]
    return name, next((size for size in sizes if isinstance(size, int) and size > 0), None)
