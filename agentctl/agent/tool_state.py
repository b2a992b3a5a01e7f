"""Everything one agent needs to execute a tool call: tools, policy layers, budgets, grants, interaction."""

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Literal

from agentctl.agent.agent_state import AgentState
from agentctl.agent.descriptions import Descriptions, told
from agentctl.agent.hooks import Hooks
from agentctl.agent.results import ResultFold
from agentctl.agent.script_reach import Reach, script_reach
from agentctl.agent.tool_state_parts import StageRules, ToolStateParts
from agentctl.errors import LimitReached
from agentctl.interaction.unattended import what_instead
from agentctl.policy.budgets import Budgets, CallCost, Reservation, StepCost, may_write
from agentctl.policy.containment import refused_place
from agentctl.policy.cover import Lifts, after_answer, cover, decide_and_cover, used_grants
from agentctl.policy.decide import decide, decide_as_a_whole, readable_below
from agentctl.policy.grants import key_rule, propose
from agentctl.policy.layers import BoundRule, Layers, bind_rules
from agentctl.policy.narrow import narrowed, unseen
from agentctl.policy.refusals import Refusal
from agentctl.policy.way_out import YOLO, flags_for
from agentctl.protocol.decisions import Decision, Grant, Verdict
from agentctl.protocol.effects import WritePath
from agentctl.protocol.events import ToolCallDecided
from agentctl.protocol.messages import ToolCall, ToolSpec, Usage
from agentctl.protocol.questions import Asker
from agentctl.protocol.values import JsonObject
from agentctl.records import dataclass
from agentctl.tools.definition import Prepared, Tool, ToolOutput, ToolPlace
from agentctl.tools.outside import Note, OutsideTool, Wanted
from agentctl.tools.registry import CheckedArguments, InvalidArguments, ToolRegistry, refusal_of_unknown
from agentctl.tools.stage import submit_output_tool, transition_tool


def build_tool_state(parts: ToolStateParts) -> "ToolState":
    """Return the tool state of one agent, before its first stage."""
    return ToolState(parts=parts, registry=ToolRegistry(parts.tools), layers=parts.layers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewed:
    """What happened to the tools from outside since the last step."""

    notes: tuple[Note, ...] = ()
    taken_back: tuple[str, ...] = ()
    """Grants that hold no longer; to be committed as revoked."""


@dataclass(slots=True, kw_only=True)
class ToolState:
    """One agent's tools and everything that decides about their calls. Belongs to that agent alone."""

    parts: ToolStateParts
    registry: ToolRegistry
    layers: Layers
    """With the rules of the current stage."""
    stage: StageRules | None = None
    offered: tuple[str, ...] = ()
    remembered: tuple[BoundRule, ...] = field(default=())
    sandboxed: bool = False
    """A sandbox is in force for this stage's processes; only then can it lift an ask."""
    _own: tuple[Tool, ...] = ()
    """The stage's own: `transition`, `submit_output`."""
    _outside: tuple[OutsideTool, ...] = ()
    place: ToolPlace = field(init=False)
    """The agent's view of the machine, in this stage."""
    _descriptions: Descriptions = field(default_factory=Descriptions)

    def __post_init__(self) -> None:
        self.remembered = self.parts.remembered
        self.place = self.parts.place

    @property
    def hooks(self) -> Hooks:
        """All hooks of the run, as one."""
        return self.parts.hooks

    @property
    def fold(self) -> ResultFold:
        """What results do to state."""
        return self.parts.fold

    @property
    def state(self) -> AgentState:
        """What the agent knows and may change."""
        return self.parts.state

    @property
    def budgets(self) -> Budgets:
        """The agent's view of the tree's one budget object."""
        return self.parts.budgets

    @property
    def on_ask(self) -> Literal["deny", "pause"]:
        """What an ask becomes when nobody is there."""
        return self.parts.on_ask

    @property
    def interaction_timeout_s(self) -> float:
        """Seconds until a question expires; 0 waits for ever."""
        return self.parts.interaction_timeout_s

    def enter_stage(self, index: int, edges: Mapping[str, str], output: JsonObject | None) -> None:
        """Swap permissions, offered tools, required tools and stage grants at once.

        `edges` are the open transitions with their hints; `output` is the stage's schema. Stage grants of
        another stage are dropped, those of the same stage kept.
        """
        stage = self.parts.stages[index]
        own: list[Tool] = []
        if len(edges) > 1:
            own.append(transition_tool(edges))
        if output is not None:
            own.append(submit_output_tool(output))
        self.stage, self._own = stage, tuple(own)
        self.layers = self.parts.layers.in_stage(stage.permissions)
        below = partial(readable_below, layers=self.layers)
        self.place = replace(self.parts.place, stage=stage.name, sandbox=stage.sandbox, readable_below=below)
        self.parts.grants.enter_stage(index)
        if stage.ceilings is not None:
            self.parts.budgets.set_ceilings(stage.ceilings)
        self._outside = self.parts.outside.tools()
        self._offer(stage)

    async def renew(self) -> Renewed:
        """Wait for the outside tools this stage wants, take in which there are now; return what happened.

        Called before each step. What is offered changes only here and with the stage. An approval was given
        for a tool as its server described it: where it says something else now, what was approved is taken
        back, and the next call asks again. A rule that somebody wrote for the name stays.
        """
        if self.stage is None or not self.parts.outside.each:
            return Renewed()
        wanted = Wanted(tools=self.stage.available, connectors=self.stage.connectors)
        await self.parts.outside.ready(wanted)
        found = self.parts.outside.tools()
        if found != self._outside:
            self._outside = found
            self._offer(self.stage)
        otherwise = self._descriptions.learn(self._outside, self.remembered)
        given = {grant.key for grant in self.parts.grants.active}
        self.remembered = tuple(rule for rule in self.remembered if self._descriptions.holds(rule, otherwise))
        notes = (*self.parts.outside.take_notes(), *map(told, otherwise))
        return Renewed(notes=notes, taken_back=tuple(name for name in otherwise if name in given))

    def _offer(self, stage: StageRules) -> None:
        """A tool from outside never stands for one of our own, under its name or an alias of it."""
        inside = (*self.parts.tools, *self.parts.host_tools, *self._own)
        taken = {name for tool in inside for name in (tool.spec.name, *tool.aliases)}
        others = [one.tool for one in self._outside if one.tool.spec.name not in taken]
        self.registry = ToolRegistry((*self.parts.tools, *others, *self._own))
        self.offered = (*self._available(stage), *(tool.spec.name for tool in self._own))

    def _available(self, stage: StageRules) -> Iterable[str]:
        connectors = {one.tool.spec.name: one.connector for one in self._outside}
        own = {tool.spec.name for tool in self._own}
        for name in self.registry.names:
            tool = self.registry.find(name)
            if tool is None or name in own:
                continue
            connected = name in connectors and connectors[name] in stage.connectors
            if not connected and not any(_names(pattern, tool) for pattern in stage.available):
                continue
            if self.parts.unattended and tool.waits_for_person and name not in stage.required:
                continue
            if name in connectors and self.decide_as_a_whole(name).verdict is Verdict.DENY:
                continue  # a server may have a hundred tools: those that a rule forbids cost no prompt
            yield name

    def offered_specs(self) -> tuple[ToolSpec, ...]:
        """Return the specs of the tools this stage offers, in a stable order."""
        return self.registry.specs(self.offered)

    def is_offered(self, name: str) -> bool:
        """Return whether a tool of that name or alias is offered in this stage."""
        return self.registry.canonical(name) in self.offered

    def reach(self) -> Reach:
        """Return what the model may call in this stage."""
        return Reach(registry=self.registry, offered=self.offered, refusal=self._refusal)

    def script_reach(self, *, written_here: bool) -> Reach:
        """Return what a script tool may call in this stage; `written_here`: nobody trusted it before."""
        host = ToolRegistry(self.parts.host_tools)
        return script_reach(host, self.parts.script_permissions, self.offered, written_here=written_here)

    def _refusal(self, name: str) -> str:
        unknown = refusal_of_unknown(name, self.offered)
        canonical = self.registry.canonical(name)
        there = self.registry.find(canonical) is not None
        return unknown if there else f"{self.parts.outside.why_missing(canonical)} {unknown}".strip()

    def fault_of(self, call: ToolCall, reach: Reach) -> str | None:
        """Return why a call cannot even be judged: not within reach, or arguments its schema forbids."""
        checked = _check(call, reach)
        return checked.text if isinstance(checked, InvalidArguments) else None

    def normal(self, call: ToolCall, reach: Reach) -> ToolCall:
        """Return the call with the tool's own name and arguments mended to its schema; it has no fault."""
        checked = _check(call, reach)
        if isinstance(checked, InvalidArguments):
            return call
        return replace(call, tool=reach.registry.canonical(call.tool), arguments=checked.arguments)

    async def prepare(self, call: ToolCall, reach: Reach) -> Prepared:
        """Return what the call would do. Raises ToolError for what the model can mend."""
        tool = reach.registry.find(call.tool)
        assert tool is not None, "fault_of was asked first"  # noqa: S101
        return await tool.prepare(call.arguments, self.place)

    def outside(self, call: ToolCall, prepared: Prepared) -> str:
        """Return why containment refuses the call, or empty. Holds in every mode."""
        roots = (str(self.place.workdir), str(self.place.temp))
        return refused_place(call.tool, prepared.effects, roots)

    def decide(self, call: ToolCall, prepared: Prepared) -> Decision:
        """Return the policy's decision, with every ask lifted that a grant or the like covers.

        Machines over tool calls have the last word, and can only narrow it.

        Raises:
            StateConflict: a machine's stored state cannot be read.
        """
        decision = decide_and_cover(call.tool, prepared.effects, self.layers, self._lifts(prepared))
        if prepared.source_key and not self._has_seen(prepared.source_key):
            decision = unseen(call.tool, decision, prepared.source_key)
        said = self.parts.state.gate(call)
        if said.verdict == "allow":
            return decision
        return narrowed(call.tool, decision, said.verdict, machine=said.machine, reason=said.reason)

    def _has_seen(self, source_key: str) -> bool:
        """Whether a person approved a call with this very source in this run."""
        return any(grant.key == source_key for grant in self.parts.grants.active)

    def decide_as_a_whole(self, tool: str) -> Decision:
        """Return what holds for a tool before anything is known of a call, grants included."""
        nothing_seen = Lifts(
            safe_list=self.parts.safe_list, grants=self.parts.grants, remembered=self.remembered
        )
        return cover(tool, decide_as_a_whole(tool, self.layers), nothing_seen)

    def approved(self, call: ToolCall, prepared: Prepared) -> Decision:
        """Return the decision after a person approved this very call."""
        return after_answer(call.tool, self.decide(call, prepared))

    def workdir_read_only(self, decision: Decision) -> bool:
        """Return whether the sandbox lifted an ask on condition that the workdir cannot be written."""
        by_sandbox = any(judgement.lift == "sandbox" for judgement in decision.judgements)
        return by_sandbox and not self._may_write_anything()

    def _may_write_anything(self) -> bool:
        """Whether any file of the workdir may be written without a word from a person."""
        anywhere = WritePath(path=str(self.place.workdir / "any-file"))
        return decide("write_file", (anywhere,), self.layers).verdict is Verdict.ALLOW

    def _lifts(self, prepared: Prepared) -> Lifts:
        sees_write = any(isinstance(effect, WritePath) for effect in prepared.effects)
        auto_allow = self.sandboxed and self.place.sandbox.auto_allow
        return Lifts(
            safe_list=self.parts.safe_list,
            grants=self.parts.grants,
            remembered=self.remembered,
            sandbox_auto_allow=auto_allow and (not sees_write or self._may_write_anything()),
        )

    def propose(self, decision: Decision) -> tuple[str, ...]:
        """Return the exact keys that remembering an approval would store; empty when none may be."""
        return propose(decision)

    def take_grants(self, grants: tuple[Grant, ...]) -> None:
        """Take in grants that a person gave and the journal has."""
        for grant in grants:
            self.parts.grants.give(grant)

    def take_back(self, key: str) -> None:
        """Forget a grant that a person revoked and the journal has."""
        self.parts.grants.revoke(key)

    def use_grants(self, decision: Decision) -> tuple[str, ...]:
        """Count the call against the grants that covered it; return the keys that were counted."""
        keys = used_grants(decision)
        for key in keys:
            self.parts.grants.use(key)
        return keys

    async def remember(self, keys: tuple[str, ...]) -> None:
        """Write `keys` into the user's config, for every run from now on and for this one at once."""
        for key in keys:
            await self.parts.store_rule(key, self._descriptions.of(key))
        rules = bind_rules(map(key_rule, keys), self.layers.place)
        described = (replace(rule, described=self._descriptions.of(rule.tool)) for rule in rules)
        self.remembered = (*self.remembered, *described)

    def way_out(self, decision: Decision) -> tuple[tuple[str, ...], str]:
        """Return the `--allow` rules that would have let a refused ask through, or what to write instead."""
        rules = flags_for(decision, self.layers)
        if rules == (YOLO,):
            return (), "start the run with --yolo, or answer it on a terminal"
        return rules, "" if rules else what_instead(decision.held)

    def asker(self) -> Asker:
        """Return who asks, for a question."""
        return Asker(
            run_id=self.parts.run_id,
            agent=self.parts.agent,
            stage=self.stage.name if self.stage else "",
            parent=self.parts.parent_run,
        )

    def insists(self, tool: str) -> bool:
        """Return whether the stage keeps this waiting tool through an unattended run."""
        return self.stage is not None and tool in self.stage.required

    async def reserve(self, call: ToolCall, prepared: Prepared, decision: Decision) -> Reservation:
        """Take room in the budgets for a call.

        Raises:
            LimitReached: a ceiling would be passed; nothing was taken.
        """
        paths = [effect.path for effect in prepared.effects if isinstance(effect, WritePath)]
        where = Path(paths[0]) if paths else self.place.workdir
        unseen = prepared.measures_workdir and not prepared.effects
        writes = unseen or (may_write(decision) and (bool(paths) or prepared.measures_workdir))
        cost = CallCost(
            tool=call.tool,
            effects=prepared.effects,
            writes=writes,
            bytes_written=prepared.declared_bytes,
            files_written=prepared.declared_files,
            free_bytes=await self.parts.free_bytes(where) if writes else None,
        )
        return _granted(self.budgets.reserve_call(cost))

    def settle(self, reservation: Reservation, output: ToolOutput) -> ToolOutput:
        """Replace what was reserved by what really happened; a ceiling that it went over is told with it."""
        passed = self.budgets.settle_call(reservation, output.bytes_written, output.files_written)
        return replace(output, text=f"{output.text}\n[{passed}]".lstrip("\n")) if passed else output

    def count_in_doubt(self, begun: ToolCallDecided) -> None:
        """Count a call that may have happened before a crash: its rules in `limits.calls` count it as run."""
        effects = tuple(one.effect for one in begun.decision.judgements if one.effect is not None)
        self.budgets.count_in_doubt(CallCost(tool=begun.tool, effects=effects))

    def release(self, reservation: Reservation) -> None:
        """Give back what was reserved for a call that did not happen. Idempotent."""
        self.budgets.release(reservation)

    def reserve_step(self, cost: StepCost) -> Reservation:
        """Take room for a model call.

        Raises:
            LimitReached: steps, tokens, money or time do not allow another one.
        """
        return _granted(self.budgets.reserve_step(cost))

    def settle_step(self, reservation: Reservation | None, usage: Usage) -> None:
        """Replace what was reserved for a model call by what it used."""
        self.budgets.settle_step(reservation, usage.input_tokens + usage.output_tokens, usage.cost_usd)


def _check(call: ToolCall, reach: Reach) -> CheckedArguments:
    name = reach.registry.canonical(call.tool)
    tool = reach.registry.find(name)
    if tool is None or name not in reach.offered:
        return InvalidArguments(text=reach.refusal(call.tool))
    return reach.registry.check(tool, call)


def _granted(answer: Reservation | Refusal) -> Reservation:
    if isinstance(answer, Reservation):
        return answer
    reached = LimitReached(answer.key, used=answer.used, ceiling=answer.ceiling, message=answer.message)
    reached.above = answer.above
    raise reached


def _names(pattern: str, tool: Tool) -> bool:
    return any(fnmatchcase(name, pattern) for name in (tool.spec.name, *tool.aliases))
