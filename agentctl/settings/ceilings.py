"""`[limits]` and `[write_budget]` tables as one layer's ceilings."""

from agentctl.errors import InvalidInput, UsageError
from agentctl.policy.ceilings import Ceilings
from agentctl.policy.rules import Rule, ToolNames, parse_rule
from agentctl.tables.declared import LimitsTable, WriteBudgetTable
from agentctl.toml.table import Table


def ceilings_of(limits: LimitsTable, budget: WriteBudgetTable, *, names: ToolNames, table: Table) -> Ceilings:
    """Return what one layer says about limits: the user's, a blueprint's, or a stage's. Pure.

    `table` is the `[limits]` table as written, for the positions of the rules in `[limits.calls]`.

    Raises:
        InvalidInput: a rule in `[limits.calls]` names an unknown tool.
        UsageError: one that `--limit` gave does.
    """
    return Ceilings(
        per_call_bytes=budget.per_call,
        per_run_bytes=budget.per_run,
        files=budget.files,
        steps=limits.steps,
        tokens=limits.tokens,
        cost_usd=limits.cost_usd,
        unknown_price=limits.unknown_price,
        wall_time_s=limits.wall_time,
        subagents=limits.subagents,
        depth=limits.depth,
        calls=tuple((_rule(rule, names=names, table=table), most) for rule, most in limits.calls.items()),
    )


def _rule(text: str, *, names: ToolNames, table: Table) -> Rule:
    if table.has("calls", text):
        return parse_rule(text, names=names, position=table.position("calls", text))
    try:
        return parse_rule(text, names=names)
    except InvalidInput as error:
        problem = error.problems[0]
        meant = f" Did you mean {problem.suggestion!r}?" if problem.suggestion else ""
        raise UsageError(f"--limit calls.{text}: {problem.message}.{meant}") from error
