"""What well-known programs read, write and reach, by their options and operands."""

from collections.abc import Callable

from agentctl.policy.shell.calls import Call, Sink

Program = Callable[[Sink, Call], None]
PROGRAMS: dict[str, Program] = {}
