"""The public Python surface: what a person's own hooks, views, effects, keys and backends are written with.

Everything here is stable between minor versions; the modules that it comes from are not.
"""

from agentctl.agent.hook import Hook, HookContext
from agentctl.agent.hook_events import (
    Continue,
    Fail,
    Feedback,
    InvalidToolCall,
    ModelCall,
    ModelReply,
    ModelSelect,
    Patch,
    ReasoningDelta,
    Repair,
    Repeat,
    RetryCall,
    RewriteArguments,
    RewriteResult,
    Select,
    Skip,
    Stop,
    TextDelta,
    ToolCallEvent,
    ToolResultEvent,
    TurnFinished,
)
from agentctl.agent.hook_stack import HookStack, Member
from agentctl.errors import StateConflict
from agentctl.journal.jsonl import JsonLines, append_line, read_lines
from agentctl.protocol.commands import Command, Commit, FoldValue, Merge, RemoveValue, SetValue
from agentctl.state.backends.files import FileBackend
from agentctl.state.backends.memory import MemoryBackend
from agentctl.state.cells import Cells, CellView
from agentctl.state.commit import Assembled, Origin, assemble
from agentctl.state.cut import cut_and_stash, cut_text, stash_key
from agentctl.state.document import PatchError, apply_patch
from agentctl.state.effects import Ownership, StateEffect, StateEffectCall, run_effects
from agentctl.state.key_classes import FoldStateKey, StateKey, table_of
from agentctl.state.keys import KeyDefinition, KeyTable
from agentctl.state.machine import Bound, Emit, Instance, Machine, Move, When
from agentctl.state.machine_check import MachineProblem, check_machines
from agentctl.state.machines import Advanced, Called, GateOutcome, advance, advance_on_event, gate, unfinished
from agentctl.state.scratchpad import Scratchpad, ScratchpadBusy
from agentctl.state.shared_backend import (
    CapacityExceeded,
    ConditionFailed,
    InvalidKey,
    SharedStateBackend,
    SharedStateError,
    StoreUnreadable,
)
from agentctl.state.shared_state import SharedState
from agentctl.state.tool_pattern import FieldCondition, PatternError, ToolPattern, parse_tool_pattern
from agentctl.state.views import Blocks, Invocation, View, ViewRequest, place

__all__ = [
    "Advanced",
    "Assembled",
    "Blocks",
    "Bound",
    "Called",
    "CapacityExceeded",
    "CellView",
    "Cells",
    "Command",
    "Commit",
    "ConditionFailed",
    "Continue",
    "Emit",
    "Fail",
    "Feedback",
    "FieldCondition",
    "FileBackend",
    "FoldStateKey",
    "FoldValue",
    "GateOutcome",
    "Hook",
    "HookContext",
    "HookStack",
    "Instance",
    "InvalidKey",
    "InvalidToolCall",
    "Invocation",
    "JsonLines",
    "KeyDefinition",
    "KeyTable",
    "Machine",
    "MachineProblem",
    "Member",
    "MemoryBackend",
    "Merge",
    "ModelCall",
    "ModelReply",
    "ModelSelect",
    "Move",
    "Origin",
    "Ownership",
    "Patch",
    "PatchError",
    "PatternError",
    "ReasoningDelta",
    "RemoveValue",
    "Repair",
    "Repeat",
    "RetryCall",
    "RewriteArguments",
    "RewriteResult",
    "Scratchpad",
    "ScratchpadBusy",
    "Select",
    "SetValue",
    "SharedState",
    "SharedStateBackend",
    "SharedStateError",
    "Skip",
    "StateConflict",
    "StateEffect",
    "StateEffectCall",
    "StateKey",
    "Stop",
    "StoreUnreadable",
    "TextDelta",
    "ToolCallEvent",
    "ToolPattern",
    "ToolResultEvent",
    "TurnFinished",
    "View",
    "ViewRequest",
    "When",
    "advance",
    "advance_on_event",
    "append_line",
    "apply_patch",
    "assemble",
    "check_machines",
    "cut_and_stash",
    "cut_text",
    "gate",
    "parse_tool_pattern",
    "place",
    "read_lines",
    "run_effects",
    "stash_key",
    "table_of",
    "unfinished",
]
