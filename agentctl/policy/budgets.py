"""What a tree of agents may spend, and has spent: writes, steps, tokens, money, time, sub-agents, calls."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from agentctl.policy.paths import Place
from agentctl.policy.rules import Rule
from agentctl.protocol.effects import Effect


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceilings:
    """Limits in effect for one agent. None is no limit. Reaching a ceiling exactly is fine."""

    per_call_bytes: int | None = 16 * 2**20
    """[write_budget] per_call."""
    per_run_bytes: int | None = 256 * 2**20
    """[write_budget] per_run."""
    files: int | None = 500
    """[write_budget] files, for the run."""
    steps: int | None = 100
    tokens: int | None = None
    cost_usd: float | None = None
    unknown_price_allowed: bool = False
    """[limits] unknown_price = "allow"."""
    wall_time_s: float | None = None
    subagents: int | None = 16
    depth: int | None = 3
    calls: tuple[tuple[Rule, int], ...] = ()
    """[limits.calls]: calls that ran, by rule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A budget that would be passed: the number, the ceiling and the key that sets it."""

    key: str
    """Dotted TOML key such as `write_budget.per_call`; empty for the disk floor, which no key lifts."""
    used: float
    """What the total would have become."""
    ceiling: float
    message: str
    """One sentence with all three, for the model or a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallCost:
    """What a call declares before it acts."""

    tool: str
    effects: Sequence[Effect] = ()
    bytes_written: int = 0
    files_written: int = 0
    free_bytes: int | None = None
    """Free space where it writes, or None where that cannot be measured."""


@dataclass(slots=True)
class Reservation:
    """Room taken in the budgets for one act. Settled or released, once; later calls do nothing."""

    amounts: dict[str, float] = field(default_factory=dict)
    open: bool = True


DISK_FLOOR_BYTES = 2**30
"""Free bytes that must remain where a call writes. No flag lifts it."""

_BYTES, _FILES = "write_budget.per_run", "write_budget.files"
_STEPS, _TOKENS, _COST = "limits.steps", "limits.tokens", "limits.cost_usd"
_CALLS = "limits.calls."
_SUBAGENTS, _DEPTH, _WALL = "limits.subagents", "limits.depth", "limits.wall_time"


class Budgets:
    """One agent's view of the one budget object of its tree: a child draws on its parent's.

    INVARIANT: what is reserved and what is spent of a child is also reserved and spent of its parent.
    """

    def __init__(
        self, ceilings: Ceilings, *, place: Place, parent: "Budgets | None" = None, depth: int = 0
    ) -> None:
        self.ceilings = ceilings
        self.depth = depth
        self._place = place
        self._parent = parent
        self._calls = tuple((str(rule), rule, number) for rule, number in ceilings.calls)
        self._spent: dict[str, float] = {}
        self._held: dict[str, float] = {}

    def child(self, ceilings: Ceilings) -> "Budgets":
        """Return a sub-agent's budgets: its own ceilings, and every one of this agent's above them."""
        return Budgets(ceilings, place=self._place, parent=self, depth=self.depth + 1)

    def spent(self) -> Mapping[str, float]:
        """Return the totals by key, reservations left out: what `StepSettled` records."""
        return dict(self._spent)

    def restore(self, spent: Mapping[str, float]) -> None:
        """Set the totals to what a journal says; reservations are gone."""
        self._spent, self._held = dict(spent), {}

    def reserve_call(self, cost: CallCost) -> Reservation | Refusal:
        """Take room for a tool call, in this agent's budgets and all above; or refuse and take nothing."""
        if cost.free_bytes is not None and cost.free_bytes - cost.bytes_written < DISK_FLOOR_BYTES:
            return _disk_refusal(cost)
        for view in self._chain():
            refusal = view._refuse_call(cost)
            if refusal is not None:
                return refusal
        amounts = {_BYTES: float(cost.bytes_written), _FILES: float(cost.files_written)}
        for view in self._chain():
            for name, rule, _ in view._calls:
                if view._counts(rule, cost):
                    amounts[f"{_CALLS}{name}"] = 1.0
        return self._hold({key: amount for key, amount in amounts.items() if amount})

    def settle_call(self, reservation: Reservation, bytes_written: int, files_written: int) -> None:
        """Replace a call's reservation by what was measured after it."""
        calls = {
            key: amount for key, amount in reservation.amounts.items() if key.startswith("limits.calls.")
        }
        self._settle(reservation, {_BYTES: float(bytes_written), _FILES: float(files_written), **calls})

    def reserve_step(
        self, prompt_tokens: int, *, price_known: bool = True, elapsed_s: float = 0.0
    ) -> Reservation | Refusal:
        """Take room for a model call with a prompt of about so many tokens; or refuse and take nothing."""
        amounts = {_STEPS: 1.0, _TOKENS: float(prompt_tokens)}
        for view in self._chain():
            refusal = view._refuse_step(amounts, price_known, elapsed_s)
            if refusal is not None:
                return refusal
        return self._hold(amounts)

    def settle_step(self, reservation: Reservation | None, tokens: int, cost_usd: float | None) -> None:
        """Replace a model call's reservation by what the service counted; without one, add it."""
        used = {_TOKENS: float(tokens), _COST: cost_usd or 0.0}
        if reservation is not None:
            used[_STEPS] = 1.0
        self._settle(reservation or Reservation(), used)

    def reserve_spawn(self, count: int = 1) -> Reservation | Refusal:
        """Take room for sub-agents, before they start; or refuse and take nothing."""
        for view in self._chain():
            total = view._total(_SUBAGENTS) + count
            if view.ceilings.subagents is not None and total > view.ceilings.subagents:
                return _refusal(_SUBAGENTS, total, view.ceilings.subagents, "sub-agents")
            if view.ceilings.depth is not None and self.depth + 1 > view.ceilings.depth:
                return _refusal(_DEPTH, self.depth + 1, view.ceilings.depth, "levels of sub-agents")
        return self._hold({_SUBAGENTS: float(count)})

    def settle_spawn(self, reservation: Reservation, count: int) -> None:
        """Say how many of the reserved sub-agents were started."""
        self._settle(reservation, {_SUBAGENTS: float(count)})

    def release(self, reservation: Reservation) -> None:
        """Give back what was reserved for something that did not happen. Idempotent."""
        self._settle(reservation, {})

    def _chain(self) -> Iterator["Budgets"]:
        view: Budgets | None = self
        while view is not None:
            yield view
            view = view._parent

    def _total(self, key: str) -> float:
        return self._spent.get(key, 0.0) + self._held.get(key, 0.0)

    def _hold(self, amounts: dict[str, float]) -> Reservation:
        for view in self._chain():
            for key, amount in amounts.items():
                view._held[key] = view._held.get(key, 0.0) + amount
        return Reservation(amounts=amounts)

    def _settle(self, reservation: Reservation, used: dict[str, float]) -> None:
        if not reservation.open:
            return
        reservation.open = False
        for view in self._chain():
            for key, amount in reservation.amounts.items():
                view._held[key] = max(0.0, view._held.get(key, 0.0) - amount)
            for key, amount in used.items():
                if amount:
                    view._spent[key] = view._spent.get(key, 0.0) + amount

    def _counts(self, rule: Rule, cost: CallCost) -> bool:
        pattern = rule.compiled(self._place)
        if pattern is None:
            return rule.speaks_for(cost.tool)
        return any(pattern.restricts(effect) for effect in cost.effects)

    def _refuse_call(self, cost: CallCost) -> Refusal | None:
        limits = self.ceilings
        if limits.per_call_bytes is not None and cost.bytes_written > limits.per_call_bytes:
            return _refusal(
                "write_budget.per_call", cost.bytes_written, limits.per_call_bytes, "bytes in one call"
            )
        asked = (
            (_BYTES, cost.bytes_written, limits.per_run_bytes, "bytes written by the run"),
            (_FILES, cost.files_written, limits.files, "files written by the run"),
        )
        for key, amount, ceiling, what in asked:
            if ceiling is not None and amount and self._total(key) + amount > ceiling:
                return _refusal(key, self._total(key) + amount, ceiling, what)
        for name, rule, number in self._calls:
            key = f"{_CALLS}{name}"
            if self._counts(rule, cost) and self._total(key) + 1 > number:
                return _refusal(f'limits.calls."{name}"', self._total(key) + 1, number, "calls")
        return None

    def _refuse_step(self, amounts: dict[str, float], price_known: bool, elapsed_s: float) -> Refusal | None:  # noqa: FBT001
        limits = self.ceilings
        if limits.cost_usd is not None and not price_known and not limits.unknown_price_allowed:
            message = (
                "The price of this model is not known, so limits.cost_usd cannot be kept: "
                'set limits.unknown_price = "allow", or give the price in the config.'
            )
            return Refusal(key=_COST, used=0.0, ceiling=limits.cost_usd, message=message)
        asked = (
            (_STEPS, self._total(_STEPS) + amounts[_STEPS], limits.steps, "steps"),
            (_TOKENS, self._total(_TOKENS) + amounts[_TOKENS], limits.tokens, "tokens"),
            (_WALL, elapsed_s, limits.wall_time_s, "seconds"),
        )
        for key, total, ceiling, what in asked:
            if ceiling is not None and total > ceiling:
                return _refusal(key, total, ceiling, what)
        if limits.cost_usd is not None and self._total(_COST) >= limits.cost_usd:
            return _refusal(_COST, self._total(_COST), limits.cost_usd, "US dollars")
        return None


def _refusal(key: str, used: float, ceiling: float, what: str) -> Refusal:
    message = f"Over budget: {used:g} {what}, the ceiling is {ceiling:g} ({key})."
    return Refusal(key=key, used=used, ceiling=ceiling, message=message)


def _disk_refusal(cost: CallCost) -> Refusal:
    left = max(0, (cost.free_bytes or 0) - cost.bytes_written)
    message = (
        f"The disk is nearly full: {left} bytes would remain free and {DISK_FLOOR_BYTES} must; "
        "no setting lifts this floor. Free some space."
    )
    return Refusal(key="", used=float(left), ceiling=float(DISK_FLOOR_BYTES), message=message)
