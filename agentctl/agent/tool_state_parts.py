"""What one agent's tool state is built from: its tools, the rules of its stages, its layers and budgets."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Literal

from agentctl.agent.agent_state import AgentState
from agentctl.agent.hooks import Hooks
from agentctl.agent.results import ResultFold
from agentctl.agent.script_reach import Permission
from agentctl.executor.sandbox_policy import SandboxPolicy
from agentctl.policy.budgets import Budgets
from agentctl.policy.ceilings import Ceilings
from agentctl.policy.grants import GrantBook
from agentctl.policy.layers import BoundRule, Layers
from agentctl.policy.rules import RuleSet
from agentctl.policy.safe_list import SafeList
from agentctl.records import dataclass
from agentctl.tools.definition import Tool, ToolPlace
from agentctl.tools.outside import NOTHING_FROM_OUTSIDE, Sources


@dataclass(frozen=True, slots=True, kw_only=True)
class StageRules:
    """What one stage offers, demands and permits; swapped as a whole."""

    name: str
    index: int
    available: tuple[str, ...]
    """Names or globs, as the blueprint lists them."""
    connectors: tuple[str, ...] = ()
    """Servers whose tools are offered as well."""
    required: frozenset[str]
    """Tools that wait for a person and stay offered when nobody is there."""
    permissions: RuleSet
    ceilings: Ceilings | None = None
    """Limits while in this stage; None leaves those of the agent."""
    sandbox: SandboxPolicy = field(default_factory=SandboxPolicy)
    """What holds for the stage's processes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStateParts:
    """What a tool state is built from."""

    agent: str
    run_id: str
    parent_run: str
    tools: tuple[Tool, ...]
    host_tools: tuple[Tool, ...] = ()
    """What script tools may call; never offered to the model."""
    script_permissions: Mapping[str, Permission] = field(default_factory=dict)
    """`[tool_script_permissions]`, by host tool."""
    outside: Sources = NOTHING_FROM_OUTSIDE
    """Where further tools come from while the run lasts."""
    stages: tuple[StageRules, ...]
    """In file order: a stage's index is its place here."""
    layers: Layers
    """With the rules of no stage; they come in with `enter_stage`."""
    safe_list: SafeList
    remembered: tuple[BoundRule, ...]
    grants: GrantBook
    budgets: Budgets
    place: ToolPlace
    hooks: Hooks
    fold: ResultFold
    state: AgentState
    """The thread's cells as this agent may use them."""
    unattended: bool
    """`--yolo`, or no terminal and no client: tools that wait for a person are not offered."""
    on_ask: Literal["deny", "pause"]
    interaction_timeout_s: float
    free_bytes: Callable[[Path], Awaitable[int]]
    store_rule: Callable[[str, str], Awaitable[None]]
    """Writes one `[[remembered]]` rule into the user's config, with how its tool is described."""
