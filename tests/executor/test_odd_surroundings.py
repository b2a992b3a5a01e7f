"""Locales, rights and machines that are not the usual ones."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
PROGRAM = """
import sys
from pathlib import Path
import anyio
from agentctl.executor.api import *
from agentctl.executor.local import LocalExecutor

async def main():
    executor = LocalExecutor()
    roots = Roots(workdir=Path(sys.argv[1]), temp=Path(sys.argv[1]) / "t")
    path = await executor.resolve("caf\\u00e9.txt", roots)
    await executor.apply_write(await executor.plan_write(path, "caf\\u00e9\\n", WriteMode.CREATE))
    path = await executor.resolve("caf\\u00e9.txt", roots)
    await executor.apply_write(await executor.plan_edit(path, (Edit(old="\\u00e9", new="\\u00e8"),)))
    page = await executor.read_page(path, PageRequest())
    assert page.lines == ("caf\\u00e8",), page
    assert path.shown == "caf\\u00e9.txt", path
    base = await executor.resolve(".", roots)
    found = await executor.grep(base, GrepRequest(pattern="\\u00e8"))
    assert [match.path for match in found.matches] == ["caf\\u00e9.txt"], found
    found = await executor.grep(base, GrepRequest(pattern="c.*\\u00e8.*"))
    assert [match.path for match in found.matches] == ["caf\\u00e9.txt"], found
    names = await executor.glob(base, GlobRequest(pattern="*\\u00e9*"))
    assert [entry.name for entry in names.entries] == ["caf\\u00e9.txt"], names
    command = "cat caf\\u00e9.txt; echo \\u00fc > \\u00fc; ls"
    result = await executor.run(CommandRequest(command=command, roots=roots))
    assert result.output.text == "caf\\u00e8\\ncaf\\u00e9.txt\\nt\\n\\u00fc\\n", result.output
    await executor.aclose()

anyio.run(main)
"""


@pytest.mark.parametrize(
    "locale",
    [
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"LC_ALL": "C"},
        {"LANG": "C.UTF-8"},
        {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    ],
    ids=lambda locale: " ".join(f"{name}={value}" for name, value in locale.items()),
)
def test_text_is_utf_8_whatever_the_locale_says(tmp_path: Path, locale: dict[str, str]) -> None:
    environment = {
        name: value for name, value in os.environ.items() if name not in ("LANG", "LC_ALL", "LC_CTYPE")
    }

    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        check=False,
        capture_output=True,
        text=True,
        env={**environment, "PYTHONPATH": ":".join([str(REPOSITORY), *sys.path]), **locale},
    )

    assert done.returncode == 0, done.stderr


def test_the_command_speaks_utf_8_in_an_ascii_locale(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "LC_ALL": "C",
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
        "PYTHONPATH": ":".join([str(REPOSITORY), *sys.path]),
    }

    done = subprocess.run(
        [sys.executable, "-m", "agentctl", "run", "caf\u00e9-\u65e5"],
        check=False,
        capture_output=True,
        env=environment,
        cwd=tmp_path,
    )

    assert "caf\u00e9-\u65e5" in done.stderr.decode("utf-8")
    assert done.returncode == 2
