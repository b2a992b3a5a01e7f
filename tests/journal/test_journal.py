"""What every journal does, on disk and in memory."""

import anyio
import pytest

from agentctl.errors import StateConflict, UsageError
from agentctl.journal.store import Journal, Snapshot
from agentctl.protocol.commands import Commit
from agentctl.protocol.events import (
    LaunchFlags,
    Noted,
    QuestionAsked,
    RunEnded,
    RunResumed,
    RunSuspended,
    StageEntered,
)
from agentctl.protocol.questions import Asker, PersonQuestion
from tests.journal.commits import commit, letter, note, replied, said, set_cell, started

pytestmark = pytest.mark.anyio


async def test_what_is_appended_is_read_back_in_order(journal: Journal) -> None:
    await journal.acquire("t-1")

    first = await journal.append(commit("r-1", started("r-1", "t-1"), said("hello")))
    second = await journal.append(commit("r-1", note("two"), commands=(set_cell("k", {"a": 1}),)))

    assert (first.sequence, second.sequence) == (1, 2)
    records = await journal.read("r-1")
    assert [record.sequence for record in records] == [1, 2]
    assert records[0].events == (started("r-1", "t-1"), said("hello"))
    assert records[1].commands == (set_cell("k", {"a": 1}),)
    assert await journal.read("r-1", after=1) == records[1:]
    assert await journal.read("r-1", limit=1) == records[:1]
    assert await journal.read("r-none") == ()


async def test_nobody_writes_without_the_lease(journal: Journal) -> None:
    with pytest.raises(StateConflict, match="does not hold its lease"):
        await journal.append(commit("r-1", note("x")))

    lease = await journal.acquire("t-1")
    await journal.append(commit("r-1", note("x")))
    await lease.release()

    with pytest.raises(StateConflict):
        await journal.append(commit("r-1", note("y")))


async def test_a_thread_has_one_writer_and_each_lease_a_greater_token(journal: Journal) -> None:
    first = await journal.acquire("t-1")
    with pytest.raises(StateConflict):
        await journal.acquire("t-1")
    await first.release()
    await first.release()

    second = await journal.acquire("t-1")

    assert second.token > first.token
    await first.release()  # the old lease has no say over the new one
    await journal.append(commit("r-1", note("x")))


async def test_a_hundred_writers_at_once_lose_nothing(journal: Journal) -> None:
    async def write(number: int) -> None:
        run, thread = f"r-{number}", f"t-{number}"
        await journal.acquire(thread)
        for text in "abc":
            await journal.append(commit(run, note(text), thread=thread))

    async with anyio.create_task_group() as group:
        for number in range(100):
            group.start_soon(write, number)

    for number in range(100):
        records = await journal.read(f"r-{number}")
        assert [record.events for record in records] == [(note("a"),), (note("b"),), (note("c"),)]
        assert await journal.verify(f"r-{number}") == ()


async def test_an_append_that_is_cancelled_is_whole(journal: Journal) -> None:
    await journal.acquire("t-1")
    with anyio.CancelScope() as scope:
        scope.cancel()
        await journal.append(commit("r-1", note("kept")))

    assert [record.events for record in await journal.read("r-1")] == [(note("kept"),)]


async def test_state_of_a_thread_is_read_across_its_runs_and_sub_agents(journal: Journal) -> None:
    for thread in ("t-1", "t-child", "t-other"):
        await journal.acquire(thread)
    await journal.append(commit("r-1", note("x"), commands=(set_cell("k", 1),)))
    await journal.append(
        commit("r-child", note("x"), thread="t-child", state="t-1", commands=(set_cell("k", 2),))
    )
    await journal.append(commit("r-9", note("x"), thread="t-other", commands=(set_cell("k", 9),)))
    await journal.append(commit("r-2", note("no commands")))
    await journal.append(commit("r-2", commands=(set_cell("k", 3),)))

    records = await journal.read_state("t-1")

    assert [(record.run_id, record.commands) for record in records] == [
        ("r-1", (set_cell("k", 1),)),
        ("r-child", (set_cell("k", 2),)),
        ("r-2", (set_cell("k", 3),)),
    ]
    assert await journal.read_state("t-1", after=records[1].position) == records[2:]


async def test_the_list_shows_what_became_of_a_run(journal: Journal) -> None:
    lease = await journal.acquire("t-1")
    question = PersonQuestion(
        question_id="q-1", asker=Asker(run_id="r-1", agent="coder", stage="plan"), kind="text", prompt="?"
    )
    await journal.append(commit("r-1", started("r-1", "t-1", task="write it")))
    await journal.append(commit("r-1", StageEntered(stage="plan", index=0, visit=1, model="m:1")))
    await journal.append(commit("r-1", replied("hm")))

    running = await journal.run("r-1")
    assert running is not None
    assert (running.status, running.stage, running.steps, running.task) == ("running", "plan", 1, "write it")

    await journal.append(
        commit("r-1", QuestionAsked(question=question), RunSuspended(reason="a question", exit_code=4))
    )
    await lease.release()
    waiting = await journal.run("r-1")
    assert waiting is not None
    assert (waiting.status, waiting.exit_code, waiting.open_questions) == ("waiting", 4, 1)

    await journal.acquire("t-1")
    await journal.append(commit("r-1", RunResumed(launch=LaunchFlags())))
    await journal.append(commit("r-1", RunEnded(outcome="finished", exit_code=0)))
    ended = await journal.run("r-1")
    assert ended is not None
    assert (ended.status, ended.outcome, ended.exit_code) == ("ended", "finished", 0)


async def test_a_run_whose_process_went_away_is_interrupted(journal: Journal) -> None:
    lease = await journal.acquire("t-1")
    await journal.append(commit("r-1", started("r-1", "t-1")))
    await lease.release()

    info = await journal.run("r-1")

    assert info is not None
    assert info.status == "interrupted"


async def test_a_run_is_found_by_id_prefix_or_last(journal: Journal) -> None:
    for run in ("r-aa1", "r-ab2"):
        await journal.acquire(f"t-{run}")
        await journal.append(commit(run, started(run, f"t-{run}"), thread=f"t-{run}"))
    await journal.acquire("t-child")
    await journal.append(
        commit("r-zz", started("r-zz", "t-child", parent="r-ab2"), thread="t-child", state="t-r-ab2")
    )

    assert (await journal.find_run("r-aa1")).run_id == "r-aa1"
    assert (await journal.find_run("r-aa")).run_id == "r-aa1"
    assert (await journal.find_run("last")).run_id == "r-ab2"
    assert [info.run_id for info in await journal.runs(parent_run="r-ab2")] == ["r-zz"]
    assert [info.run_id for info in await journal.runs(limit=2)] == ["r-ab2", "r-zz"]
    for name in ("r-a", "r-none", ""):
        with pytest.raises(UsageError):
            await journal.find_run(name)


async def test_messages_arrive_once_and_leave_with_the_commit_that_takes_them(journal: Journal) -> None:
    for thread in ("t-1", "t-2"):
        await journal.acquire(thread)
    await journal.append(
        Commit(run_id="r-1", thread_id="t-1", events=(), outgoing=(letter("m-1", "r-2", {"text": "hi"}),))
    )
    await journal.append(
        Commit(run_id="r-1", thread_id="t-1", events=(), outgoing=(letter("m-1", "r-2", {"text": "hi"}),))
    )

    (message,) = await journal.inbox("r-2")
    assert (message.message_id, message.body, message.sender) == ("m-1", {"text": "hi"}, "r-1")

    await journal.append(Commit(run_id="r-2", thread_id="t-2", events=(said("hi"),), received=("m-1",)))
    assert await journal.inbox("r-2") == ()
    assert not await journal.post(letter("m-1", "r-2", {"text": "hi"}), sender="person")
    assert await journal.inbox("r-2") == ()


async def test_one_message_id_with_other_content_is_a_conflict_and_nothing_is_written(
    journal: Journal,
) -> None:
    await journal.acquire("t-1")
    assert await journal.post(letter("m-1", "r-2", "one"), sender="person")

    with pytest.raises(StateConflict, match="m-1"):
        await journal.append(
            Commit(
                run_id="r-1",
                thread_id="t-1",
                events=(note("x"),),
                outgoing=(letter("m-0", "r-2", "zero"), letter("m-1", "r-2", "two")),
            )
        )

    assert await journal.read("r-1") == ()
    assert [message.body for message in await journal.inbox("r-2")] == ["one"]


async def test_a_waiting_message_can_be_taken_back_and_sent_again(journal: Journal) -> None:
    await journal.post(letter("m-1", "r-2", "one"), sender="person")

    assert await journal.withdraw("m-1")
    assert not await journal.withdraw("m-1")
    assert await journal.post(letter("m-1", "r-2", "better"), sender="person")
    assert [message.body for message in await journal.inbox("r-2")] == ["better"]


async def test_a_snapshot_replaces_the_one_before(journal: Journal) -> None:
    assert await journal.snapshot("r-1", "run") is None
    await journal.save_snapshot(Snapshot(owner="r-1", name="run", upto=3, body={"a": [1]}))
    newer = Snapshot(owner="r-1", name="run", upto=9, body={"a": [1, 2]})
    await journal.save_snapshot(newer)

    assert await journal.snapshot("r-1", "run") == newer


async def test_a_removed_run_leaves_the_cells_that_other_runs_live_on(journal: Journal) -> None:
    first = await journal.acquire("t-1")
    await journal.append(commit("r-1", started("r-1", "t-1"), commands=(set_cell("k", 1),)))
    await journal.append(commit("r-2", started("r-2", "t-1"), commands=(set_cell("l", 2),)))
    child = await journal.acquire("t-c")
    await journal.append(commit("r-c", started("r-c", "t-c", parent="r-1"), thread="t-c", state="t-1"))
    with pytest.raises(StateConflict):
        await journal.remove_run("r-1")
    await first.release()
    await child.release()

    assert await journal.remove_run("r-1")
    assert not await journal.remove_run("r-1")
    assert [info.run_id for info in await journal.runs()] == ["r-2"]
    assert await journal.read("r-1") == ()
    assert [record.commands for record in await journal.read_state("t-1")] == [
        (set_cell("k", 1),),
        (set_cell("l", 2),),
    ]
    assert await journal.remove_run("r-2")
    assert await journal.read_state("t-1") == ()


async def test_threads_are_listed_with_their_runs(journal: Journal) -> None:
    for run, thread in (("r-1", "t-1"), ("r-2", "t-2"), ("r-3", "t-1")):
        lease = await journal.acquire(thread)
        await journal.append(commit(run, started(run, thread), thread=thread))
        await lease.release()

    threads = await journal.threads()

    assert {thread.thread_id: thread.runs for thread in threads} == {
        "t-1": ("r-1", "r-3"),
        "t-2": ("r-2",),
    }


async def test_whatever_text_a_tool_gave_is_stored_and_read_as_clean_text(journal: Journal) -> None:
    await journal.acquire("t-1")
    await journal.append(commit("r-1", said("half \ud83d pair \ud83d\ude00 nul \x00 line\u2028")))

    (record,) = await journal.read("r-1")

    assert record.events == (said("half \ufffd pair \U0001f600 nul \x00 line\u2028"),)


async def test_a_number_that_json_has_no_word_for_is_stored_as_null(journal: Journal) -> None:
    await journal.acquire("t-1")
    await journal.append(commit("r-1", commands=(set_cell("k", [float("nan"), 1.5]),)))

    (record,) = await journal.read("r-1")

    assert record.commands == (set_cell("k", [None, 1.5]),)


async def test_closing_lets_go_of_every_lease(journal: Journal) -> None:
    await journal.acquire("t-1")
    await journal.aclose()
    await journal.aclose()


async def test_an_empty_run_verifies_and_an_unknown_event_is_told(journal: Journal) -> None:
    await journal.acquire("t-1")
    await journal.append(commit("r-1", note("x")))

    assert await journal.verify("r-1") == ()
    assert isinstance((await journal.read("r-1"))[0].events[0], Noted)
