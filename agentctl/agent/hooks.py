"""Hooks around tool calls, in call order. A hook observes or narrows; what it leaves is judged after it."""

from typing import Protocol

from agentctl.protocol.messages import ToolCall, ToolResult


class Hooks(Protocol):
    """All hooks of a run, as one."""

    async def before_call(self, call: ToolCall) -> ToolCall | ToolResult:
        """Return the call that is judged next, or the result that stands for a call that was skipped."""

    async def after_call(self, call: ToolCall, result: ToolResult) -> ToolResult:
        """Return the result as the model is going to see it; the raw one stays in the journal."""


class NoHooks:
    """Nothing hooked."""

    async def before_call(self, call: ToolCall) -> ToolCall | ToolResult:
        """Return the call as it is."""
        return call

    async def after_call(self, call: ToolCall, result: ToolResult) -> ToolResult:
        """Return the result as it is."""
        del call
        return result
