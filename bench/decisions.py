"""What one decision costs: a command line into effects, judged by every layer, and lifted where covered.

`python bench/decisions.py` prints one JSON object; results are in bench/results/decisions.json. Microseconds
are the least of several rounds, warm; `cold` is the first decision of freshly loaded rules, imports left out.
"""

import json
import platform
import time
from collections.abc import Callable
from pathlib import Path

from agentctl.policy.cover import Lifts, cover, decide_and_cover
from agentctl.policy.decide import decide
from agentctl.policy.defaults import built_in_policy
from agentctl.policy.grants import GrantBook
from agentctl.policy.layers import Layers
from agentctl.policy.paths import Place
from agentctl.policy.rules import RuleSet, parse_permissions
from agentctl.policy.safe_data import safe_list
from agentctl.policy.shell.analyse import analyse
from agentctl.toml.read import parse

CONFIG = Path(__file__).resolve().parents[1] / "config"
LINES = (
    "git status -s",
    "git diff main --stat | grep -E '\\.(md|mdx)'",
    "cd src && pytest -q 2>&1 | tail -5",
    "npm run build -- --mode prod && echo ok",
    "rg -n foo src | head -20",
)
USER = """
shell = { default = "ask", allow = ["git status *", "pytest *", "npm run *"], deny = ["git push *", "rm *"] }
write_file = { default = "ask", allow = ["src/**", "tests/**"], deny = ["**/*.lock"] }
"""
BLUEPRINT = """
shell = { default = "ask", allow = ["git *", "pytest *"], deny = ["sudo *"] }
write_file = { allow = ["src/**"] }
"""
ROUNDS, TIMES = 7, 300
BUILT_IN = built_in_policy(parse((CONFIG / "policy.toml").read_bytes(), file="policy.toml"))
SAFE = safe_list(
    parse((CONFIG / "safe_commands.toml").read_bytes(), file="safe_commands.toml"), names=BUILT_IN.names
)


def main() -> None:
    """Print the figures."""
    layers = fresh()
    lifts = Lifts(safe_list=SAFE, grants=GrantBook(layers.place))
    figures = {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cold_us": round(min(cold() for _ in range(ROUNDS)), 1),
        "lines": {line: costs(line, layers, lifts) for line in LINES},
        "long_lines_ms": {
            "64 KiB of arguments": longest("echo " + "a " * 32_700, layers),
            "1 MiB of arguments": longest("echo " + "a " * 524_288, layers),
            "1 MiB quoted heredoc": longest("cat <<'E'\n" + "a $(b)\n" * 150_000 + "E\n", layers),
        },
    }
    print(json.dumps(figures, indent=2))


def fresh() -> Layers:
    """Return layers whose patterns nobody has used yet."""
    return Layers(
        blueprint=rules(BLUEPRINT),
        user=rules(USER),
        built_in=BUILT_IN.rules,
        follows=BUILT_IN.follows,
        place=Place(workdir="/repo/app", home="/home/u"),
    )


def rules(text: str) -> RuleSet:
    """Return the layer of a `[tool_permissions]` table."""
    table = parse(f"[tool_permissions]{text}".encode(), file="rules.toml")
    return parse_permissions(table.table("tool_permissions"), names=BUILT_IN.names)


def costs(line: str, layers: Layers, lifts: Lifts) -> dict[str, float | str]:
    """Return what the analysis, the judgement and all together cost, in microseconds."""
    effects = analyse(line, cwd="/repo/app", home="/home/u").effects

    def whole() -> None:
        seen = analyse(line, cwd="/repo/app", home="/home/u").effects
        decide_and_cover("shell", seen, layers, lifts)

    return {
        "verdict": cover("shell", decide("shell", effects, layers), lifts).verdict.word,
        "analysis": best(lambda: analyse(line, cwd="/repo/app", home="/home/u")),
        "decide": best(lambda: decide("shell", effects, layers)),
        "whole": best(whole),
    }


def cold() -> float:
    """Return the microseconds of the first decision by rules that were just loaded."""
    layers = fresh()
    begun = time.perf_counter()
    decide("shell", analyse(LINES[2], cwd="/repo/app", home="/home/u").effects, layers)
    return (time.perf_counter() - begun) * 1e6


def longest(line: str, layers: Layers) -> float:
    """Return the milliseconds of one decision on a very long line."""
    begun = time.perf_counter()
    decide("shell", analyse(line, cwd="/repo/app", home="/home/u").effects, layers)
    return round((time.perf_counter() - begun) * 1e3, 2)


def best(act: Callable[[], object]) -> float:
    """Return the least microseconds that one `act` took."""
    least = 1e9
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        for _ in range(TIMES):
            act()
        least = min(least, (time.perf_counter() - begun) / TIMES * 1e6)
    return round(least, 1)


if __name__ == "__main__":
    main()
