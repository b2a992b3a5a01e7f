"""A server's standard streams as messages: a JSON object a line, among whatever else a program prints."""

import codecs
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import (
    METHOD_NOT_FOUND,
    ErrorData,
    JSONRPCError,
    JSONRPCRequest,
)

from agentctl.errors import ToolError
from agentctl.executor.api import CommandRequest, Conversation, Executor
from agentctl.tools.mcp.server import Report, ServerPlan
from agentctl.tools.mcp.wire.lines import messages_of

LONGEST_MESSAGE = 32 << 20
"""Bytes of one message; a server that writes more without a line end is given up."""
PROBE_S = 2.0
"""How long a server may think about whether it knows `server/discover`.

One that keeps silent about methods it doesn't know, against JSON-RPC, still gets its `initialize`.
"""
_LONGEST_SHOWN = 200

Streams = tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]


@dataclass(slots=True, kw_only=True)
class StdioTransport(AbstractAsyncContextManager[Streams]):
    """Starts a server and carries messages; an SDK `Transport`."""

    plan: ServerPlan
    executor: Executor
    report: Report
    over: anyio.Event
    """Set when no message can come any more."""
    _manager: AbstractAsyncContextManager[Streams] | None = None

    async def __aenter__(self) -> Streams:
        """Start the server."""
        self._manager = self._carried()
        return await self._manager.__aenter__()

    async def __aexit__(self, *failure: object) -> bool | None:
        """End the server and all it started."""
        assert self._manager is not None, "it was entered"  # noqa: S101
        return await self._manager.__aexit__(*failure)  # type: ignore[arg-type]

    @asynccontextmanager
    async def _carried(self) -> AsyncIterator[Streams]:
        plan = self.plan
        # SAFETY: the command stands in the user's own config, or in a blueprint that the user trusts by its
        # hash; the environment is chosen by the executor, and the supervisor ends all that it starts.
        conversation = await self.executor.converse(
            CommandRequest(
                command=plan.command,
                roots=plan.roots,
                cwd=plan.cwd,
                cwd_anywhere=True,
                pinned=dict(plan.pinned),
                sandbox=plan.sandbox,
                environment=dict(plan.env),
                spill_name=f"mcp-{plan.name}",
            )
        )
        try:
            async with anyio.create_task_group() as group:
                carrier = _Carrier(conversation=conversation, report=self.report, over=self.over)
                group.start_soon(carrier.hear)
                group.start_soon(carrier.speak, group)
                group.start_soon(conversation.listen_to_stderr)
                try:
                    yield carrier.heard, carrier.spoken
                finally:
                    group.cancel_scope.cancel()
        finally:
            self.over.set()
            await conversation.aclose()
            self.report.exit_code = conversation.exit_code
            self.report.stderr = conversation.stderr_tail()


@dataclass(slots=True, kw_only=True)
class _Carrier:
    conversation: Conversation
    report: Report
    over: anyio.Event
    heard: MemoryObjectReceiveStream[SessionMessage | Exception] = field(init=False)
    spoken: MemoryObjectSendStream[SessionMessage] = field(init=False)
    _hearing: MemoryObjectSendStream[SessionMessage | Exception] = field(init=False)
    _speaking: MemoryObjectReceiveStream[SessionMessage] = field(init=False)

    def __post_init__(self) -> None:
        self._hearing, self.heard = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        # Room for a few: taking back a call must not wait for a server that has stopped reading.
        self.spoken, self._speaking = anyio.create_memory_object_stream[SessionMessage](64)

    async def hear(self) -> None:
        """Pass on each message until the server is gone, or writes what is no message."""
        pieces: list[bytes] = []
        size = 0
        async with self._hearing:
            while piece := await self.conversation.receive():
                *lines, rest = piece.split(b"\n")
                for line in lines:
                    await self._pass_on(b"".join([*pieces, line]))
                    pieces, size = [], 0
                pieces.append(rest)
                size += len(rest)
                if size > LONGEST_MESSAGE:
                    self.report.fault = f"it wrote {size >> 20} MiB on its standard output without a line end"
                    break
            if pieces and size and size <= LONGEST_MESSAGE:
                await self._pass_on(b"".join(pieces))
            self.over.set()

    async def _pass_on(self, line: bytes) -> None:
        line = line.removeprefix(codecs.BOM_UTF8).strip()
        if not line:
            return
        try:
            messages = messages_of(line)
        except ValueError:
            self.report.stray_lines += 1
            shown = line[:_LONGEST_SHOWN].decode("utf-8", "replace")
            self.report.first_stray = self.report.first_stray or shown
            self.report.last_stray = shown
            return
        try:
            for message in messages:
                await self._hearing.send(SessionMessage(message))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            self.over.set()

    async def speak(self, group: anyio.abc.TaskGroup) -> None:
        """Write each message; one the server does not take any more is the end."""
        try:
            async with self._speaking:
                async for message in self._speaking:
                    text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                    if isinstance(message.message, JSONRPCRequest) and message.message.method == _PROBE:
                        group.start_soon(self._answer_probe, message.message)
                    await self.conversation.send(text.encode() + b"\n")
        except ToolError:
            self.over.set()
            await self._hearing.aclose()

    async def _answer_probe(self, probe: JSONRPCRequest) -> None:
        """Answer the probe in the server's place after a while; an answer that came before counts alone."""
        await anyio.sleep(PROBE_S)
        error = ErrorData(code=METHOD_NOT_FOUND, message="no answer")
        answer = JSONRPCError(jsonrpc="2.0", id=probe.id, error=error)
        try:
            await self._hearing.send(SessionMessage(answer))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return


_PROBE = "server/discover"
