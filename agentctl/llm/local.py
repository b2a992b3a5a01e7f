"""`local:NAME` and `local:PATH.gguf`: a model in a process of its own, over our own OpenAI-chat adapter."""

import json
from dataclasses import dataclass, field, replace
from pathlib import Path

from agentctl.llm.base import Emit, LanguageModel, ModelRequest
from agentctl.llm.catalogue import ModelFacts, Price
from agentctl.llm.http import Http, HttpOptions
from agentctl.llm.local_actions import FINAL_ANSWER, action_request, allowed_actions, as_reply, is_acting
from agentctl.llm.local_catalogue import known_models, obstacle_to
from agentctl.llm.local_server import LocalServer, ServerAddress, cannot_run
from agentctl.llm.openai_chat import OpenAiChat
from agentctl.llm.wire import Endpoint, Target, WireModel
from agentctl.protocol.events import LiveEvent, Progressed, TextStreamed
from agentctl.protocol.messages import AssistantMessage

CONTEXT_TOKENS = 8192
_SILENCE_S = 900.0
"""A long prompt is read for minutes on a busy machine before the first word comes."""


def open_local(name: str) -> LanguageModel:
    """Return the model `local:NAME`. Starts nothing: the process begins with the first reply.

    `name` is a catalogue name or the path of a GGUF file. What stands in the way is told by the first reply,
    so that the next model of a list can take over.
    """
    known = known_models().get(name)
    path = known.path if known else Path(name).expanduser().absolute()
    alias = name if known else path.stem
    return LocalModel(
        label=name,
        guided=known is not None,
        server=LocalServer(path=path, alias=alias, context=CONTEXT_TOKENS),
    )


@dataclass(slots=True, kw_only=True)
class LocalModel:
    """An embedded model: one process, shared by all agents that open it through one `Providers`."""

    label: str
    """What follows `local:`."""
    guided: bool
    """Read-only tools and narrow choices, as the embedded default needs."""
    server: LocalServer
    _http: Http = field(default_factory=Http)
    _told: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """The `provider:model` name."""
        return f"local:{self.label}"

    @property
    def context_window(self) -> int | None:
        """Tokens that the server was given."""
        return self.server.context

    async def reply(self, request: ModelRequest, emit: Emit) -> AssistantMessage:
        """Return one action of the model as the loop knows replies: text, or one tool call.

        Raises:
            ModelCallFailed: it cannot run here (the next model may), or the call failed.
        """
        obstacle = obstacle_to(self.label)
        if obstacle:
            raise cannot_run(self.label, obstacle)
        self._tell_what_is_left_out(request, emit)
        if not self.server.running:
            emit(Progressed(text=f"loading {self.name}; it reads and writes at the speed of this machine"))
        address = await self.server.address()
        actions = allowed_actions(request, guided=self.guided)
        acting = is_acting(request, actions)
        heard: Emit = AnswerStream(emit) if acting else emit
        raw = await self._wire(address).reply(action_request(request, actions, guided=self.guided), heard)
        return as_reply(raw, model=self.name) if acting else replace(raw, model=self.name)

    async def aclose(self) -> None:
        """End the process and let go of connections. Idempotent."""
        await self._http.aclose()
        await self.server.aclose()

    def _wire(self, address: ServerAddress) -> WireModel:
        target = Target(
            provider="local",
            model=self.server.alias,
            facts=ModelFacts(context_window=self.server.context, price=Price(input=0.0, output=0.0)),
        )
        endpoint = Endpoint(
            base_url=address.base_url,
            key=lambda: address.key,
            options=HttpOptions(stall_timeout_s=_SILENCE_S),
        )
        return WireModel(OpenAiChat(), target, endpoint, self._http)

    def _tell_what_is_left_out(self, request: ModelRequest, emit: Emit) -> None:
        if not self.guided:
            return
        shown = {tool.name for tool in allowed_actions(request, guided=True).shown} | {"transition"}
        left_out = frozenset(tool.name for tool in request.tools) - shown
        if left_out and left_out != self._told:
            names = ", ".join(sorted(left_out))
            emit(Progressed(text=f"{self.name} is offered tools that only read; left out: {names}"))
        self._told = left_out


class AnswerStream:
    """Hears an action being written and passes on the text of a final answer as it grows."""

    def __init__(self, emit: Emit) -> None:
        """Pass on to `emit`."""
        self._emit = emit
        self._heard = ""
        self._shown = ""

    def __call__(self, event: LiveEvent) -> None:
        """Hear one event. Anything but text is passed on as it is."""
        if not isinstance(event, TextStreamed):
            self._emit(event)
            return
        self._heard += event.text
        answer = _answer_so_far(self._heard)
        if len(answer) > len(self._shown):
            self._emit(TextStreamed(text=answer[len(self._shown) :]))
            self._shown = answer


def _answer_so_far(written: str) -> str:
    """Return the decoded beginning of the final answer in an unfinished action, or "" when it is none."""
    start = written.find(f'"{FINAL_ANSWER}"')
    opening = written.find('"', written.find(":", start)) if start >= 0 and ":" in written[start:] else -1
    if opening < 0:
        return ""
    end = opening + 1
    while end < len(written) and written[end] != '"':
        # An escape is taken whole or not yet; a pair of surrogates too.
        step = 12 if written[end : end + 3].lower() == "\\ud" else 6 if written[end : end + 2] == "\\u" else 2
        step = step if written[end] == "\\" else 1
        if end + step > len(written):
            break
        end += step
    text = json.loads(f'"{written[opening + 1 : end]}"', strict=False)
    return str(text)
