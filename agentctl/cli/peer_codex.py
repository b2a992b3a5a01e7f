"""Codex's `*.rules`: calls of `prefix_rule`, `network_rule` and `host_executable` with literal arguments."""

import ast
from itertools import islice, product

from agentctl.cli.peer_rules import Imported, prefix_pattern, quoted_word
from agentctl.errors import UsageError

_DECISIONS = {"allow": "allow", "prompt": "ask", "forbidden": "deny", "deny": "deny"}
_MOST_SPELLINGS = 256


def import_codex(text: str, *, name: str) -> Imported:
    """Return the rules in `text`, which is read and never run.

    Raises:
        UsageError: it is not of the language that rules are written in.
    """
    try:
        module = ast.parse(text)
    except SyntaxError as error:
        raise UsageError(f"{name} holds no Codex rules: line {error.lineno}: {error.msg}.") from error
    imported = Imported()
    for statement in module.body:
        call = statement.value if isinstance(statement, ast.Expr) else None
        source = ast.get_source_segment(text, statement) or ""
        if isinstance(call, ast.Constant):
            continue
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.args:
            imported.note(source, "only calls with named arguments are read", carried=False)
            continue
        try:
            given = {word.arg or "": ast.literal_eval(word.value) for word in call.keywords}
        except ValueError:
            imported.note(source, "its arguments are not written out", carried=False)
            continue
        _take(imported, call.func.id, given, source)
    return imported


def _take(imported: Imported, name: str, given: dict[str, object], source: str) -> None:
    into = _DECISIONS.get(str(given.get("decision", "allow")))
    if into is None:
        imported.note(source, f"{given.get('decision')!r} is no decision", carried=False)
    elif name == "prefix_rule":
        _prefix(imported, given, into, source)
    elif name == "network_rule":
        imported.pattern("network", into, str(given.get("host", "")), rule=source)
        if given.get("protocol"):
            imported.note(source, "a host is allowed or denied whatever the protocol")
    elif name == "host_executable":
        imported.note(
            source,
            "a program is matched by the name it is called by: a path matches only itself",
            carried=False,
        )
    else:
        imported.note(source, f"{name} has no counterpart", carried=False)


def _prefix(imported: Imported, given: dict[str, object], into: str, source: str) -> None:
    pattern = given.get("pattern")
    if not isinstance(pattern, list) or not pattern:
        imported.note(source, "names no pattern", carried=False)
        return
    choices = [[str(word) for word in part] if isinstance(part, list) else [str(part)] for part in pattern]
    spellings = list(islice(product(*choices), _MOST_SPELLINGS + 1))
    if len(spellings) > _MOST_SPELLINGS:
        imported.note(source, f"has more than {_MOST_SPELLINGS} spellings", carried=False)
        return
    for words in spellings:
        imported.pattern("shell", into, prefix_pattern(words), rule=source)
    because = str(given.get("justification") or "")
    if because:
        imported.note(source, f"the model is not told: {because}")
    for line in _examples(given.get("match")):
        imported.tests.append((f"shell({line})", into, because))
    if given.get("not_match"):
        imported.note(source, "not_match is not tested: another rule may match those lines")


def _examples(value: object) -> list[str]:
    found = []
    for example in value if isinstance(value, list) else []:
        if isinstance(example, str):
            found.append(example)
        elif isinstance(example, list):
            found.append(" ".join(quoted_word(str(word)) for word in example))
    return found
