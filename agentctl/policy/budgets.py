"""What a tree of agents may spend, and has spent: writes, steps, tokens, money, time, sub-agents, calls.

One object for the tree: each agent has a view of it with its own ceilings, and what it spends counts for all
agents above it. Reserve before the act, settle to what it really was, or release. Synchronous, no I/O.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace

from agentctl.policy.ceilings import DISK_FLOOR_BYTES, Ceilings
from agentctl.policy.layers import BoundRule, bind_rules
from agentctl.policy.paths import Place
from agentctl.policy.refusals import (
    Refusal,
    call_too_large,
    call_was_too_large,
    disk_floor,
    price_unknown,
    run_too_large,
    run_wrote_too_much,
    too_deep,
    too_many,
    too_many_files,
)
from agentctl.protocol.decisions import Decision
from agentctl.protocol.effects import Effect, OpaqueCommand, RunProgram, WritePath
from agentctl.records import dataclass

BYTES, FILES, STEPS, TOKENS = "bytes_written", "files_written", "steps", "tokens"
COST, UNPRICED, WALL_TIME, SUBAGENTS = "cost_usd", "unpriced_steps", "wall_time_s", "subagents"
CALLS = "calls:"
_CENT_FRACTION = 1e-9  # money is added up in floats: 0.1 + 0.2 is exactly at a ceiling of 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class CallCost:
    """What a tool call declares before it acts."""

    tool: str
    """Canonical name."""
    effects: Sequence[Effect] = ()
    writes: bool = False
    """It may write (see `may_write`); a call that only looks is not refused for written bytes or the disk."""
    bytes_written: int = 0
    files_written: int = 0
    free_bytes: int | None = None
    """Free space where it writes; None where that cannot be measured, and the floor is then not checked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCost:
    """What a model call is known to cost before it is made."""

    model: str = ""
    """Its name, for the message when its price is not known."""
    tokens: int = 0
    """An estimate; 0 where there is none."""
    cost_usd: float = 0.0
    """An estimate; 0 where there is none."""
    price_known: bool = True


@dataclass(slots=True, kw_only=True)
class Reservation:
    """Room taken for one act. It is settled or released once; what comes after that does nothing."""

    amounts: dict[str, float]
    """What it takes, by the names that `spent` uses."""
    open: bool = True


@dataclass(slots=True, kw_only=True)
class Ledger:
    """Totals of one agent and its descendants, by the names that `Budgets.spent` explains."""

    spent: dict[str, float] = field(default_factory=dict)
    reserved: dict[str, float] = field(default_factory=dict)

    def used(self, name: str) -> float:
        """Return what is spent or spoken for."""
        return self.spent.get(name, 0.0) + self.reserved.get(name, 0.0)

    def take(self, amounts: Mapping[str, float]) -> None:
        """Add to what is reserved."""
        for name, amount in amounts.items():
            self.reserved[name] = self.reserved.get(name, 0.0) + amount

    def settle(self, reserved: Mapping[str, float], actual: Mapping[str, float]) -> None:
        """Turn a reservation into what was really spent."""
        for name, amount in reserved.items():
            self.reserved[name] = max(0.0, self.reserved.get(name, 0.0) - amount)
        for name, amount in actual.items():
            if amount:
                self.spent[name] = self.spent.get(name, 0.0) + amount


class Budgets:
    """One agent's view of its tree's budget."""

    def __init__(self, ceilings: Ceilings, place: Place, *, parent: "Budgets | None" = None) -> None:
        self._place = place
        self._active_s: Callable[[], float] = _no_time
        self.ledger = Ledger()
        """What this agent and its descendants spent. Changed by reserving, settling and restoring only."""
        self._own: dict[str, float] = {}
        self.lineage: tuple[Budgets, ...] = (self, *(parent.lineage if parent is not None else ()))
        """This agent, its parent, and so on up to the run that a person started."""
        self._calls: tuple[tuple[BoundRule, int], ...] = ()
        self.set_ceilings(ceilings)

    @property
    def ceilings(self) -> Ceilings:
        """What holds for this agent now; its ancestors' hold besides."""
        return self._ceilings

    @property
    def depth(self) -> int:
        """How many agents are above this one; 0 for the run a person started."""
        return len(self.lineage) - 1

    def set_ceilings(self, ceilings: Ceilings) -> None:
        """Take other ceilings, as another stage has them. What was spent stays."""
        self._ceilings = ceilings
        rules = bind_rules((rule for rule, _ in ceilings.calls), self._place)
        self._calls = tuple(zip(rules, (ceiling for _, ceiling in ceilings.calls), strict=True))

    def child(self, ceilings: Ceilings) -> "Budgets":
        """Return a sub-agent's view: its own ceilings, and those of every agent above it."""
        return Budgets(ceilings, self._place, parent=self)

    def spent(self) -> dict[str, float]:
        """Return this agent's totals and its descendants', what is only reserved left out.

        Names: `bytes_written`, `files_written`, `steps`, `tokens`, `cost_usd` (what is known of it),
        `unpriced_steps` (model calls whose price is not), `wall_time_s`, `subagents`, `calls:RULE`.
        """
        totals = dict(self.ledger.spent)
        elapsed = totals.get(WALL_TIME, 0.0) + self._active_s()
        return {**totals, WALL_TIME: elapsed} if elapsed else totals

    def own(self) -> dict[str, float]:
        """Return what of the totals this agent itself spent, by the names of `spent`."""
        elapsed = self._own.get(WALL_TIME, 0.0) + self._active_s()
        return {**self._own, WALL_TIME: elapsed} if elapsed else dict(self._own)

    def restore(self, spent: Mapping[str, float], own: Mapping[str, float] | None = None) -> None:
        """Take the totals that a journal recorded, in place of this agent's; nothing is reserved after it.

        Without `own` all of it is this agent's. The agents above are left alone: each is restored from its
        own journal.
        """
        self.ledger = Ledger(spent=dict(spent))
        self._own = dict(spent if own is None else own)
        self._active_s = _no_time

    def measure_time(self, active_s: Callable[[], float]) -> None:
        """Take what tells for how long the agent has been at work in this process, waiting not counted."""
        self._active_s = active_s

    def seconds_left(self) -> float | None:
        """Return the wall time that is left under the nearest ceiling, 0 at the least; None without one."""
        left = [
            node.ceilings.wall_time_s - node.spent().get(WALL_TIME, 0.0)
            for node in self.lineage
            if node.ceilings.wall_time_s is not None
        ]
        return max(0.0, min(left)) if left else None

    def reserve_call(self, cost: CallCost) -> Reservation | Refusal:
        """Take room for a tool call, or say which ceiling is in the way; a refusal takes nothing.

        The disk floor is checked first, so that nobody raises a limit that is not the problem.
        """
        if cost.writes:
            free = cost.free_bytes
            if free is not None and free - cost.bytes_written < DISK_FLOOR_BYTES:
                return disk_floor(free, cost.bytes_written)
        amounts: dict[str, float] = {}
        for node in self.lineage:
            refusal = node.check_writes(cost) or node.check_calls(cost, amounts)
            if refusal is not None:
                return refusal
        if cost.writes:
            amounts |= {BYTES: cost.bytes_written, FILES: cost.files_written}
        return self._take(amounts)

    def settle_call(self, reservation: Reservation, bytes_written: int, files_written: int) -> str:
        """Count what the call really wrote. Over a ceiling it still counts: the next call is then refused.

        Returns a sentence for the model where this call went over a ceiling on writing; else nothing.
        """
        calls = {name: amount for name, amount in reservation.amounts.items() if name.startswith(CALLS)}
        self._settle(reservation, {**calls, BYTES: bytes_written, FILES: files_written})
        for node in self.lineage:
            passed = node.passed_by(bytes_written, files_written)
            if passed:
                return passed
        return ""

    def passed_by(self, bytes_written: int, files_written: int) -> str:
        """Return which ceiling on writing of this agent alone the call that was just counted went over."""
        limits, spent = self._ceilings, self.ledger.spent
        if limits.per_call_bytes is not None and bytes_written > limits.per_call_bytes:
            return call_was_too_large(bytes_written, limits.per_call_bytes)
        written, files = spent.get(BYTES, 0.0), spent.get(FILES, 0.0)
        if bytes_written and limits.per_run_bytes is not None and written > limits.per_run_bytes:
            return run_wrote_too_much(written, limits.per_run_bytes)
        if files_written and limits.files is not None and files > limits.files:
            return too_many_files(files, limits.files)
        return ""

    def count_in_doubt(self, cost: CallCost) -> None:
        """Count a call that may have happened by the rules of `limits.calls`; no ceiling holds it up."""
        names = {f"{CALLS}{rule}": 1.0 for node in self.lineage for rule in node.rules_of(cost)}
        self._settle(Reservation(amounts={}), names)

    def reserve_step(self, cost: StepCost) -> Reservation | Refusal:
        """Take room for a model call: one step, and the tokens and dollars that are expected."""
        for above, node in enumerate(self.lineage):
            refusal = node.check_step(cost)
            if refusal is not None:
                return replace(refusal, above=above)
        return self._take({STEPS: 1, TOKENS: cost.tokens, COST: cost.cost_usd})

    def settle_step(self, reservation: Reservation | None, tokens: int, cost_usd: float | None) -> None:
        """Count what a model call really took. A price that is not known is counted as not known.

        Without a reservation it is a call beside the steps, such as a summary, and counts as none of them.
        """
        if not tokens and reservation is not None:
            # The service counted nothing: what was expected stands, so that a ceiling holds all the same.
            tokens = int(reservation.amounts.get(TOKENS, 0))
            cost_usd = cost_usd or reservation.amounts.get(COST) or cost_usd
        actual = {TOKENS: float(tokens)} | ({UNPRICED: 1.0} if cost_usd is None else {COST: cost_usd})
        if reservation is not None:
            actual[STEPS] = 1.0
        self._settle(reservation or Reservation(amounts={}), actual)

    def reserve_spawn(self, count: int = 1) -> Reservation | Refusal:
        """Take room for `count` sub-agents of this agent; none where no agent could take a step any more."""
        depth = self.depth + 1
        for node in self.lineage:
            spent = node.check_step(StepCost())
            if spent is not None:
                return spent
            deepest = node.ceilings.depth
            if deepest is not None and depth - node.depth > deepest:
                return too_deep(depth - node.depth, deepest)
            refusal = node.check_count(SUBAGENTS, count, node.ceilings.subagents)
            if refusal is not None:
                return refusal
        return self._take({SUBAGENTS: count})

    def settle_spawn(self, reservation: Reservation) -> None:
        """Count the sub-agents as started."""
        self._settle(reservation, dict(reservation.amounts))

    def release(self, reservation: Reservation) -> None:
        """Give back what was taken: the act was declined, refused or did not happen. Idempotent."""
        self._settle(reservation, {})

    def check_writes(self, cost: CallCost) -> Refusal | None:
        """Return the write ceiling of this agent alone that the call would pass."""
        if not cost.writes:
            return None
        limits = self._ceilings
        if limits.per_call_bytes is not None and cost.bytes_written > limits.per_call_bytes:
            return call_too_large(cost.bytes_written, limits.per_call_bytes)
        used = self.ledger.used(BYTES)
        if limits.per_run_bytes is not None and used + cost.bytes_written > limits.per_run_bytes:
            return run_too_large(used, cost.bytes_written, limits.per_run_bytes)
        return self.check_count(FILES, cost.files_written, limits.files)

    def check_calls(self, cost: CallCost, amounts: dict[str, float]) -> Refusal | None:
        """Return the `limits.calls` ceiling of this agent alone; add the rules that match to `amounts`."""
        for rule, ceiling in self._calls:
            if not _matches(rule, cost):
                continue
            name = f"{CALLS}{rule.text}"
            if self.ledger.used(name) + 1 > ceiling:
                return too_many(name, self.ledger.used(name) + 1, ceiling)
            amounts[name] = 1
        return None

    def rules_of(self, cost: CallCost) -> tuple[str, ...]:
        """Return the rules of this agent's own `limits.calls` that count the call."""
        return tuple(rule.text for rule, _ in self._calls if _matches(rule, cost))

    def check_step(self, cost: StepCost) -> Refusal | None:
        """Return the ceiling of this agent alone that another model call would pass."""
        limits = self._ceilings
        refusal = self.check_count(STEPS, 1, limits.steps) or self.check_count(
            TOKENS, max(cost.tokens, 1), limits.tokens
        )
        if refusal is not None:
            return refusal
        elapsed = self.spent().get(WALL_TIME, 0.0)
        if limits.wall_time_s is not None and elapsed >= limits.wall_time_s:
            return too_many(WALL_TIME, elapsed, limits.wall_time_s)
        if limits.cost_usd is None:
            return None
        if limits.unknown_price == "refuse" and (not cost.price_known or self.ledger.used(UNPRICED)):
            return price_unknown(cost.model, limits.cost_usd)
        used = self.ledger.used(COST)
        over = used + cost.cost_usd > limits.cost_usd + _CENT_FRACTION
        reached = used >= limits.cost_usd - _CENT_FRACTION and used > 0
        if over or reached:
            return too_many(COST, used + cost.cost_usd, limits.cost_usd)
        return None

    def check_count(self, name: str, more: float, ceiling: float | None) -> Refusal | None:
        """Return a refusal where `more` of `name` would pass this agent's `ceiling`."""
        total = self.ledger.used(name) + more
        return too_many(name, total, ceiling) if ceiling is not None and total > ceiling else None

    def _take(self, amounts: dict[str, float]) -> Reservation:
        for node in self.lineage:
            node.ledger.take(amounts)
        return Reservation(amounts=amounts)

    def _settle(self, reservation: Reservation, actual: Mapping[str, float]) -> None:
        if not reservation.open:
            return
        reservation.open = False
        for name, amount in actual.items():
            if amount:
                self._own[name] = self._own.get(name, 0.0) + amount
        for node in self.lineage:
            node.ledger.settle(reservation.amounts, actual)


def _no_time() -> float:
    return 0.0


def may_write(decision: Decision) -> bool:
    """Return whether a call with this decision could write: it writes, or runs what no safe entry covers."""
    return any(
        isinstance(judgement.effect, WritePath | OpaqueCommand)
        or (isinstance(judgement.effect, RunProgram) and judgement.lift != "safe-list")
        for judgement in decision.judgements
    )


def _matches(rule: BoundRule, cost: CallCost) -> bool:
    if rule.pattern is None:
        return rule.tool == cost.tool
    return any(rule.pattern.restricts(effect) for effect in cost.effects)
