"""An approval on the terminal: single keys, the safe one by default, and never more than was typed."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from agentctl.protocol.questions import ApprovalAnswer, ApprovalQuestion
from agentctl.protocol.values import JsonObject
from agentctl.terminal.desk import Desk
from agentctl.terminal.editor import edit_text
from agentctl.terminal.keys import Key
from agentctl.terminal.pager import page
from agentctl.terminal.sheet import Row, approval_rows, explain_rows, flow, others_rows
from agentctl.terminal.visible import exact

Choice = Literal["once", "stage", "run", "always", "no", "edit", "quit"]

_REMEMBERING: dict[str, Choice] = {"s": "stage", "r": "run", "a": "always"}
_WORDS: dict[str, str] = {
    "y": "yes, once", "s": "this stage", "r": "this run", "a": "always", "n": "no", "t": "no, say why",
    "e": "edit", "?": "explain", "v": "view", "q": "quit",
}  # fmt: skip
_MARKER = "[n] >"


@dataclass(slots=True, kw_only=True)
class ApprovalPrompt:
    """One approval question, and others that the same rule would cover, in front of a person."""

    desk: Desk
    question: ApprovalQuestion
    find_others: Callable[[], tuple[ApprovalQuestion, ...]] = tuple
    """Returns those that wait too and that one remembered rule would cover; asked again while waiting."""
    count_waiting: Callable[[], int] = lambda: 1
    """Returns how many questions wait in all."""
    environ: Mapping[str, str] = field(default_factory=dict)
    _others: tuple[ApprovalQuestion, ...] = ()
    _size: tuple[int, int] = (0, 0)
    """The terminal's when all of it was shown last."""

    async def answers(self) -> dict[str, ApprovalAnswer]:
        """Return answers by question id: one, or one for each that a remembered rule covers.

        Cancelled when the question is answered elsewhere. Raises TerminalGone when the terminal hangs up.
        """
        await self._show_all()
        while True:
            key = await self.desk.one_key(self._show_again, stale=lambda: self.find_others() != self._others)
            answer = await self._answer(key)
            if answer is not None:
                self.desk.show(f"{_said(answer)}\r\n")
                return self._spread(answer)

    def _spread(self, answer: ApprovalAnswer) -> dict[str, ApprovalAnswer]:
        answers = {self.question.question_id: answer}
        if answer.choice in _REMEMBERING.values():
            mine = _place(self.question)
            for other in self._others:
                # Where the grant given here holds, the other call runs under it this once. Grants do not
                # reach another agent's run: there the same answer gives its own.
                covered = answer.choice == "always" or _place(other) == mine
                answers[other.question_id] = ApprovalAnswer(choice="once") if covered else answer
        return answers

    async def _answer(self, key: Key) -> ApprovalAnswer | None:
        """Return what `key` answers, or None after doing what it asks for."""
        letter = key.text.lower() if key.kind == "char" else ""
        match letter or key.kind:
            case "y":
                return ApprovalAnswer(choice="once")
            case "s" | "r" | "a" if self.question.would_remember:
                return ApprovalAnswer(choice=_REMEMBERING[letter])
            case "n" | "enter" | "escape":
                return ApprovalAnswer(choice="no")
            case "q":
                return ApprovalAnswer(choice="quit")
            case "t":
                return await self._refuse()
            case "e":
                return await self._edit()
            case "?" | "h":
                await self._explain()
            case "v":
                await page(self.desk, self._rows)
                await self._show_all()
            case "paste":
                await self._say("several keys at once are not an answer: press one")
            case _:
                await self._say("press one of the keys above")
        return None

    async def _refuse(self) -> ApprovalAnswer | None:
        self.desk.show("\r\n")
        reason = await self.desk.line("tell the model why: ")
        if reason is None:
            await self._say("still to be answered")
            return None
        return ApprovalAnswer(choice="no", reason=reason.strip())

    async def _edit(self) -> ApprovalAnswer | None:
        self.desk.show("edit\r\n")
        before = json.dumps(self.question.arguments, ensure_ascii=False, indent=2) + "\n"
        edited = await edit_text(before, suffix=".json", device=self.desk.device, environ=self.environ)
        arguments, problem = _read_arguments(edited.text, edited.problem)
        if not problem and arguments == self.question.arguments:
            problem = "nothing was changed"
        if problem:
            await self._say(exact(problem))
            return None
        return ApprovalAnswer(choice="edit", arguments=arguments)

    async def _explain(self) -> None:
        rows = partial(explain_rows, self.question.decision)
        await self.desk.present(rows, self._keys(), _MARKER)

    async def _say(self, text: str) -> None:
        await self.desk.present(lambda: (Row(style="plain", text=text),), self._keys(), _MARKER)

    async def _show_all(self) -> None:
        self._others, self._size = self.find_others(), self.desk.device.size()
        await self.desk.present(self._rows, self._keys(), _MARKER)

    async def _show_again(self) -> None:
        """Show what changed: where only other asks came or went, those alone, below what stands there."""
        others = self.find_others()
        if others == self._others or self.desk.device.size() != self._size:
            await self._show_all()
            return
        self._others = others
        await self.desk.present(lambda: others_rows(others), self._keys(), _MARKER)

    def _rows(self) -> Iterator[Row]:
        return approval_rows(self.question, others=self._others)

    def _keys(self) -> tuple[Row, ...]:
        offered = "ysrantevq?" if self.question.would_remember else "yntevq?"
        columns, _ = self.desk.device.size()
        rows = [
            Row(style="keys", text=text)
            for text in flow([f"{key} {_WORDS[key]}" for key in offered], columns)
        ]
        more = self.count_waiting() - 1 - len(self._others)
        if more > 0:
            rows.insert(0, Row(style="dim", text=f"{more} more questions wait after this one"))
        return tuple(rows)


def _place(question: ApprovalQuestion) -> tuple[str, str]:
    """Return where a grant given at a question holds."""
    return question.asker.run_id, question.asker.stage


def _said(answer: ApprovalAnswer) -> str:
    words = {"once": "yes, once", "stage": "yes, for this stage", "run": "yes, for this run"}
    words["edit"] = "changed; judged again"
    return words.get(answer.choice, answer.choice)


def _read_arguments(text: str, problem: str) -> tuple[JsonObject, str]:
    if problem:
        return {}, problem
    try:
        value = json.loads(text)
    except ValueError as error:
        return {}, f"not JSON: {error}"
    if not isinstance(value, dict):
        return {}, "the arguments are a JSON object"
    return value, ""
