"""What would have let a call through: the exact flags, and the line to write or to change."""

from collections.abc import Iterable
from dataclasses import replace

from agentctl.policy.grants import key_rule
from agentctl.policy.judge import judge
from agentctl.policy.keys import key_for
from agentctl.policy.layers import Layers
from agentctl.policy.patterns import PATTERN_TOOLS, quote_words
from agentctl.policy.rules import Rule
from agentctl.protocol.decisions import Decision, Judgement, Verdict
from agentctl.protocol.effects import OpaqueCommand, RunProgram, WritePath

YOLO = "--yolo"


def flags_for(decision: Decision, layers: Layers) -> tuple[str, ...]:
    """Return the rules that, each behind an `--allow`, let an asking call through; empty where none do.

    Each is tried before it is returned. Where no `--allow` helps and `--yolo` does, the answer is that alone.
    """
    asking = [judgement for judgement in decision.judgements if judgement.verdict is Verdict.ASK]
    if decision.verdict is not Verdict.ASK or any(judgement.held == "machine" for judgement in asking):
        return ()
    every = dict.fromkeys(narrowest_rule(judgement) for judgement in asking)
    # A rule on a whole tool makes its patterns pointless.
    rules = tuple(rule for rule in every if "(" not in rule or rule.partition("(")[0] not in every)
    if _lets_through(asking, with_flags(layers, allow=(key_rule(rule) for rule in rules))):
        return rules
    return (YOLO,) if _lets_through(asking, with_flags(layers, yolo=True)) else ()


def with_flags(layers: Layers, *, allow: Iterable[Rule] = (), yolo: bool = False) -> Layers:
    """Return the layers as if the run had been started with these flags as well, its parents' included."""
    more = tuple(allow)
    launch = replace(layers.launch, allow=(*layers.launch.allow, *more), yolo=layers.launch.yolo or yolo)
    parent = layers.parent and with_flags(layers.parent, allow=more, yolo=yolo)
    return replace(layers, launch=launch, parent=parent)


def lines_for(decision: Decision) -> tuple[str, ...]:
    """Return the lines of `[tool_permissions]` in the user's config that would allow what asks.

    One line a tool; empty when nothing of it can be allowed by a rule (held asks, lines that cannot be told).
    The blueprint or another layer may still ask: its own rule is then what has to change.
    """
    patterns: dict[str, list[str]] = {}
    for judgement in decision.judgements:
        if judgement.verdict is not Verdict.ASK:
            continue
        if judgement.held in {"opaque", "outside", "launch", "protected", "machine"}:
            return ()
        rule = key_rule(narrowest_rule(judgement))
        patterns.setdefault(rule.tool, [])
        if rule.pattern is not None and rule.pattern not in patterns[rule.tool]:
            patterns[rule.tool].append(rule.pattern)
    return tuple(_line(tool, texts) for tool, texts in patterns.items())


def _line(tool: str, patterns: list[str]) -> str:
    key = tool if tool.replace("_", "").isalnum() else f'"{tool}"'
    if not patterns or tool not in PATTERN_TOOLS:
        return f'{key} = "allow"'
    listed = ", ".join(_toml_text(pattern) for pattern in patterns)
    return f'{key} = {{ default = "ask", allow = [{listed}] }}'


def _toml_text(text: str) -> str:
    """Return a TOML string, literal where that needs no escapes."""
    if "'" not in text and text.isprintable():
        return f"'{text}'" if '"' in text or "\\" in text else f'"{text}"'
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in escaped) + '"'


def _lets_through(asking: list[Judgement], layers: Layers) -> bool:
    return all(judge(one.entry, one.effect, layers).verdict is Verdict.ALLOW for one in asking)


def narrowest_rule(judgement: Judgement) -> str:
    """Return the narrowest rule that matches a part, though it might be too wide to be remembered."""
    key = key_for(judgement)
    if key:
        return key
    match judgement.effect:
        case RunProgram(argv=argv, unknown=unknown) if 0 not in unknown:
            known = argv[: min(unknown, default=len(argv))]
            return (
                f"shell({quote_words(known)} *)" if len(known) < len(argv) else f"shell({quote_words(argv)})"
            )
        case WritePath(path=path, unresolved=False, protected="") if "*" not in path:
            return f"write_file({path})"
        case RunProgram() | OpaqueCommand():
            return "shell"
        case _:
            return judgement.entry
