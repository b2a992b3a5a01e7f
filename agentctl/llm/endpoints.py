"""From a model's name to an address, a key and a protocol. Who named the address decides about the key."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from difflib import get_close_matches

from agentctl.errors import InvalidInput, Position, Problem
from agentctl.llm.addresses import fault_of, without_password
from agentctl.llm.anthropic import AnthropicMessages
from agentctl.llm.catalogue import Catalogue, ModelFacts, Price, ServiceFacts, WireName
from agentctl.llm.gemini import Gemini
from agentctl.llm.http import HttpOptions, is_loopback
from agentctl.llm.ollama import Ollama
from agentctl.llm.openai_chat import OpenAiChat
from agentctl.llm.openai_responses import OpenAiResponses
from agentctl.llm.provider_config import Origin, ProviderConfig, ProviderSettings
from agentctl.llm.wire import Endpoint, Target, WireProtocol
from agentctl.records import dataclass

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_STALL_S = 300.0
_CONNECT_S = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPlace:
    """What a `[model]` table says about where its models are."""

    base_url: str = ""
    origin: Origin = "user"
    """Who named `base_url`, and the model names themselves."""
    context_window: int | None = None
    """Over the catalogue's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """A model that can be called, or the reason why not yet."""

    protocol: WireProtocol
    target: Target
    endpoint: Endpoint
    settings: ProviderSettings
    origin: Origin
    missing_key: str = ""
    """A sentence that names the variables to set, where the service needs a key and there is none."""


def resolve(name: str, place: ModelPlace, config: ProviderConfig, catalogue: Catalogue) -> Resolved:
    """Return where the model `provider:model` is reached. May block: asks the keyring if no variable is set.

    Raises:
        InvalidInput: the name has another form, or the provider is not known.
    """
    provider, separator, model = name.partition(":")
    service = catalogue.services.get(provider)
    settings = config.providers.get(provider, ProviderSettings())
    if not separator or not model:
        raise bad_name(name, "provider:model")
    if service is None and not (settings.protocol and settings.base_url):
        raise unknown_provider(name, provider, [*catalogue.services, *config.providers, *config.openers])
    place, model = _address_in_name(model, place)
    address, origin = _address(service, settings, place, config.environment)
    if fault := fault_of(address):
        raise bad_address(provider, address, fault)
    facts = _facts(catalogue.facts(f"{provider}:{model}"), place)
    if facts.price is None and service is not None and service.own_machine and is_loopback(address):
        facts = replace(facts, price=Price(input=0.0, output=0.0))
    target = Target(
        provider=provider,
        model=model,
        facts=facts,
        dialect=_dialect(service, settings, origin),
        stream=settings.stream is not False,
    )
    key = "" if origin == "blueprint" else _key(provider, service, settings, config)
    missing = ""
    if not key and origin == "shipped" and service is not None and service.key_required:
        names = " or ".join(settings.key_env or service.key_env)
        missing = f"no key for {provider}: set {names}, or store one with `agentctl auth set {provider}`"
    return Resolved(
        protocol=protocol_of(settings.protocol or (service.protocol if service else "openai-chat")),
        target=target,
        endpoint=_endpoint(service, settings, config, address=address, key=key, origin=origin),
        settings=settings,
        origin=origin,
        missing_key=missing,
    )


def protocol_of(name: WireName) -> WireProtocol:
    """Return the protocol of that name."""
    match name:
        case "openai-chat":
            return OpenAiChat()
        case "openai-responses":
            return OpenAiResponses()
        case "anthropic":
            return AnthropicMessages()
        case "gemini":
            return Gemini()
        case "ollama":
            return Ollama()


def bad_name(name: str, expected: str, *, suggestion: str = "") -> InvalidInput:
    """Return the error for a model name that means nothing."""
    problem = Problem(
        position=Position(file="model"),
        key=name,
        message=f"the model name {name!r} is not valid: expected {expected}",
        suggestion=suggestion,
    )
    return InvalidInput((problem,), hint="models are named provider:model; `agentctl models list` shows them")


def bad_address(provider: str, address: str, fault: str) -> InvalidInput:
    """Return the error for an address that leads nowhere, without the password that may stand in it."""
    shown = address.rpartition("@")[2]
    message = f"the address {shown!r} of provider {provider!r} is not valid: {fault}"
    problem = Problem(position=Position(file="model"), key=provider, message=message)
    return InvalidInput((problem,), hint="an address is written https://host/path, or http://host:port/path")


def unknown_provider(name: str, provider: str, known: list[str]) -> InvalidInput:
    """Return the error for a provider that is neither shipped nor configured."""
    names = sorted({"scripted", *known})
    close = get_close_matches(provider, names, n=1)
    return bad_name(name, f"one of the providers {', '.join(names)}", suggestion=close[0] if close else "")


def _address_in_name(model: str, place: ModelPlace) -> tuple[ModelPlace, str]:
    """`openai-chat:http://host:port/v1#model` carries its address, which is whose the name is."""
    if not model.startswith(("http://", "https://")) or "#" not in model:
        return place, model
    address, _, model = model.rpartition("#")
    return replace(place, base_url=address), model


def _address(
    service: ServiceFacts | None,
    settings: ProviderSettings,
    place: ModelPlace,
    environment: Mapping[str, str],
) -> tuple[str, Origin]:
    """The narrowest that names one: the model's table, the environment, the config, what ships."""
    if place.base_url:
        return place.base_url, place.origin
    for variable in service.base_url_env if service else ():
        value = environment.get(variable, "").strip()
        if value:
            return _with_scheme(value), "user"
    if settings.base_url:
        return settings.base_url, settings.origin
    return (service.base_url if service else ""), "shipped"


def _with_scheme(value: str) -> str:
    """`OLLAMA_HOST` is written without a scheme, and as the address that a server listens on."""
    address = value if "://" in value else f"http://{value}"
    return address.replace("//0.0.0.0", "//127.0.0.1")


def _facts(facts: ModelFacts, place: ModelPlace) -> ModelFacts:
    if place.context_window is None:
        return facts
    return replace(facts, context_window=place.context_window)


def _dialect(
    service: ServiceFacts | None, settings: ProviderSettings, origin: Origin
) -> Mapping[str, object]:
    shipped = dict(service.dialect) if service else {}
    if service and origin == "shipped":
        shipped.update(service.home_dialect)
    return {**shipped, **settings.dialect}


def _key(
    provider: str, service: ServiceFacts | None, settings: ProviderSettings, config: ProviderConfig
) -> str:
    names = settings.key_env or (service.key_env if service else ())
    for name in names:
        value = config.environment.get(name, "").strip()
        if value:
            return value
    if config.key_store is None or (service is not None and not service.key_required):
        # The keyring is slow to open, and a server of one's own seldom wants a key.
        return ""
    return config.key_store(provider)


def _endpoint(
    service: ServiceFacts | None,
    settings: ProviderSettings,
    config: ProviderConfig,
    *,
    address: str,
    key: str,
    origin: Origin,
) -> Endpoint:
    headers = dict(service.headers) if service else {}
    if origin != "blueprint":
        # What the user wrote for a provider may be a credential: not for an address that a blueprint named.
        headers.update(settings.headers)
    plain = {name: value for name, value in headers.items() if not _VARIABLE.search(value)}
    filled = {
        name: _VARIABLE.sub(lambda found: config.environment.get(found[1], ""), value)
        for name, value in headers.items()
        if name not in plain
    }
    address, basic = without_password(address)
    return Endpoint(
        base_url=address,
        key=_given(key),
        headers=plain,
        secret_headers={**({"authorization": basic} if basic else {}), **filled},
        query={} if origin == "blueprint" else settings.query,
        options=HttpOptions(
            stall_timeout_s=settings.stall_timeout_s or _STALL_S,
            connect_timeout_s=settings.connect_timeout_s or _CONNECT_S,
            proxy=config.proxy,
            ca_file=config.ca_file,
        ),
    )


def _given(key: str) -> Callable[[], str]:
    return lambda: key
