"""Machines over tool calls: state that calls advance, and gates that can only narrow what policy allows.

Pure. A machine has an instance for each value of its key; instances are cells of the run or the thread.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Literal

from agentctl.protocol.commands import Command
from agentctl.protocol.values import JsonObject, JsonValue
from agentctl.records import dataclass
from agentctl.state.cells import CellView
from agentctl.state.machine import (
    EVENT_PREFIX,
    Instance,
    Machine,
    Move,
    Violation,
    When,
    instance_of,
    instances_of,
    stored,
)
from agentctl.state.templates import fill_text

_STRENGTH: dict[Violation, int] = {"warn": 0, "ask": 1, "deny": 2}
_NEVER_STRICT = frozenset({"transition", "submit_output"})
"""The ways out of a stage: a strict machine that does not name them does not lock the model in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateOutcome:
    """What machines say to a call before it runs."""

    verdict: Literal["allow", "ask", "deny"] = "allow"
    reason: str = ""
    machine: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """A call that has ended, as machines see it."""

    tool: str
    arguments: Mapping[str, JsonValue]
    success: bool
    text: str = ""
    step: int = 0
    said: tuple[str, ...] = ()
    """Further forms of what the call is mainly about: each command of a shell line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Advanced:
    """One machine's move: the command that stores it, and what the model is told."""

    machine: str
    key: str
    before: str
    after: str
    commands: tuple[Command, ...] = ()
    say: str = ""
    say_in: Literal["result", "context"] = "result"


def gate(
    machines: Sequence[Machine],
    tool: str,
    arguments: Mapping[str, JsonValue],
    cells: CellView,
    *,
    said: Sequence[str] = (),
) -> GateOutcome:
    """Return the strictest word of all machines on a call; warnings never hold it up. Pure.

    `said` are further forms of what the call is mainly about: each command of a shell line.

    Raises:
        StateConflict: a machine's stored state cannot be read: a guard that has lost its state holds.
    """
    strictest = GateOutcome()
    for machine in machines:
        concerned = [move for move in machine.moves if move.concerns(tool, arguments, said)]
        word = _gate(machine, tool, arguments, concerned, cells)
        if word is not None and _STRENGTH_OF[word.verdict] > _STRENGTH_OF[strictest.verdict]:
            strictest = word
    return strictest


_STRENGTH_OF = {"allow": 0, "ask": 1, "deny": 2}


def advance(machines: Sequence[Machine], called: Called, cells: CellView) -> list[Advanced]:
    """Return what a call that ran does to the machines, in their order. Pure.

    A call that a person let through although its state was not in `from` moves as if it were: they said yes.
    """
    moved: list[Advanced] = []
    for machine in machines:
        concerned = [
            move for move in machine.moves if move.concerns(called.tool, called.arguments, called.said)
        ]
        key = machine.instance_key(called.arguments) if concerned else None
        if key is None:
            continue
        instance = instance_of(machine, key, cells)
        state = instance.state if instance else machine.initial
        allowed = [move for move in concerned if state in move.origin]
        if not allowed:
            violated = _strongest(concerned)
            if violated.on_violation == "warn":
                moved.append(_warned(machine, key, state, violated, called))
                continue
            allowed = [violated]
        advanced = _fire(machine, key, instance, allowed, called)
        if advanced is not None:
            moved.append(advanced)
    return moved


def advance_on_event(
    machines: Sequence[Machine], event: str, data: Mapping[str, JsonValue], step: int, cells: CellView
) -> list[Advanced]:
    """Return what an event of the harness does to the machines. `when` and violations do not apply. Pure."""
    moved: list[Advanced] = []
    for machine in machines:
        concerned = [move for move in machine.moves if move.on == EVENT_PREFIX + event]
        key = machine.instance_key(data) if concerned else None
        if key is None:
            continue
        instance = instance_of(machine, key, cells)
        state = instance.state if instance else machine.initial
        counters = instance.counters if instance else {}
        move = next((one for one in concerned if state in one.origin and _holds(one, counters)), None)
        if move is not None:
            called = Called(tool=EVENT_PREFIX + event, arguments=data, success=True, step=step)
            advanced = _moved(machine, key, instance, move, called)
            if advanced is not None:
                moved.append(replace(advanced, say_in="context"))
    return moved


def unfinished(machines: Sequence[Machine], cells: CellView) -> list[str]:
    """Return the instances that are not in a terminal state, as `machine[key]=state`, sorted.

    Machines without terminal states, or without continuations, never hold a run.
    """
    open_ones = []
    for machine in machines:
        if not machine.terminal or not machine.max_continuations:
            continue
        for key, instance in instances_of(machine, cells).items():
            if instance.state not in machine.terminal:
                open_ones.append(f"{machine.name}[{key}]={instance.state}")
    return sorted(open_ones)


def _gate(
    machine: Machine,
    tool: str,
    arguments: Mapping[str, JsonValue],
    concerned: Sequence[Move],
    cells: CellView,
) -> GateOutcome | None:
    key = machine.instance_key(arguments)
    if key is None:
        if machine.strict and concerned:
            return _deny(machine, f"{tool} must say what it is about ({machine.key})")
        return None
    if not concerned:
        if machine.strict and tool not in _NEVER_STRICT:
            return _deny(machine, f"{tool} is not among the calls that {machine.name} knows")
        return None
    instance = instance_of(machine, key, cells)
    state = instance.state if instance else machine.initial
    if any(state in move.origin for move in concerned):
        return None
    move = _strongest(concerned)
    if move.on_violation == "warn":
        return None
    reason = _reason(machine, key, state, move, arguments)
    return GateOutcome(verdict=move.on_violation, reason=reason, machine=machine.name)


def _deny(machine: Machine, reason: str) -> GateOutcome:
    return GateOutcome(verdict="deny", reason=f"{reason}.", machine=machine.name)


def _strongest(moves: Sequence[Move]) -> Move:
    return max(moves, key=lambda move: _STRENGTH[move.on_violation])


def _reason(machine: Machine, key: str, state: str, move: Move, arguments: Mapping[str, JsonValue]) -> str:
    if move.reason:
        try:
            return fill_text(move.reason, arguments)
        except KeyError:
            return move.reason
    about = f" for {key}" if key else ""
    wanted = " or ".join(sorted(move.origin))
    return f"{machine.name}{about} is {state}; {move.on} comes after {wanted}."


def _fire(
    machine: Machine, key: str, instance: Instance | None, allowed: Sequence[Move], called: Called
) -> Advanced | None:
    counters = instance.counters if instance else {}
    ready = [move for move in allowed if _holds(move, counters)]
    for move in ready:
        if _fits(move.when, called):
            return _moved(machine, key, instance, move, called)
    if ready and machine.on_unmatched:
        fallback = Move(on=called.tool, origin=frozenset(), to=machine.on_unmatched)
        return _moved(machine, key, instance, fallback, called)
    return None


def _moved(
    machine: Machine, key: str, instance: Instance | None, move: Move, called: Called
) -> Advanced | None:
    before = instance or Instance(state=machine.initial)
    counters = dict(before.counters)
    for name in move.increment:
        counters[name] = counters.get(name, 0) + 1
    counters.update(dict.fromkeys(move.reset, 0))
    data = {**before.data, **_captured(move, called)}
    say, said = _words(move, key, Instance(state=move.to, counters=counters, data=data), before, called)
    after = Instance(state=move.to, counters=counters, data=data, said=said)
    if instance == after and not say:
        return None
    return Advanced(
        machine=machine.name,
        key=key,
        before=before.state,
        after=after.state,
        commands=() if instance == after else (stored(machine, key, after),),
        say=say,
        say_in=move.emit.target if move.emit else "result",
    )


def _words(
    move: Move, key: str, after: Instance, before: Instance, called: Called
) -> tuple[str, dict[str, int]]:
    if move.emit is None:
        return "", before.said
    members: JsonObject = {
        **called.arguments,
        "key": key,
        "state": after.state,
        "data": dict(after.data),
        "counters": dict(after.counters),
        "instance": {"data": dict(after.data), "counters": dict(after.counters), "state": after.state},
    }
    try:
        text = fill_text(move.emit.content, members)
    except KeyError:
        text = move.emit.content
    last = before.said.get(move.emit.content)
    if last is not None and called.step - last < move.emit.cooldown:
        return "", before.said
    # Without a cooldown nothing has to be remembered, and a self-loop stays a move that changes nothing.
    said = {**before.said, move.emit.content: called.step} if move.emit.cooldown else before.said
    return text, said


def _captured(move: Move, called: Called) -> dict[str, str]:
    captured: dict[str, str] = {}
    for name, template in move.capture.items():
        try:
            captured[name] = fill_text(template, {**called.arguments, "result": called.text})
        except KeyError:
            continue
    return captured


def _warned(machine: Machine, key: str, state: str, move: Move, called: Called) -> Advanced:
    say = _reason(machine, key, state, move, called.arguments)
    return Advanced(machine=machine.name, key=key, before=state, after=state, say=say)


def _holds(move: Move, counters: Mapping[str, int]) -> bool:
    return all(
        (bound.gte is None or counters.get(name, 0) >= bound.gte)
        and (bound.lte is None or counters.get(name, 0) <= bound.lte)
        for name, bound in move.counters.items()
    )


def _fits(when: When, called: Called) -> bool:
    if when.status != "any" and (when.status == "success") is not called.success:
        return False
    return not when.content or fnmatchcase(called.text, when.content)
