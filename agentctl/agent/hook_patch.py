"""What a hook's patch makes of one request to the model."""

from dataclasses import replace

from agentctl.agent.hook_events import Patch
from agentctl.errors import RunFailed
from agentctl.llm.base import ModelRequest
from agentctl.state.views import Blocks, place


def patched(request: ModelRequest, patch: Patch) -> ModelRequest:
    """Return the request with a patch. Pure.

    Raises:
        RunFailed: it demands a tool that is not among those that are left.
    """
    tools = request.tools
    if patch.active_tools is not None:
        tools = tuple(tool for tool in tools if tool.name in patch.active_tools)
    choice = request.tool_choice if patch.tool_choice is None else patch.tool_choice
    names = {tool.name for tool in tools}
    if (choice == "required" and not names) or (
        choice not in {"auto", "none", "required"} and choice not in names
    ):
        raise RunFailed(
            f"A hook's patch asks the model for the tool {choice!r}, and the tools that are left are"
            f" {', '.join(sorted(names)) or 'none'}."
        )
    messages = request.messages if patch.history is None else patch.history
    shown = "\n\n".join(patch.context)
    return replace(
        request,
        system=request.system if patch.system is None else patch.system,
        temperature=request.temperature if patch.temperature is None else patch.temperature,
        max_output_tokens=(
            request.max_output_tokens if patch.max_output_tokens is None else patch.max_output_tokens
        ),
        tool_choice=choice,
        tools=tools,
        extra={**request.extra, **patch.extra},
        messages=place(messages, Blocks(changes=shown)) if shown else messages,
    )
