"""Model calls that a tool server asks for: judged by rule, approved by a person, paid from the budgets."""

from collections.abc import Awaitable, Callable
from dataclasses import replace

from agentctl.agent.context import AgentContext
from agentctl.agent.model_call import step_cost
from agentctl.agent.prompt import estimate_tokens
from agentctl.errors import LimitReached, ToolError
from agentctl.ids import new_question_id
from agentctl.llm.base import ModelCallFailed, ModelRequest
from agentctl.protocol.decisions import Decision, Verdict
from agentctl.protocol.events import AskRefused, LiveEvent, Noted
from agentctl.protocol.messages import AssistantMessage, Message, TextPart, ToolMessage, UserMessage
from agentctl.protocol.questions import PersonAnswer, PersonQuestion
from agentctl.records import dataclass
from agentctl.tools.definition import SampleRequest

_YES = "Let it ask the model"
_NO = "No"
_MOST_SHOWN = 4000


AskPerson = Callable[[PersonQuestion], Awaitable[PersonAnswer]]


def sampler(
    context: AgentContext, call_id: str, ask: AskPerson
) -> Callable[[SampleRequest], Awaitable[AssistantMessage]]:
    """Return what a running call answers a server's wish for a model call with.

    The rule that speaks is the one for `SERVER__sampling`; an ask is put to a person with the server's words.
    """

    async def sample(wish: SampleRequest) -> AssistantMessage:
        tool = f"{wish.server}__sampling"
        decision = context.tools.decide_as_a_whole(tool)
        match decision.verdict:
            case Verdict.DENY:
                raise ToolError(f"Refused: {decision.reason}")
            case Verdict.ASK:
                await _approve(
                    context, _Asking(call_id=call_id, tool=tool, wish=wish, decision=decision), ask
                )
            case Verdict.ALLOW:
                pass
        reply = await _reply(context, wish)
        used = reply.usage.input_tokens + reply.usage.output_tokens
        text = f"{wish.server} asked the model ({used} tokens)"
        await context.recorder.commit(Noted(level="info", text=text, source=f"sampling {call_id}"))
        return reply

    return sample


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asking:
    call_id: str
    tool: str
    wish: SampleRequest
    decision: Decision


async def _approve(context: AgentContext, asking: _Asking, ask: AskPerson) -> None:
    wish = asking.wish
    question = PersonQuestion(
        question_id=new_question_id(),
        asker=context.tools.asker(),
        kind="choice",
        prompt=f"The tool server {wish.server!r} wants to ask the model:\n\n{_shown(wish)}",
        options=(_YES, _NO),
        call_id=f"{asking.call_id}/{new_question_id()}",
    )
    answer = await ask(question)
    if answer.option == _YES:
        return
    if not answer.no_answer:
        raise ToolError("A person said no to this model call.")
    flags, instead = context.tools.way_out(asking.decision)
    await context.recorder.commit(
        AskRefused(
            call_id=asking.call_id,
            tool=asking.tool,
            preview=_shown(wish),
            reason=asking.decision.reason,
            flags=flags,
            instead=instead,
        )
    )
    raise ToolError("Refused: this model call needs a person's approval, and nobody answered.")


async def _reply(context: AgentContext, wish: SampleRequest) -> AssistantMessage:
    plan, tools = context.plan, context.tools
    request = ModelRequest(
        system=wish.system,
        messages=wish.messages,
        max_output_tokens=wish.max_output_tokens or plan.request.max_output_tokens,
        temperature=wish.temperature,
        stop=wish.stop,
        cache=False,
        agent=context.agent,
        stage=f"{wish.server}__sampling",
        run=context.root_run,
    )
    cost = replace(step_cost(context, request), tokens=estimate_tokens(request))
    try:
        reservation = tools.reserve_step(cost)
    except LimitReached as limit:
        raise ToolError(f"{limit.message} {limit.hint}".strip()) from limit
    try:
        reply = await plan.model.reply(request, _unseen)
    except ModelCallFailed as failure:
        tools.release(reservation)
        raise ToolError(f"The model did not answer: {failure.message}") from failure
    except BaseException:
        tools.release(reservation)
        raise
    tools.settle_step(reservation, reply.usage)
    return reply


def _unseen(event: LiveEvent) -> None:
    """What the model says to a server is not part of the conversation on the screen."""
    del event


def _shown(wish: SampleRequest) -> str:
    parts = [f"system: {wish.system}"] if wish.system else []
    parts += [f"{_role(message)}: {_text(message)}" for message in wish.messages]
    text = "\n".join(parts)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}… ({len(text)} characters)"


def _role(message: Message) -> str:
    return "user" if isinstance(message, UserMessage) else "assistant"


def _text(message: Message) -> str:
    if isinstance(message, ToolMessage):
        return message.result.text
    return " ".join(part.text if isinstance(part, TextPart) else "[not text]" for part in message.parts)
