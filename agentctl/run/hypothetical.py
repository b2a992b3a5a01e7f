"""Calls that nobody makes, judged as if somebody did: for policy tests, `plan` and `why`."""

from collections.abc import Mapping
from pathlib import Path

from agentctl.blueprint.model import Blueprint
from agentctl.blueprint.tool_rules import tool_names
from agentctl.clock import Clock
from agentctl.errors import ToolError
from agentctl.executor.api import Executor
from agentctl.policy.containment import refused_place
from agentctl.policy.cover import Lifts, cover
from agentctl.policy.decide import decide, decide_as_a_whole
from agentctl.policy.grants import GrantBook
from agentctl.policy.layers import NO_LAUNCH, Launch, Layers, bind_rules
from agentctl.policy.paths import Place
from agentctl.policy.protected import protected_paths
from agentctl.policy.safe_data import safe_list
from agentctl.protocol.decisions import Decision
from agentctl.protocol.effects import Effect, ReachHost, SpawnAgent
from agentctl.protocol.messages import ToolCall
from agentctl.protocol.tool_names import canonical_tool
from agentctl.protocol.values import JsonObject
from agentctl.records import dataclass
from agentctl.run.agent_kind import own_places
from agentctl.run.policy_layers import in_stage, layers_of
from agentctl.run.read_paths import granted_read_paths
from agentctl.settings.rules import remembered_rules, shipped_table
from agentctl.settings.settings import Settings
from agentctl.tables.declared import PolicyTestCall
from agentctl.tools.built_in import built_in_tools
from agentctl.tools.definition import Tool, ToolPlace
from agentctl.tools.places import reads, roots_of, writes
from agentctl.tools.registry import InvalidArguments, ToolRegistry, ValidArguments


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """Judges calls in the stages of one blueprint by its layers and the safe list. No grant is given yet."""

    blueprint: Blueprint
    stages: Mapping[str, Layers]
    """The layers of each stage."""
    lifts: Lifts
    tools: Mapping[str, Tool]
    """Built-in tools by name; others are judged by their own entry alone."""
    executor: Executor
    place: ToolPlace

    async def decision(self, call: str | PolicyTestCall, stage: str = "") -> Decision:
        """Return the decision on a call, `"tool(text)"` or written out; the entry stage where none is named.

        Looks at the machine to resolve paths, and changes nothing.

        Raises:
            ToolError: the call can't be prepared; the text says why.
        """
        layers = self.stages[stage or self.blueprint.entry.name]
        if isinstance(call, PolicyTestCall):
            tool = canonical_tool(call.tool)
            effects = await self._prepared(tool, call.arguments)
        else:
            name, bracket, rest = call.partition("(")
            tool = canonical_tool(name.strip())
            if not bracket:
                return decide_as_a_whole(tool, layers)
            effects = await self._effects(tool, rest.rpartition(")")[0])
        return cover(tool, decide(tool, effects, layers), self.lifts)

    def refused(self, tool: str, decision: Decision) -> str:
        """Return why the call is refused whatever the rules say: it would leave the workdir; or empty."""
        effects = [one.effect for one in decision.judgements if one.effect is not None]
        return refused_place(tool, effects, (str(self.place.workdir),))

    async def _prepared(self, tool: str, arguments: JsonObject) -> tuple[Effect, ...]:
        found = self.tools.get(tool)
        if found is None:
            return ()
        call = ToolCall(call_id="", tool=tool, arguments=arguments)
        match ToolRegistry((found,)).check(found, call):
            case InvalidArguments(text=text):
                raise ToolError(" ".join(text.split()))
            case ValidArguments(arguments=checked):
                return (await found.prepare(checked, self.place)).effects

    async def _effects(self, tool: str, text: str) -> tuple[Effect, ...]:
        match tool:
            case "shell":
                return await self._prepared("shell", {"command": text})
            case "write_file" | "edit_file":
                return (writes(await self.executor.resolve(text, roots_of(self.place)), self.place),)
            case "read_file" | "list_dir" | "grep" | "glob":
                return (reads(await self.executor.resolve(text, roots_of(self.place))),)
            case "network":
                return (ReachHost(host=text.lower()),)
            case "spawn_agent" | "fan_out":
                return (SpawnAgent(agent=text),)
            case _:
                raise ToolError(f"{tool} takes no text in brackets; write {{ tool, arguments }}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Where hypothetical calls would act."""

    workdir: Path
    """Absolute and resolved."""
    home: Path
    executor: Executor
    clock: Clock


def judge_of(settings: Settings, blueprint: Blueprint, machine: Machine, launch: Launch = NO_LAUNCH) -> Judge:
    """Return the judge of calls under these settings and flags. May block: reads the shipped policy.

    Raises:
        InvalidInput: a rule names an unknown tool.
    """
    place = Place(workdir=str(machine.workdir), home=str(machine.home))
    names = tool_names(blueprint)
    layers = layers_of(settings, blueprint, place, launch=launch)
    safe = safe_list(shipped_table("safe_commands.toml"), settings.table.table("safe_commands"), names=names)
    return Judge(
        blueprint=blueprint,
        stages={name: in_stage(layers, blueprint, name, names) for name in blueprint.stages},
        lifts=Lifts(
            safe_list=safe,
            grants=GrantBook(place),
            remembered=bind_rules(remembered_rules(settings, names.known), place),
        ),
        tools={tool.spec.name: tool for tool in built_in_tools(machine.executor, machine.clock)},
        executor=machine.executor,
        place=ToolPlace(
            workdir=machine.workdir,
            temp=machine.workdir,
            home=machine.home,
            why_protected=protected_paths(place, own_places(blueprint)).why,
            read_paths=granted_read_paths(settings, blueprint, place),
        ),
    )
