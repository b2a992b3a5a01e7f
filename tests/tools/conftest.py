"""Where tool calls of these tests are prepared, and how they act."""

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from agentctl.executor.api import Executor
from agentctl.executor.local import open_executor
from agentctl.protocol.questions import PersonAnswer, PersonQuestion
from agentctl.protocol.values import JsonObject
from agentctl.tools.definition import ActContext, Tool, ToolOutput, ToolPlace


@pytest.fixture
def place(tmp_path: Path) -> ToolPlace:
    """A workdir of its own."""
    workdir = tmp_path / "work"
    temp = tmp_path / "temp"
    workdir.mkdir()
    temp.mkdir()
    return ToolPlace(
        workdir=workdir.resolve(),
        temp=temp.resolve(),
        why_protected=lambda path: "git internals" if "/.git/" in path else "",
        home=tmp_path / "home",
        run_id="r-1",
        agent="tester",
        stage="only",
    )


@dataclass
class _Person:
    answer: PersonAnswer = field(default_factory=PersonAnswer)
    asked: list[PersonQuestion] = field(default_factory=list)

    async def ask(self, question: PersonQuestion) -> PersonAnswer:
        self.asked.append(question)
        return self.answer


@pytest.fixture
def person() -> _Person:
    return _Person()


@pytest.fixture
def answering(person: _Person) -> Callable[[PersonAnswer], list[PersonQuestion]]:
    """Set what a person answers to everything; returns the list that fills with what was asked."""

    def answer_with(answer: PersonAnswer) -> list[PersonQuestion]:
        person.answer = answer
        return person.asked

    return answer_with


@pytest.fixture
def shown() -> list[str]:
    """Pieces of output shown while calls ran."""
    return []


@pytest.fixture
def context(person: _Person, shown: list[str]) -> ActContext:
    """What a running call may use."""
    return ActContext(call_id="c-1", emit_output=shown.append, ask_person=person.ask)


@pytest.fixture
def call(place: ToolPlace, context: ActContext) -> Callable[[Tool, JsonObject], Awaitable[ToolOutput]]:
    """Prepare a call and run it, as dispatch does once it was allowed."""

    async def prepare_and_act(tool: Tool, arguments: JsonObject) -> ToolOutput:
        prepared = await tool.prepare(arguments, place)
        return await prepared.act(context)

    return prepare_and_act


@pytest.fixture
async def executor() -> AsyncIterator[Executor]:
    """This machine's executor."""
    opened = open_executor(environment=dict(os.environ), passed=())
    try:
        yield opened
    finally:
        await opened.aclose()
