"""Opens models by name. One `Providers` a process: its limits, breakers and connections are shared."""

from collections.abc import Iterable, Sequence

from agentctl.errors import ProviderError
from agentctl.llm.base import Emit, LanguageModel, ModelCallFailed, ModelRequest
from agentctl.llm.catalogue import Catalogue, ModelFacts, cost_of, load_catalogue
from agentctl.llm.endpoints import ModelPlace, Resolved, bad_name, resolve
from agentctl.llm.failures import plain_failure
from agentctl.llm.http import Http
from agentctl.llm.provider_config import ProviderConfig, ProviderSettings
from agentctl.llm.retry import RetryingModel, SharedLimits
from agentctl.llm.script import load_script
from agentctl.llm.scripted import ScriptedModel
from agentctl.llm.wire import WireModel
from agentctl.protocol.events import ModelSwitched
from agentctl.protocol.messages import AssistantMessage, Usage


def open_models(names: Sequence[str], config: ProviderConfig) -> LanguageModel:
    """Return one model that answers with the first of `names` that can. Opens no connection yet.

    For a process with several agents build one `Providers` and call its `open`, so that limits are shared.

    Raises:
        InvalidInput: a name is not `provider:model`, or its provider is not known.
        ProviderError: no model of the list has the key that it needs.
    """
    providers = Providers(config)
    return ModelList(providers.open(names, ModelPlace(origin="user")).models, owner=providers)


class Providers:
    """Everything that agents of one process share of model services."""

    def __init__(self, config: ProviderConfig) -> None:
        self._config = config
        self._http = Http(config.environment)
        self._catalogue: Catalogue | None = None
        self._limits: dict[str, SharedLimits] = {}
        self._scripts: dict[str, ScriptedModel] = {}
        self._opened: dict[tuple[str, ModelPlace], OneModel] = {}

    @property
    def catalogue(self) -> Catalogue:
        """What is known about models; read at first use. May block."""
        if self._catalogue is None:
            self._catalogue = load_catalogue(self._config.models)
        return self._catalogue

    def open(self, names: Sequence[str], place: ModelPlace | None = None) -> "ModelList":
        """Return one model for an ordered fallback list. Names are `provider:model`. May block.

        Without a `place` the names count as a blueprint's, whose addresses get no key.
        A model without a key is passed over when it is called, as if the service had refused it.

        Raises:
            InvalidInput: as `open_models`.
            ProviderError: as `open_models`.
        """
        if not names:
            raise bad_name("", "at least one model, written provider:model")
        place = place or ModelPlace(origin="blueprint")
        models = [self._model(name, place) for name in names]
        if all(model.missing_key for model in models):
            raise ProviderError(
                f"No model can be called: {'; '.join(model.missing_key for model in models)}.",
                hint="`--model` takes another one; `agentctl models list` shows what is configured",
            )
        return ModelList(models)

    def already_answered(self, response_ids: Iterable[str], *, run: str = "") -> None:
        """Tell scripted models which replies the journal holds; call before the first step of a resume."""
        known = list(response_ids)
        for model in self._scripts.values():
            model.already_answered(known, run=run)

    def check_all_read(self) -> None:
        """Pass if every reply of every script was asked for; call when a run has finished.

        Raises:
            ProviderError: some were not.
        """
        for model in self._scripts.values():
            model.check_all_read()

    async def aclose(self) -> None:
        """Close all connections. Idempotent."""
        for model in self._opened.values():
            await model.model.aclose()
        await self._http.aclose()

    def _model(self, name: str, place: ModelPlace) -> "OneModel":
        if self._without_address(name):
            # No address is of concern to a script or a local model, and each is there once.
            place = ModelPlace()
        key = (name, place)
        if key not in self._opened:
            self._opened[key] = self._open_one(name, place)
        return self._opened[key]

    def _open_one(self, name: str, place: ModelPlace) -> "OneModel":
        provider, _, rest = name.partition(":")
        policy, clock = self._config.retry, self._config.clock
        missing, facts, tells_cost = "", ModelFacts(), provider in {"scripted", "local"}
        resolved = self._resolve(name, place)
        model: LanguageModel
        if resolved is None:
            model = self._scripted(rest) if provider == "scripted" else self._config.openers[provider](rest)
            settings = self._config.providers.get(provider, ProviderSettings())
        else:
            settings, facts, missing = resolved.settings, resolved.target.facts, resolved.missing_key
            tells_cost = resolved.target.says("tells_cost")
            wire = WireModel(resolved.protocol, resolved.target, resolved.endpoint, self._http)
            model = _Keyless(wire, missing) if missing else wire
        if provider not in self._limits:
            self._limits[provider] = SharedLimits(settings, policy, clock)
        retrying = RetryingModel(model, limits=self._limits[provider], policy=policy, clock=clock)
        return OneModel(retrying, facts=facts, tells_cost=tells_cost, missing_key=missing)

    def _without_address(self, name: str) -> bool:
        """Whether this is a script, or a model that wiring adds: not reached over the network by us."""
        provider, separator, rest = name.partition(":")
        if provider == "scripted":
            return bool(separator) or name == "scripted"
        return provider in self._config.openers and bool(rest)

    def _resolve(self, name: str, place: ModelPlace) -> Resolved | None:
        if self._without_address(name):
            return None
        return resolve(name, place, self._config, self.catalogue)

    def _scripted(self, path: str) -> ScriptedModel:
        if path not in self._scripts:
            if path:
                script = load_script(self._config.script_dir / path)
            elif self._config.script is not None:
                script = self._config.script
            else:
                raise bad_name("scripted:", "scripted:PATH, since the blueprint has no script of its own")
            self._scripts[path] = ScriptedModel(script, name=f"scripted:{path}", clock=self._config.clock)
        return self._scripts[path]


class OneModel:
    """One model of a list, with what is known about it."""

    def __init__(
        self, model: RetryingModel, *, facts: ModelFacts, tells_cost: bool, missing_key: str
    ) -> None:
        self.model = model
        self.facts = facts
        self.missing_key = missing_key
        self.priced = tells_cost or facts.price is not None
        """Whether its calls have a known cost: by the catalogue, or since the service tells it."""


class ModelList:
    """An ordered fallback list as one model. Where one fails for good, the next takes over."""

    def __init__(self, models: Sequence[OneModel], *, owner: Providers | None = None) -> None:
        self._models = tuple(models)
        self._owner = owner

    @property
    def models(self) -> tuple[OneModel, ...]:
        """The models, in order."""
        return self._models

    @property
    def name(self) -> str:
        """The name of the first model."""
        return self._models[0].model.name

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all models, in order."""
        return tuple(one.model.name for one in self._models)

    @property
    def context_window(self) -> int | None:
        """The smallest that is known: a request that fits here fits all."""
        known = (one.model.context_window for one in self._models)
        return min((window for window in known if window is not None), default=None)

    @property
    def unpriced(self) -> tuple[str, ...]:
        """The names of those whose calls have no known cost: what a money cap has to refuse unless told."""
        return tuple(one.model.name for one in self._models if not one.priced)

    def estimate_usd(self, input_tokens: int, output_tokens: int) -> float | None:
        """Return the most that a call of this size costs with any model of the list; None where not known."""
        usage = Usage(input_tokens=input_tokens, output_tokens=output_tokens)
        costs = [cost_of(usage, one.facts) for one in self._models]
        return max((cost for cost in costs if cost is not None), default=None)

    async def reply(self, request: ModelRequest, emit: Emit) -> AssistantMessage:
        """Return the reply of the first model that gives one; each change is visible as a `ModelSwitched`.

        Raises:
            ModelCallFailed: kind `context_length` alone: the caller can make the request shorter.
            ProviderError: every model failed.
        """
        failures: list[tuple[str, ModelCallFailed]] = []
        for one, successor in zip(self._models, [*self._models[1:], None], strict=True):
            try:
                if successor is None:
                    return await one.model.reply(request, emit)
                return await one.model.reply_or_yield(request, emit)
            except ModelCallFailed as failure:
                if failure.details.kind == "context_length":
                    raise
                failures.append((one.model.name, failure))
                if successor is None or not (failure.details.next_model or failure.details.retryable):
                    raise _for_good(failures) from failure
                reason = failure.message
                emit(ModelSwitched(model=one.model.name, next_model=successor.model.name, reason=reason))
        raise AssertionError("a model list has at least one model")

    async def aclose(self) -> None:
        """Close the connections if nobody shares them; else `Providers.aclose` does."""
        if self._owner is not None:
            await self._owner.aclose()


class _Keyless:
    """A model whose key is missing: fails as if the service had refused it, without a request."""

    def __init__(self, model: LanguageModel, missing: str) -> None:
        self._model = model
        self._missing = missing

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def context_window(self) -> int | None:
        return self._model.context_window

    async def reply(self, request: ModelRequest, emit: Emit) -> AssistantMessage:
        del request, emit
        raise plain_failure("auth", self._missing, code="no_key")

    async def aclose(self) -> None:
        await self._model.aclose()


def _for_good(failures: Sequence[tuple[str, ModelCallFailed]]) -> ProviderError:
    told = []
    for name, failure in failures:
        request_id = failure.details.request_id
        told.append(f"{name}: {failure.message}" + (f" (request id {request_id})" if request_id else ""))
    last = failures[-1][1].details
    hint = "`agentctl resume last` goes on where the run stopped; `--model` takes another model"
    if last.kind == "auth":
        hint = (
            "set the key in the environment or with `agentctl auth set PROVIDER`, then `agentctl resume last`"
        )
    return ProviderError("; ".join(told), hint=hint)
