"""Sub-agents of one run: how they are started, waited for, spoken to, ended, and what they leave."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from agentctl.protocol.events import LaunchFlags, RunEnded, RunSuspended, StateChanged
from agentctl.testing.play import Stage, Turn, approve, open_stage
from tests.run.families import ALLOW, call, family, results_of, runs_of, says, snapshot_of, spawn

pytestmark = pytest.mark.anyio


@pytest.fixture
def workdir(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "family.toml"
    path.write_text(text, encoding="utf-8")
    return path


async def played(stage: Stage, *replies: list[dict[str, Any]]) -> tuple[str, Any]:
    with anyio.fail_after(30):
        return await stage.begin(Turn(text="go", replies=[one for many in replies for one in many]))


async def test_two_spawned_in_one_step_have_names_and_scopes_of_their_own(
    tmp_path: Path, workdir: Path
) -> None:
    async with open_stage(written(tmp_path, family()), workdir=workdir, allow=ALLOW) as stage:
        _, end = await played(
            stage,
            says("family", [spawn("one"), spawn("two"), spawn("three")], "done"),
            says("digger", "gold", times=3),
        )

        started = (await snapshot_of(stage, "family")).children.values()
    assert end.answer == "done"
    assert sorted(child.name for child in started) == ["digger", "digger-2", "digger-3"]
    assert {child.scope for child in started} == {"digger", "digger-2", "digger-3"}


async def test_no_worker_begins_when_one_of_them_cannot(tmp_path: Path, workdir: Path) -> None:
    fan = call("fan_out", agent="digger", items=["a", "b"], scope="x\u001fy")
    async with open_stage(written(tmp_path, family()), workdir=workdir, allow=ALLOW) as stage:
        _, end = await played(stage, says("family", fan, spawn(), "done"), says("digger", "gold"))

        (refused, found) = await results_of(stage, "family")
        snapshot = await snapshot_of(stage, "family")
    assert refused.outcome == "failed"
    assert "gold" in found.text
    assert [child.name for child in snapshot.children.values()] == ["digger"]
    assert snapshot.spent["subagents"] == 1
    assert end.answer == "done"


async def test_waiting_for_any_comes_back_with_the_first(tmp_path: Path, workdir: Path) -> None:
    slow = [{"agent": "digger-2", "pause_s": 600, "text": "late"}]
    both = [spawn("one", wait=False), spawn("two", wait=False)]
    async with open_stage(written(tmp_path, family()), workdir=workdir, allow=ALLOW) as stage:
        await played(
            stage,
            says(
                "family",
                both,
                call("wait_agent", until="any"),
                call("check_agent", agent="digger-2"),
                call("kill_agent", agent="digger-2"),
                "done",
            ),
            [{"agent": "digger", "when": "one", "text": "gold"}],
            [{**slow[0], "agent": "digger", "when": "two"}],
        )

        results = await results_of(stage, "family")
    by_tool = {result.tool: result for result in results}
    assert "gold" in by_tool["wait_agent"].text
    assert "digger-2" in by_tool["wait_agent"].text
    assert "running" in by_tool["check_agent"].text
    assert "cancelled, ended by its parent" in by_tool["kill_agent"].text


async def test_a_message_reaches_a_sub_agent_at_its_next_step(tmp_path: Path, workdir: Path) -> None:
    wait_for_note = call("shell", command="while ! test -e note; do sleep 0.02; done")
    async with open_stage(written(tmp_path, family()), workdir=workdir, allow=ALLOW) as stage:
        await played(
            stage,
            says(
                "family",
                spawn(wait=False),
                call("send_agent", agent="digger", message="dig deeper"),
                call("write_file", path="note", content="sent"),
                call("wait_agent"),
                "done",
            ),
            says("digger", wait_for_note),
            [{"agent": "digger", "expect": {"anywhere": ["dig deeper"]}, "text": "deeper"}],
        )

        assert "deeper" in (await results_of(stage, "family"))[-1].text


async def test_a_kill_ends_the_whole_subtree_with_its_partial_work(tmp_path: Path, workdir: Path) -> None:
    async with open_stage(written(tmp_path, family()), workdir=workdir, allow=ALLOW) as stage:
        below = call("shell", command="touch deep; sleep 600")
        seen = call("shell", command="while ! test -e deep; do sleep 0.02; done")
        await played(
            stage,
            says(
                "family",
                spawn("top", wait=False),
                seen,
                call("kill_agent", agent="digger"),
                call("kill_agent", agent="digger"),
                "done",
            ),
            [{"agent": "digger", "when": "top", "text": "half of it", "tool_calls": [spawn("bottom")]}],
            says("digger", below, when="bottom"),
        )

        infos = await runs_of(stage, "digger")
        killed, again = (await results_of(stage, "family"))[-2:]
    assert [info.outcome for info in infos] == ["cancelled", "cancelled"]
    assert [info.status for info in infos] == ["ended", "ended"]
    assert "half of it" in killed.text
    assert killed.text == again.text
    assert killed.outcome == "ok"


async def test_sub_agents_end_when_their_parent_does(tmp_path: Path, workdir: Path) -> None:
    sleeping = [{"agent": "digger", "pause_s": 600, "text": "late"}]
    async with open_stage(written(tmp_path, family()), workdir=workdir, allow=ALLOW) as stage:
        _, end = await played(stage, says("family", spawn(wait=False), "done"), sleeping)

        (info,) = await runs_of(stage, "digger")
    assert end.answer == "done"
    assert (info.status, info.outcome, info.reason) == ("ended", "cancelled", "its parent has ended")


async def test_nested_waits_hold_no_slot(tmp_path: Path, workdir: Path) -> None:
    text = family(agent="tool_concurrency = 1")
    fan = call("fan_out", agent="digger", items=["b", "c"], max_workers=1)
    async with open_stage(written(tmp_path, text), workdir=workdir, allow=ALLOW) as stage:
        _, end = await played(
            stage,
            says("family", [spawn("a"), call("wait_agent")], "done"),
            says("digger", fan, "a is done", when="a"),
            says("digger", [spawn("deep"), spawn("deep")], "two deep", when="b"),
            says("digger", "gold", when="deep", times=2),
            says("digger", "c is done", when="c"),
        )

        first, _ = await results_of(stage, "family")
    assert end.answer == "done"
    assert "a is done" in first.text


async def test_sa_008_the_fourth_level_is_refused(tmp_path: Path, workdir: Path) -> None:
    async with open_stage(written(tmp_path, family()), workdir=workdir, allow=ALLOW) as stage:
        await played(
            stage,
            says("family", spawn("level 1"), "done"),
            says("digger", spawn("level 2"), "one", when="level 1"),
            says("digger", spawn("level 3"), "two", when="level 2"),
            says("digger", spawn("level 4"), when="level 3"),
            [{"agent": "digger", "when": "level 3", "expect": {"last": ["limits.depth"]}, "text": "three"}],
        )

        assert len(await runs_of(stage, "digger")) == 3


async def test_all_agents_of_the_tree_count_for_one_limit(tmp_path: Path, workdir: Path) -> None:
    async with open_stage(written(tmp_path, family()), workdir=workdir, allow=ALLOW) as stage:
        limited = replace(
            stage, blueprint=replace(stage.blueprint, limits=replace(stage.blueprint.limits, subagents=2))
        )
        await played(
            limited,
            says("family", spawn("top"), "done"),
            says("digger", [spawn("low"), spawn("low")], "one", when="top"),
            says("digger", "gold", when="low"),
        )

        top = next(info for info in await runs_of(stage, "digger") if info.task == "top")
        assert len(await runs_of(stage, "digger")) == 2
        assert top.outcome == "finished"


async def test_what_does_not_fit_its_share_of_the_report_is_in_shared_state(
    tmp_path: Path, workdir: Path
) -> None:
    text = family(more="[context]\ntool_output_max_bytes = 2000\n")
    fan = call("fan_out", agent="digger", items=["long", "short"])
    long = "gold " * 1000
    async with open_stage(written(tmp_path, text), workdir=workdir, allow=ALLOW) as stage:
        await played(
            stage,
            says("family", fan, call("shared_state", action="get", key="digger/answer", grep="gold"), "done"),
            says("digger", long, when="long"),
            says("digger", "little", when="short"),
        )

        report, kept = await results_of(stage, "family")
    assert "shared_state get 'digger/answer'" in report.text
    assert "little" in report.text
    assert len(report.text) < 2000
    assert kept.outcome == "ok"
    assert isinstance(report.structured, dict)
    assert json.dumps(report.structured).count("gold") < 400


async def test_a_child_sees_its_scope_and_the_keys_it_was_lent(tmp_path: Path, workdir: Path) -> None:
    def get(key: str) -> dict[str, Any]:
        return call("shared_state", action="get", key=key)

    put = [call("shared_state", action="set", key=key, value=f"the {key}") for key in ("plan", "secret")]
    mine = call("shared_state", action="set", key="found", value="gold")
    async with open_stage(written(tmp_path, family()), workdir=workdir, allow=ALLOW) as stage:
        await played(
            stage,
            says("family", put, spawn(read=["plan"]), get("digger/found"), "done"),
            [
                {**one, "expect": {"system": ["plan (8 bytes)"]}}
                for one in says("digger", [mine, get("plan"), get("secret")], "dug")
            ],
        )

        child = await results_of(stage, "digger")
        parent = await results_of(stage, "family")
    assert [result.outcome for result in child] == ["ok", "ok", "failed"]
    assert child[1].text == "the plan"
    assert parent[-1].text == "gold"


async def test_a_scoped_stage_lends_its_child_nothing_else(tmp_path: Path, workdir: Path) -> None:
    text = family(lead='shared_state = { scope = "inner" }')
    read = [call("shared_state", action="get", key=key) for key in ("inner/plan", "plan", "other/x")]
    async with open_stage(written(tmp_path, text), workdir=workdir, allow=ALLOW) as stage:
        put = call("shared_state", action="set", key="plan", value="the plan")
        await played(
            stage,
            says("family", put, spawn(read=["plan", "../x"], scope="other"), "done"),
            says("digger", read, "dug"),
        )

        child = await results_of(stage, "digger")
    assert [result.outcome for result in child] == ["ok", "failed", "failed"]


async def test_nothing_to_do_is_a_report_too(tmp_path: Path, workdir: Path) -> None:
    async with open_stage(written(tmp_path, family()), workdir=workdir, allow=ALLOW) as stage:
        await played(stage, says("family", call("fan_out", agent="digger", items=[]), "done"))

        (report,) = await results_of(stage, "family")
    assert (report.outcome, report.text) == ("ok", "0 of 0 finished.")


async def test_a_tree_that_waits_for_a_person_goes_on_once_they_answered(
    tmp_path: Path, workdir: Path
) -> None:
    replies = (
        says("family", spawn("top"), "done"),
        says("digger", spawn("low"), "one", when="top"),
        says("digger", call("write_file", path="a.txt", content="a"), "two", when="low"),
    )
    async with open_stage(written(tmp_path, family()), workdir=workdir) as stage:
        pausing = replace(stage, flags=LaunchFlags(allow=("spawn_agent",), on_ask="pause"))
        run_id, suspended = await played(pausing, *replies)
        still = await runs_of(stage, "digger")
        attended = replace(pausing, answers=approve)
        end = await attended.resume(run_id, [one for many in replies for one in many])

        after = await runs_of(stage, "digger")
    assert isinstance(suspended, RunSuspended)
    assert suspended.exit_code == 4
    assert {info.status for info in still} == {"waiting", "suspended"}
    assert isinstance(end, RunEnded)
    assert end.answer == "done"
    assert {info.outcome for info in after} == {"finished"}
    assert (workdir / "a.txt").read_text() == "a"


async def test_what_the_stage_denies_its_children_is_denied_after_a_resume(
    tmp_path: Path, workdir: Path
) -> None:
    text = family(lead='tool_permissions = { shell = { default = "ask", deny = ["touch *"] } }')
    replies = [
        *says("family", spawn(), "done"),
        *says("digger", call("write_file", path="a.txt", content="a"), call("shell", command="touch b.txt")),
        {"agent": "digger", "expect": {"outcome": "denied"}, "text": "dug"},
    ]
    async with open_stage(written(tmp_path, text), workdir=workdir) as stage:
        pausing = replace(stage, flags=LaunchFlags(allow=("spawn_agent", "shell"), on_ask="pause"))
        run_id, _ = await played(pausing, replies)
        end = await replace(pausing, answers=approve).resume(run_id, replies)

    assert isinstance(end, RunEnded)
    assert end.answer == "done", end
    assert not (workdir / "b.txt").exists()


async def test_one_that_waits_does_not_stop_the_others(tmp_path: Path, workdir: Path) -> None:
    fan = call("fan_out", agent="digger", items=["asks", "works", "more"], max_workers=2)
    replies = [
        *says("family", {**fan, "arguments": {**fan["arguments"], "on_failure": "fail_all"}}, "done"),
        *says("digger", call("write_file", path="a.txt", content="a"), "wrote", when="asks"),
        *says("digger", call("shell", command="sleep 0.2; echo x >> log.txt"), "ran", when="works"),
        *says("digger", call("shell", command="echo x >> log.txt"), "ran", when="more"),
    ]
    async with open_stage(written(tmp_path, family()), workdir=workdir) as stage:
        pausing = replace(
            stage,
            flags=LaunchFlags(
                allow=("fan_out", "spawn_agent", "shell", "write_file(log.txt)"), on_ask="pause"
            ),
        )
        run_id, suspended = await played(pausing, replies)
        outcomes = [info.outcome for name in ("digger-2", "digger-3") for info in await runs_of(stage, name)]
        end = await replace(pausing, answers=approve).resume(run_id, replies)

        (report,) = await results_of(stage, "family")
    assert isinstance(suspended, RunSuspended)
    assert outcomes == ["finished", "finished"]
    assert isinstance(end, RunEnded)
    assert report.text.startswith("3 of 3 finished.")
    assert (workdir / "log.txt").read_text() == "x\nx\n"


async def test_a_stage_that_requires_its_children_stands_still_with_them(
    tmp_path: Path, workdir: Path
) -> None:
    replies = [
        *says("family", spawn(wait=False), "first", "they are done"),
        *says("digger", call("write_file", path="a.txt", content="a"), "wrote"),
    ]
    text = family(lead="requires_children = true")
    async with open_stage(written(tmp_path, text), workdir=workdir) as stage:
        pausing = replace(stage, flags=LaunchFlags(allow=("spawn_agent",), on_ask="pause"))
        run_id, suspended = await played(pausing, replies)
        end = await replace(pausing, answers=approve).resume(run_id, replies)

    assert isinstance(suspended, RunSuspended)
    assert isinstance(end, RunEnded)
    assert end.answer == "they are done"


async def test_no_agent_is_started_when_the_money_is_spent(tmp_path: Path, workdir: Path) -> None:
    async with open_stage(written(tmp_path, family()), workdir=workdir, allow=ALLOW) as stage:
        limits = replace(stage.blueprint.limits, cost_usd=1.0)
        usage = {"input_tokens": 1, "output_tokens": 1, "cost_usd": 1.0}
        _, end = await played(
            replace(stage, blueprint=replace(stage.blueprint, limits=limits)),
            [{**one, "usage": usage} for one in says("family", spawn())],
        )

        (refused,) = await results_of(stage, "family")
        assert await runs_of(stage, "digger") == []
    assert isinstance(end, RunSuspended)
    assert end.limit == "limits.cost_usd"
    assert "limits.cost_usd" in refused.text


async def test_sa_007_work_cut_short_by_its_service_is_reported_with_the_error(
    tmp_path: Path, workdir: Path
) -> None:
    failing = {"agent": "digger", "error": {"status": 401, "message": "no more for you"}}
    replies = [
        {"agent": "digger", "text": "half of it", "tool_calls": [call("read_file", path="x")]},
        failing,
    ]
    async with open_stage(written(tmp_path, family()), workdir=workdir, allow=ALLOW) as stage:
        _, end = await played(stage, says("family", spawn(), "done"), replies)

        (report,) = await results_of(stage, "family")
    assert end.answer == "done"
    assert report.outcome == "failed"
    assert "half of it" in report.text
    assert "no more for you" in report.text


async def test_a_limited_sub_agent_is_reported_with_its_work(tmp_path: Path, workdir: Path) -> None:
    replies = [{"agent": "digger", "text": "half of it", "tool_calls": [call("read_file", path="x")]}]
    text = family(digger="max_steps = 1")
    async with open_stage(written(tmp_path, text), workdir=workdir, allow=ALLOW) as stage:
        await played(stage, says("family", spawn(), "done"), replies)

        (report,) = await results_of(stage, "family")
    assert report.outcome == "ok"
    assert "limited" in report.text
    assert "half of it" in report.text


async def test_effects_and_machines_of_the_run_hold_for_what_its_sub_agents_do(
    tmp_path: Path, workdir: Path, agentctl_home: Path
) -> None:
    place = agentctl_home / "agentctl" / "config" / "blueprints" / "helper.toml"
    place.parent.mkdir(parents=True)
    place.write_text(
        """
[agent]
name = "helper"
[model]
use = ["scripted:"]
[stages.work]
prompt = "Help."
available_tools = ["write_file", "read_file"]
""",
        encoding="utf-8",
    )
    text = family(
        more="""
[[state_effects]]
tool = "write_file"
ops = [{ op = "add", path = "/last", value = "{input.path}" }]
[[machines]]
name = "once"
scope = "thread"
key = "{path}"
initial = "new"
transitions = [{ on = "read_file", from = ["new"], to = "seen", reason = "{path} was read." }]
"""
    )
    (workdir / "a.txt").write_text("a", encoding="utf-8")
    read = call("read_file", path="a.txt")
    async with open_stage(written(tmp_path, text), workdir=workdir, allow=ALLOW) as stage:
        await played(
            stage,
            says("family", read, call("spawn_agent", agent="helper", task="help"), "done"),
            says("helper", [read, call("write_file", path="b.txt", content="b")], "helped"),
        )

        results = await results_of(stage, "helper")
        changes = [one.event for one in stage.published if isinstance(one.event, StateChanged)]
    assert [result.outcome for result in results] == ["denied", "ok"]
    assert "a.txt was read." in results[0].text
    assert "b.txt" in str(changes)
