"""Limits as people set them, and the lowest of them, which holds."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final, Literal, TypeAlias, TypeVar

from agentctl.policy.rules import Rule
from agentctl.records import dataclass

DISK_FLOOR_BYTES: Final = 2**30
"""Free space that must remain on the disk. No flag and no config changes it."""

UnknownPrice: TypeAlias = Literal["refuse", "allow"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceilings:
    """Hard stops. In a layer None says nothing; in what holds None is no limit. Exactly reached is fine."""

    per_call_bytes: int | None = None
    """`write_budget.per_call`: bytes that one tool call may write."""
    per_run_bytes: int | None = None
    """`write_budget.per_run`: bytes that the run may write, its sub-agents included, as all below."""
    files: int | None = None
    """`write_budget.files`: files made or changed; one that is changed twice counts twice."""
    steps: int | None = None
    """`limits.steps`: model calls."""
    tokens: int | None = None
    """`limits.tokens`: tokens in and out, as the provider counts them."""
    cost_usd: float | None = None
    """`limits.cost_usd`: US dollars."""
    unknown_price: UnknownPrice | None = None
    """`limits.unknown_price`: what a money ceiling does with a model whose price is not known."""
    wall_time_s: float | None = None
    """`limits.wall_time`: seconds from start to end, waiting for a person not counted."""
    subagents: int | None = None
    """`limits.subagents`: sub-agents started in all."""
    depth: int | None = None
    """`limits.depth`: how deep sub-agents may nest below this agent; 0 means none may be started."""
    calls: tuple[tuple[Rule, int], ...] = ()
    """`limits.calls`: calls that ran, by rule."""


BUILT_IN_CEILINGS: Final = Ceilings(
    per_call_bytes=16 * 2**20,
    per_run_bytes=256 * 2**20,
    files=500,
    steps=100,
    subagents=16,
    depth=3,
    unknown_price="refuse",
)
"""What holds where nobody says anything. Only the user can exceed it."""


def ceilings_in_effect(*, user: Ceilings, narrower: Iterable[Ceilings] = ()) -> Ceilings:
    """Return what holds: the user's, or the built-in where they are silent, and no more than any `narrower`.

    `narrower` are the blueprint's and the stage's: they lower a ceiling or set one where there was none, and
    never raise one. Pure.
    """
    layers = (_filled(user), *narrower)
    refuse = any(layer.unknown_price == "refuse" for layer in layers)
    return Ceilings(
        per_call_bytes=_least(layer.per_call_bytes for layer in layers),
        per_run_bytes=_least(layer.per_run_bytes for layer in layers),
        files=_least(layer.files for layer in layers),
        steps=_least(layer.steps for layer in layers),
        tokens=_least(layer.tokens for layer in layers),
        cost_usd=_least(layer.cost_usd for layer in layers),
        unknown_price="refuse" if refuse else "allow",
        wall_time_s=_least(layer.wall_time_s for layer in layers),
        subagents=_least(layer.subagents for layer in layers),
        depth=_least(layer.depth for layer in layers),
        calls=_least_calls(layers),
    )


def _filled(user: Ceilings) -> Ceilings:
    """Return the user's limits with the built-in ones where the user is silent."""
    base = BUILT_IN_CEILINGS
    return replace(
        user,
        per_call_bytes=base.per_call_bytes if user.per_call_bytes is None else user.per_call_bytes,
        per_run_bytes=base.per_run_bytes if user.per_run_bytes is None else user.per_run_bytes,
        files=base.files if user.files is None else user.files,
        steps=base.steps if user.steps is None else user.steps,
        subagents=base.subagents if user.subagents is None else user.subagents,
        depth=base.depth if user.depth is None else user.depth,
        unknown_price=base.unknown_price if user.unknown_price is None else user.unknown_price,
    )


_Number = TypeVar("_Number", int, float)


def _least(values: Iterable[_Number | None]) -> _Number | None:
    return min((value for value in values if value is not None), default=None)


def _least_calls(layers: Iterable[Ceilings]) -> tuple[tuple[Rule, int], ...]:
    """Return every rule with its lowest ceiling, sorted by rule."""
    lowest: dict[str, tuple[Rule, int]] = {}
    for layer in layers:
        for rule, ceiling in layer.calls:
            known = lowest.get(str(rule))
            if known is None or ceiling < known[1]:
                lowest[str(rule)] = (rule, ceiling)
    return tuple(lowest[text] for text in sorted(lowest))
