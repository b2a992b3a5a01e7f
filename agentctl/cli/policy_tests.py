"""`[[policy_tests]]`: each call is prepared like a real one and judged by the real policy, and never run."""

from collections.abc import Sequence

from agentctl.errors import Position, Problem, ToolError
from agentctl.records import dataclass
from agentctl.run.hypothetical import Judge
from agentctl.tables.declared import PolicyTestTable
from agentctl.toml.table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyTestResult:
    """What became of one policy test."""

    call: str
    expect: str
    got: str
    """The verdict, or empty where the call could not be judged."""
    problem: Problem | None = None
    """What is wrong, or None where the test passed."""

    @property
    def passed(self) -> bool:
        """Whether the policy gave the expected verdict."""
        return self.problem is None


async def run_policy_tests(
    judge: Judge, tests: Sequence[PolicyTestTable], file: Table
) -> tuple[PolicyTestResult, ...]:
    """Return the outcome of each test, in order. `file` is the table whose `[[policy_tests]]` they are."""
    return tuple(
        [await _result(judge, test, file.position("policy_tests", index)) for index, test in enumerate(tests)]
    )


async def _result(judge: Judge, test: PolicyTestTable, position: Position) -> PolicyTestResult:
    words = test.call if isinstance(test.call, str) else test.call.tool
    got = why = ""
    try:
        decision = await judge.decision(test.call, test.stage)
    except ToolError as error:
        message = f"{words}: can't be judged: {error}"
    else:
        got = decision.verdict.word
        why = f": {decision.rule} at {decision.position}" if decision.rule else f": {decision.reason}"
        message = f"{words}: expected {test.expect}, got {got}{why}"
    if test.because:
        message += f" (because {test.because})"
    problem = None if got == test.expect else Problem(position=position, key="policy_tests", message=message)
    return PolicyTestResult(call=words, expect=test.expect, got=got, problem=problem)
