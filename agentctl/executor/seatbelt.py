"""A sandbox profile for macOS. UNTRIED: written from its documentation, tested as text only, on no Mac.

Source: https://reverse.put.as/wp-content/uploads/2011/09/Apple-Sandbox-Guide-v1.0.pdf
"""

from pathlib import Path

from agentctl.executor.sandbox_places import SYSTEM_PLACES, Places

SANDBOX_EXEC = "/usr/bin/sandbox-exec"
_DEVICES = (
    "/dev/null",
    "/dev/zero",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/dtracehelper",
)
_MAC_SYSTEM = ("/System", "/Library", "/Applications", "/private/etc", "/private/var/db", "/dev")


def seatbelt_argv(places: Places, *, network: bool, unix_sockets: bool) -> list[str]:
    """Return the words that come before the command. Pure."""
    profile = seatbelt_profile(places, network=network, unix_sockets=unix_sockets)
    return [SANDBOX_EXEC, "-p", profile]


def seatbelt_profile(places: Places, *, network: bool, unix_sockets: bool) -> str:
    """Return the profile; of two rules that match, the later one decides. Pure."""
    lines = [
        "(version 1)",
        "(deny default)",
        "(allow process-exec process-fork process-info* sysctl-read mach-lookup ipc-posix-sem)",
        "(allow signal (target same-sandbox))",
    ]
    if places.everything:
        lines.append("(allow file-read*)")
    else:
        lines.append("(allow file-read-metadata)")
        lines += [_rule("allow file-read*", Path(place)) for place in (*SYSTEM_PLACES, *_MAC_SYSTEM)]
    lines += [_rule("deny file-read* file-write*", place) for place in places.emptied]
    lines += [_rule("allow file-read*", place) for place in (*places.readable, *places.writable)]
    lines += [_rule("allow file-write*", place) for place in places.writable]
    lines += [f'(allow file-write* (literal "{device}"))' for device in _DEVICES]
    lines += [_rule("deny file-write*", place) for place in places.kept]
    lines += [f"(deny file-write-unlink (literal {_quoted(place)}))" for place in places.held]
    lines += [_rule("deny file-read* file-write*", place) for place in places.hidden]
    lines.append(
        "(allow network-outbound network-inbound network-bind (local ip) (remote ip))" if network else ""
    )
    lines.append("(allow network* (local unix) (remote unix))" if unix_sockets else "")
    return "\n".join(line for line in lines if line)


def _rule(action: str, place: Path) -> str:
    return f"({action} (subpath {_quoted(place)}))"


def _quoted(place: Path) -> str:
    text = str(place).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'
