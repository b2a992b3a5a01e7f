"""Which stage comes next: edges that are open, edges the harness takes, and what a stage's plan is."""

from agentctl.agent.context import Edge, Prices, StageEnd, StagePlan
from agentctl.agent.snapshot import RunSnapshot
from agentctl.blueprint.model import Blueprint, StageTable, TransitionTable
from agentctl.llm.base import LanguageModel, ModelRequest
from agentctl.records import dataclass
from agentctl.run.fan_out import items_schema
from agentctl.tables.declared import ModelTable


@dataclass(frozen=True, slots=True, kw_only=True)
class StageModel:
    """A stage's model, and a request that carries the parameters set for it."""

    model: LanguageModel
    prices: Prices
    request: ModelRequest
    notice: str = ""
    """What a person should know about the choice, or empty."""


def open_edges(blueprint: Blueprint, stage: StageTable, snapshot: RunSnapshot) -> tuple[Edge, ...]:
    """Return the transitions the model may take now, in file order.

    Those with a harness condition are not among them, nor those to a stage whose revisits are used up.
    """
    return tuple(
        Edge(target=edge.to, hint=edge.hint)
        for edge in stage.transitions.values()
        if edge.condition is None and _may_enter(blueprint.stages[edge.to], snapshot)
    )


def next_transition(
    blueprint: Blueprint, stage: StageTable, snapshot: RunSnapshot, end: StageEnd
) -> TransitionTable | None:
    """Return the edge that `end` takes, or None when the run ends here.

    A choice or an answer takes the edge it names; `error`, `max_steps`, `stuck` and `dead_end` take the
    first open edge with that condition.
    """
    if end.reason in {"transition", "answer"}:
        return stage.transitions.get(end.target)
    for edge in stage.transitions.values():
        if edge.condition == end.reason and _may_enter(blueprint.stages[edge.to], snapshot):
            return edge
    return None


def _may_enter(stage: StageTable, snapshot: RunSnapshot) -> bool:
    visits = snapshot.visits.get(stage.name, 0)
    return stage.max_revisits is None or visits <= stage.max_revisits


def plan_stage(
    blueprint: Blueprint, stage: StageTable, snapshot: RunSnapshot, model: StageModel
) -> StagePlan:
    """Return the plan of a stage as it stands now: prompt filled in, open edges, request parameters."""
    prompt = "\n\n".join(text for text in (blueprint.agent.prompt, stage.prompt) if text)
    inputs = snapshot.started.inputs if snapshot.started else {}
    return StagePlan(
        name=stage.name,
        index=stage.index,
        prompt=fill_inputs(prompt, inputs),
        model=model.model,
        prices=model.prices,
        edges=open_edges(blueprint, stage, snapshot),
        max_steps=stage.max_steps,
        tool_concurrency=stage.tool_concurrency or blueprint.agent.tool_concurrency,
        output_schema=items_schema(stage.fan_out) if stage.fan_out is not None else stage.output,
        request=model.request,
        accepts_messages=stage.accepts_messages,
        compact_at=blueprint.context.compact_at,
        keep_recent=blueprint.context.keep_recent,
    )


def fill_inputs(prompt: str, inputs: dict[str, str]) -> str:
    """Return `prompt` with `{inputs.NAME}` replaced; anything else in braces stays as written."""
    for name, value in inputs.items():
        prompt = prompt.replace(f"{{inputs.{name}}}", value)
    return prompt


def request_parameters(table: ModelTable) -> ModelRequest:
    """Return a request that carries only the parameters a blueprint sets."""
    return ModelRequest(
        system="",
        messages=(),
        parallel_tool_calls=table.parallel_tool_calls,
        max_output_tokens=table.max_output_tokens,
        temperature=table.temperature,
        reasoning_effort=table.reasoning_effort or "",
        stop=table.stop,
        cache=table.cache is not False,
        extra=table.extra,
    )
