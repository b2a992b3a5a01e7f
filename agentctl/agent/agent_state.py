"""What one agent knows and may change: the thread's cells as its blueprint's stages may use them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace

import anyio

from agentctl.errors import StateConflict
from agentctl.policy.shell.analyse import analyse
from agentctl.protocol.commands import Command, FoldValue, Merge
from agentctl.protocol.effects import RunProgram
from agentctl.protocol.messages import ToolCall, ToolResult
from agentctl.protocol.values import JsonObject, JsonValue
from agentctl.records import dataclass
from agentctl.state.cells import Cells, CellView
from agentctl.state.commit import Origin, assemble
from agentctl.state.effects import Ownership, StateEffect
from agentctl.state.keys import NO_KEYS, KeyDefinition, KeyTable
from agentctl.state.machine import Machine
from agentctl.state.machines import Called, GateOutcome, advance, gate, unfinished
from agentctl.state.shared_state import SharedState
from agentctl.state.templates import fill_text
from agentctl.state.views import ViewFunction

_CONTINUATIONS = "agentctl/machine-continuations"


@dataclass(slots=True, kw_only=True)
class LiveState:
    """The committed cells of a thread, shared by all agents that run on it."""

    thread_id: str
    cells: Cells = field(default_factory=Cells)
    settling: anyio.Lock = field(default_factory=anyio.Lock)
    """Held from the first effect of a step to its commit: what is computed from the cells is committed on
    the same cells, whatever other agents do meanwhile."""
    committing: anyio.Lock = field(default_factory=anyio.Lock)
    """Held while a commit with commands goes from the cells it builds on to the cells after it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageState:
    """What a stage may see and change of the state."""

    read: tuple[str, ...] = ()
    """State keys that the model may read."""
    write: tuple[str, ...] = ()
    """State keys that the model may write, and read."""
    workspace: tuple[str, ...] = ()
    """Pointers into the document that the model is shown."""
    views: tuple[tuple[str, ViewFunction], ...] = ()
    scope: str = ""
    """The only part of shared state that it sees; the agent's whole view where empty."""
    grants: tuple[str, ...] = ()
    """Keys of the agent's whole view that it may read."""
    offers_shared_state: bool = True
    """Whether its model can read what was stashed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatePlan:
    """What a blueprint says about state, ready to use."""

    keys: KeyTable = NO_KEYS
    effects: tuple[StateEffect, ...] = ()
    ownership: Ownership = field(default_factory=Ownership)
    initial: JsonObject = field(default_factory=dict)
    """The document of a fresh thread."""
    machines: tuple[Machine, ...] = ()
    stages: Mapping[str, StageState] = field(default_factory=dict)
    sources: frozenset[str] = frozenset()
    """SHA-256 of the blueprints that said it."""

    def within(self, outer: "StatePlan") -> "StatePlan":
        """Return what holds for a sub-agent: its parent's effects and machines, then its own.

        The parent's machines judge its calls; those of the thread do not hold it at its end, since finishing
        them is the parent's.

        Raises:
            StateConflict: both have a state key of one name, and the definitions differ.
        """
        again = self.sources <= outer.sources  # a worker stage, or a blueprint below itself
        above = (
            machine if machine.scope == "run" else replace(machine, max_continuations=0)
            for machine in outer.machines
        )
        return StatePlan(
            keys=outer.keys if again else KeyTable((*outer.keys.definitions, *self.keys.definitions)),
            effects=(*outer.effects, *(() if again else self.effects)),
            ownership=outer.ownership,
            initial=outer.initial or self.initial,
            machines=(*above, *(() if again else self.machines)),
            stages=self.stages,
            sources=self.sources | outer.sources,
        )


@dataclass(slots=True, kw_only=True)
class AgentState:
    """One agent's hold on state. Reads what is committed; changes go through commits."""

    run_id: str
    thread_id: str
    agent: str
    live: LiveState
    plan: StatePlan = field(default_factory=StatePlan)
    store: SharedState | None = None
    """The agent's view of shared state; None where it has none."""
    made_by: Callable[[str], Sequence[tuple[ToolCall, ToolResult]]] = lambda _call_id: ()
    """Returns the calls that ran inside a script tool's call which is not settled yet."""
    workdir: str = ""
    """Where relative paths begin, so that a machine knows two spellings of one path as one."""

    @property
    def cells(self) -> CellView:
        """The committed cells, as this run sees them."""
        return self.live.cells.view(self.run_id)

    def stage(self, name: str) -> StageState:
        """Return what a stage may see; nothing for one that says nothing."""
        return self.plan.stages.get(name) or StageState()

    def store_of(self, stage: str) -> SharedState:
        """Return a stage's view of shared state; an empty one of its own where the agent has none.

        What a stage may read besides its scope are keys of the agent's own view: a sub-agent's blueprint
        gives itself nothing that its parent did not lend it.
        """
        store, own = self.store or SharedState(), self.stage(stage)
        view = store.scoped(own.scope) if own.scope else store
        return view.granting((*store.grants, *store.as_grants(own.grants)))

    def gate(self, call: ToolCall) -> GateOutcome:
        """Return what the machines say to a call; to one of a script tool, after those that it made before.

        Raises:
            StateConflict: a machine's stored state cannot be read.
        """
        if not self.plan.machines:
            return GateOutcome()
        cells = self.live.cells
        for before, result in self.made_by(call.call_id.rpartition("/")[0]):
            for moved in advance(self.plan.machines, self.called(before, result), cells.view(self.run_id)):
                origin = Origin(run_id=self.run_id, thread_id=self.thread_id)
                cells = assemble(origin, (), moved.commands, keys=self.plan.keys, cells=cells).cells
        arguments = self.spelled(call.arguments)
        return gate(self.plan.machines, call.tool, arguments, cells.view(self.run_id), said=self.said(call))

    def called(self, call: ToolCall, result: ToolResult, *, step: int = 0) -> Called:
        """Return a call that ran as machines see it."""
        return Called(
            tool=call.tool,
            arguments=self.spelled(call.arguments),
            success=result.outcome == "ok",
            text=result.text,
            step=step,
            said=self.said(call),
        )

    def said(self, call: ToolCall) -> tuple[str, ...]:
        """Return each command of a shell line in its own words, for moves that are about some of them."""
        line = call.arguments.get("command")
        if call.tool != "shell" or not isinstance(line, str):
            return ()
        analysis = analyse(line, cwd=self.workdir or "/", home="/")
        return tuple(" ".join(effect.argv) for effect in analysis.effects if isinstance(effect, RunProgram))

    def spelled(self, arguments: JsonObject) -> JsonObject:
        """Return arguments with absolute paths below the workdir written relative to it, for machine keys."""
        inside = f"{self.workdir}/"
        return {
            name: value.removeprefix(inside) if self.workdir and isinstance(value, str) else value
            for name, value in arguments.items()
        }

    def continuation(self) -> tuple[str, Command] | None:
        """Return the words that send the model back to unfinished machines, and the command that counts it.

        None where nothing is unfinished, or the model was sent back often enough.
        """
        waiting = unfinished(self.plan.machines, self.cells)
        counted = self.cells.get("run", _CONTINUATIONS)
        count = counted if isinstance(counted, int) else 0
        machines = [machine for machine in self.plan.machines if machine.max_continuations > count]
        if not waiting or not machines:
            return None
        summary = ", ".join(waiting)
        words = machines[0].continuation_message or "Finish this first: {summary}"
        command = Command(
            scope="run",
            key=_CONTINUATIONS,
            action=FoldValue(value=1, fold="sum"),
            merge=Merge.FOLD,
            writer="machines",
        )
        return fill_text(words, {"summary": summary}), command

    def readable(self, stage: str) -> tuple[KeyDefinition, ...]:
        """Return the keys that a stage's model may read."""
        own = self.stage(stage)
        return self._named((*own.read, *own.write))

    def writable(self, stage: str) -> tuple[KeyDefinition, ...]:
        """Return the keys that a stage's model may write."""
        return self._named(self.stage(stage).write)

    def load(self, key: KeyDefinition) -> JsonValue:
        """Return a key's value, or its default.

        Raises:
            StateConflict: the stored value is not what the key says.
        """
        return key.load(self.cells)

    def problem_with(self, commands: Sequence[Command]) -> str:
        """Return why a commit would refuse these commands, or empty."""
        origin = Origin(run_id=self.run_id, thread_id=self.thread_id)
        try:
            assemble(origin, (), commands, keys=self.plan.keys, cells=self.live.cells)
        except StateConflict as error:
            return error.message
        return ""

    def _named(self, names: tuple[str, ...]) -> tuple[KeyDefinition, ...]:
        found = (self.plan.keys.named(name) for name in dict.fromkeys(names))
        return tuple(key for key in found if key is not None)
