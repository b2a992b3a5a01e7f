"""What can be told of a machine over tool calls before it runs."""

from agentctl.blueprint.state_tables import MachineTable


def reachable_states(machine: MachineTable) -> frozenset[str]:
    """Return the states that some order of calls leads to, the initial one included."""
    found = {machine.initial}
    while True:
        onward = {move.to for move in machine.transitions if found & set(move.from_)}
        if machine.on_unmatched and any(found & set(move.from_) for move in machine.transitions):
            onward.add(machine.on_unmatched)
        if onward <= found:
            return frozenset(found)
        found |= onward


def unreachable_states(machine: MachineTable) -> tuple[str, ...]:
    """Return the states that no order of calls leads to, sorted."""
    named = {state for move in machine.transitions for state in (*move.from_, move.to)}
    return tuple(sorted((named | set(machine.terminal)) - reachable_states(machine)))


def denied_everywhere(machine: MachineTable) -> tuple[str, ...]:
    """Return the tools, as written in `on`, that no reachable state allows, sorted."""
    states = reachable_states(machine)
    tools = {move.on for move in machine.transitions if not move.on.startswith("event:")}
    allowed = {move.on for move in machine.transitions if states & set(move.from_)}
    denied = {move.on for move in machine.transitions if move.on_violation == "deny"}
    return tuple(sorted((tools & denied) - allowed))
