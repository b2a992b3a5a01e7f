"""Which blueprints a client is offered, under which names, and what a call must say."""

import re
from collections.abc import Iterable
from pathlib import Path

from agentctl.blueprint.model import Blueprint
from agentctl.errors import UsageError
from agentctl.protocol.events import LaunchFlags
from agentctl.protocol.values import JsonObject, JsonValue
from agentctl.records import dataclass
from agentctl.run.start import Order

_OWN = ("task", "thread")


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """A blueprint as a tool."""

    name: str
    blueprint: Blueprint

    @property
    def description(self) -> str:
        """What the client's model reads."""
        return self.blueprint.agent.description or f"Run the agent {self.blueprint.name}."

    @property
    def schema(self) -> JsonObject:
        """JSON Schema of a call: the task, the blueprint's inputs, and a thread to continue."""
        properties: JsonObject = {
            "task": {"type": "string", "description": "What the agent is to do."},
            "thread": {"type": "string", "description": "A thread that an earlier call returned, to go on."},
        }
        required: list[JsonValue] = ["task"]
        for name, table in self.blueprint.inputs.items():
            if name in _OWN:
                continue
            described: JsonObject = {"type": "string", "description": table.description}
            if table.choices:
                described["enum"] = list(table.choices)
            if table.default is not None:
                described["default"] = table.default
            elif table.required:
                required.append(name)
            properties[name] = described
        return {
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": False,
        }

    def order(self, arguments: JsonObject, workdir: Path, flags: LaunchFlags) -> Order:
        """Return what a call asks for.

        Raises:
            UsageError: an argument is not text, or there is no task.
        """
        if "task" not in arguments:
            raise UsageError("task is missing: it says what the agent is to do.")
        for name, value in arguments.items():
            if not isinstance(value, str):
                raise UsageError(f"{name} must be text.")
        texts = {name: str(value) for name, value in arguments.items()}
        return Order(
            task=texts.pop("task", ""),
            thread_id=texts.pop("thread", ""),
            inputs=texts,
            workdir=workdir,
            flags=flags,
        )


def offered(blueprints: Iterable[Blueprint]) -> dict[str, Offered]:
    """Return the blueprints by tool name; of two with one name the first counts."""
    found: dict[str, Offered] = {}
    for blueprint in blueprints:
        name = re.sub(r"[^A-Za-z0-9_-]", "_", blueprint.name)[:64]
        found.setdefault(name, Offered(name=name, blueprint=blueprint))
    return found
