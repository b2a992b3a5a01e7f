"""A second reading with tree-sitter, of lines that the strict grammar refused: it only ever adds.

tree-sitter-bash misreads lines that bash runs otherwise, so nothing is allowed on its word. What it finds is
shown in the prompt and reached by deny and ask rules. Each command that it sees is read again by the strict
grammar, so that words are unquoted in one way only.
"""

import re
from collections.abc import Callable, Iterator
from functools import cache

from agentctl.policy.shell.scan import rough_commands
from agentctl.protocol.effects import RunProgram

MAX_COMMANDS = 2000
_COMMANDS = frozenset({"command", "declaration_command", "unset_command", "test_command"})
_TARGETS = frozenset({"file_redirect"})


_UNTRIED = re.compile(r"[^\n\t\x20-\x7e]")


@cache
def _parse() -> Callable[[bytes], Iterator[tuple[str, int, int]]]:
    # Imported here: most lines never need it, and it costs more than everything else in this package.
    import tree_sitter_bash  # noqa: PLC0415
    from tree_sitter import Language, Node, Parser  # noqa: PLC0415

    parser = Parser(Language(tree_sitter_bash.language()))

    def parse(source: bytes) -> Iterator[tuple[str, int, int]]:
        root = parser.parse(source).root_node
        if root.has_error:
            yield "error", 0, 0
        waiting: list[Node] = [root]
        while waiting:
            node = waiting.pop()
            if node.type in _COMMANDS or node.type in _TARGETS:
                yield ("redirect" if node.type in _TARGETS else "command"), node.start_byte, node.end_byte
            waiting.extend(reversed(node.children))

    return parse


def commands_seen(line: str) -> tuple[list[str], list[RunProgram]]:
    """Return the text of each command and redirection that tree-sitter sees in `line`, in order.

    Where it reports an error, what a rough look finds comes second.
    """
    fragments: list[str] = []
    broken = False
    # tree-sitter-bash 0.25 ends the process on some characters of the upper planes: it sees none but ASCII.
    source = _UNTRIED.sub("_", line).encode("ascii")
    for kind, start, end in _parse()(source):
        if kind == "error":
            broken = True
        elif len(fragments) < MAX_COMMANDS:
            fragments.append(line[start:end])
    return fragments, rough_commands(line) if broken else []
