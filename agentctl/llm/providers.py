"""Opens models by name. One `Providers` a process: its limits, breakers and connections are shared."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from agentctl.errors import InvalidInput, Position, Problem, ProviderError
from agentctl.llm.base import Emit, LanguageModel, ModelCallFailed, ModelRequest
from agentctl.llm.provider_config import ProviderConfig, ProviderSettings
from agentctl.llm.retry import RetryingModel, SharedLimits
from agentctl.llm.script import load_script
from agentctl.llm.scripted import ScriptedModel
from agentctl.protocol.events import ModelSwitched
from agentctl.protocol.messages import AssistantMessage


def open_models(names: Sequence[str], config: ProviderConfig) -> LanguageModel:
    """Return one model that answers with the first of `names` that can. Opens no connection yet.

    For a process with several agents build one `Providers` and call its `open`, so that limits are shared.

    Raises:
        InvalidInput: a name is not `provider:model`, or its provider is not known.
        ProviderError: no key for a provider that needs one.
    """
    providers = Providers(config)
    return ModelList(providers.open(names).models, owner=providers)


class Providers:
    """Everything that agents of one process share of model services."""

    def __init__(self, config: ProviderConfig) -> None:
        self._config = config
        self._limits: dict[str, SharedLimits] = {}
        self._scripts: dict[str, ScriptedModel] = {}
        self._opened: dict[str, RetryingModel] = {}

    def open(self, names: Sequence[str]) -> "ModelList":
        """Return one model for an ordered fallback list. Names are `provider:model`.

        Raises:
            InvalidInput: as `open_models`.
            ProviderError: as `open_models`.
        """
        if not names:
            raise _bad_name("", "at least one model, written provider:model")
        return ModelList([self._model(name) for name in names])

    def already_answered(self, response_ids: Iterable[str]) -> None:
        """Tell scripted models which replies the journal holds; call before the first step of a resume."""
        known = list(response_ids)
        for model in self._scripts.values():
            model.already_answered(known)

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
            await model.aclose()

    def _model(self, name: str) -> RetryingModel:
        if name not in self._opened:
            provider, _, rest = name.partition(":")
            policy, clock = self._config.retry, self._config.clock
            limits = self._limits.setdefault(provider, SharedLimits(ProviderSettings(), policy, clock))
            model = self._raw(name, provider, rest)
            self._opened[name] = RetryingModel(model, limits=limits, policy=policy, clock=clock)
        return self._opened[name]

    def _raw(self, name: str, provider: str, rest: str) -> LanguageModel:
        if provider == "scripted":
            return self._scripted(rest)
        if provider in self._config.openers:
            return self._config.openers[provider](rest)
        known = ["scripted", *self._config.openers]
        close = get_close_matches(provider, known, n=1)
        raise _bad_name(
            name, f"one of the providers {', '.join(known)}", suggestion=close[0] if close else ""
        )

    def _scripted(self, path: str) -> ScriptedModel:
        if path not in self._scripts:
            if not path:
                if self._config.script is None:
                    raise _bad_name(
                        "scripted:", "scripted:PATH, since the blueprint has no script of its own"
                    )
                script = self._config.script
            else:
                script = load_script(self._config.script_dir / path)
            self._scripts[path] = ScriptedModel(script, name=f"scripted:{path}", clock=self._config.clock)
        return self._scripts[path]


class ModelList:
    """An ordered fallback list as one model. Where one fails for good, the next takes over."""

    def __init__(self, models: Sequence[RetryingModel], *, owner: Providers | None = None) -> None:
        self._models = tuple(models)
        self._owner = owner

    @property
    def models(self) -> tuple[RetryingModel, ...]:
        """The models, in order."""
        return self._models

    @property
    def name(self) -> str:
        """The name of the first model."""
        return self._models[0].name

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all models, in order."""
        return tuple(model.name for model in self._models)

    @property
    def context_window(self) -> int | None:
        """The smallest that is known: a request that fits here fits all."""
        return min((one for model in self._models if (one := model.context_window) is not None), default=None)

    async def reply(self, request: ModelRequest, emit: Emit) -> AssistantMessage:
        """Return the reply of the first model that gives one; each change is visible as a `ModelSwitched`.

        Raises:
            ModelCallFailed: kind `context_length` alone: the caller can make the request shorter.
            ProviderError: every model failed.
        """
        failures: list[ModelCallFailed] = []
        for model, successor in zip(self._models, [*self._models[1:], None], strict=True):
            try:
                if successor is None:
                    return await model.reply(request, emit)
                return await model.reply_or_yield(request, emit)
            except ModelCallFailed as failure:
                if failure.details.kind == "context_length":
                    raise
                failures.append(failure)
                if successor is None or not _may_go_on(failure):
                    raise _for_good(self._models, failures) from failure
                emit(ModelSwitched(model=model.name, next_model=successor.name, reason=failure.message))
        raise AssertionError("a model list has at least one model")

    async def aclose(self) -> None:
        """Close the connections if nobody shares them; else `Providers.aclose` does."""
        if self._owner is not None:
            await self._owner.aclose()


def _may_go_on(failure: ModelCallFailed) -> bool:
    return failure.details.next_model or failure.details.retryable


def _for_good(models: Sequence[RetryingModel], failures: Sequence[ModelCallFailed]) -> ProviderError:
    tried = [f"{model.name}: {failure.message}" for model, failure in zip(models, failures, strict=False)]
    last = failures[-1].details
    hint = ""
    if last.kind == "auth":
        hint = "set the key in the environment or with `agentctl auth set PROVIDER`, then `agentctl resume`"
    elif last.retryable:
        hint = "`agentctl resume` goes on where the run stopped"
    return ProviderError("; ".join(tried), hint=hint)


def _bad_name(name: str, expected: str, *, suggestion: str = "") -> InvalidInput:
    problem = Problem(
        position=Position(file="model"),
        key=name,
        message=f"the model name {name!r} is not valid: expected {expected}",
        suggestion=suggestion,
    )
    return InvalidInput((problem,), hint="models are named provider:model; `agentctl models list` shows them")
