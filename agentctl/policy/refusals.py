"""Refusals by a budget, in words: the number, the ceiling, and the key that sets it."""

from agentctl.policy.ceilings import DISK_FLOOR_BYTES
from agentctl.records import dataclass

_WORDS = {
    "files_written": ("write_budget.files", "files made or changed by this run"),
    "steps": ("limits.steps", "model calls"),
    "tokens": ("limits.tokens", "tokens"),
    "cost_usd": ("limits.cost_usd", "US dollars"),
    "wall_time_s": ("limits.wall_time", "seconds"),
    "subagents": ("limits.subagents", "sub-agents"),
}
"""Name in `spent` → the TOML key of its ceiling, and what it counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A ceiling that would be passed."""

    key: str
    """Dotted TOML key, such as `write_budget.per_call`; empty for the disk floor, which no key lifts."""
    used: float
    """What the total would have become; for the disk floor the bytes that would stay free."""
    ceiling: float
    message: str
    """One sentence with all three, for the model or a person."""
    above: int = 0
    """How many agents up the one is whose ceiling it is; 0 is the agent's own."""


def disk_floor(free: int, wanted: int) -> Refusal:
    """Return the refusal of a write that would leave too little free space."""
    return Refusal(
        key="",
        used=free - wanted,
        ceiling=DISK_FLOOR_BYTES,
        message=f"The disk is nearly full: {sized(max(0, free - wanted))} would stay free, and "
        f"{sized(DISK_FLOOR_BYTES)} must remain. Nothing lifts this but freeing space.",
    )


def call_too_large(wanted: int, ceiling: int) -> Refusal:
    """Return the refusal of a call that would write too much at once."""
    return Refusal(
        key="write_budget.per_call",
        used=wanted,
        ceiling=ceiling,
        message=f"This call would write {sized(wanted)}; one call may write {sized(ceiling)} "
        "(write_budget.per_call).",
    )


def run_too_large(used: float, wanted: int, ceiling: int) -> Refusal:
    """Return the refusal of a call after which the run would have written too much."""
    return Refusal(
        key="write_budget.per_run",
        used=used + wanted,
        ceiling=ceiling,
        message=f"This call would write {sized(wanted)} on top of the {sized(used)} that this run has "
        f"written; it may write {sized(ceiling)} (write_budget.per_run).",
    )


def call_was_too_large(written: int, ceiling: int) -> str:
    """Return what is told of a call that turned out to write too much."""
    return (
        f"This call wrote {sized(written)}; one call may write {sized(ceiling)} (write_budget.per_call). "
        "What it wrote stands: write less at a time."
    )


def run_wrote_too_much(written: float, ceiling: int) -> str:
    """Return what is told of a call with which the run has written too much."""
    return (
        f"This run has now written {sized(written)}; it may write {sized(ceiling)} (write_budget.per_run). "
        "Calls that write are refused from here on."
    )


def too_many_files(files: float, ceiling: int) -> str:
    """Return what is told of a call with which the run has changed too many files."""
    return (
        f"This run has now made or changed {files:g} files; it may {ceiling} (write_budget.files). "
        "Calls that write are refused from here on."
    )


def too_deep(depth: int, ceiling: int) -> Refusal:
    """Return the refusal of a sub-agent below too many others."""
    return Refusal(
        key="limits.depth",
        used=depth,
        ceiling=ceiling,
        message=f"The sub-agent would stand {depth} levels down; {ceiling} are allowed (limits.depth).",
    )


def price_unknown(model: str, ceiling: float) -> Refusal:
    """Return the refusal of a model call whose price is not known under a ceiling on money."""
    return Refusal(
        key="limits.cost_usd",
        used=0.0,
        ceiling=ceiling,
        message=f"What {model or 'this model'} costs is not known, so {number(ceiling)} US dollars "
        "(limits.cost_usd) cannot be kept to; give its price in your config, or set "
        'limits.unknown_price = "allow".',
    )


def too_many(name: str, total: float, ceiling: float) -> Refusal:
    """Return the refusal of an act after which `name` would stand above its ceiling."""
    if name.startswith("calls:"):
        rule = name.removeprefix("calls:")
        key, what = f'limits.calls."{rule}"', f"calls of {rule}"
    else:
        key, what = _WORDS[name]
    return Refusal(
        key=key,
        used=total,
        ceiling=ceiling,
        message=f"This would make {number(total)} {what}; {number(ceiling)} are allowed ({key}).",
    )


def sized(size_bytes: float) -> str:
    """Return a number of bytes for a person: the exact number, and a rounded one where it is large."""
    size = int(size_bytes)
    for unit, step in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size >= step:
            return f"{size / step:.1f} {unit} ({size:,} bytes)"
    return f"{size:,} bytes"


def number(value: float) -> str:
    """Return a count or an amount of money without digits that say nothing."""
    return f"{value:,.0f}" if value == int(value) else f"{value:,.4f}".rstrip("0")
