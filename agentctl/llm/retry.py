"""Trying again: waits with jitter, `Retry-After`, a breaker and limits shared by all agents of a provider."""

import math
import random
from dataclasses import replace

import anyio

from agentctl.clock import Clock
from agentctl.llm.base import Emit, FailureDetails, LanguageModel, ModelCallFailed, ModelRequest
from agentctl.llm.concessions import refused_setting, refused_thoughts, without_settings
from agentctl.llm.provider_config import ProviderSettings, RetryPolicy
from agentctl.protocol.events import ModelRetried
from agentctl.protocol.messages import AssistantMessage

_INCOMPLETE_TRIES = 3
_MINUTE_S = 60.0
_TRIPPING = frozenset({"server", "overloaded", "transport", "stalled"})


class SharedLimits:
    """What all agents of a process share of one provider: calls at a time, calls a minute, rests, breaker."""

    def __init__(self, settings: ProviderSettings, policy: RetryPolicy, clock: Clock) -> None:
        self._policy = policy
        self._clock = clock
        limit = settings.max_concurrency
        self._slots = anyio.Semaphore(limit) if limit is not None else None
        rate = settings.requests_per_minute
        self._gap_s = _MINUTE_S / rate if rate else 0.0
        self._next_start = -math.inf
        self._failures = 0
        self._open_until = -math.inf

    async def __aenter__(self) -> None:
        """Wait for a free slot and for this call's turn.

        Raises:
            ModelCallFailed: the breaker is open.
        """
        rest = self._open_until - self._clock.monotonic()
        if rest > 0:
            raise ModelCallFailed(
                f"the provider failed {self._failures} times in a row and is left alone for {rest:.0f} s",
                details=FailureDetails(
                    kind="overloaded",
                    retryable=True,
                    next_model=True,
                    retry_after_s=rest,
                    code="breaker_open",
                ),
            )
        if self._slots is not None:
            await self._slots.acquire()
        try:
            await self._take_turn()
        except BaseException:
            if self._slots is not None:
                self._slots.release()
            raise

    async def __aexit__(self, *_: object) -> None:
        """Free the slot."""
        if self._slots is not None:
            self._slots.release()

    def succeeded(self) -> None:
        """A call was answered: the provider is well."""
        self._failures = 0

    def failed(self, details: FailureDetails) -> None:
        """A call failed: a wait that the service asked for holds for all; failures open the breaker."""
        now = self._clock.monotonic()
        wait = details.retry_after_s
        if details.kind in {"rate_limit", "overloaded"} and wait and wait <= self._policy.honoured_wait_s:
            self._next_start = max(self._next_start, now + wait)
        if details.kind in _TRIPPING and details.code != "breaker_open":
            self._failures += 1
            if self._failures >= self._policy.breaker_failures:
                self._open_until = now + self._policy.breaker_rest_s

    async def _take_turn(self) -> None:
        now = self._clock.monotonic()
        start = max(now, self._next_start)
        if self._gap_s:
            self._next_start = start + self._gap_s
        if start > now:
            await self._clock.sleep(start - now)


class RetryingModel:
    """A model whose failed tries are repeated, each visible as a `ModelRetried`."""

    def __init__(
        self, model: LanguageModel, *, limits: SharedLimits, policy: RetryPolicy, clock: Clock
    ) -> None:
        self._model = model
        self._limits = limits
        self._policy = policy
        self._clock = clock
        self._refused: set[str] = set()
        """Settings that this model turned out not to have."""
        self._random = random.Random()  # noqa: S311 - spreads retries; nothing secret

    @property
    def name(self) -> str:
        """The `provider:model` name."""
        return self._model.name

    @property
    def context_window(self) -> int | None:
        """As the model says."""
        return self._model.context_window

    async def reply(self, request: ModelRequest, emit: Emit) -> AssistantMessage:
        """Return the reply of the first try that succeeds.

        A reply that ended without its terminator counts as failed; when that happens three times, it is
        returned with stop `incomplete`.

        Raises:
            ModelCallFailed: the last try's failure.
        """
        return await self._try(request, emit, patient=True)

    async def reply_or_yield(self, request: ModelRequest, emit: Emit) -> AssistantMessage:
        """Return as `reply`, but give up at once where another model could take over (open breaker).

        Raises:
            ModelCallFailed: the last try's failure.
        """
        return await self._try(request, emit, patient=False)

    async def aclose(self) -> None:
        """Close the model."""
        await self._model.aclose()

    async def _try(self, request: ModelRequest, emit: Emit, *, patient: bool) -> AssistantMessage:
        attempt = 0
        request = without_settings(request, self._refused)
        while True:
            attempt += 1
            try:
                async with self._limits:
                    message = await self._model.reply(request, emit)
            except ModelCallFailed as failure:
                self._limits.failed(failure.details)
                conceded = self._concession(request, failure)
                if conceded is not None:
                    request, reason = conceded
                    emit(ModelRetried(model=self.name, reason=reason, wait_s=0.0, attempt=attempt))
                    continue
                wait = self._wait(failure.details, attempt, patient=patient)
                if wait is None:
                    raise _told(failure, self._policy) from failure
                reason, used = failure.message, failure.details.usage
            else:
                self._limits.succeeded()
                if message.stop != "incomplete" or attempt >= min(_INCOMPLETE_TRIES, self._policy.attempts):
                    return message
                wait = self._backoff(attempt)
                reason, used = "the reply ended without its terminator", message.usage
                if not used.input_tokens and not used.output_tokens:
                    used = None
            retried = ModelRetried(
                model=self.name, reason=reason, wait_s=round(wait, 3), attempt=attempt, usage=used
            )
            emit(retried)
            await self._clock.sleep(wait)

    def _concession(self, request: ModelRequest, failure: ModelCallFailed) -> tuple[ModelRequest, str] | None:
        """A run must not die of thoughts that its own service sealed, or of a setting that a model lacks."""
        bare = refused_thoughts(request, failure)
        if bare is not None:
            return bare, f"{failure.message}; once more without the thoughts of earlier replies"
        name = refused_setting(request, failure)
        if not name:
            return None
        self._refused.add(name)
        return without_settings(request, {name}), f"{failure.message}; once more without `{name}`"

    def _wait(self, details: FailureDetails, attempt: int, *, patient: bool) -> float | None:
        """Return the seconds until the next try, or None when there is none."""
        policy = self._policy
        most = policy.connect_attempts if details.code == "connect" else policy.attempts
        if not details.retryable or attempt >= most or (details.next_model and not patient):
            return None
        asked = details.retry_after_s
        if asked is not None and asked > policy.hopeless_wait_s:
            return None
        backoff = self._backoff(attempt)
        if asked is not None and asked <= policy.honoured_wait_s:
            return max(asked, backoff)
        return backoff

    def _backoff(self, attempt: int) -> float:
        wait = min(self._policy.first_wait_s * 2.0 ** (attempt - 1), self._policy.max_wait_s)
        return wait * (1 + self._random.random() / 4)


def _told(failure: ModelCallFailed, policy: RetryPolicy) -> ModelCallFailed:
    """A hopeless wait stands in the message, and another model may take over."""
    wait = failure.details.retry_after_s
    if wait is None or wait <= policy.hopeless_wait_s:
        return failure
    return ModelCallFailed(
        f"{failure.message} (the service asks to wait {wait:.0f} s)",
        details=replace(failure.details, next_model=True),
    )
