"""What the model is shown: the stage's prompt, the harness's few words, the thread as far as in view."""

import json
from dataclasses import replace

from agentctl.agent.context import AgentContext
from agentctl.agent.snapshot import RunSnapshot
from agentctl.llm.base import ModelRequest
from agentctl.protocol.messages import AssistantMessage, Message, ToolMessage, ToolSpec, user_text

_CUT = "[result cut to save space; call the tool again if you need it]"


def build_request(context: AgentContext) -> ModelRequest:
    """Return the next request: parameters of the stage, system prompt, messages in view, tools offered.

    Equal snapshots give equal requests, and a later request of a stage begins with the earlier one, so that
    prompt caches hold.
    """
    snapshot = context.recorder.snapshot
    return replace(
        context.plan.request,
        run=context.root_run,
        cache_key=context.root_run,
        agent=context.agent,
        stage=context.plan.name,
        system=system_prompt(context),
        messages=visible_messages(snapshot),
        tools=context.tools.offered_specs(),
    )


def system_prompt(context: AgentContext) -> str:
    """Return the stage's prompt and what the harness adds: place, edges, the answer's form."""
    plan = context.plan
    parts = [plan.prompt.strip(), f"Working directory: {context.tools.place.workdir}"]
    if len(plan.edges) > 1:
        parts.append("When this stage is done, call `transition` with the stage that comes next.")
    elif plan.edges:
        parts.append(
            f"When this stage is done, answer without a tool call; `{plan.edges[0].target}` follows."
        )
    if plan.output_schema is not None:
        schema = json.dumps(plan.output_schema, separators=(",", ":"))
        parts.append(f"Give the final answer by calling `submit_output`; its form: {schema}")
    return "\n\n".join(part for part in parts if part)


def visible_messages(snapshot: RunSnapshot) -> tuple[Message, ...]:
    """Return the messages in view: the task or the summary of what came before, then the window.

    A call and its result are in view together or not at all.
    """
    window = snapshot.messages[snapshot.window_from :]
    head: list[Message] = []
    if snapshot.window_from:
        task = snapshot.started.task if snapshot.started else ""
        text = f"{task}\n\nWhat happened so far:\n{snapshot.summary}" if snapshot.summary else task
        if text:
            head.append(user_text(text, source="summary"))
    return tuple(head + [_shown(message, snapshot.cut_results) for message in window])


def _shown(message: Message, cut: set[str]) -> Message:
    if isinstance(message, ToolMessage) and message.result.call_id in cut:
        return ToolMessage(result=replace(message.result, text=_CUT, images=()))
    return message


def counted_tokens(snapshot: RunSnapshot) -> int | None:
    """Return the service's own count of the last request and reply, and a guess of what came since.

    None where it has not counted, or the thread was cut after it did.
    """
    since = 0
    for message in reversed(snapshot.messages[snapshot.window_from :]):
        if isinstance(message, AssistantMessage):
            counted = message.usage.input_tokens + message.usage.output_tokens
            return counted + since if counted and not snapshot.cut_results else None
        since += _size(message) // 4 + 8
    return None


def estimate_tokens(request: ModelRequest) -> int:
    """Return a cautious guess of the request's tokens: a quarter of its characters, and some a message."""
    characters = len(request.system) + sum(_size(message) for message in request.messages)
    characters += sum(_spec_size(spec) for spec in request.tools)
    return characters // 4 + 8 * len(request.messages)


def _spec_size(spec: ToolSpec) -> int:
    return len(spec.name) + len(spec.description) + len(json.dumps(spec.parameters))


def _size(message: Message) -> int:
    match message:
        case ToolMessage(result=result):
            return len(result.text) + 1500 * len(result.images)
        case AssistantMessage():
            return len(message.text) + sum(len(json.dumps(call.arguments)) for call in message.tool_calls)
        case _:
            return sum(len(part.text) if hasattr(part, "text") else 1500 for part in message.parts)
