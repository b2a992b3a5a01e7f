"""Programs that run another program."""

from collections.abc import Callable

from agentctl.policy.shell.calls import Call, Sink

Wrapper = Callable[[Sink, Call], None]
WRAPPERS: dict[str, Wrapper] = {}
