"""What can be known to be wrong with machines before anything runs."""

import re
from collections.abc import Collection, Sequence
from typing import Literal

from agentctl.records import dataclass
from agentctl.state.machine import EVENT_PREFIX, EVENTS, Machine, Move
from agentctl.state.templates import fields_of
from agentctl.state.tool_pattern import PatternError, parse_tool_pattern

_EVENT = re.compile(r"event:[A-Za-z0-9_.-]+")
_UNBALANCED = "a template has a brace without its partner; write `{{` for a brace"
_EVENTS_NAMED = " and ".join(f"{EVENT_PREFIX}{name}" for name in EVENTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineProblem:
    """One thing wrong with a machine."""

    machine: str
    level: Literal["error", "warning"]
    code: str
    """A stable name: `unreachable-state`."""
    text: str
    path: tuple[str | int, ...] = ()
    """Where in the machine's table: `transitions`, an index, a key."""


def check_machines(
    machines: Sequence[Machine], *, read_only_tools: Collection[str] = ()
) -> tuple[MachineProblem, ...]:
    """Return what is wrong: malformed patterns and bounds, duplicates, states that lead nowhere. Pure.

    With `read_only_tools` it also warns where a call that only looks at something leaves a state that holds
    the run.
    """
    problems: list[MachineProblem] = []
    seen: set[str] = set()
    for machine in machines:
        if machine.name in seen:
            problems.append(_error(machine, "two machines have this name"))
        seen.add(machine.name)
        if _unbalanced(machine.key):
            problems.append(_error(machine, _UNBALANCED, ("key",)))
        for index, move in enumerate(machine.moves):
            problems += _check_move(machine, index, move)
        problems += _check_graph(machine, read_only_tools)
    return tuple(problems)


def _check_move(machine: Machine, index: int, move: Move) -> list[MachineProblem]:
    found: list[tuple[str, str]] = []
    if not move.is_event and (fault := _fault_of(move.on)):
        found.append(("on", fault))
    elif move.is_event and not _EVENT.fullmatch(move.on):
        found.append(("on", f"{move.on!r} is no `event:NAME`"))
    elif move.is_event and move.on.removeprefix(EVENT_PREFIX) not in EVENTS:
        found.append(("on", f"machines are told of no {move.on!r}; there is {_EVENTS_NAMED}"))
    if not move.origin:
        found.append(("from", "names no state"))
    for name, bound in move.counters.items():
        if bound.gte is not None and bound.lte is not None and bound.gte > bound.lte:
            found.append(("counters", f"counter {name!r}: gte {bound.gte} is above lte {bound.lte}"))
    emitted = move.emit.content if move.emit else ""
    for key, template in (("reason", move.reason), ("emit", emitted)):
        if _unbalanced(template):
            found.append((key, _UNBALANCED))
    if move.emit and move.on.startswith(EVENT_PREFIX) and move.emit.target == "result":
        found.append(("emit", "an event has no result; write target = 'context'"))
    return [_error(machine, text, ("transitions", index, key)) for key, text in found]


def _fault_of(pattern: str) -> str:
    try:
        parse_tool_pattern(pattern)
    except PatternError as error:
        return f'{error}; a move is on TOOL, TOOL(GLOB), TOOL(FIELD ~ "glob") or event:NAME'
    return ""


def _check_graph(machine: Machine, read_only_tools: Collection[str]) -> list[MachineProblem]:
    reached = _reachable(machine)
    named = {state for move in machine.moves for state in (*move.origin, move.to)} | machine.terminal
    problems = [
        _warning(machine, "unreachable-state", f"no move leads to the state {state!r}")
        for state in sorted(named - reached)
    ]
    tools = {move.on for move in machine.moves if not move.on.startswith(EVENT_PREFIX)}
    for tool in sorted(tools):
        moves = [move for move in machine.moves if move.on == tool]
        if not any(move.origin & reached for move in moves) and any(
            move.on_violation == "deny" for move in moves
        ):
            text = f"{tool!r} is denied in every state that can be reached"
            problems.append(_warning(machine, "tool-denied-everywhere", text))
    if machine.terminal and machine.max_continuations:
        problems += _check_ends(machine, reached, read_only_tools)
    return problems


def _check_ends(
    machine: Machine, reached: set[str], read_only_tools: Collection[str]
) -> list[MachineProblem]:
    stuck = [
        state
        for state in sorted(reached - machine.terminal - {machine.initial})
        if not any(state in move.origin and move.to != state for move in machine.moves)
    ]
    looked = [
        move
        for move in machine.moves
        if move.on.partition("(")[0] in read_only_tools and move.to not in machine.terminal
    ]
    return [
        *(
            _warning(machine, "dead-end-state", f"nothing leads out of {state!r}, which is not terminal")
            for state in stuck
        ),
        *(
            _warning(
                machine,
                "held-by-reading",
                f"a mere {move.on} leads to {move.to!r}, which holds the run until something else is done;"
                " add it to `terminal`",
            )
            for move in looked
        ),
    ]


def _reachable(machine: Machine) -> set[str]:
    reached = {machine.initial}
    while True:
        more = {move.to for move in machine.moves if move.origin & reached} - reached
        if machine.on_unmatched and machine.on_unmatched not in reached:
            more.add(machine.on_unmatched)
        if not more:
            return reached
        reached |= more


def _unbalanced(text: str) -> bool:
    plain = text.replace("{{", "").replace("}}", "")
    return plain.count("{") != plain.count("}") or plain.count("{") != len(fields_of(text))


def _error(machine: Machine, text: str, path: tuple[str | int, ...] = ()) -> MachineProblem:
    return MachineProblem(machine=machine.name, level="error", code="machine", text=text, path=path)


def _warning(machine: Machine, code: str, text: str) -> MachineProblem:
    return MachineProblem(machine=machine.name, level="warning", code=code, text=text)
