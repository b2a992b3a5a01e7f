"""What a person is asked, and what a person can answer."""

from dataclasses import field
from typing import Literal, TypeAlias

from agentctl.protocol.decisions import Decision
from agentctl.protocol.values import JsonObject
from agentctl.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """Who asks, for the prompt and for `approvals list`."""

    run_id: str
    agent: str
    stage: str
    parent: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalQuestion:
    """May this tool call run?"""

    question_id: str
    asker: Asker
    call_id: str
    tool: str
    arguments: JsonObject
    preview: str
    """The whole command or the diff; never a summary."""
    decision: Decision
    would_remember: tuple[str, ...]
    """The exact grant keys that `stage`, `run` and `always` would store; empty when none may be offered."""
    called_by: str = ""
    """The script tool that makes the call; empty where the model does."""
    deadline_s: float = 3600.0
    """Seconds until the question answers itself with no; 0 waits for ever."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonQuestion:
    """A question of the model or of a checkpoint, for a person."""

    question_id: str
    asker: Asker
    kind: Literal["text", "choice", "confirm", "review", "edit"]
    prompt: str
    options: tuple[str, ...] = ()
    document: str = ""
    """The text to review or edit, for `review` and `edit`."""
    edit_options: tuple[str, ...] = ()
    """Those of `options` that open the document in an editor."""
    checkpoint: str = ""
    """The interaction point's name when the harness asks at a stage boundary."""
    insists: bool = False
    """A checkpoint with `unattended = "ask"`: without an answer the run stops and waits for a person."""
    call_id: str = ""
    deadline_s: float = 3600.0


Question: TypeAlias = ApprovalQuestion | PersonQuestion


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalAnswer:
    """A person's answer to an approval question, or what its deadline means."""

    choice: Literal["once", "stage", "run", "always", "no", "edit", "quit"]
    reason: str = ""
    """Words for the model, with `no`."""
    arguments: JsonObject = field(default_factory=dict)
    """The edited arguments, with `edit`; the call is judged again."""
    by: str = "terminal"
    """`terminal`, `approvals`, `deadline`, `unattended`, `ag-ui`."""
    uses: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonAnswer:
    """A person's answer to a question, or that none came."""

    text: str = ""
    option: str = ""
    document: str = ""
    no_answer: str = ""
    """Why no answer came (`deadline`, `unattended`, `declined`); empty when one did."""
    by: str = "terminal"


Answer: TypeAlias = ApprovalAnswer | PersonAnswer
