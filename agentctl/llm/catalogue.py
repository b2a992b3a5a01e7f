"""What is known about models and services: windows, prices, addresses. Data in config/models.toml."""

import tomllib
from collections.abc import Mapping
from dataclasses import field, fields
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from agentctl.errors import InvalidInput, Position, Problem
from agentctl.locations import shipped_dir
from agentctl.protocol.messages import Usage
from agentctl.protocol.values import JsonObject, JsonValue
from agentctl.records import dataclass

WireName: TypeAlias = Literal["openai-chat", "openai-responses", "anthropic", "gemini", "ollama"]
Thinking: TypeAlias = Literal["", "none", "adaptive", "budget", "level", "effort"]

_MILLION = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """US dollars a million tokens. None is unknown, which is not zero."""

    input: float
    output: float
    cache_read: float | None = None
    """None: as `input`, so that a cost is never told too low."""
    cache_write: float | None = None
    """None: as `input`."""
    long_from: int | None = None
    """Prompts with more tokens than this cost `long` for all of their tokens."""
    long: "Price | None" = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """What is known about one model."""

    context_window: int | None = None
    max_output_tokens: int | None = None
    price: Price | None = None
    thinking: Thinking = ""
    """How reasoning is asked for; empty is unknown."""
    least_thinking: int | None = None
    """The smallest budget of thoughts that the service takes, where thinking cannot be turned off."""
    efforts: tuple[str, ...] = ()
    """The words for effort that the service takes for this model, rising, where they are not all of ours."""
    bound_thinking: bool | None = None
    """True: the service refuses thoughts whose prefix has changed, unless it is told to drop them."""
    forced_calls: bool | None = None
    """False: the service refuses a choice that forces a call of this model, so none is sent."""
    images: bool | None = None
    tools: bool | None = None
    sampling: bool | None = None
    """False: the service refuses a temperature for this model, so none is sent."""
    as_of: str = ""
    """The day these facts were read, ISO 8601."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceFacts:
    """What is known about one provider."""

    protocol: WireName
    base_url: str
    base_url_env: tuple[str, ...] = ()
    key_env: tuple[str, ...] = ()
    key_required: bool = True
    headers: dict[str, str] = field(default_factory=dict)
    dialect: JsonObject = field(default_factory=dict)
    home_dialect: JsonObject = field(default_factory=dict)
    """What holds at the shipped address alone, and not for whoever else speaks the protocol."""
    own_machine: bool = False
    """Software that one runs oneself: what it answers on a loopback address costs nothing."""
    models_path: str = ""
    """Where the service lists its models, after the base URL; empty where it cannot be asked."""
    title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """Everything known, looked up by name."""

    services: Mapping[str, ServiceFacts]
    entries: Mapping[str, JsonObject]
    """`provider:model` (the model may hold `*`) → facts as written."""

    def facts(self, name: str) -> ModelFacts:
        """Return what is known about the model `provider:model`; unknown members stay unknown.

        An exact entry goes over globs, and among globs the longest speaks. An entry's `same_as` names a model
        whose facts fill what the entry leaves out: how an alias gets its price.
        """
        return _facts(self._merged(name, frozenset()))

    def models_of(self, provider: str) -> tuple[str, ...]:
        """Return the names known for a provider, sorted: exact ones, and those that stand for versions."""
        names = {
            name.rstrip("*")
            for name, entry in self.entries.items()
            if name.startswith(f"{provider}:") and ("*" not in name or "price" in entry)
        }
        return tuple(sorted(names))

    def _merged(self, name: str, seen: frozenset[str]) -> JsonObject:
        found: JsonObject = {}
        globs = [pattern for pattern in self.entries if "*" in pattern and fnmatchcase(name, pattern)]
        for pattern in [*sorted(globs, key=len), name]:
            found = {**found, **self.entries.get(pattern, {})}
        other = found.get("same_as")
        if isinstance(other, str) and other not in seen:
            found = {**self._merged(other, seen | {name}), **found}
        return found


def load_catalogue(user_models: Mapping[str, JsonObject], *, path: Path | None = None) -> Catalogue:
    """Return the shipped catalogue with the user's entries over it. May block: reads one file.

    Raises:
        InvalidInput: the file, or an entry of the user's, is not as described in docs/models.md.
    """
    place = path or shipped_dir("config") / "models.toml"
    table = tomllib.loads(place.read_text(encoding="utf-8"))
    services = {name: _service(one) for name, one in _objects(table.get("providers")).items()}
    entries = _objects(table.get("models"))
    for name, entry in user_models.items():
        _check(name, entry)
        entries[name] = {**entries.get(name, {}), **entry}
    return Catalogue(services=services, entries=entries)


def cost_of(usage: Usage, facts: ModelFacts) -> float | None:
    """Return the price of one call in US dollars, or None where the model has none. Pure."""
    price = facts.price
    if price is None:
        return None
    if price.long is not None and price.long_from is not None and usage.input_tokens > price.long_from:
        price = price.long
    read = price.input if price.cache_read is None else price.cache_read
    write = price.input if price.cache_write is None else price.cache_write
    plain = max(0, usage.input_tokens - usage.cache_read_tokens - usage.cache_write_tokens)
    total = plain * price.input + usage.output_tokens * price.output
    total += usage.cache_read_tokens * read + usage.cache_write_tokens * write
    return total / _MILLION


def free(facts: ModelFacts) -> bool:
    """Tell whether a model is known to cost nothing. Pure."""
    return facts.price is not None and not facts.price.input and not facts.price.output


def _facts(entry: JsonObject) -> ModelFacts:
    price = entry.get("price")
    return ModelFacts(
        context_window=_whole(entry.get("context_window")),
        max_output_tokens=_whole(entry.get("max_output_tokens")),
        price=_price(price) if isinstance(price, dict) else None,
        thinking=next((word for word in get_args(Thinking) if word == entry.get("thinking")), ""),
        least_thinking=_whole(entry.get("least_thinking")),
        efforts=_texts(entry.get("efforts")),
        bound_thinking=_flag(entry.get("bound_thinking")),
        forced_calls=_flag(entry.get("forced_calls")),
        images=_flag(entry.get("images")),
        tools=_flag(entry.get("tools")),
        sampling=_flag(entry.get("sampling")),
        as_of=str(entry.get("as_of", "")),
    )


def _price(entry: JsonObject) -> Price | None:
    taken, given = _number(entry.get("input")), _number(entry.get("output"))
    if taken is None or given is None:
        return None
    long = entry.get("long")
    return Price(
        input=taken,
        output=given,
        cache_read=_number(entry.get("cache_read")),
        cache_write=_number(entry.get("cache_write")),
        long_from=_whole(long.get("above")) if isinstance(long, dict) else None,
        long=_price(long) if isinstance(long, dict) else None,
    )


def _service(entry: JsonObject) -> ServiceFacts:
    protocol = next(word for word in get_args(WireName) if word == entry["protocol"])
    return ServiceFacts(
        protocol=protocol,
        base_url=str(entry["base_url"]),
        base_url_env=_texts(entry.get("base_url_env")),
        key_env=_texts(entry.get("key_env")),
        key_required=entry.get("key_required") is not False,
        headers={name: str(value) for name, value in _object(entry.get("headers")).items()},
        dialect=_object(entry.get("dialect")),
        home_dialect=_object(entry.get("home_dialect")),
        own_machine=entry.get("own_machine") is True,
        models_path=str(entry.get("models_path", "")),
        title=str(entry.get("title", "")),
    )


def _check(name: str, entry: JsonObject) -> None:
    known = {item.name for item in fields(ModelFacts)} | {"same_as"}
    wrong = [key for key in entry if key not in known]
    if ":" not in name:
        wrong.append(name)
    if wrong:
        key = f"models.{name!r}.{wrong[0]}"
        message = f"expected a table named provider:model with {', '.join(sorted(known))}"
        raise InvalidInput((Problem(position=Position(file="config.toml"), key=key, message=message),))


def _object(value: JsonValue) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _objects(value: JsonValue) -> dict[str, JsonObject]:
    return {name: one for name, one in _object(value).items() if isinstance(one, dict)}


def _texts(value: JsonValue) -> tuple[str, ...]:
    return tuple(str(one) for one in value) if isinstance(value, list) else ()


def _whole(value: JsonValue) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _number(value: JsonValue) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _flag(value: JsonValue) -> bool | None:
    return value if isinstance(value, bool) else None
