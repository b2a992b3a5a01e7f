"""The built-in tools by name, and the other names that rules, blueprints and models may use for them."""

from collections.abc import Mapping
from types import MappingProxyType

BUILT_IN_TOOLS: tuple[str, ...] = (
    "read_file",
    "list_dir",
    "glob",
    "grep",
    "write_file",
    "edit_file",
    "shell",
    "shell_output",
    "shell_kill",
    "ask_user",
    "ask_user_choice",
    "ask_user_confirm",
    "ask_user_review",
    "ask_user_edit",
    "current_time",
    "run_info",
    "transition",
    "submit_output",
    "state_get",
    "state_set",
    "shared_state",
)

CHILD_TOOLS: tuple[str, ...] = (
    "spawn_agent",
    "check_agent",
    "wait_agent",
    "send_agent",
    "kill_agent",
    "fan_out",
)
"""Tools about sub-agents."""

SCRIPT_ONLY_TOOLS: tuple[str, ...] = ("http_get", "http_post", "env")
"""What script tools may call and no model: never offered in a stage."""

SCRIPT_FUNCTIONS: tuple[str, ...] = ("read_file", "write_file", "shell", *SCRIPT_ONLY_TOOLS)
"""What a script tool may call, where `[tool_script_permissions]` and the rules let it."""

RULE_NAMES: frozenset[str] = frozenset((*BUILT_IN_TOOLS, *CHILD_TOOLS, *SCRIPT_ONLY_TOOLS, "network"))
"""What a rule may name without a script tool or server behind it; `network` is the entry for hosts."""

TOOL_ALIASES: Mapping[str, str] = MappingProxyType(
    {
        "bash": "shell",
        "run_shell_command": "shell",
        "read": "read_file",
        "write": "write_file",
        "edit": "edit_file",
        "ls": "list_dir",
        "search": "grep",
        "find_files": "glob",
    }
)
"""Alias → built-in name. A tool of a blueprint or server that carries one of these names keeps it."""

READING_TOOLS: frozenset[str] = frozenset({"read_file", "list_dir", "glob", "grep"})
"""Built-in tools that look at files and change nothing."""

WAITING_TOOLS: frozenset[str] = frozenset(
    {"ask_user", "ask_user_choice", "ask_user_confirm", "ask_user_review", "ask_user_edit"}
)
"""Built-in tools that wait for a person: not offered unattended unless a stage requires them."""


def canonical_tool(name: str) -> str:
    """Return the built-in name that `name` stands for, or `name` itself. Total, idempotent."""
    return TOOL_ALIASES.get(name, name)
