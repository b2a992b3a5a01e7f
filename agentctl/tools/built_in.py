"""Every built-in tool of a run, apart from those that a stage builds for itself (`tools/stage.py`)."""

from agentctl.clock import Clock
from agentctl.executor.api import Executor
from agentctl.tools.ask import ask_user_tools
from agentctl.tools.change import change_tools
from agentctl.tools.definition import Tool
from agentctl.tools.facts import current_time_tool, run_info_tool
from agentctl.tools.look import look_tools
from agentctl.tools.shell import shell_tools


def built_in_tools(executor: Executor, clock: Clock) -> tuple[Tool, ...]:
    """Return the built-in tools that act through `executor`, in the order of the documentation."""
    return (
        *look_tools(executor),
        *change_tools(executor),
        *shell_tools(executor),
        *ask_user_tools(),
        current_time_tool(clock),
        run_info_tool(),
    )
