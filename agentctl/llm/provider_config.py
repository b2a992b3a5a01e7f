"""What a person can set about model services, as data: endpoints, keys, limits, retries."""

from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Literal, TypeAlias

from agentctl.clock import Clock, SystemClock
from agentctl.llm.base import LanguageModel
from agentctl.llm.script import Script
from agentctl.protocol.values import JsonObject
from agentctl.records import dataclass

WireProtocol: TypeAlias = Literal["openai-chat", "openai-responses", "anthropic", "gemini", "ollama"]

Origin: TypeAlias = Literal[
    "shipped",  # the provider's own address
    "user",  # the user's config, a flag or the environment
    "blueprint",  # named by a blueprint alone: gets no key, and is asked about first
]

Opener: TypeAlias = Callable[[str], LanguageModel]
"""Opens the model whose name follows the colon: how wiring adds `local:` without this package knowing it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderSettings:
    """One model service. Empty or None members are filled from the shipped catalogue's entry of that name."""

    protocol: WireProtocol | Literal[""] = ""
    base_url: str = ""
    origin: Origin = "user"
    """Who named `base_url`."""
    key_env: tuple[str, ...] = ()
    """Environment variables that may hold the key; the first that is set wins."""
    headers: dict[str, str] = field(default_factory=dict)
    """Sent with every request, over ours. `${NAME}` is replaced from the environment."""
    query: dict[str, str] = field(default_factory=dict)
    """Added to the URL: `api-version` of some gateways."""
    dialect: JsonObject = field(default_factory=dict)
    """Differences of a service that speaks another's protocol; docs/models.md lists the members."""
    stream: bool | None = None
    """False asks for whole replies, for a gateway that cannot stream."""
    max_concurrency: int | None = None
    """Calls at a time, over all agents of the process; None is no limit."""
    requests_per_minute: int | None = None
    stall_timeout_s: float | None = None
    """Seconds without a byte until a call has stalled. None: 300."""
    connect_timeout_s: float | None = None
    """Seconds to make a connection. None: 15."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often and how long a failed call is tried again."""

    attempts: int = 6
    """Tries in all, the first included."""
    connect_attempts: int = 3
    """Tries in all while no connection can be made."""
    first_wait_s: float = 0.5
    """Doubles with each try, plus up to a quarter of jitter; the least wait, whatever a service asks."""
    max_wait_s: float = 8.0
    honoured_wait_s: float = 60.0
    """A `Retry-After` up to this is waited for; a longer one is not."""
    hopeless_wait_s: float = 300.0
    """A `Retry-After` beyond this ends the tries at once, and the failure tells the wait."""
    breaker_failures: int = 8
    """Failures in a row, over all agents, after which a provider is left alone for a while."""
    breaker_rest_s: float = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderConfig:
    """Everything that opening a model depends on. Built by wiring from settings, flags and environment."""

    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    providers: Mapping[str, ProviderSettings] = field(default_factory=dict)
    """`[providers.NAME]` of the user's config, and what a blueprint says about one (origin `blueprint`)."""
    models: Mapping[str, JsonObject] = field(default_factory=dict)
    """`[models."PROVIDER:MODEL"]` of the user's config: facts that add to or override the catalogue."""
    key_store: Callable[[str], str] | None = None
    """Returns the key of a provider from the keyring, or empty; asked when no variable is set."""
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    script: Script | None = None
    """The blueprint's own script: what `scripted` and `scripted:` without a path mean."""
    script_dir: Path = field(default_factory=Path)
    """Where a relative `scripted:PATH` starts."""
    openers: Mapping[str, Opener] = field(default_factory=dict)
    """Further providers by name: `local`."""
    proxy: str = ""
    """Proxy for every provider; empty: the environment's `HTTPS_PROXY`, `HTTP_PROXY`, `NO_PROXY`."""
    ca_file: Path | None = None
    """PEM file of further certificate authorities; None: the environment's `SSL_CERT_FILE`."""
    clock: Clock = field(default_factory=SystemClock)
