"""Budgets of writing that counted too much, too little, or not at all elsewhere."""

import re

import pytest

from agentctl.testing.play import Turn, open_stage
from tests.end_to_end.command import Bench
from tests.reported.cases import Case, each_case, nobody_reads
from tests.reported.desk import Desk, call, no_file_beyond
from tests.run.families import family, results_of, says, snapshot_of, spawn

pytestmark = pytest.mark.anyio

ZONES = ("UTC", "Asia/Tokyo", "Europe/Rome")
STEPS = """
[agent]
name = "stepper"
[model]
use = ["scripted:"]
[stages.work]
prompt = "Work."
available_tools = ["current_time"]
""" + "".join(
    f'[[script.replies]]\ntool_calls = [{{ tool = "current_time", arguments = {{ timezone = "{zone}" }} }}]\n'
    for zone in ZONES * 20
)
"""No call is like the one before it: a run that repeats itself ends for that."""


@each_case("write-budget")
async def test_a_reported_budget(case: Case, desk: Desk, bench: Bench) -> None:
    match case.given:
        case {"budget_bytes_left": int(left), "edit": {"old": str(old), "new": str(new)}}:
            await growth(desk, left, old, new)
        case {"budget": str(budget), "commands": list(lines)}:
            await every_writer(desk, int(budget.split()[0]), [str(one) for one in lines])
        case {"limit_requests": int(limit), "steps": list()}:
            extended(bench, limit)
        case {"cap_bytes": int(cap), "commands": list(lines)}:
            await heredocs(desk, cap, [str(one) for one in lines])
        case {"setup": str(setup)} if "fails half-way" in setup:
            await failed_half_way(desk)
        case {"setup": str(setup), "budget": str()} if "sub-agent" in setup:
            await of_the_tree(desk)
        case _:
            nobody_reads(case)


def budget(**ceilings: int) -> str:
    """Return the table of a write budget."""
    return "\n".join(["[write_budget]", *(f"{key} = {value}" for key, value in ceilings.items())])


async def growth(desk: Desk, left: int, old: str, new: str) -> None:
    """An edit costs what the file grows by: `left` bytes are left, the new text is far longer than that."""
    before = "".join(part[0] * int(part[2:]) for part in [old])
    more = int(re.findall(r"\+ (\d+)", new)[0])
    (desk.work / "f").write_text(f"{before}\n")
    passed = await desk.run(
        call("edit_file", path="f", old=before, new=before + "b" * more),
        call("edit_file", path="f", old="\n", new="c" * (left - more) + "\n"),
        call("edit_file", path="f", old="\n", new="d\n"),
        rules=budget(per_run=left),
    )
    assert [one.outcome for one in passed.results[:2]] == ["ok", "ok"], passed.results
    assert passed.results[2].outcome == "denied"
    assert "write_budget.per_run" in passed.results[2].text
    assert re.search(rf"\b{left}\b", passed.results[2].text)
    assert passed.spent["bytes_written"] == left


async def every_writer(desk: Desk, files: int, lines: list[str]) -> None:
    """Each of these writes: none runs, and what is refused says that the budget was it."""
    for name in ("a", "f"):
        (desk.work / name).write_text("a\n")
    for line in lines:
        (told,) = await desk.calls(call("shell", command=line), rules=budget(files=files))
        assert told.outcome == "denied", (line, told.text)
        assert "write_budget.files" in told.text, (line, told.text)
    assert sorted(one.name for one in desk.work.iterdir()) == ["a", "f"]
    read_only = await desk.calls(
        *(call("shell", command=line) for line in ("cat a f", "grep -c a f", "ls -l > /dev/null")),
        rules=budget(files=files),
    )
    assert [one.outcome for one in read_only] == ["ok"] * 3, read_only


def extended(bench: Bench, limit: int) -> None:
    """A ceiling that a person raised holds from there: it stops neither at once nor later than it says."""
    first = bench.agentctl("run", bench.blueprint(STEPS), "go", "--limit", f"steps={limit}", "--json")
    assert (first.code, first.result["steps"]) == (6, limit), first.err
    raised = f"steps={2 * limit}"
    second = bench.agentctl("resume", str(first.result["run"]), "--limit", raised, "--json")
    assert (second.code, second.result["steps"]) == (6, 2 * limit), second.err


async def heredocs(desk: Desk, cap: int, lines: list[str]) -> None:
    body = "x" * 99 + "\n"
    counted = []
    for line in lines:
        found = re.fullmatch(r"(.*<<-?EOF) \((\d+) MB body\)", line)
        assert found is not None
        command = f"{found[1]}\n{body * (int(found[2]) * 1300)}EOF"
        told = await desk.run(call("shell", command=command), rules=budget(per_call=cap, per_run=cap))
        (result,) = told.results
        assert "write_budget.per_call" in result.text, result.text
        assert told.spent["bytes_written"] == (desk.work / "f").stat().st_size
        counted.append(told.spent["bytes_written"])
        (desk.work / "f").unlink()
    assert counted[0] > cap
    assert len(set(counted)) == 1


async def failed_half_way(desk: Desk) -> None:
    file = desk.work / "f"
    file.write_text("old\n" * 1000)
    with no_file_beyond(1_000_000):
        ran = await desk.run(
            call("edit_file", path="f", old="old", new="new" * 1000, replace_all=True),
            call("write_file", path="f", content="y" * 2_000_000, overwrite=True),
        )
    assert [one.outcome for one in ran.results] == ["failed", "failed"]
    assert file.read_text() == "old\n" * 1000
    assert ran.spent.get("bytes_written", 0) == 0
    assert ran.spent.get("files_written", 0) == 0


async def of_the_tree(desk: Desk) -> None:
    """What a child writes is the parent's budget: spent by the one, it is gone for the other."""
    write = call("write_file", path="child", content="x" * 60)
    replies = [
        *says("family", spawn(), call("write_file", path="own", content="x" * 60), "done"),
        *says("digger", write, "wrote"),
    ]
    path = desk.folder / "family.toml"
    path.write_text(family(more=budget(per_run=100)), encoding="utf-8")
    async with open_stage(path, workdir=desk.work, allow=["spawn_agent", "write_file"]) as stage:
        await stage.begin(Turn(text="go", replies=replies))
        told = (await results_of(stage, "family"))[-1]
        spent = (await snapshot_of(stage, "family")).spent
    assert told.outcome == "denied"
    assert "write_budget.per_run" in told.text
    assert spent["bytes_written"] == 60
    assert sorted(one.name for one in desk.work.iterdir()) == ["child"]
