"""`[limits]` and `[write_budget]` tables as one layer's ceilings."""

from agentctl.policy.ceilings import Ceilings
from agentctl.policy.rules import ToolNames, parse_rule
from agentctl.tables.declared import LimitsTable, WriteBudgetTable
from agentctl.toml.table import Table


def ceilings_of(limits: LimitsTable, budget: WriteBudgetTable, *, names: ToolNames, table: Table) -> Ceilings:
    """Return what one layer says about limits: the user's, a blueprint's, or a stage's. Pure.

    `table` is the `[limits]` table as written, for the positions of the rules in `[limits.calls]`.

    Raises:
        InvalidInput: a rule in `[limits.calls]` names an unknown tool.
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
        calls=tuple(
            (parse_rule(rule, names=names, position=table.position("calls", rule)), most)
            for rule, most in limits.calls.items()
        ),
    )
