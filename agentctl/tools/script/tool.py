"""A script tool as the agent sees it: judged by its name's rule, its calls judged one by one."""

import json
from dataclasses import field
from typing import Literal

from agentctl.errors import ToolError
from agentctl.protocol.messages import ToolSpec
from agentctl.protocol.values import JsonObject, JsonValue
from agentctl.records import dataclass
from agentctl.tables.script_header import Script
from agentctl.tools.definition import ActContext, InnerCall, Prepared, ToolOutput, ToolPlace
from agentctl.tools.script.engine import Engine, HostAnswer, HostCall, Program
from agentctl.tools.script.host import Environment, answer_of, arguments_of, json_value

_MOST_RETURNED = 256 * 1024

Origin = Literal["user", "blueprint", "workdir"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptTool:
    """One script tool. Two are equal when their source is."""

    script: Script
    origin: Origin
    """Who brought it. One from the workdir was trusted by nobody: its source is shown before it runs."""
    engine: Engine = field(compare=False)
    environment: Environment = field(compare=False)

    @property
    def spec(self) -> ToolSpec:
        """What its header says."""
        script = self.script
        return ToolSpec(name=script.name, description=script.description, parameters=script.parameters)

    @property
    def aliases(self) -> tuple[str, ...]:
        """It has one name."""
        return ()

    @property
    def waits_for_person(self) -> bool:
        """A script can't ask by itself."""
        return False

    async def prepare(self, arguments: JsonObject, place: ToolPlace) -> Prepared:
        """Say what the call would do: by itself nothing, so its name's rule decides.

        Running it again is harmless: what it did through the host is answered from the journal.
        """
        del place
        filled = self.script.filled(arguments)
        shown = json.dumps(filled, indent=2, ensure_ascii=False)
        heading = f"script tool {self.script.name!r} ({self.script.file})\n{shown}"
        here = self.origin == "workdir"
        warning = "Nobody has trusted this source; it runs in a sandbox, and each of its calls is judged:"

        async def act(context: ActContext) -> ToolOutput:
            return await self._run(filled, context)

        return Prepared(
            effects=(),
            act=act,
            preview=f"{heading}\n\n{warning}\n\n{self.script.source}" if here else heading,
            read_only=True,
            source_key=f"{self.script.name}@{self.script.sha256[:16]}" if here else "",
        )

    async def _run(self, arguments: JsonObject, context: ActContext) -> ToolOutput:
        async def answer(call: HostCall) -> HostAnswer:
            given = arguments_of(call.name, call.positional, call.named)
            if isinstance(given, HostAnswer):
                return given
            inner = InnerCall(tool=call.name, arguments=given, written_here=self.origin == "workdir")
            result = await context.call_tool(inner)
            if call.name == "env" and result.outcome == "ok":
                return HostAnswer(value=self.environment.value(str(given.get("name", ""))))
            return answer_of(call.name, result)

        program = Program(
            file=self.script.file, source=self.script.source, arguments=arguments, seed=context.call_id
        )
        ended = await self.engine.run(program, answer, context.emit_output)
        said = f"{ended.printed}\n" if ended.printed else ""
        if ended.failure:
            return ToolOutput(text=f"{said}{ended.failure}", failed=True)
        value, text = self._returned(ended.value)
        return ToolOutput(text=f"{said}{text}", structured=value)

    def _returned(self, value: object) -> tuple[JsonValue, str]:
        if value is None:
            return None, "Done."
        plain = json_value(value)
        if plain is None:
            kind = type(value).__name__
            raise ToolError(f"{self.script.file}: run returned {kind}: not text, a number, a list or a dict.")
        text = plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)
        if len(text) > _MOST_RETURNED:
            raise ToolError(
                f"{self.script.file} returned {len(text):,} characters; at most {_MOST_RETURNED:,}."
            )
        return plain, text
