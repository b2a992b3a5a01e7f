"""Notices an agent that goes round in circles: same calls, same results, alone or in a short cycle."""

import json

from agentctl.protocol.messages import AssistantMessage, Message, ToolCall, ToolMessage

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


def _steps(messages: list[Message], *, limit: int) -> list[str]:
    results: dict[str, str] = {}
    steps: list[str] = []
    for message in reversed(messages):
        match message:
            case ToolMessage(result=result):
                results[result.call_id] = f"{result.outcome}:{result.text}"
            case AssistantMessage() if message.tool_calls:
                calls = [f"{_words(call)}→{results.get(call.call_id, '')}" for call in message.tool_calls]
                steps.append("\n".join(calls))
            case AssistantMessage():
                break
            case _ if message.source == "task":
                break
            case _:
                continue
        if len(steps) == limit:
            break
    return steps[::-1]


def _words(call: ToolCall) -> str:
    """A call whatever the order that its arguments were written in."""
    return f"{call.tool}{json.dumps(call.arguments, sort_keys=True)}"
