"""The embedded default model at work on real weights: opt in with `-m local_model`.

Six tasks through the shipped `scout` blueprint and the real command. The rate is reported; the test holds it
to what was measured when the prompts were frozen (docs/local-model.md).
"""

import json
import sys
from pathlib import Path

import pytest

from agentctl.llm.local_catalogue import default_model, known_model
from agentctl.locations import data_dir
from tests.end_to_end.command import Bench

WEIGHTS = known_model(default_model()).path
"""Where the weights are outside of tests, which have a home of their own."""

FILES = {
    "README.md": "# Harbour\n\nHarbour moves containers. See docs/ports.md for the port list.\n"
    "The service listens on port 8417.\n",
    "docs/ports.md": "# Ports\n\n| place | code |\n|---|---|\n| Genoa | GOA |\n| Rotterdam | RTM |\n"
    "| Trieste | TRS |\n",
    "src/crane.py": '"""Cranes."""\n\nMAX_LOAD_TONNES = 42\n\n\ndef lift(load):\n'
    '    if load > MAX_LOAD_TONNES:\n        raise ValueError("too heavy")\n    return load\n',
    "src/ship.py": '"""Ships."""\n\nfrom src.crane import lift\n\n\ndef unload(ship):\n'
    "    return [lift(item) for item in ship]\n",
    "logs/app.log": "12:00 INFO start\n12:02 ERROR crane 3 jammed\n12:03 INFO retry\n12:04 INFO done\n",
    "pyproject.toml": '[project]\nname = "harbour"\nversion = "3.1.4"\nrequires-python = ">=3.12"\n',
}
TASKS = (
    ("Which port does the service listen on?", ("8417",)),
    ("Which function raises ValueError, and in which file is it?", ("lift", "crane.py")),
    ("What is the code of Trieste in the port list?", ("TRS",)),
    ("Which crane jammed according to the log?", ("3",)),
    ("Which version is this project, and which Python does it need?", ("3.1.4", "3.12")),
    ("Which file calls the function lift and is not the file that defines it?", ("ship.py",)),
)
MEASURED = 5


@pytest.fixture
def bench(tmp_path: Path, agentctl_home: Path) -> Bench:
    del agentctl_home
    if not WEIGHTS.is_file():
        pytest.skip(f"no weights at {WEIGHTS}: agentctl models install")
    here = data_dir() / "models" / WEIGHTS.name
    here.parent.mkdir(parents=True)
    here.symlink_to(WEIGHTS)
    workdir = tmp_path / "harbour"
    for name, text in FILES.items():
        (workdir / name).parent.mkdir(parents=True, exist_ok=True)
        (workdir / name).write_text(text, encoding="utf-8")
    return Bench(folder=tmp_path, workdir=workdir)


@pytest.mark.local_model
@pytest.mark.timeout(1800)
def test_six_tasks_on_the_embedded_model(bench: Bench) -> None:
    right = 0
    for question, words in TASKS:
        ran = bench.agentctl("run", "scout", question, "--allow", "grep", "--json", patience_s=280)
        assert ran.code == 0, ran.err
        told = json.dumps(json.loads(ran.out)["output"])
        good = all(word in told for word in words)
        right += good
        sys.stderr.write(f"{'right' if good else 'wrong'}: {question} {told}\n")

    sys.stderr.write(f"rate: {right} of {len(TASKS)}\n")
    assert right >= MEASURED
