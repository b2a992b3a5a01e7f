"""The record that tells a program how a command ended: `--json` is it, `--jsonl` ends with it."""

import json
from typing import Final

from agentctl import __version__
from agentctl.interaction.unattended import refused_records
from agentctl.protocol.codec import encode
from agentctl.protocol.questions import ApprovalQuestion, Question
from agentctl.protocol.values import JsonObject, JsonValue
from agentctl.terminal.board import Board
from agentctl.terminal.contract import Ending

SCHEMA: Final = 1
"""Version of the records; a field that changes its meaning or goes away makes it 2."""
CAPABILITIES: Final = ("events", "live", "result")


def record_line(record: JsonObject) -> str:
    """Return a record as one line. ASCII only: no reader can take anything in it for a line end."""
    return json.dumps(record, separators=(",", ":")) + "\n"


def many_result(rows: int, finished: int, exit_code: int) -> JsonObject:
    """Return the last record of a command that runs a blueprint many times."""
    return {
        "type": "result",
        "schema": SCHEMA,
        "version": __version__,
        "total": rows,
        "finished": finished,
        "exit_code": exit_code,
    }


def header() -> JsonObject:
    """Return the first record of `--jsonl`."""
    return {
        "type": "header",
        "schema": SCHEMA,
        "version": __version__,
        "capabilities": list[JsonValue](CAPABILITIES),
    }


def result(board: Board, ending: Ending) -> JsonObject:
    """Return the last record: always the same keys, whatever the ending."""
    ended = board.ended
    last = ended or board.suspended
    return {
        "type": "result",
        "schema": SCHEMA,
        "version": __version__,
        "run": board.root,
        "thread": board.thread,
        "agent": board.agent,
        "model": board.model,
        "outcome": outcome(board, ending),
        "exit_code": ending.exit_code,
        "answer": ended.answer if ended else "",
        "output": ended.output if ended else None,
        "reason": ending.reason or (last.reason if last else ""),
        "limit": last.limit if last else "",
        "hint": ending.hint,
        "steps": board.steps,
        "tokens": board.tokens,
        "cost_usd": board.cost_usd,
        "subagents": board.children,
        "questions": [
            {"id": question.question_id, "kind": _kind(question), "question": encode(question)}
            for question in board.waiting.values()
        ],
        "refused": refused_records(ending.refused),
    }


def outcome(board: Board, ending: Ending) -> str:
    """Return the outcome in one word, also when the run never began or was cut off."""
    if board.ended is not None:
        return board.ended.outcome
    if board.suspended is not None and ending.exit_code not in _WORDS:
        return "waiting"
    return _WORDS.get(ending.exit_code, "failed")


_WORDS = {
    0: "finished", 1: "failed", 4: "waiting", 5: "refused", 6: "limited", 130: "cancelled", 143: "cancelled",
}  # fmt: skip
"""Outcomes by exit code, for a run that stands still or never began."""


def _kind(question: Question) -> str:
    return "approval" if isinstance(question, ApprovalQuestion) else question.kind
