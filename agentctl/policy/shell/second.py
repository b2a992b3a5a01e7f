"""A second reading with tree-sitter, of lines that the strict grammar refused: it only ever adds.

tree-sitter-bash misreads lines that bash runs otherwise, so nothing is allowed on its word. What it finds is
shown in the prompt and reached by deny and ask rules. Each command that it sees is read again by the strict
grammar, so that words are unquoted in one way only.
"""

from collections.abc import Callable, Iterator
from functools import cache

from agentctl.policy.shell.scan import rough_commands
from agentctl.protocol.effects import RunProgram

MAX_COMMANDS = 2000
_COMMANDS = frozenset({"command", "declaration_command", "unset_command", "test_command"})
_TARGETS = frozenset({"file_redirect"})


@cache
def _parse() -> Callable[[bytes], Iterator[tuple[str, str]]]:
    # Imported here: most lines never need it, and it costs more than everything else in this package.
    import tree_sitter_bash  # noqa: PLC0415
    from tree_sitter import Language, Node, Parser  # noqa: PLC0415

    parser = Parser(Language(tree_sitter_bash.language()))

    def parse(source: bytes) -> Iterator[tuple[str, str]]:
        root = parser.parse(source).root_node
        if root.has_error:
            yield "error", ""
        waiting: list[Node] = [root]
        while waiting:
            node = waiting.pop()
            if node.type in _COMMANDS or node.type in _TARGETS:
                text = source[node.start_byte : node.end_byte].decode("utf-8", "replace")
                yield ("redirect" if node.type in _TARGETS else "command"), text
            waiting.extend(reversed(node.children))

    return parse


def commands_seen(line: str) -> tuple[list[str], list[RunProgram]]:
    """Return the text of each command and redirection that tree-sitter sees in `line`, in order.

    Where it reports an error, what a rough look finds comes second.
    """
    fragments: list[str] = []
    broken = False
    for kind, text in _parse()(line.encode("utf-8", "replace")):
        if kind == "error":
            broken = True
        elif len(fragments) < MAX_COMMANDS:
            fragments.append(text)
    return fragments, rough_commands(line) if broken else []
