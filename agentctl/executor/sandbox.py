"""Which sandbox this machine has, found out once, and how a command is put into it. Fails closed."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import anyio

from agentctl.executor.bubblewrap import bubblewrap_argv, bubblewraps
from agentctl.executor.call_filter import call_filter
from agentctl.executor.landlock import landlock_available, landlock_confinement
from agentctl.executor.launcher import Launcher
from agentctl.executor.process_types import CommandRequest
from agentctl.executor.sandbox_places import Places, places_for
from agentctl.executor.sandbox_policy import OnUnavailable, SandboxKind, SandboxPolicy, SandboxUnavailable
from agentctl.executor.seatbelt import SANDBOX_EXEC, seatbelt_argv
from agentctl.executor.supervisor_wire import Confinement, Request
from agentctl.records import dataclass

_NOTHING = ["/bin/sh", "-c", ":"]
_PROBE_S = 10.0
_PROBE_DESCRIPTORS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Boxed:
    """A command as it is handed to a supervisor."""

    argv: list[str]
    kind: SandboxKind
    wrapped: bool = False
    filter_hex: str = ""
    confinement: Confinement | None = None
    places: Places | None = None


class Sandboxes:
    """The sandboxes of this machine."""

    def __init__(self, launcher: Launcher, private: Sequence[Path]) -> None:
        self._launcher = launcher
        self._private = tuple(private)
        self._lock = anyio.Lock()
        self._found: dict[SandboxKind, bool] = {}
        self._bubblewraps: dict[bool, str] = {}
        """By whether the workdir is another user's and this one is root."""

    async def kind_for(self, policy: SandboxPolicy) -> SandboxKind:
        """Return the sandbox that a policy gets here.

        Raises:
            SandboxUnavailable: it demands one that this machine does not have.
        """
        for kind in _candidates(policy):
            if await self._has(kind):
                return kind
        if policy.kind is SandboxKind.NONE or policy.on_unavailable is OnUnavailable.WARN:
            return SandboxKind.NONE
        raise SandboxUnavailable(
            f"The sandbox kind {policy.kind.value!r} is demanded, and this machine has none that works: "
            f"{self._why()}.",
            hint="Install bubblewrap, or set [sandbox] on_unavailable = 'warn' in your own config.",
        )

    async def box(
        self, request: CommandRequest, argv: list[str], environment: dict[str, str], cwd: Path, workdir: Path
    ) -> Boxed:
        """Return a command inside the sandbox that its policy gets.

        Raises:
            SandboxUnavailable: as `kind_for`.
        """
        kind = await self.kind_for(request.sandbox)
        if kind is SandboxKind.NONE:
            return Boxed(argv=argv, kind=kind)
        places = await anyio.to_thread.run_sync(places_for, request, workdir, environment, self._private)
        network, unix_sockets = request.sandbox.network, request.sandbox.unix_sockets
        if kind is SandboxKind.BUBBLEWRAP:
            foreign = os.geteuid() == 0 and places.workdir_owner != 0
            before = bubblewrap_argv(self._bubblewraps[foreign], places, network=network, cwd=cwd)
            return Boxed(
                argv=before + argv,
                kind=kind,
                wrapped=True,
                filter_hex=_program(internet=True, unix_sockets=unix_sockets).hex(),
                places=places,
            )
        if kind is SandboxKind.LANDLOCK:
            program = _program(internet=network, unix_sockets=unix_sockets)
            confinement = landlock_confinement(places, network=network, program=program)
            return Boxed(argv=argv, kind=kind, confinement=confinement, places=places)
        before = seatbelt_argv(places, network=network, unix_sockets=unix_sockets)
        return Boxed(argv=before + argv, kind=kind, places=places)

    async def _has(self, kind: SandboxKind) -> bool:
        async with self._lock:
            if kind not in self._found:
                self._found[kind] = await self._probe(kind)
            return self._found[kind]

    async def _probe(self, kind: SandboxKind) -> bool:
        match kind:
            case SandboxKind.BUBBLEWRAP:
                return sys.platform == "linux" and await self._probe_bubblewrap()
            case SandboxKind.LANDLOCK:
                return sys.platform == "linux" and await self._probe_landlock()
            case SandboxKind.SEATBELT:
                return sys.platform == "darwin" and os.access(SANDBOX_EXEC, os.X_OK)
            case SandboxKind.NONE | SandboxKind.AUTO:
                return True

    async def _probe_bubblewrap(self) -> bool:
        program = call_filter(internet=True, unix_sockets=False)
        if program is None:
            return False
        variants = (False, True) if os.geteuid() == 0 else (False,)
        for foreign in variants:
            places = _bare_places(owner=1 if foreign else os.geteuid())
            for bubblewrap in bubblewraps():
                argv = bubblewrap_argv(bubblewrap, places, network=False, cwd=Path("/")) + _NOTHING
                if await self._runs(argv, wrapped=True, filter_hex=program.hex(), confinement=None):
                    self._bubblewraps[foreign] = bubblewrap
                    break
            else:
                return False
        return True

    async def _probe_landlock(self) -> bool:
        program = call_filter(internet=False, unix_sockets=False)
        if program is None or not landlock_available():
            return False
        confinement = landlock_confinement(_bare_places(owner=os.geteuid()), network=False, program=program)
        return await self._runs(_NOTHING, wrapped=False, filter_hex="", confinement=confinement)

    async def _runs(
        self, argv: list[str], *, wrapped: bool, filter_hex: str, confinement: Confinement | None
    ) -> bool:
        request = Request(
            argv=argv,
            environment={"PATH": "/usr/local/bin:/usr/bin:/bin"},
            timeout_s=_PROBE_S,
            grace_s=0,
            wrapped=wrapped,
            filter_hex=filter_hex,
            confinement=confinement,
            descriptors=_PROBE_DESCRIPTORS,
            floor_path="/",
            floor_bytes=0,
            log_keep_bytes=0,
        )
        return await self._launcher.succeeds(request)

    def _why(self) -> str:
        if sys.platform == "linux":
            return "bubblewrap could not start (are user namespaces off?) and Landlock is off or too old"
        return f"there is none for {sys.platform!r}"


def _candidates(policy: SandboxPolicy) -> tuple[SandboxKind, ...]:
    system = {
        "linux": (SandboxKind.BUBBLEWRAP, SandboxKind.LANDLOCK),
        "darwin": (SandboxKind.SEATBELT,),
    }.get(sys.platform, ())
    match policy.kind:
        case SandboxKind.NONE:
            return ()
        case SandboxKind.AUTO:
            return system
        case SandboxKind.BUBBLEWRAP | SandboxKind.LANDLOCK | SandboxKind.SEATBELT:
            # Where a person accepts less than was asked for, the next best is still better than nothing.
            others = system if policy.on_unavailable is OnUnavailable.WARN else ()
            return (policy.kind, *(kind for kind in others if kind is not policy.kind))


def _program(*, internet: bool, unix_sockets: bool) -> bytes:
    # Probed before: a machine whose architecture is not known has no sandbox.
    return call_filter(internet=internet, unix_sockets=unix_sockets) or b""


def _bare_places(*, owner: int) -> Places:
    return Places(
        everything=True,
        readable=(),
        hidden=(),
        emptied=(),
        writable=(),
        kept=(),
        held=(),
        links=(),
        workdir_owner=owner,
        git=None,
    )
