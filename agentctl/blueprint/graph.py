"""The blueprint's stages as a graph: what is reachable, what runs in circles, and a picture of it as text."""

from collections.abc import Iterator, Set

from agentctl.blueprint.model import Blueprint, StageTable
from agentctl.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Circle:
    """Stages that lead to each other again and again, with no `max_revisits` to end it."""

    stages: tuple[str, ...]
    """In file order; one stage when it leads to itself."""


def reachable(blueprint: Blueprint) -> frozenset[str]:
    """Return the stages that a run can enter: from the entry along edges, and workers."""
    workers = [stage.name for stage in blueprint.in_order if stage.allow_as_worker]
    return _from(blueprint, [blueprint.entry.name, *workers], without=frozenset())


def ends(stage: StageTable) -> bool:
    """Tell whether a run can end in the stage: no edge of it is open to the model."""
    return all(edge.condition is not None for edge in stage.transitions.values())


def without_end(blueprint: Blueprint) -> tuple[str, ...]:
    """Return the stages from which no path leads to one where a run can end, in file order."""
    last = {stage.name for stage in blueprint.in_order if ends(stage)}
    return tuple(
        stage.name
        for stage in blueprint.in_order
        if not last & _from(blueprint, [stage.name], without=frozenset())
    )


def circles(blueprint: Blueprint) -> Iterator[Circle]:
    """Yield each group of stages that can be entered for ever, groups in file order."""
    bounded = frozenset(stage.name for stage in blueprint.in_order if stage.max_revisits is not None)
    seen: set[str] = set()
    for stage in blueprint.in_order:
        if stage.name in seen or stage.name in bounded:
            continue
        onward = _after(blueprint, stage.name, without=bounded)
        if stage.name in onward:
            group = [
                one
                for one in blueprint.stages
                if one in onward and stage.name in _after(blueprint, one, without=bounded)
            ]
            seen |= set(group)
            yield Circle(stages=tuple(group))


def picture(blueprint: Blueprint) -> str:
    """Return the graph as text: a block for each stage, an arrow for each edge. No final newline."""
    lines = []
    for stage in blueprint.in_order:
        marks = []
        if stage is blueprint.entry:
            marks.append("entry")
        if stage.mode == "fan_out":
            marks.append("fan-out")
        if stage.max_revisits is not None:
            marks.append(f"at most {stage.max_revisits} more visits")
        tail = f"  ({', '.join(marks)})" if marks else ""
        lines.append(f"{stage.name}{tail}")
        edges = list(stage.transitions.values())
        open_edges = [edge for edge in edges if edge.condition is None]
        rows = [
            (edge.to, f"when {edge.condition}" if edge.condition else edge.hint, edge.carry) for edge in edges
        ]
        if not open_edges:
            rows.insert(0, ("end", "", "all"))
        width = max((len(to) for to, _, _ in rows), default=0)
        for number, (to, why, carry) in enumerate(rows, 1):
            corner = "└─>" if number == len(rows) else "├─>"
            notes = "  ".join(part for part in (why, f"[{carry}]" if carry != "all" else "") if part)
            lines.append(f"  {corner} {to.ljust(width) if notes else to}{'  ' + notes if notes else ''}")
    return "\n".join(lines)


def _from(blueprint: Blueprint, starts: list[str], *, without: Set[str]) -> frozenset[str]:
    """Return the starts and all that is reached from them, never entering a stage of `without`."""
    found: set[str] = set()
    waiting = list(starts)
    while waiting:
        name = waiting.pop()
        if name in found or name in without:
            continue
        found.add(name)
        waiting.extend(blueprint.stages[name].transitions)
    return frozenset(found)


def _after(blueprint: Blueprint, name: str, *, without: Set[str]) -> frozenset[str]:
    """Return what is reached by one edge or more."""
    return _from(blueprint, list(blueprint.stages[name].transitions), without=without)
