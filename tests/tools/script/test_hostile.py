"""A hostile script tool is contained, and the model is told in clear words what stopped it."""

import os
from pathlib import Path

import anyio
import pytest
from pydantic_monty import ResourceLimits

from agentctl.errors import ToolError
from agentctl.protocol.messages import ToolResult
from agentctl.tools.definition import InnerCall
from agentctl.tools.script.engine import MAX_STEPS
from tests.tools.script.scripts import bench, ok, script

pytestmark = pytest.mark.anyio


async def test_an_endless_loop_is_stopped_at_its_time() -> None:
    async with bench() as run:
        with anyio.fail_after(30):
            output = await run.run(script("while True:\n    pass"))

    assert output.failed
    assert output.text == "tools/sample.py was stopped: it computed for more than 5 s."


async def test_an_endless_loop_that_catches_everything_is_stopped_all_the_same() -> None:
    body = "while True:\n    try:\n        while True: pass\n    except BaseException:\n        pass"
    async with bench() as run:
        with anyio.fail_after(30):
            output = await run.run(script(body))

    assert "computed for more than 5 s" in output.text


@pytest.mark.parametrize(
    "body",
    [
        "x = []\nwhile True:\n    x.append('a' * 1000000)",
        "return [0] * 10 ** 9",
        "return 10 ** (2 ** 40)",
        "return 'a' * (1 << 40)",
        "x = {}\nn = 0\nwhile True:\n    n = n + 1\n    x[n] = [n] * 1000",
    ],
)
async def test_a_memory_bomb_is_stopped_by_the_ceiling(body: str) -> None:
    async with bench() as run:
        output = await run.run(script(body))

    assert output.failed
    assert output.text == "tools/sample.py was stopped: it needed more than 64 MiB."


async def test_deep_recursion_ends_in_an_error_of_the_script() -> None:
    async with bench() as run:
        output = await run.run(script("def f(n):\n    return f(n + 1)\ndef run():\n    return f(0)"))

    assert output.failed
    assert "RecursionError" in output.text
    assert len(output.text) < 3000


async def test_a_backtracking_pattern_does_not_hang() -> None:
    async with bench() as run:
        output = await run.run(script("import re\nreturn str(re.match('(a+)+$', 'a' * 60 + 'b'))"))

    assert output.text == "None"


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("return open('/etc/passwd').read()", "PermissionError"),
        ("return open('../../../../etc/passwd').read()", "PermissionError"),
        ("open('/tmp/agentctl-was-here', 'w').write('x')", "PermissionError"),
        ("from pathlib import Path\nreturn Path('/etc/passwd').read_text()", "PermissionError"),
        ("import os\nreturn os.listdir('/')", "PermissionError"),
        ("import os\nreturn os.environ['HOME']", "RuntimeError"),
        ("import os\nreturn os.getenv('AGENTCTL_TEST_TOKEN')", "RuntimeError"),
        ("import os\nos.fork()", "AttributeError"),
        ("import os\nos.system('touch /tmp/agentctl-was-here')", "AttributeError"),
        ("import os\nos.kill(1, 9)", "AttributeError"),
        ("import subprocess\nsubprocess.run(['id'])", "ModuleNotFoundError"),
        ("import socket", "ModuleNotFoundError"),
        ("import ctypes", "ModuleNotFoundError"),
        ("import multiprocessing", "ModuleNotFoundError"),
        ("import agentctl", "ModuleNotFoundError"),
        ("import importlib\nimportlib.import_module('os')", "Error"),
        ("return __import__('subprocess').run(['id'])", "NameError"),
        ("return ().__class__.__bases__[0].__subclasses__()", "AttributeError"),
        ("return run.__globals__", "AttributeError"),
        ("return read_file.__self__", "Error"),
        ("import sys\nreturn sys.modules", "Error"),
    ],
)
async def test_there_is_no_way_to_the_machine(body: str, error: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTCTL_TEST_TOKEN", "hidden")
    async with bench(environ=dict(os.environ)) as run:
        output = await run.run(script(body))

    assert output.failed
    assert error in output.text
    assert "hidden" not in output.text
    assert "root:" not in output.text
    assert run.calls == []
    assert not await anyio.Path("/tmp/agentctl-was-here").exists()


async def test_the_worker_has_no_environment_and_no_child(tmp_path: Path) -> None:
    children = anyio.Path("/proc/self/task")
    if not await children.exists():
        pytest.skip("the kernel tells about children here only on Linux")
    found: list[bytes] = []

    def look(inner: InnerCall) -> ToolResult:
        for task in Path("/proc/self/task").iterdir():
            children = (task / "children").read_text().split()
            found.extend(Path(f"/proc/{pid}/environ").read_bytes() for pid in children)
        return ok(content="")

    async with bench(look) as run:
        await run.run(script("read_file('x')"))

    assert found
    # A process of no environment reads as nothing, or as zeros where its title took the room.
    assert {environment.strip(b"\0") for environment in found} == {b""}


async def test_more_host_calls_than_allowed_end_the_script() -> None:
    body = "while True:\n    try:\n        read_file('x')\n    except BaseException:\n        pass"
    async with bench() as run:
        with pytest.raises(ToolError, match=f"more than {MAX_STEPS} host calls"):
            await run.run(script(body))

    assert len(run.calls) == MAX_STEPS


async def test_what_it_prints_is_kept_in_part_and_never_fills_memory() -> None:
    async with bench() as run:
        output = await run.run(script("for n in range(100000):\n    print('x' * 100)"))

    assert len(output.text) < 20_000
    assert "characters more" in output.text
    assert sum(map(len, run.shown)) <= 16_000


async def test_a_huge_return_value_is_refused() -> None:
    async with bench() as run:
        with pytest.raises(ToolError, match="returned 1,000,000 characters; at most 262,144"):
            await run.run(script("return 'a' * 1000000"))


@pytest.mark.parametrize("body", ["return {1, 2}", "return b'x'", "return object()"])
async def test_a_value_that_is_no_json_is_refused_in_words(body: str) -> None:
    async with bench() as run:
        try:
            output = await run.run(script(body))
        except ToolError as error:
            assert "not text, a number, a list or a dict" in str(error)  # noqa: PT017 - either is an answer
        else:
            assert output.failed


async def test_cancelling_ends_the_worker_at_once() -> None:
    async with bench() as run:
        with anyio.move_on_after(0.5) as scope:
            await run.run(script("while True:\n    pass"))
        assert scope.cancelled_caught

        output = await run.run(script("return 'still here'"))

    assert output.text == "still here"


async def test_a_script_leaves_nothing_behind_for_the_next() -> None:
    async with bench() as run:
        await run.run(script("global_name = 1\ndef run():\n    return 1"))
        output = await run.run(script("return global_name"))

    assert output.failed
    assert "NameError" in output.text


async def test_source_after_an_open_string_never_runs_as_something_else() -> None:
    async with bench() as run:
        output = await run.run(script('def run():\n    return 1\nx = """'))

    assert output.failed
    assert "SyntaxError" in output.text


def test_the_engine_has_no_limit_that_is_not_used() -> None:
    # A count of instructions is not among them: docs/tools.md says what stands in its place. Should a newer
    # engine have one, this fails, and `engine.py` takes it.
    used = {"max_feed_duration_secs", "max_memory", "max_recursion_depth", "max_suspensions"}
    needless = {
        "max_turn_duration_secs",  # a part of what max_feed_duration_secs bounds
        "max_total_sleep_secs",  # sleeping takes no time here
        "gc_interval",  # how it keeps below max_memory is its own business
    }
    assert set(ResourceLimits.__annotations__) == used | needless
