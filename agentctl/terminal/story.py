"""Events as lines for a person: one a tool call, a stage, a retry. The words are the same in every view."""

import json
from collections.abc import Iterator
from typing import Literal, TypeAlias, assert_never

from agentctl.protocol.children import ChildEnded, ChildStarted
from agentctl.protocol.decisions import Verdict
from agentctl.protocol.events import (
    AskRefused,
    CallCompleted,
    CallStarted,
    ContextCompacted,
    GrantGiven,
    GrantRevoked,
    GrantUsed,
    HookActed,
    MessageAdded,
    ModelCalled,
    ModelRetried,
    ModelSwitched,
    Noted,
    OutputStreamed,
    Progressed,
    Published,
    QuestionAnswered,
    QuestionAsked,
    ReasoningStreamed,
    RunEnded,
    RunResumed,
    RunStarted,
    RunSuspended,
    StageEntered,
    StageLeft,
    StateChanged,
    StepSettled,
    TextStreamed,
    ToolCallDecided,
)
from agentctl.protocol.messages import Outcome, TextPart, ToolCall, ToolMessage, UserMessage
from agentctl.protocol.questions import ApprovalAnswer, ApprovalQuestion, PersonAnswer, Question
from agentctl.records import dataclass
from agentctl.terminal.board import Board
from agentctl.terminal.visible import one_line, prose

LineKind: TypeAlias = Literal[
    "head",
    "stage",
    "ok",
    "failed",
    "denied",
    "added",
    "removed",
    "hunk",
    "note",
    "warning",
    "retry",
    "person",
]

_GLYPHS: dict[LineKind, str] = {
    "head": "▶", "stage": "■", "ok": "✓", "failed": "✗", "denied": "⊘", "added": " ", "removed": " ",
    "hunk": " ", "note": "·", "warning": "!", "retry": "↻", "person": "?",
}  # fmt: skip
_DIFF_LINES = 40
_MAIN_ARGUMENT = ("command", "path", "pattern", "question", "to", "agent", "url", "task", "key")
_QUIET_ENDS = frozenset({"transition", "answer"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line to show, made visible, without its line end."""

    kind: LineKind
    text: str
    agent: str = ""
    """Whose it is, where that is not the run's own agent."""

    def __str__(self) -> str:
        who = f"[{self.agent}] " if self.agent else ""
        return f"{_GLYPHS[self.kind]} {who}{self.text}"


def tell(published: Published, board: Board) -> tuple[Line, ...]:
    """Return the lines that `published` is worth, after `board` took it in; often none. Total.

    Streamed text is not here: a view shows it as it comes.
    """
    name = board.names.get(published.run_id, published.agent)
    agent = "" if published.run_id == board.root else _safe(name)
    return tuple(Line(kind=kind, text=_safe(text), agent=agent) for kind, text in _lines(published, board))


def _safe(text: str) -> str:
    """Return `text` as one visible line: the last gate before a terminal, whatever an arm forgot."""
    return prose(text).replace("\n", " ")


def _lines(published: Published, board: Board) -> Iterator[tuple[LineKind, str]]:  # noqa: C901, PLR0912, PLR0915 - one arm an event
    match published.event:
        case RunStarted() as started:
            if published.run_id == board.root:
                yield "head", one_line(f"{started.agent} · {started.model} · {started.run_id}", width=200)
        case RunResumed():
            if published.run_id == board.root:
                yield "head", f"resumed · {published.run_id}"
        case StageEntered() as entered:
            yield from _entered(entered, published, board)
        case StageLeft(stage=stage, reason=reason, taken=taken, note=note):
            if reason not in _QUIET_ENDS:
                words = f"stage {stage} ended: {reason}" + (f" → {taken}" if taken else "")
                yield "warning", one_line(f"{words}. {note}" if note else words, width=200)
        case MessageAdded(message=message):
            yield from _message(message, board)
        case CallCompleted() as completed:
            yield from _completed(completed, board)
        case QuestionAsked(question=question):
            yield "person", _asked(question)
        case QuestionAnswered(answer=answer):
            yield "person", f"answered by {answer.by}: {_answer(answer)}"
        case AskRefused(tool=tool, reason=reason):
            yield "warning", one_line(f"refused, nobody to ask: {tool}: {reason}", width=200)
        case GrantGiven(grant=grant):
            yield "note", one_line(f"granted for this {grant.scope}: {grant.key}", width=200)
        case GrantRevoked(key=key):
            yield "note", one_line(f"grant taken back: {key}", width=200)
        case HookActed(hook=hook, event=event, action=action):
            yield "note", one_line(f"hook {hook} on {event}: {action}", width=200)
        case ContextCompacted(how=how, tokens_before=before, tokens_after=after):
            what = "old tool results cut" if how == "results_cut" else "old steps summarised"
            yield "note", f"context: {what}, {before:,} → {after:,} tokens"
        case ChildStarted(agent=agent, name=name, task=task):
            yield "note", one_line(f"sub-agent {name or agent} started: {task}", width=160)
        case ChildEnded(outcome=outcome, reason=reason, child_run=child_run):
            kind: LineKind = "ok" if outcome == "finished" else "failed"
            who = board.names.get(child_run, child_run).rpartition("/")[2]
            yield kind, one_line(f"sub-agent {who} {outcome}" + (f": {reason}" if reason else ""))
        case Noted(level=level, text=text):
            yield ("warning" if level == "warning" else "note"), one_line(text, width=400)
        case RunSuspended(reason=reason):
            yield "warning", one_line(f"stands still: {reason}", width=400)
        case RunEnded(outcome=outcome, reason=reason):
            if outcome != "finished":
                yield "failed", one_line(f"{outcome}: {reason}" if reason else outcome, width=400)
        case ToolCallDecided(call_id=call_id, decision=decision) if decision.verdict is Verdict.DENY:
            if script := _caller(call_id, board):  # the model's own have a result that tells
                words = f"{script}{call_words(board.calls[call_id])} · denied: {decision.reason}"
                yield "denied", one_line(words, width=200)
        case ToolCallDecided() | CallStarted() | StepSettled() | StateChanged() | GrantUsed():
            return
        case ModelRetried() | ModelSwitched() as trouble:
            yield "retry", _trouble(trouble)
        case TextStreamed() | ReasoningStreamed() | ModelCalled() | OutputStreamed() | Progressed():
            return
        case _ as unknown:
            assert_never(unknown)


def _entered(entered: StageEntered, published: Published, board: Board) -> Iterator[tuple[LineKind, str]]:
    if published.run_id != board.root and is_worker_of(published.agent, entered.stage):
        return  # that it started says it
    again = f" (visit {entered.visit})" if entered.visit > 1 else ""
    yield "stage", one_line(f"stage {entered.stage}{again} · {entered.model}")


def is_worker_of(agent: str, stage: str) -> bool:
    """Tell whether an agent has its name from the one stage it runs: `reader-2` from `reader`."""
    name, _, number = agent.rpartition("-")
    return stage in {agent, name if number.isdigit() else agent}


def _trouble(trouble: ModelRetried | ModelSwitched) -> str:
    if isinstance(trouble, ModelRetried):
        again = f"try {trouble.attempt + 1} in {trouble.wait_s:.1f} s"
        return one_line(f"{trouble.model}: {trouble.reason}; {again}", width=200)
    return one_line(f"{trouble.model}: {trouble.reason}; {trouble.next_model} takes over", width=200)


def _message(message: object, board: Board) -> Iterator[tuple[LineKind, str]]:
    match message:
        case UserMessage(parts=parts, source="person"):
            text = " ".join(part.text for part in parts if isinstance(part, TextPart))
            yield "person", one_line(f"you: {text}", width=160)
        case ToolMessage(result=result) if result.call_id not in board.completed:
            # It never ran: refused by policy, a budget, a person, or because the request was wrong.
            call = board.calls.get(result.call_id) or ToolCall(call_id=result.call_id, tool=result.tool)
            yield (
                _kind(result.outcome),
                f"{call_words(call)} · {result.outcome}: {one_line(result.text, width=200)}",
            )
        case _:
            return


def _completed(completed: CallCompleted, board: Board) -> Iterator[tuple[LineKind, str]]:
    result = completed.result
    call = board.calls.get(completed.call_id) or ToolCall(call_id=completed.call_id, tool=result.tool)
    words = [
        f"{_caller(completed.call_id, board)}{call_words(call)}",
        verdict_words(completed.call_id, board),
        f"{completed.elapsed_s:.1f} s",
    ]
    if result.outcome != "ok":
        words.append(f"{result.outcome}: {one_line(result.text)}")
    yield _kind(result.outcome), " · ".join(word for word in words if word)
    diff = result.structured.get("diff") if isinstance(result.structured, dict) else None
    if isinstance(diff, str) and result.outcome == "ok":
        yield from diff_lines(diff)


def _caller(call_id: str, board: Board) -> str:
    """The script tool that made a call, in front of the call's own words."""
    outer = board.calls.get(call_id.rpartition("/")[0])
    return f"{one_line(outer.tool)} → " if outer else ""


def diff_lines(diff: str, *, limit: int = _DIFF_LINES) -> Iterator[tuple[LineKind, str]]:
    """Yield a unified diff's lines with their kinds, at most `limit`, then how many more there are."""
    lines = diff.splitlines()
    for line in lines[:limit]:
        kind: LineKind = "hunk"
        if line[:1] in "+-" and not line.startswith(("+++ ", "--- ")):
            kind = "added" if line[0] == "+" else "removed"
        yield kind, prose(line).replace("\n", " ")
    if len(lines) > limit:
        yield "hunk", f"… {len(lines) - limit} more lines of this diff are in the journal"


def call_words(call: ToolCall, *, width: int = 100) -> str:
    """Return a call in a few words, the tool and its main argument: for progress, not for approval."""
    for name in _MAIN_ARGUMENT:
        value = call.arguments.get(name)
        if isinstance(value, str) and value.strip():
            return f"{one_line(call.tool)} {one_line(value, width=width)}"
    if not call.arguments:
        return one_line(call.tool)
    return f"{one_line(call.tool)} {one_line(json.dumps(call.arguments, ensure_ascii=False), width=width)}"


def verdict_words(call_id: str, board: Board) -> str:
    """Return how it came that a call ran: `allowed`, `allowed by grant`, `approved for this run`."""
    answer = board.approvals.get(call_id)
    if answer is not None:
        scope = {"once": "once", "stage": "for this stage", "run": "for this run", "always": "always"}
        return f"approved {scope.get(answer.choice, answer.choice)}"
    decided = board.decided.get(call_id)
    if decided is None:
        return ""
    decision = decided.decision
    if decision.verdict is Verdict.ALLOW:
        by = decision.lift or (decision.rule if decision.layer == "launch" else "")
        return one_line(f"allowed by {by}" if by else "allowed")
    return decision.verdict.word


def _kind(outcome: Outcome) -> LineKind:
    return "ok" if outcome == "ok" else "denied" if outcome == "denied" else "failed"


def _asked(question: Question) -> str:
    if isinstance(question, ApprovalQuestion):
        call = ToolCall(call_id=question.call_id, tool=question.tool, arguments=question.arguments)
        script = f"{one_line(question.called_by)} → " if question.called_by else ""
        return f"asks: {script}{call_words(call)}"
    return f"asks: {one_line(question.prompt)}"


def _answer(answer: ApprovalAnswer | PersonAnswer) -> str:
    if isinstance(answer, ApprovalAnswer):
        return one_line(f"{answer.choice}: {answer.reason}" if answer.reason else answer.choice)
    if answer.no_answer:
        return f"no answer ({answer.no_answer})"
    return one_line(answer.option or answer.text or answer.document)
