"""`[[policy_tests]]`: each call is prepared like a real one and judged by the real policy, and never run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agentctl.blueprint.model import Blueprint
from agentctl.errors import Position, Problem, ToolError
from agentctl.executor.api import Executor
from agentctl.policy.decide import decide
from agentctl.policy.layers import Layers
from agentctl.protocol.decisions import Decision
from agentctl.protocol.effects import Effect, ReachHost, SpawnAgent
from agentctl.protocol.tool_names import canonical_tool
from agentctl.protocol.values import JsonObject
from agentctl.tables.declared import PolicyTestCall, PolicyTestTable
from agentctl.toml.table import Table
from agentctl.tools.definition import Tool, ToolPlace
from agentctl.tools.places import reads, roots_of, writes


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyTestResult:
    """What became of one policy test."""

    call: str
    expect: str
    got: str
    """The verdict, or empty where the call could not be judged."""
    problem: Problem | None = None
    """What is wrong, or None where the test passed."""

    @property
    def passed(self) -> bool:
        """Whether the policy gave the expected verdict."""
        return self.problem is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """Judges calls that nobody makes, in the stages of one blueprint."""

    blueprint: Blueprint
    stages: Mapping[str, Layers]
    """The layers of each stage."""
    tools: Mapping[str, Tool]
    """Built-in tools by name; others are judged by their own entry alone."""
    executor: Executor
    place: ToolPlace

    async def decision(self, call: str | PolicyTestCall, stage: str) -> Decision:
        """Return the decision on a call, `"tool(text)"` or written out.

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
            text = rest.rpartition(")")[0] if bracket else ""
            effects = await self._effects(tool, text) if bracket else ()
        return decide(tool, effects, layers)

    async def _prepared(self, tool: str, arguments: JsonObject) -> tuple[Effect, ...]:
        found = self.tools.get(tool)
        return () if found is None else (await found.prepare(arguments, self.place)).effects

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


async def run_policy_tests(
    judge: Judge, tests: Sequence[PolicyTestTable], file: Table
) -> tuple[PolicyTestResult, ...]:
    """Return the outcome of each test, in order. `file` is the table whose `[[policy_tests]]` they are."""
    return tuple(
        [await _result(judge, test, file.position("policy_tests", index)) for index, test in enumerate(tests)]
    )


async def _result(judge: Judge, test: PolicyTestTable, position: Position) -> PolicyTestResult:
    words = test.call if isinstance(test.call, str) else test.call.tool
    got = why = ""
    try:
        decision = await judge.decision(test.call, test.stage)
    except ToolError as error:
        message = f"{words}: can't be judged: {error}"
    else:
        got = decision.verdict.word
        why = f": {decision.rule} at {decision.position}" if decision.rule else f": {decision.reason}"
        message = f"{words}: expected {test.expect}, got {got}{why}"
    if test.because:
        message += f" (because {test.because})"
    problem = None if got == test.expect else Problem(position=position, key="policy_tests", message=message)
    return PolicyTestResult(call=words, expect=test.expect, got=got, problem=problem)
