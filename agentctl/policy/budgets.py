"""What a tree of agents may spend, and has spent: writes, steps, tokens, money, time, sub-agents, calls."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

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


class Budgets:
    """One agent's view of the one budget object of its tree: a child draws on its parent's."""

    def __init__(self, ceilings: Ceilings, *, parent: "Budgets | None" = None) -> None:
        self.ceilings = ceilings
        self._parent = parent
        self._spent: dict[str, float] = {}

    def child(self, ceilings: Ceilings) -> "Budgets":
        """Return a sub-agent's budgets: its own ceilings, and every one of this agent's above them."""
        return Budgets(ceilings, parent=self)

    def spent(self) -> Mapping[str, float]:
        """Return the totals by key, reservations left out: what `StepSettled` records."""
        return dict(self._spent)
