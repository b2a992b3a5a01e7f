"""Notices an agent that goes round in circles: same calls, same results, alone or in a short cycle."""

from typing import TypeAlias

from agentctl.protocol.messages import AssistantMessage, Message, ToolMessage
from agentctl.protocol.values import JsonObject

_Step: TypeAlias = "list[tuple[str, JsonObject, tuple[str, str] | None]]"
"""The calls of a step: tool, arguments in whatever order they were written, outcome with text."""
_REPEATS = 3
_LONGEST_CYCLE = 4


def is_stuck(messages: list[Message]) -> bool:
    """Tell whether the last steps repeat: one step, or a cycle of two to four, three times in a row.

    Two steps are the same when they made the same calls with the same arguments and got the same results.
    A step without calls is never a repeat. Pure.
    """
    steps = _steps(messages, limit=_REPEATS * _LONGEST_CYCLE)
    for length in range(1, _LONGEST_CYCLE + 1):
        needed = length * _REPEATS
        tail = steps[-needed:]
        if len(tail) == needed and all(tail[i] == tail[i % length] for i in range(needed)):
            return True
    return False


def _steps(messages: list[Message], *, limit: int) -> list[_Step]:
    results: dict[str, tuple[str, str]] = {}
    steps: list[_Step] = []
    for message in reversed(messages):
        match message:
            case ToolMessage(result=result):
                results[result.call_id] = (result.outcome, result.text)
            case AssistantMessage():
                calls = message.tool_calls
                if not calls:
                    break
                # Compared as they are: making text of arguments costs more than a step has to spare.
                steps.append([(call.tool, call.arguments, results.get(call.call_id)) for call in calls])
            case _ if message.source == "task":
                break
            case _:
                continue
        if len(steps) == limit:
            break
    return steps[::-1]
