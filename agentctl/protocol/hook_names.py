"""The events that hooks can have, by name, in the order in which one reply of a model brings them."""

HOOK_EVENTS: tuple[str, ...] = (
    "model_call",
    "model_select",
    "text_delta",
    "reasoning_delta",
    "invalid_tool_call",
    "model_reply",
    "turn_finished",
    "tool_call",
    "tool_result",
)

COMMAND_HOOK_EVENTS: frozenset[str] = frozenset(HOOK_EVENTS) - {"text_delta", "reasoning_delta"}
"""Those that a command can have: a program cannot be started for every piece of text."""
