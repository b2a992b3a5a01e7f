"""The last words of a run: its answer on stdout, and on stderr how it ended and what to type next."""

import json

from agentctl.interaction.unattended import refusal_lines
from agentctl.terminal.board import Board
from agentctl.terminal.contract import Ending, Streams
from agentctl.terminal.outlet import Outlet
from agentctl.terminal.result import outcome
from agentctl.terminal.visible import exact, prose


def answer_text(board: Board) -> str:
    """Return the run's answer: its text, or its structured output as JSON; empty when it has none."""
    if board.ended is None:
        return ""
    if board.ended.output is not None:
        return json.dumps(board.ended.output, ensure_ascii=False, indent=2)
    return board.ended.answer


def write_answer(board: Board, streams: Streams, *, seen: str = "") -> Outlet:
    """Write the answer to stdout, with a line end, and return that. On a terminal it is made visible.

    Left out when stdout and stderr lead to one place and `seen`, the text streamed last, is the answer.
    """
    out = Outlet(streams.stdout)
    answer = answer_text(board)
    if answer and not (seen.strip() == answer.strip() and streams.same()):
        text = prose(answer) if streams.is_terminal(streams.stdout) else answer
        out.write(text if text.endswith("\n") else text + "\n")
    return out


def last_lines(board: Board, ending: Ending, *, quiet: bool = False) -> tuple[str, ...]:
    """Return the last lines for stderr: what was refused, what it cost, the next command."""
    lines = [exact(line) for line in refusal_lines(ending.refused)]
    if ending.reason and not ending.said and not (_told(board) and not quiet):
        lines.append(prose(ending.reason))
    if not quiet and board.root:
        lines.append(f"{outcome(board, ending)} · {spent_words(board)}")
    if ending.hint and not ending.said:
        lines.append(f"next: {exact(ending.hint)}")
    return tuple(lines)


def _told(board: Board) -> bool:
    """Whether the line about the run's end says why already."""
    return board.suspended is not None or (board.ended is not None and board.ended.outcome != "finished")


def spent_words(board: Board) -> str:
    """Return steps, tokens and money in a few words; an unknown price is said to be unknown."""
    steps = f"{board.steps} step" + ("" if board.steps == 1 else "s")
    cost = "price unknown" if board.cost_usd is None else f"${board.cost_usd:.4f}"
    return f"{steps} · {board.tokens:,} tokens · {cost}"
