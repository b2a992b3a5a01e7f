"""Answer the hub's questions on the terminal device, one after the other, until cancelled."""

import os
from dataclasses import dataclass, field
from functools import partial

import anyio

from agentctl.interaction.hub import Hub
from agentctl.interaction.unattended import Suspend, without_person
from agentctl.protocol.questions import Answer, ApprovalAnswer, ApprovalQuestion, PersonAnswer, Question
from agentctl.terminal.approval import ApprovalPrompt
from agentctl.terminal.contract import Terminal
from agentctl.terminal.desk import Desk, TerminalGone
from agentctl.terminal.device import Device
from agentctl.terminal.person import PersonPrompt
from agentctl.terminal.visible import exact

_LOOK_AGAIN_S = 0.3
"""How often to look whether the terminal is ours again while another job has it."""


async def answer_prompts(hub: Hub, device: Device, terminal: Terminal) -> None:
    """Show each waiting question and give the person's answer to the hub. Runs until cancelled.

    `terminal` is held while a prompt is shown; other agents go on meanwhile. The device's modes are restored
    whatever happens. Returns when the terminal hangs up, after answering all that waits as unattended.
    """
    desk = Desk(device=device)
    news = _News(desk=desk)
    stop = hub.watch(news)
    try:
        while not device.gone:
            waiting = hub.waiting()
            if not waiting or not device.answers():
                await news.wait(_LOOK_AGAIN_S if waiting else None)
                continue
            await _one(hub, desk, terminal, news)
    except TerminalGone:
        pass
    finally:
        stop()
    for question in hub.waiting():
        hub.answer(question.question_id, _nobody(question))


async def _one(hub: Hub, desk: Desk, terminal: Terminal, news: "_News") -> None:
    """Show the question that has waited longest."""
    question = hub.waiting()[0]
    with terminal.held(), desk.device.keyed(), anyio.CancelScope() as scope:
        news.showing(question.question_id, scope)
        answers: dict[str, Answer] = {}
        if isinstance(question, ApprovalQuestion):
            covered = partial(covered_too, question, hub)
            prompt = ApprovalPrompt(
                desk=desk,
                question=question,
                find_others=covered,
                count_waiting=lambda: len(hub.waiting()),
                environ=os.environ,
            )
            answers.update(await prompt.answers())
        else:
            person = PersonPrompt(desk=desk, question=question, environ=os.environ)
            answers[question.question_id] = await person.answer()
        news.showing("", None)
        for question_id, answer in answers.items():
            hub.answer(question_id, answer)


def covered_too(question: ApprovalQuestion, hub: Hub) -> tuple[ApprovalQuestion, ...]:
    """Return what else waits and would be covered by what `question` offers to remember, in its order."""
    keys = set(question.would_remember)
    return tuple(
        other
        for other in hub.waiting()
        if other.question_id != question.question_id
        and isinstance(other, ApprovalQuestion)
        and other.would_remember
        and set(other.would_remember) <= keys
    )


def _nobody(question: Question) -> Answer:
    answer = without_person(question, on_ask="deny")
    return PersonAnswer(no_answer="unattended", by="unattended") if isinstance(answer, Suspend) else answer


def _elsewhere(answer: Answer | None) -> str:
    match answer:
        case None:
            return "not asked any more"
        case ApprovalAnswer(by="deadline") | PersonAnswer(by="deadline"):
            return "no answer in time"
        case ApprovalAnswer(choice=choice, by=by):
            return exact(f"answered elsewhere, by {by}: {choice}")
        case PersonAnswer(by=by):
            return exact(f"answered elsewhere, by {by}")


@dataclass(slots=True)
class _News:
    """Wakes the server when something was asked, and ends a prompt whose question was settled elsewhere."""

    desk: Desk
    _changed: anyio.Event = field(default_factory=anyio.Event)
    _shown: str = ""
    _scope: anyio.CancelScope | None = None

    def showing(self, question_id: str, scope: anyio.CancelScope | None) -> None:
        """Note which question is in front of the person."""
        self._shown, self._scope = question_id, scope

    async def wait(self, at_most_s: float | None) -> None:
        """Wait for news."""
        with anyio.move_on_after(at_most_s if at_most_s is not None else float("inf")):
            await self._changed.wait()
        self._changed = anyio.Event()

    def on_asked(self, question: Question) -> None:
        """A question waits now."""
        del question
        self._changed.set()

    def on_settled(self, question: Question, answer: Answer | None) -> None:
        """A question waits no more."""
        if question.question_id == self._shown and self._scope is not None:
            # Said at once: a read of the terminal that is under way delays the end of the prompt.
            self.desk.show(f"\r\n{_elsewhere(answer)}\r\n")
            self._shown = ""
            self._scope.cancel()
        self._changed.set()
