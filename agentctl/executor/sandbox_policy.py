"""What a command may reach when the operating system holds the line, and how layers narrow it. Pure."""

from dataclasses import replace
from enum import StrEnum
from pathlib import PurePosixPath

from agentctl.errors import AgentctlError, ExitCode
from agentctl.records import dataclass


class SandboxKind(StrEnum):
    """Which boundary; `auto` takes the best that is there."""

    AUTO = "auto"
    BUBBLEWRAP = "bubblewrap"
    LANDLOCK = "landlock"
    """Landlock with seccomp; what `auto` takes on Linux where bubblewrap can't start."""
    SEATBELT = "seatbelt"
    NONE = "none"


class OnUnavailable(StrEnum):
    """What to do where the machine has no sandbox."""

    ERROR = "error"
    WARN = "warn"
    """Run without one; every shell call then answers to its own rules and asks."""


class SandboxUnavailable(AgentctlError):
    """A sandbox is demanded and this machine can't give it. Nothing ran."""

    exit_code = ExitCode.FAILED


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxPolicy:
    """The sandbox in force for a command."""

    kind: SandboxKind = SandboxKind.AUTO
    network: bool = False
    read: tuple[str, ...] = ("/",)
    """What can be read besides the workdir and the system's own programs. Naming a place that is hidden by
    default shows it again. `~/` is the home directory."""
    write: tuple[str, ...] = ()
    """What can be written besides the workdir and the run's temp folder."""
    hide: tuple[str, ...] = ()
    """What can't be read, besides the credential stores that never can."""
    on_unavailable: OnUnavailable = OnUnavailable.WARN
    auto_allow: bool = False
    """A shell call needs no prompt of the shell's own while a sandbox is in force. User's config or flag."""
    unix_sockets: bool = False
    """Programs may make Unix sockets; off, because a socket on a read-only disk can still be reached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxLayer:
    """What one layer says about the sandbox; None where it says nothing."""

    kind: SandboxKind | None = None
    network: bool | None = None
    read: tuple[str, ...] | None = None
    write: tuple[str, ...] | None = None
    hide: tuple[str, ...] | None = None
    on_unavailable: OnUnavailable | None = None
    auto_allow: bool | None = None
    unix_sockets: bool | None = None


def effective_policy(user: SandboxLayer, *narrower: SandboxLayer) -> SandboxPolicy:
    """Return the policy of the user's layer, narrowed by blueprint and stage in that order.

    A narrower layer can't weaken: `none` does not lift a sandbox, network and paths are what all allow,
    hidden places add up, `error` stays. Where the user says nothing about a key, the built-in default is the
    ceiling. Pure, total.
    """
    policy = _user_policy(user)
    for layer in narrower:
        policy = _narrowed(policy, layer)
    return policy


def within(policy: SandboxPolicy, outer: SandboxPolicy) -> SandboxPolicy:
    """Return `policy` narrowed to what `outer` allows too, as a sub-agent's is to its parent's. Pure."""
    layer = SandboxLayer(
        kind=outer.kind,
        network=outer.network,
        read=outer.read,
        write=outer.write,
        hide=outer.hide,
        on_unavailable=outer.on_unavailable,
        unix_sockets=outer.unix_sockets,
    )
    return replace(_narrowed(policy, layer), auto_allow=policy.auto_allow and outer.auto_allow)


def _user_policy(user: SandboxLayer) -> SandboxPolicy:
    default = SandboxPolicy()
    said = user.kind not in (None, SandboxKind.NONE)
    on_unavailable = user.on_unavailable or (OnUnavailable.ERROR if said else OnUnavailable.WARN)
    return SandboxPolicy(
        kind=user.kind or default.kind,
        network=default.network if user.network is None else user.network,
        read=default.read if user.read is None else user.read,
        write=default.write if user.write is None else user.write,
        hide=user.hide or (),
        on_unavailable=on_unavailable,
        auto_allow=bool(user.auto_allow),
        unix_sockets=bool(user.unix_sockets),
    )


def _narrowed(policy: SandboxPolicy, layer: SandboxLayer) -> SandboxPolicy:
    kind = policy.kind
    if layer.kind not in (None, SandboxKind.NONE) and kind in (SandboxKind.AUTO, SandboxKind.NONE):
        kind = layer.kind or kind
    demanded = layer.on_unavailable is OnUnavailable.ERROR or (
        layer.kind not in (None, SandboxKind.NONE, SandboxKind.AUTO) and layer.on_unavailable is None
    )
    return replace(
        policy,
        kind=kind,
        network=policy.network and layer.network is not False,
        read=policy.read if layer.read is None else common_paths(policy.read, layer.read),
        write=policy.write if layer.write is None else common_paths(policy.write, layer.write),
        hide=policy.hide + tuple(path for path in layer.hide or () if path not in policy.hide),
        on_unavailable=OnUnavailable.ERROR if demanded else policy.on_unavailable,
        unix_sockets=policy.unix_sockets and layer.unix_sockets is not False,
    )


def common_paths(wide: tuple[str, ...], narrow: tuple[str, ...]) -> tuple[str, ...]:
    """Return the places that lie in both lists: of two nested ones the inner. Order of `narrow`. Pure."""
    found: list[str] = []
    for inner in narrow:
        for outer in wide:
            both = _inner(PurePosixPath(outer), PurePosixPath(inner))
            if both is not None and str(both) not in found:
                found.append(str(both))
    return tuple(found)


def _inner(one: PurePosixPath, other: PurePosixPath) -> PurePosixPath | None:
    if other.is_relative_to(one) or (str(one) == "/" and other.parts[:1] == ("~",)):
        return other
    if one.is_relative_to(other) or (str(other) == "/" and one.parts[:1] == ("~",)):
        return one
    return None
