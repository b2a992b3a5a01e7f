"""The policy's answer to a call, with everything needed to explain it later."""

from enum import IntEnum
from typing import Literal, TypeAlias

from agentctl.errors import Position
from agentctl.protocol.effects import Effect
from agentctl.records import dataclass


class Verdict(IntEnum):
    """Ordered: the stricter of two verdicts is the greater."""

    ALLOW = 0
    ASK = 1
    DENY = 2

    @property
    def word(self) -> str:
        """The word in TOML and messages: allow, ask or deny."""
        return self.name.lower()


LayerName: TypeAlias = Literal[
    "launch",
    "stage",
    "blueprint",
    "user-for-agent",
    "user",
    "built-in",
    "parent",
    "machine",  # a machine over tool calls: it narrows what the layers left
]

Held: TypeAlias = Literal[
    "",  # may be lifted by everything that lifts an ask
    "pattern",  # an ask somebody wrote as a pattern: not lifted by the safe list or the sandbox
    "launch",  # --ask: only a grant or an answer lifts it
    "outside",  # a read seen outside the workdir: only a grant or an answer lifts it
    "opaque",  # the line cannot be told: only an answer, or --yolo and bare allows where DESIGN says so
    "machine",  # a machine over tool calls asks: only an answer to this very call lifts it
    "protected",  # a write to a protected path: only an answer to this very call lifts it
]

Lift: TypeAlias = Literal["", "safe-list", "grant", "remembered", "sandbox", "answer"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Say:
    """What one layer said to one effect."""

    layer: LayerName
    verdict: Verdict
    rule: str
    """The rule as it would be written: `shell(git push *)`, `write_file`, `github__*`, `--yolo`."""
    position: Position
    note: str = ""
    """What became of it: `clamped by user`, `lifted by --allow`, `may not loosen`; empty if it counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The verdict on one effect, or on the call's own tool entry (`effect` None), and how it came about."""

    entry: str
    """The tool whose entry answered: `shell` for a program, `write_file` for a write."""
    effect: Effect | None
    verdict: Verdict
    rule: str
    layer: LayerName
    position: Position
    says: tuple[Say, ...]
    held: Held = ""
    lift: Lift = ""
    """What turned its ask into an allow, or empty."""
    lifted_by: str = ""
    """The grant's key, remembered rule or safe-list entry that did, or empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The verdict on a call: the strictest of its judgements, and that one's reason."""

    verdict: Verdict
    reason: str
    """One sentence for a person or the model."""
    rule: str
    layer: LayerName
    position: Position
    judgements: tuple[Judgement, ...]
    held: Held = ""
    lift: Lift = ""


GrantScope: TypeAlias = Literal["stage", "run"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """An approval that is remembered for a stage or a run."""

    key: str
    """A rule: `shell(pytest *)`, `write_file(src/**)`, `network(example.com)`, or a bare tool."""
    scope: GrantScope
    stage_index: int | None = None
    """The stage it was given in, for scope `stage`."""
    uses: int | None = None
    """How many more calls it covers; None is any number."""
