"""Machines over tool calls as a blueprint's `[[machines]]` tables declare them."""

from agentctl.blueprint.state_tables import MachineTable, MachineTransitionTable
from agentctl.protocol.tool_names import canonical_tool
from agentctl.state.machine import EVENT_PREFIX, Bound, Emit, Machine, Move, When


def machine_of(table: MachineTable) -> Machine:
    """Return the machine that a `[[machines]]` table declares. Pure."""
    return Machine(
        name=table.name,
        scope=table.scope,
        key=table.key,
        key_normaliser=table.key_normaliser,
        initial=table.initial,
        strict=table.strict,
        on_unmatched=table.on_unmatched,
        terminal=frozenset(table.terminal),
        moves=tuple(_move(move) for move in table.transitions),
        max_continuations=table.continuation.max,
        continuation_message=table.continuation.message,
    )


def _move(table: MachineTransitionTable) -> Move:
    emit = table.emit
    return Move(
        on=table.on if table.on.startswith(EVENT_PREFIX) else _canonical(table.on),
        origin=frozenset(table.from_),
        to=table.to,
        when=When(status=table.when.status, content=table.when.content),
        counters={name: Bound(gte=bound.gte, lte=bound.lte) for name, bound in table.counters.items()},
        capture=table.update.capture,
        increment=table.update.increment,
        reset=table.update.reset,
        emit=Emit(content=emit.content, target=emit.target, cooldown=emit.cooldown) if emit else None,
        on_violation=table.on_violation,
        reason=table.reason,
    )


def _canonical(on: str) -> str:
    tool, bracket, rest = on.partition("(")
    return canonical_tool(tool.rstrip()) + bracket + rest
