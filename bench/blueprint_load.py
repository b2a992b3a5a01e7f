"""What it costs to load a blueprint: the imports, and the file itself, beside what was not taken.

`python bench/blueprint_load.py` prints one JSON object; results are in bench/results/blueprint_load.json.
Imports are CPU milliseconds of a fresh process over one that imports nothing, the least of 15 in turns.
"""

import json
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from agentctl.blueprint.load import parse_blueprint
from agentctl.toml.positions import Positions

ROUNDS = 15
IMPORTS = {
    "agentctl.blueprint.load": "import agentctl.blueprint.load",
    "agentctl.settings.load": "import agentctl.settings.load",
    "both": "import agentctl.blueprint.load, agentctl.settings.load",
    "pydantic": "import pydantic; pydantic.BaseModel",
    "tomlkit": "import tomlkit",
    "tomllib": "import tomllib",
}
SAMPLE = Path(__file__).resolve().parents[1] / "tests" / "corpus" / "blueprints" / "good-everything.toml"


def main() -> None:
    """Print the figures."""
    text = SAMPLE.read_text(encoding="utf-8")
    blueprint = parse_blueprint(text.encode(), path=SAMPLE, found_by="path")
    figures = {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "import_cpu_ms": imports(),
        "blueprint_lines": len(text.splitlines()),
        "load_ms": best(lambda: parse_blueprint(text.encode(), path=SAMPLE, found_by="path")),
        "positions_ms": best(lambda: Positions("f", text).of_key(("agent",))),
        "stages": len(blueprint.stages),
    }
    print(json.dumps(figures, indent=2))


def imports() -> dict[str, float]:
    """Return CPU milliseconds over a bare process; None of what is not installed."""
    least = dict.fromkeys(("bare", *IMPORTS), 1e9)
    for _ in range(ROUNDS):
        for name, code in {"bare": "pass", **IMPORTS}.items():
            least[name] = min(least[name], cpu_ms(code))
    return {name: round(least[name] - least["bare"], 1) for name in IMPORTS}


def cpu_ms(code: str) -> float:
    """Return the CPU milliseconds of a process that runs `code`; a large number where it fails."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return used * 1000 if done.returncode == 0 else 1e9


def best(act: Callable[[], object]) -> float:
    """Return the least milliseconds of 50 calls."""
    least = 1e9
    for _ in range(50):
        start = time.perf_counter()
        act()
        least = min(least, time.perf_counter() - start)
    return round(least * 1000, 2)


if __name__ == "__main__":
    main()
