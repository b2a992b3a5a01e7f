"""What a result does to state, in call order: effects, keys, machines; and what the model sees of it."""

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from agentctl.agent.agent_state import AgentState
from agentctl.agent.results import Folded
from agentctl.agent.snapshot import RunSnapshot
from agentctl.protocol.commands import Command
from agentctl.protocol.events import Event, MessageAdded, Noted
from agentctl.protocol.messages import ToolCall, ToolMessage, ToolResult, user_text
from agentctl.protocol.values import JsonObject, JsonValue
from agentctl.state.cells import Cells
from agentctl.state.commit import Origin, assemble
from agentctl.state.cut import cut_and_stash
from agentctl.state.document import PatchError, add_with_parents
from agentctl.state.effects import StateEffectCall, parsed_result, run_effects
from agentctl.state.machine import EventsHeard
from agentctl.state.machines import advance, advance_on_event
from agentctl.state.pages import Bounds
from agentctl.state.pointer import PointerError, resolve
from agentctl.state.workspace import begun, document_of, has_document, patched, sequence_of
from agentctl.tools.state_keys import STATE_SET, command_of

_PAGED = frozenset({"shared_state"})
"""Tools whose results are pages already: cutting them would cut what was cut before."""
_STASH_NAMED = re.compile(r'full output: shared_state get "(tool-out-[^"]+)"')


@dataclass(slots=True, kw_only=True)
class StateFold:
    """Implements `ResultFold` over the agent's state."""

    state: AgentState
    snapshot: RunSnapshot
    bounds: Bounds
    stash: bool = True
    _staged: Cells | None = None
    """The cells as the calls of this step have left them so far; None between steps."""
    _stashed: dict[str, str] = field(default_factory=dict)
    """Call id → key of the stash that its result names."""

    @asynccontextmanager
    async def settling(self) -> AsyncIterator[None]:
        """Hold the state still from a step's first effect to its commit."""
        async with self.state.live.settling:
            self._staged = self.state.live.cells
            try:
                yield
            finally:
                self._staged = None

    async def fold(self, call: ToolCall, raw: ToolResult, shown: ToolResult, *, stage: str) -> Folded:
        """Return what joins the step's commit; each call sees the state that the ones before it left.

        The calls that a script tool made come before its own: they happened, whatever became of it.
        """
        events: list[Event] = []
        commands: list[Command] = []
        words: list[str] = []
        failure = ""
        for inner, result in self.snapshot.made_by(call.call_id):
            if result.outcome == "ok":
                failure = failure or await self._effects(inner, result, events, commands)
            if result.outcome in ("ok", "failed"):
                shown = self._machines(inner, result, shown, words, commands)
        if raw.outcome == "ok":
            failure = failure or await self._effects(call, raw, events, commands)
            shown = self._keys(call, shown, commands, stage)
        if raw.outcome in ("ok", "failed"):
            shown = self._machines(call, raw, shown, words, commands)
        result = await self._cut(call, shown, events, stage)
        said = tuple(MessageAdded(message=user_text(text, source="harness")) for text in words)
        return Folded(
            result=result,
            events=tuple(events),
            commands=tuple(commands),
            afterwards=said,
            failure=failure,
        )

    def told(self, event: str, data: JsonObject) -> Folded | None:
        """Return what an event around model calls does to machines, or None where it does nothing.

        An event that was told before a crash is not told again for the same step.
        """
        machines = [one for one in self.state.plan.machines if any(move.is_event for move in one.moves)]
        if not machines:
            return None
        step = self.snapshot.step + 1
        heard = EventsHeard.of(self._cells.view(self.state.run_id))
        waiting = heard.words if event == "before_model" else ()
        moved = []
        if heard.last.get(event) != step:
            cells = self._cells.view(self.state.run_id)
            moved = advance_on_event(machines, event, {**data, "step": step}, step, cells)
        words = (*waiting, *(one.say for one in moved if one.say))
        if not moved and not words:
            return None
        later = words if event == "after_model" else ()
        heard = EventsHeard(last={**heard.last, event: step}, words=later)
        now = () if later else words
        return Folded(
            result=_NOTHING,
            events=tuple(MessageAdded(message=user_text(text, source="harness")) for text in now),
            commands=(*(command for one in moved for command in one.commands), heard.stored()),
        )

    def begin(self) -> Folded | None:
        """Return what begins the thread's document, or None where that is done or there is none."""
        if not self.state.plan.initial or has_document(self.state.live.cells):
            return None
        commands, event = begun(self.state.plan.initial)
        return Folded(result=_NOTHING, events=(event,), commands=commands)

    def document_at(self, pointer: str) -> JsonValue:
        """Return the part of the state document at a JSON Pointer, or None where there is nothing."""
        try:
            return resolve(document_of(self.state.live.cells), pointer)
        except PointerError:
            return None

    def replace_document(self, pointer: str, text: str) -> Folded:
        """Return what puts a person's edit there: JSON if it is JSON, else the text itself."""
        value: JsonValue
        try:
            value = json.loads(text)
        except ValueError:
            value = text
        document = document_of(self.state.live.cells)
        try:
            patch = tuple(add_with_parents(document, pointer, value))
        except (PatchError, PointerError) as error:
            note = Noted(level="warning", text=f"the edit of {pointer} was left out: {error}", source="state")
            return Folded(result=_NOTHING, events=(note,))
        commands, event = patched(
            patch, sequence_of(self.state.live.cells) + 1, writer="person", source="person"
        )
        return Folded(result=_NOTHING, events=(event,), commands=commands)

    async def _effects(
        self, call: ToolCall, raw: ToolResult, events: list[Event], commands: list[Command]
    ) -> str:
        if not self.state.plan.effects:
            return ""
        seen = StateEffectCall(
            tool=call.tool,
            input=call.arguments,
            result=parsed_result(raw),
            agent=self.state.agent,
            run=self.state.run_id,
        )
        outcome = await run_effects(
            self.state.plan.effects, seen, document_of(self._cells), self.state.plan.ownership
        )
        for applied in outcome.patches:
            number = sequence_of(self._cells) + 1
            written, event = patched(applied.patch, number, writer=call.call_id, source=applied.source)
            events.append(event)
            self._stage(written, commands)
        events += [Noted(level="warning", text=text, source="state_effects") for text in outcome.warnings]
        return outcome.failed

    def _keys(self, call: ToolCall, shown: ToolResult, commands: list[Command], stage: str) -> ToolResult:
        if call.tool != STATE_SET:
            return shown
        key = next((key for key in self.state.writable(stage) if key.name == call.arguments.get("key")), None)
        if key is None:
            return replace(shown, outcome="failed", text="The key cannot be written in this stage.")
        command = command_of(key, call.arguments, call.call_id)
        # Tried on top of the step's other commands: two calls may each be fine and not go together.
        problem = self.state.problem_with((*commands, command))
        if problem:
            return replace(shown, outcome="failed", text=f"Not written: {problem}", structured=None)
        self._stage((command,), commands)
        return shown

    def _machines(
        self,
        call: ToolCall,
        raw: ToolResult,
        shown: ToolResult,
        words: list[str],
        commands: list[Command],
    ) -> ToolResult:
        if not self.state.plan.machines:
            return shown
        called = self.state.called(call, raw, step=self.snapshot.step)
        for moved in advance(self.state.plan.machines, called, self._cells.view(self.state.run_id)):
            self._stage(moved.commands, commands)
            if moved.say and moved.say_in == "result":
                shown = replace(shown, text=f"{shown.text}\n\n{moved.say}")
            elif moved.say:
                words.append(moved.say)
        return shown

    async def _cut(self, call: ToolCall, shown: ToolResult, events: list[Event], stage: str) -> ToolResult:
        if call.tool in _PAGED:
            return shown
        store = None
        # A key that the model has no tool to read would only send it astray.
        if self.stash and self.state.store is not None and self.state.stage(stage).offers_shared_state:
            store = self.state.store_of(stage).by(
                run=self.state.run_id, agent=self.state.agent, stage=stage, call=call.call_id
            )
            store.pin(self._named_stashes(), owner=self.state.run_id)
        kept = await cut_and_stash(
            shown.text, call.call_id, bounds=(self.bounds.lines, self.bounds.size_bytes), store=store
        )
        if kept.warning:
            events.append(Noted(level="warning", text=kept.warning, source="shared_state"))
        if kept.key:
            self._stashed[call.call_id] = kept.key
        return replace(shown, text=kept.text)

    def _named_stashes(self) -> list[str]:
        """The stashes that results in view name: what the model may still ask for."""
        keys = []
        for message in self.snapshot.messages[self.snapshot.window_from :]:
            if not isinstance(message, ToolMessage) or message.result.call_id in self.snapshot.cut_results:
                continue
            call_id = message.result.call_id
            if call_id not in self._stashed:
                named = _STASH_NAMED.search(message.result.text)
                self._stashed[call_id] = named[1] if named else ""
            if self._stashed[call_id]:
                keys.append(self._stashed[call_id])
        return keys

    @property
    def _cells(self) -> Cells:
        return self.state.live.cells if self._staged is None else self._staged

    def _stage(self, new: tuple[Command, ...], commands: list[Command]) -> None:
        if new:
            commands.extend(new)
            origin = Origin(run_id=self.state.run_id, thread_id=self.state.thread_id)
            self._staged = assemble(origin, (), new, keys=self.state.plan.keys, cells=self._cells).cells


_NOTHING = ToolResult(call_id="", tool="", outcome="ok", text="")
