"""What is reported of sub-agents, one by one and merged, as the model reads it."""

from typing import Literal

from agentctl.protocol.children import RunOutcome
from agentctl.protocol.values import JsonObject, JsonValue
from agentctl.records import dataclass
from agentctl.state.pages import Bounds, page_of
from agentctl.state.shared_backend import SharedStateError
from agentctl.state.shared_state import SharedState
from agentctl.tools.definition import ToolOutput

OPEN = frozenset({"running", "waiting"})
"""Outcomes of sub-agents that have not ended."""
_LEAST_SHARE = 200
"""Bytes that each worker has in a merged report, however many there are."""
_HEADING_BYTES = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildReport:
    """What is known of a sub-agent."""

    child: str
    """Its run id."""
    name: str
    agent: str
    outcome: RunOutcome | Literal["running"]
    """`running` while it is at work; `waiting` while it stands still and will go on."""
    answer: str = ""
    """What it answered; while it runs or where it failed, the last thing it said."""
    output: JsonValue = None
    reason: str = ""
    steps: int = 0
    scope: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Merging:
    """What one merged report may take, and where the rest goes."""

    store: SharedState
    """The caller's view of shared state."""
    bounds: Bounds


async def merged(items: tuple[str, ...], reports: tuple[ChildReport, ...], merging: Merging) -> ToolOutput:
    """Return one report over all workers, each with an equal share of the space.

    An answer that does not fit is whole in shared state, under a key that the report names.
    """
    count = max(1, len(reports))
    share = Bounds(
        lines=max(1, merging.bounds.lines // count - 3),
        size_bytes=max(_LEAST_SHARE, merging.bounds.size_bytes // count - _HEADING_BYTES),
    )
    finished = sum(report.outcome == "finished" for report in reports)
    parts = [f"{finished} of {len(reports)} finished."]
    workers: list[JsonValue] = []
    for item, report in zip(items, reports, strict=True):
        trouble = f" {report.outcome}: {report.reason}".rstrip(": ") if report.outcome != "finished" else ""
        heading = _short(f"## {_short(item, 80)} ({report.name}){trouble}", _HEADING_BYTES)
        text, key = await _share(report, share, merging.store)
        parts.append(f"{heading}\n{text}".rstrip())
        workers.append({**as_json(report), "answer": text, "shared_state_key": key or None})
    return ToolOutput(
        text="\n\n".join(parts),
        structured={"workers": workers, "finished": finished},
        failed=bool(reports) and finished == 0,
    )


async def _share(report: ChildReport, share: Bounds, store: SharedState) -> tuple[str, str]:
    """The part of an answer that fits, with the key that has all of it; the whole answer and no key."""
    page = page_of(report.answer, bounds=share)
    if page.whole:
        return page.text, ""
    size = len(report.answer.encode("utf-8", "replace"))
    key = f"{report.scope}/answer"
    try:
        await store.scoped(report.scope).set("answer", report.answer)
    except SharedStateError as error:
        return f"{page.text}\n[cut; {size} bytes in all: check_agent {report.name} ({error})]", ""
    return f"{page.text}\n[cut; {size} bytes in all: shared_state get {key!r}]", key


def _short(text: str, width: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= width else f"{line[: width - 1]}…"


def told(reports: tuple[ChildReport, ...]) -> ToolOutput:
    """Return reports as the model reads them; a child that did not finish well is never an empty success.

    One that a limit stopped is worth what it said so far, and its report says that it is not all.
    """
    texts = []
    for report in reports:
        head = f"{report.name} ({report.child}): {report.outcome}"
        reason = f", {report.reason}" if report.reason else ""
        texts.append(f"{head}{reason}\n{report.answer}".strip())
    bad = [
        report
        for report in reports
        if report.outcome not in {"finished", *OPEN} and not (report.outcome == "limited" and report.answer)
    ]
    return ToolOutput(
        text="\n\n".join(texts) or "There are no sub-agents.",
        structured={"agents": [as_json(report) for report in reports]},
        failed=bool(reports) and len(bad) == len(reports),
    )


def as_json(report: ChildReport) -> JsonObject:
    """Return a report as JSON."""
    return {
        "child": report.child,
        "name": report.name,
        "agent": report.agent,
        "outcome": report.outcome,
        "answer": report.answer,
        "output": report.output,
        "reason": report.reason,
        "steps": report.steps,
        "scope": report.scope,
    }
