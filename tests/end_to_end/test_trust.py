"""A blueprint's own code runs only after a person trusted it: by a flag, or at the terminal, once."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from agentctl.locations import config_dir
from tests.end_to_end.command import Bench, environment
from tests.terminal.pty_screen import Open

BLUEPRINT = """
[agent]
name = "coded"
[model]
use = ["scripted:"]
[[hooks]]
name = "h"
use = "hook.py:H"
events = ["tool_call"]
[stages.work]
prompt = "Work."
available_tools = ["current_time"]
[script]
[[script.replies]]
text = "Look."
tool_calls = [{ tool = "current_time" }]
[[script.replies]]
text = "Done."
"""
HOOK = "from agentctl.api import Hook\n\nclass H(Hook):\n    pass\n"


@pytest.fixture
def coded(bench: Bench) -> Path:
    (bench.folder / "hook.py").write_text(HOOK, encoding="utf-8")
    return bench.blueprint(BLUEPRINT)


def test_a_person_at_the_terminal_is_asked_once(coded: Path, in_workdir: Open) -> None:
    refused = in_workdir("run", coded, "go")
    refused.wait_for("[y] trust it  [n] do not run >", timeout_s=30)
    assert "hook hook.py:H" in refused.text
    refused.send("n")
    assert refused.wait_end() == 3

    asked = in_workdir("run", coded, "go")
    asked.wait_for("[y] trust it", timeout_s=30)
    asked.send("y")
    assert asked.wait_end() == 0
    assert "Done." in asked.text

    again = in_workdir("run", coded, "go")
    assert again.wait_end() == 0
    assert "trust it" not in again.text


def test_another_file_under_the_same_name_is_asked_about_again(
    bench: Bench, coded: Path, in_workdir: Open
) -> None:
    first = bench.agentctl("run", coded, "go")
    digest = first.err.rsplit("--trust ", 1)[1].split()[0]
    assert first.code == 3
    assert bench.agentctl("run", coded, "go", "--trust", digest).code == 0
    assert bench.agentctl("run", coded, "go").code == 0

    (coded.parent / "hook.py").write_text(HOOK + "\nprint('changed')\n", encoding="utf-8")

    assert bench.agentctl("run", coded, "go").code == 3
    asked = in_workdir("run", coded, "go")
    asked.wait_for("[y] trust it", timeout_s=30)
    asked.send("\x1b")
    assert asked.wait_end() == 3


def test_a_resumed_run_does_not_take_code_that_changed_meanwhile(bench: Bench, coded: Path) -> None:
    digest = bench.agentctl("run", coded, "go").err.rsplit("--trust ", 1)[1].split()[0]
    stopped = bench.agentctl("run", coded, "go", "--trust", digest, "--limit", "steps=1")
    assert stopped.code == 6, stopped.err

    (coded.parent / "hook.py").write_text(HOOK + "\nX = 1\n", encoding="utf-8")
    refused = bench.agentctl("resume", "last", "--limit", "steps=9")
    assert refused.code == 3
    digest = refused.err.rsplit("--trust ", 1)[1].split()[0]

    resumed = bench.agentctl("resume", "last", "--limit", "steps=9", "--trust", digest)
    assert resumed.code == 0, resumed.err


def test_the_hook_that_was_trusted_runs_and_not_one_of_that_name_in_the_workdir(bench: Bench) -> None:
    """The workdir is where the model may write."""
    for folder, word in ((bench.folder, "trusted"), (bench.workdir, "planted")):
        (folder / "hook.sh").write_text(
            f"cat > /dev/null; echo {word} >> {bench.folder}/ran\n", encoding="utf-8"
        )
    table = 'use = "hook.py:H"'
    blueprint = bench.blueprint(BLUEPRINT.replace(table, 'command = ["sh", "hook.sh"]'))
    (digest,) = re.findall(r"--trust (\w{16,})", bench.agentctl("run", blueprint, "go").err)

    assert bench.agentctl("run", blueprint, "go", "--trust", digest).code == 0
    assert set((bench.folder / "ran").read_text("utf-8").split()) == {"trusted"}


ESCAPE = """
[agent]
name = "escape"
[model]
use = ["scripted:"]
[[hooks]]
name = "h"
command = ["{python}", "h.py"]
events = "tool_call"
timeout = 20
[tool_permissions]
shell = "allow"
[stages.work]
available_tools = ["shell"]
[[script.replies]]
tool_calls = [{{ tool = "shell", arguments = {{ command = "bash evil.sh" }} }}]
[[script.replies]]
tool_calls = [{{ tool = "shell", arguments = {{ command = "ls" }} }}]
[[script.replies]]
text = "Done."
"""


@pytest.mark.parametrize("sandbox", ["auto", "none"])
def test_a_command_that_rewrites_a_trusted_hook_does_not_get_it_run(bench: Bench, sandbox: str) -> None:
    marker = bench.folder / "escaped"
    blueprint = bench.workdir / "escape.toml"
    blueprint.write_text(ESCAPE.format(python=sys.executable), encoding="utf-8")
    (bench.workdir / "h.py").write_text('print("{}")\n', encoding="utf-8")
    evil = f"open({str(marker)!r}, 'w')"
    (bench.workdir / "evil.sh").write_text(f'f=h; echo "{evil}" > $f.py\n', encoding="utf-8")
    config = config_dir() / "config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(f'[sandbox]\nkind = "{sandbox}"\non_unavailable = "warn"\n', encoding="utf-8")
    digest = bench.agentctl("run", blueprint, "go").err.rsplit("--trust ", 1)[1].split()[0]

    ran = bench.agentctl(
        "run", blueprint, "go", "--trust", digest, "--allow", "shell(bash evil.sh)", "--allow", "shell(ls)"
    )

    assert "✓ shell bash evil.sh" in ran.err or "✗ shell bash evil.sh" in ran.err, ran.err
    assert ("is not what was trusted" in ran.err) == (sandbox == "none"), ran.err
    assert not marker.exists()


def test_a_module_of_our_name_in_the_current_folder_is_never_run(bench: Bench) -> None:
    (bench.workdir / "agentctl").mkdir()
    for name in ("__init__.py", "__main__.py"):
        (bench.workdir / "agentctl" / name).write_text('print("evil")\n', encoding="utf-8")
    script = Path(sys.executable).with_name("agentctl")
    if not script.exists():
        pytest.skip("the command is not installed beside this interpreter")

    ran = subprocess.run(
        [str(script), "blueprints", "list"],
        cwd=bench.workdir,
        env={**environment(), "PYTHONUTF8": "0", "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert "coder" in ran.stdout
    assert "evil" not in ran.stdout
