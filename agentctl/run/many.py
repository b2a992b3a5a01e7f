"""Many runs of one blueprint in one process, side by side, with one report."""

from collections.abc import Callable, Iterable

import anyio

from agentctl.blueprint.model import Blueprint
from agentctl.errors import AgentctlError, ExitCode
from agentctl.interaction.unattended import RefusedAsk, refused_records
from agentctl.protocol.children import RunOutcome
from agentctl.protocol.events import RunEnded, RunSuspended
from agentctl.protocol.values import JsonObject, JsonValue
from agentctl.records import dataclass
from agentctl.run.agent_kind import AgentKind, agent_kind
from agentctl.run.house import House
from agentctl.run.refused import refused_of
from agentctl.run.runner import RunParts, run_or_fail
from agentctl.run.start import Order, begun


@dataclass(frozen=True, slots=True, kw_only=True)
class ManyResult:
    """How one of many runs ended."""

    index: int
    """Its place among the orders, from 0."""
    run_id: str
    outcome: RunOutcome
    exit_code: int
    answer: str = ""
    output: JsonValue = None
    reason: str = ""
    steps: int = 0
    refused: tuple[RefusedAsk, ...] = ()

    def as_json(self) -> JsonObject:
        """Return it as one JSON object."""
        return {
            "index": self.index,
            "run": self.run_id,
            "outcome": self.outcome,
            "exit_code": self.exit_code,
            "answer": self.answer,
            "output": self.output,
            "reason": self.reason,
            "steps": self.steps,
            "refused": refused_records(self.refused),
        }


async def run_many(
    house: House,
    blueprint: Blueprint,
    orders: Iterable[Order],
    *,
    max_workers: int,
    ended: Callable[[ManyResult], None],
) -> tuple[ManyResult, ...]:
    """Run every order, at most `max_workers` at a time; return the results in the order of the orders.

    `ended` is called for each as it ends. One that cannot begin or fails is a result as well; the others go
    on. Cancelling it suspends those that run; a resume of each goes on.
    """
    todo = list(orders)
    results: dict[int, ManyResult] = {}
    kinds: dict[tuple[str, object], AgentKind] = {}
    slots = anyio.Semaphore(max(1, max_workers))

    async def one(index: int, order: Order) -> None:
        async with slots:
            key = (str(order.workdir), order.flags)
            try:
                if key not in kinds:
                    kinds[key] = agent_kind(house, blueprint, order.workdir, order.flags)
                async with begun(house, blueprint, order, kinds[key]) as parts:
                    result = await _to_end(index, parts, ended)
            except AgentctlError as error:
                code = int(error.exit_code)
                result = ManyResult(
                    index=index, run_id="", outcome="failed", exit_code=code, reason=error.message
                )
        results[index] = result
        ended(result)

    async with anyio.create_task_group() as group:
        for index, order in enumerate(todo):
            group.start_soon(one, index, order)
    return tuple(results[index] for index in range(len(todo)))


def exit_code_of(results: tuple[ManyResult, ...]) -> int:
    """Return one code for all: 0 when all finished, the code they share, else 1."""
    codes = {result.exit_code for result in results}
    if codes <= {int(ExitCode.FINISHED)}:
        return int(ExitCode.FINISHED)
    bad = codes - {int(ExitCode.FINISHED)}
    return bad.pop() if len(bad) == 1 else int(ExitCode.FAILED)


async def _to_end(index: int, parts: RunParts, stopped: Callable[[ManyResult], None]) -> ManyResult:
    """Return how the run ended. One that is interrupted is told to `stopped`; the cancellation goes on."""
    recorder = parts.recorder
    try:
        end = await run_or_fail(parts)
    except anyio.get_cancelled_exc_class():
        with anyio.CancelScope(shield=True):
            await recorder.commit(RunSuspended(reason="interrupted", exit_code=int(ExitCode.SIGINT)))
        stopped(
            ManyResult(
                index=index,
                run_id=recorder.run_id,
                outcome="cancelled",
                exit_code=int(ExitCode.SIGINT),
                reason="interrupted",
                steps=recorder.snapshot.step,
            )
        )
        raise
    steps, refused = recorder.snapshot.step, refused_of(recorder)
    match end:
        case RunEnded():
            return ManyResult(
                index=index,
                run_id=recorder.run_id,
                outcome=end.outcome,
                exit_code=end.exit_code,
                answer=end.answer,
                output=end.output,
                reason=end.reason,
                steps=steps,
                refused=refused,
            )
        case RunSuspended():
            return ManyResult(
                index=index,
                run_id=recorder.run_id,
                outcome="limited" if end.limit else "waiting",
                exit_code=end.exit_code,
                reason=end.reason,
                steps=steps,
                refused=refused,
            )
