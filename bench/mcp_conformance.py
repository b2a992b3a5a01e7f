"""Runs the official conformance suite for MCP clients and writes what came of it.

`make conformance` installs the suite beside the environment. `--check` compares with the recorded result
instead of writing it.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SERVERS = ROOT / ".venv" / "mcp-servers"
SUITE = SERVERS / "conformance" / "node_modules" / "@modelcontextprotocol" / "conformance"
NODE = SERVERS / "bin" / "node"
RESULT = ROOT / "bench" / "results" / "mcp_conformance.json"
CLIENT = ROOT / "bench" / "mcp_conformance_client.py"


def available() -> bool:
    return NODE.exists() and (SUITE / "dist" / "index.js").exists()


def environment() -> dict[str, str]:
    path = f"{NODE.parent}{os.pathsep}{os.environ.get('PATH', '')}"
    return {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}


def scenarios() -> list[str]:
    listed = subprocess.run(
        [str(NODE), str(SUITE / "dist" / "index.js"), "list", "--client"],
        capture_output=True, text=True, check=True, env=environment(),
    )  # fmt: skip
    return [line.split()[1] for line in listed.stdout.splitlines() if line.strip().startswith("- ")]


def run_scenario(name: str, folder: Path) -> dict[str, object]:
    """Return how one scenario went, with each check that failed."""
    place = folder / name.replace("/", "-")
    command = f"{sys.executable} {CLIENT}"
    subprocess.run(
        [str(NODE), str(SUITE / "dist" / "index.js"), "client", "--command", command,
         "--scenario", name, "--output-dir", str(place), "--timeout", "60000"],
        capture_output=True, text=True, check=False, env=environment(), timeout=120,
    )  # fmt: skip
    checks = [
        check for file in sorted(place.rglob("checks.json")) for check in json.loads(file.read_text("utf-8"))
    ]
    counted = [check for check in checks if check.get("status") in {"SUCCESS", "FAILURE", "WARNING"}]
    failed = sorted({str(check["id"]) for check in counted if check["status"] == "FAILURE"})
    warned = sorted({str(check["id"]) for check in counted if check["status"] == "WARNING"})
    passed = sum(check["status"] == "SUCCESS" for check in counted)
    return {"passed": passed, "failed": failed, "warnings": warned, "ok": bool(counted) and not failed}


def run_all() -> dict[str, object]:
    version = json.loads((SUITE / "package.json").read_text("utf-8"))["version"]
    with tempfile.TemporaryDirectory() as folder:
        found = {name: run_scenario(name, Path(folder)) for name in scenarios()}
    return {
        "suite": f"@modelcontextprotocol/conformance {version}",
        "scenarios": len(found),
        "passed": sum(bool(result["ok"]) for result in found.values()),
        "failing": [name for name, result in found.items() if not result["ok"]],
        "results": found,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare with the recorded result")
    options = parser.parse_args()
    if not available():
        print("the suite is not here; run: make conformance", file=sys.stderr)
        return 2
    found = run_all()
    print(json.dumps({key: value for key, value in found.items() if key != "results"}, indent=2))
    if options.check:
        recorded = json.loads(RESULT.read_text("utf-8"))
        return int(recorded["failing"] != found["failing"])
    RESULT.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
