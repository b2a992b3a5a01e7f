"""How many files this process may have open: raised where many agents run side by side."""

import resource

from agentctl.errors import UsageError

_OWN = 64
"""The journal, the terminal, shared state, model services."""
_EACH = 4
"""A connection, and the pipes of a command."""
_PLENTY = 65_536
"""Higher is of no use, and commands that close every descriptor they could have become slow."""


def make_room(agents: int) -> None:
    """Let this process open enough files for so many agents at the same time.

    The soft limit is raised, up to the hard one; commands that agents start inherit it. Idempotent.

    Raises:
        UsageError: the hard limit is too low.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    wanted = _OWN + _EACH * agents
    if soft == unlimited:
        return
    reachable = max(_PLENTY, wanted) if hard == unlimited else min(max(_PLENTY, wanted), hard)
    if reachable > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (reachable, hard))
    if max(reachable, soft) < wanted:
        fitting = max(1, (max(reachable, soft) - _OWN) // _EACH)
        raise UsageError(
            f"{agents} agents at the same time need about {wanted} open files, and this process may have"
            f" {max(reachable, soft)}.",
            hint=f"run at most {fitting} at a time (--max-workers {fitting}), or raise `ulimit -Hn`",
        )
