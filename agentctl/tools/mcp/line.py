"""One server's life: started, asked what it offers, asked again when that changes, and gone."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import anyio

from agentctl.errors import AgentctlError, ToolError
from agentctl.executor.api import Executor
from agentctl.tools.mcp.logins import LoginDoor
from agentctl.tools.mcp.opening import OpenSession
from agentctl.tools.mcp.server import Offer, Report, ServerFailed, ServerPlan, Session
from agentctl.tools.outside import Note

REFRESH_TIMEOUT_S = 10.0
"""A server that says its tools changed and does not list them keeps the old ones."""
_SETTLE_S = 2.0
"""How long a step waits for such a list."""
_STOP_S = 5.0


@dataclass(slots=True, kw_only=True)
class Line:
    """A server as its users see it, before it is there, while it is, and after."""

    plan: ServerPlan
    executor: Executor
    load: Callable[[], Awaitable[OpenSession]]
    refresh_timeout_s: float = REFRESH_TIMEOUT_S
    door: LoginDoor | None = None
    """Where a person can log in, while that is what the server is reached for."""
    offer: Offer = field(default_factory=Offer)
    """Empty while the server is not there."""
    version: int = 0
    """Counts changes of `offer`."""
    session: Session | None = None
    why: str = ""
    """Why it is not there, once that is known."""
    began: bool = False
    """It has been there."""
    notes: list[Note] = field(default_factory=list)
    _settled: anyio.Event = field(default_factory=anyio.Event)
    _finished: anyio.Event = field(default_factory=anyio.Event)
    _scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    _stop: anyio.Event = field(default_factory=anyio.Event)
    _refreshing: anyio.Event | None = None
    _report: Report = field(default_factory=Report)
    _told_strays: bool = False

    async def serve(self) -> None:
        """Have the server from its start to its end. Never fails: what went wrong is in `why` and `notes`."""
        try:
            with self._scope:
                await self._serve()
        except (ServerFailed, ToolError, AgentctlError) as failure:
            self.why = str(failure)
        finally:
            self.began = self.session is not None
            self.session, self.offer, self.version = None, Offer(), self.version + 1
            self._explain()
            self._settled.set()
            self._finished.set()
            if self._refreshing is not None:
                self._refreshing.set()

    async def _serve(self) -> None:
        if self.plan.fault:
            raise ServerFailed(self.plan.fault)
        open_session = await self.load()
        if self.plan.startup_timeout_s:
            self._scope.deadline = anyio.current_time() + self.plan.startup_timeout_s
        async with open_session(self.plan, self.executor, self._report, self.door) as session:
            self._take(await session.offer())
            self._scope.deadline = float("inf")
            self.session, self._report.http_status = session, 0  # what a probe was refused with is no fault
            self._tell_strays()
            self._settled.set()
            async with anyio.create_task_group() as group:
                group.start_soon(self._refresh, session)
                group.start_soon(self._until_stopped, group.cancel_scope)
                await session.over()
                group.cancel_scope.cancel()

    async def _until_stopped(self, scope: anyio.CancelScope) -> None:
        await self._stop.wait()
        scope.cancel()

    async def _refresh(self, session: Session) -> None:
        while True:
            await session.changed()
            self._refreshing = anyio.Event()
            try:
                with anyio.fail_after(self.refresh_timeout_s):
                    offer = await session.offer()
            except (TimeoutError, ServerFailed) as failure:
                what = str(failure) or f"it did not list them within {self.refresh_timeout_s:g} s"
                self._note(
                    "warning", f"{self.label} says that its tools changed; they stay as known: {what}."
                )
            else:
                if offer != self.offer:
                    self._take(offer)
                    self._note("info", f"{self.label} changed its tools: {len(offer.tools)} now.")
            finally:
                self._refreshing.set()

    def _tell_strays(self) -> None:
        """Note, once, that the server prints where only messages belong; they are skipped."""
        if self._report.stray_lines and not self._told_strays:
            self._told_strays = True
            first = self._report.first_stray
            self._note("info", f"{self.label} writes lines that are not of the protocol: {first!r}")

    def _take(self, offer: Offer) -> None:
        self.offer, self.version = offer, self.version + 1

    def _explain(self) -> None:
        """Put into words why the server is not there (any more)."""
        report, plan = self._report, self.plan
        self._tell_strays()
        if self._stop.is_set():
            self.why = "it was stopped with the run"
            return
        if not self.why and not self.began and self._scope.cancelled_caught:
            self.why = f"it did not answer within {plan.startup_timeout_s:g} s (startup_timeout)"
            report.exit_code = None  # we ended it: that says nothing about the server
        causes = [part for part in (self.why, report.last_words()) if part]
        self.why = plan.told("; ".join(causes)) or "the connection ended"
        state = "has ended; its tools are gone" if self.began else "is not there; its tools are not offered"
        self._note("warning", f"{self.label} {state}: {self.why}")

    @property
    def label(self) -> str:
        """How messages name it."""
        return f"The MCP server {self.plan.name!r}"

    def _note(self, level: str, text: str) -> None:
        self.notes.append(Note(level="warning" if level == "warning" else "info", text=self.plan.told(text)))

    async def settled(self) -> None:
        """Return when it is there, or known not to come: at the latest after its startup timeout."""
        await self._settled.wait()

    async def refreshed(self) -> None:
        """Return when a list that was asked for has come; waits a moment for it and no longer."""
        if self._refreshing is not None and not self._refreshing.is_set():
            with anyio.move_on_after(_SETTLE_S):
                await self._refreshing.wait()

    async def gone(self) -> str:
        """Return why it is not there, after it has ended."""
        with anyio.move_on_after(_STOP_S):
            await self._finished.wait()
        return self.why or "the connection ended"

    async def stop(self) -> None:
        """End it; return when nothing of it is left. Idempotent."""
        self._stop.set()
        if self.session is None:
            self._scope.cancel()
        with anyio.move_on_after(_STOP_S) as waiting:
            await self._finished.wait()
        if waiting.cancelled_caught:
            self._scope.cancel()
            await self._finished.wait()
