"""What of hooks is written down: their actions as events, their scratchpad as a cell of the run."""

import json

from agentctl.agent.hook_events import (
    Feedback,
    HookAction,
    Patch,
    Repair,
    RetryCall,
    RewriteArguments,
    RewriteResult,
    Select,
    Skip,
    Stop,
)
from agentctl.agent.hook_stack import Acted
from agentctl.protocol.commands import Command, FoldValue, Merge
from agentctl.protocol.events import HookActed
from agentctl.protocol.values import JsonObject, JsonValue
from agentctl.state.cells import CellView
from agentctl.state.scratchpad import Scratchpad

SCRATCHPAD_KEY = "agentctl/scratchpad"
"""Run scope."""


def acted_event(acted: Acted) -> HookActed:
    """Return the event of one hook's action or failure."""
    return HookActed(
        hook=acted.hook,
        event=acted.event,
        action="failed" if acted.action is None else type(acted.action).__name__,
        elapsed_s=round(acted.elapsed_s, 4),
        detail=acted.failure if acted.action is None else _detail(acted.action),
    )


def restored(pad: Scratchpad, cells: CellView) -> str:
    """Put what was saved with the run into `pad`; return its text, to tell changes by."""
    saved = cells.get("run", SCRATCHPAD_KEY)
    if not isinstance(saved, dict):
        return ""
    pad.restore(saved)
    return _text(saved)


def noted(pad: Scratchpad, before: str) -> tuple[Command | None, str]:
    """Return the command that saves `pad`, None when it says what it said `before`; and its text now."""
    saved = pad.dump()
    text = _text(saved) if saved else ""
    if text == before:
        return None, before
    command = Command(
        scope="run",
        key=SCRATCHPAD_KEY,
        action=FoldValue(value=saved, fold="last"),
        merge=Merge.FOLD,
        writer="hooks",
    )
    return command, text


def _text(saved: JsonObject) -> str:
    return json.dumps(saved, sort_keys=True, ensure_ascii=False)


def _detail(action: HookAction) -> JsonValue:
    match action:
        case Stop(reason=reason, rewritten=rewritten) | Skip(reason=reason, rewritten=rewritten):
            detail: JsonObject = {"reason": reason}
            return detail if rewritten is None else {**detail, "rewritten": rewritten}
        case RewriteArguments(arguments=arguments):
            return {"arguments": arguments}
        case RewriteResult(text=text):
            return {"characters": len(text)}
        case Select(model=model):
            return {"model": model}
        case Repair(tool=tool):
            return {"tool": tool}
        case RetryCall(feedback=text) | Feedback(text=text):
            return {"feedback": text}
        case Patch():
            return {"patched": [name for name in Patch.__dataclass_fields__ if _is_set(action, name)]}
        case _:
            return None


def _is_set(patch: Patch, name: str) -> bool:
    fields: dict[str, object] = {
        "system": patch.system,
        "temperature": patch.temperature,
        "max_output_tokens": patch.max_output_tokens,
        "tool_choice": patch.tool_choice,
        "active_tools": patch.active_tools,
        "extra": patch.extra or None,
        "context": patch.context or None,
        "history": patch.history,
    }
    return fields[name] is not None
