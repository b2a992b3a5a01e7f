"""Which models a run uses: `--model` > `AGENTCTL_MODEL` > config > blueprint > default."""

from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from agentctl.errors import UsageError
from agentctl.records import dataclass
from agentctl.settings.built_in import DEFAULT_MODEL
from agentctl.settings.settings import Settings
from agentctl.tables.declared import ModelTable


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenModel:
    """A `[model]` table and where it stands, such as a stage's."""

    table: ModelTable
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelChoice:
    """The models of a stage, in order of preference, how to call them, and who chose them."""

    table: ModelTable
    """`use` is never empty."""
    source: str
    """`--model`, `environment AGENTCTL_MODEL`, `FILE:LINE:COLUMN`, or `built-in`."""
    from_blueprint: bool
    """Whether the blueprint named them: its `base_url` then gets no key and asks first."""


def choose_model(settings: Settings, *, agent: str, written: Sequence[WrittenModel] = ()) -> ModelChoice:
    """Return the models for a stage. `written` are the blueprint's tables, the stage's first.

    Sampling parameters are taken field by field from the narrowest table that sets them, whoever named the
    models; address, window and extra members belong to the models they were written for.

    Raises:
        UsageError: a model is not among the user's `[security] allowed_models`.
    """
    users = _of_the_user(settings, agent)
    chosen = next((one for one in (*users, *written) if one.table.use), None)
    if chosen is None:
        chosen = WrittenModel(table=ModelTable(use=(DEFAULT_MODEL,)), source="built-in")
    _check_allowed(settings, chosen)
    table = chosen.table
    service = ModelTable(
        use=table.use, base_url=table.base_url, context_window=table.context_window, extra=table.extra
    )
    for one in (*written, *users):
        service = _filled(service, one.table)
    return ModelChoice(
        table=service, source=chosen.source, from_blueprint=any(one is chosen for one in written)
    )


def _of_the_user(settings: Settings, agent: str) -> tuple[WrittenModel, ...]:
    """Return the user's tables, strongest first: for this invocation, for this agent, for every run."""
    model = settings.config.model
    general = WrittenModel(table=model, source=settings.source_of("model", "use"))
    found = []
    if any(override.path == ("model", "use") for override in settings.overrides):
        now = replace(model, base_url="", context_window=None, extra={})  # those are of the config's models
        found.append(WrittenModel(table=now, source=general.source))
    own = settings.config.agents.get(agent)
    if own is not None and own.model is not None:
        source = str(settings.table.position("agents", agent, "model"))
        found.append(WrittenModel(table=own.model, source=source))
    return (*found, general)


def _filled(table: ModelTable, further: ModelTable) -> ModelTable:
    """Return `table` with the sampling parameters that it leaves open taken from `further`."""
    return replace(
        table,
        temperature=further.temperature if table.temperature is None else table.temperature,
        max_output_tokens=table.max_output_tokens or further.max_output_tokens,
        reasoning_effort=table.reasoning_effort or further.reasoning_effort,
        stop=table.stop or further.stop,
        parallel_tool_calls=(
            further.parallel_tool_calls if table.parallel_tool_calls is None else table.parallel_tool_calls
        ),
        cache=further.cache if table.cache is None else table.cache,
    )


def _check_allowed(settings: Settings, chosen: WrittenModel) -> None:
    allowed = settings.config.security.allowed_models
    for name in chosen.table.use if allowed else ():
        if not any(fnmatchcase(name, pattern) for pattern in allowed):
            raise UsageError(
                f"The model {name!r} ({chosen.source}) is not one that the config allows.",
                hint=f"security.allowed_models at {settings.source_of('security', 'allowed_models')} "
                f"has {', '.join(allowed)}",
            )
