"""Money that was counted wrongly elsewhere, through the real command."""

import json

import anyio
import pytest

from agentctl.testing.play import Turn, open_stage
from agentctl.testing.replay_server import Answer, replay_server_in_thread
from tests.end_to_end.command import Bench
from tests.reported.cases import Case, each_case, nobody_reads
from tests.reported.desk import Desk, call
from tests.reported.services import config_of, said
from tests.run.families import family, results_of, runs_of, says, spawn

pytestmark = pytest.mark.anyio


@each_case("cost")
async def test_a_reported_bill(case: Case, desk: Desk, bench: Bench) -> None:
    match case.given:
        case {"max_budget_usd": int(ceiling) | float(ceiling), "setup": str()}:
            await a_running_child(desk, float(ceiling))
        case {"limit": int(ceiling) | float(ceiling), "costs": list(costs)}:
            added_up(bench, float(ceiling), [float(one) for one in costs])
        case {"model": str(model), "price_of": str()}:
            an_alias(bench, model)
        case {"steps": [str(first), "clear"]}:
            a_new_count(bench, float(first.removeprefix("spend ")))
        case _:
            nobody_reads(case)


def spending(costs: list[float]) -> str:
    """Return a blueprint whose model calls cost these, one after the other."""
    usage = "usage = {{ input_tokens = 1, output_tokens = 1, cost_usd = {} }}"
    calls = "\n".join(
        f"[[script.replies]]\ntool_calls = [{{ tool = 'list_dir', arguments = {{ depth = {depth} }} }}]\n"
        f"{usage.format(cost)}"
        for depth, cost in enumerate(costs, 1)
    )
    return (
        '[agent]\nname = "spender"\n[model]\nuse = ["scripted:"]\n[stages.work]\nprompt = "Work."\n'
        f'available_tools = ["list_dir"]\n{calls}\n[[script.replies]]\ntext = "Done."\n'
        f"{usage.format(0)}\n"
    )


def added_up(bench: Bench, ceiling: float, costs: list[float]) -> None:
    """The ceiling is reached by the sum that a person would add up, not before and not after."""
    path = bench.blueprint(spending([*costs, 0.0]))
    ran = bench.agentctl("run", path, "go", "--limit", f"cost_usd={ceiling}", "--json")
    assert ran.code == 6, ran.err
    assert "limits.cost_usd" in ran.err
    assert ran.result["steps"] == len(costs)
    assert ran.result["cost_usd"] == pytest.approx(ceiling, abs=1e-9)
    more = bench.agentctl("run", path, "go", "--limit", f"cost_usd={ceiling + 0.0001:.4f}", "--json")
    assert more.code == 0, more.err


def an_alias(bench: Bench, model: str) -> None:
    """An alias has its base's price; a model without a price has no cost, and a ceiling refuses it."""
    base = '[models."mine:base"]\nprice = { input = 2.0, output = 10.0 }\n'
    alias = f'[models."mine:{model}"]\nsame_as = "mine:base"\n'
    path = bench.blueprint(
        '[agent]\nname = "a"\n[model]\nuse = ["mine:base"]\n[stages.w]\nprompt = "Work."\n'
    )
    body = said("done", prompt_tokens=1_000_000, completion_tokens=500_000)
    with replay_server_in_thread([Answer(body=body)] * 4) as server:
        config_of(server.url, more=base + alias)
        priced = bench.agentctl("run", path, "go", "--model", f"mine:{model}", "--json")
        unknown = bench.agentctl("run", path, "go", "--model", "mine:nobody-knows", "--json")
        refused = bench.agentctl(
            "run", path, "go", "--model", "mine:nobody-knows", "--limit", "cost_usd=1", "--json"
        )
    assert (priced.code, priced.result["cost_usd"]) == (0, 7.0), priced.err
    assert (unknown.code, unknown.result["cost_usd"]) == (0, None), unknown.err
    assert refused.code == 6, (refused.code, refused.err)
    assert len(server.received) == 2


def a_new_count(bench: Bench, cost: float) -> None:
    """A new run begins to count at nothing, on the same thread as well."""
    path = bench.blueprint(spending([cost]))
    first = bench.agentctl("run", path, "go", "--limit", f"cost_usd={cost * 1.5}", "--json")
    thread = str(first.result["thread"])
    second = bench.agentctl(
        "run", path, "go", "--thread", thread, "--limit", f"cost_usd={cost * 1.5}", "--json"
    )
    assert (first.code, second.code) == (0, 0), second.err
    assert first.result["cost_usd"] == second.result["cost_usd"] == cost


async def a_running_child(desk: Desk, ceiling: float) -> None:
    """The parent spends the rest while its child works: the child makes no further call, none is started."""
    free = {"input_tokens": 1, "output_tokens": 1, "cost_usd": 0.0}
    dear = {**free, "cost_usd": ceiling}
    until = call("shell", command="touch started; while ! test -e spent; do sleep 0.02; done")
    lead = says(
        "family",
        spawn(wait=False),
        call("shell", command="while ! test -e started; do sleep 0.02; done"),
        [call("write_file", path="spent", content=""), spawn("more")],
        "done",
    )
    digger = says("digger", until, "dug", "and again")
    replies = [{**one, "usage": free} for one in (*lead, *digger)]
    replies[2]["usage"] = dear
    path = desk.folder / "family.toml"
    path.write_text(family(agent=f"\n[limits]\ncost_usd = {ceiling}"), encoding="utf-8")
    async with open_stage(path, workdir=desk.work, allow=["spawn_agent", "write_file", "shell"]) as stage:
        with anyio.fail_after(30):
            _, end = await stage.begin(Turn(text="go", replies=replies))
        diggers = await runs_of(stage, "digger")
        told = await results_of(stage, "family")
    assert getattr(end, "limit", "") == "limits.cost_usd", end
    assert len(diggers) == 1
    assert told[-1].outcome == "failed"
    assert "limits.cost_usd" in told[-1].text
    assert (diggers[0].outcome, diggers[0].steps) == ("", 1), diggers


def chat(**usage: object) -> bytes:
    """Return a chat answer with these figures."""
    return said("done", **usage)


MILLION = 1_000_000


@pytest.mark.parametrize(
    ("usage", "tokens", "cost"),
    [
        pytest.param({}, (0, 0), None, id="no figures at all"),
        pytest.param({"prompt_tokens": 0, "completion_tokens": 0}, (0, 0), None, id="figures of nothing"),
        pytest.param(
            {"prompt_tokens": str(MILLION), "completion_tokens": 0}, (MILLION, 0), 1.0, id="as text"
        ),
        pytest.param(
            {"prompt_tokens": 10, "completion_tokens": 5, "cost": 0}, (10, 5), 0.0, id="told to cost nothing"
        ),
        pytest.param(
            {"prompt_tokens": 10, "completion_tokens": 5, "cost": "0.25"}, (10, 5), 0.25, id="money as text"
        ),
        pytest.param(
            {"prompt_tokens": MILLION, "completion_tokens": 0, "cost": -1}, (MILLION, 0), 1.0, id="negative"
        ),
        pytest.param(
            {
                "prompt_tokens": 10,
                "completion_tokens": 5,
                "cost": 0.05,
                "is_byok": True,
                "cost_details": {"upstream_inference_cost": 0.5},
            },
            (10, 5),
            0.55,
            id="a key of one's own",
        ),
        pytest.param(
            {
                "prompt_tokens": MILLION,
                "completion_tokens": MILLION,
                "prompt_tokens_details": {"cached_tokens": MILLION // 2},
                "completion_tokens_details": {"reasoning_tokens": MILLION // 2},
            },
            (MILLION, MILLION),
            0.5 + 0.05 + 10.0,
            id="cached and thought within",
        ),
        pytest.param(
            {
                "prompt_tokens": MILLION,
                "completion_tokens": 0,
                "prompt_tokens_details": {"cached_tokens": 2 * MILLION},
            },
            (3 * MILLION, 0),
            1.0 + 0.2,
            id="cached beside",
        ),
    ],
)
def test_a_reply_costs_what_its_figures_say(
    bench: Bench, usage: dict[str, object], tokens: tuple[int, int], cost: float | None
) -> None:
    price = '[models."mine:m"]\nprice = { input = 1.0, output = 10.0, cache_read = 0.1 }\n'
    path = bench.blueprint('[agent]\nname = "a"\n[model]\nuse = ["mine:m"]\n[stages.w]\nprompt = "Work."\n')
    with replay_server_in_thread([Answer(body=chat(**usage))]) as server:
        config_of(server.url, more=price)
        ran = bench.agentctl("run", path, "go", "--json")

    assert ran.code == 0, ran.err
    assert ran.result["tokens"] == sum(tokens)
    assert ran.result["cost_usd"] == (None if cost is None else pytest.approx(cost))


def test_a_ceiling_holds_where_a_service_counts_nothing(bench: Bench) -> None:
    """What was expected of each call counts, since nobody says what it took."""
    price = '[models."mine:m"]\nprice = { input = 1000.0, output = 1000.0 }\n'
    path = bench.blueprint(
        '[agent]\nname = "a"\n[model]\nuse = ["mine:m"]\n[stages.w]\nprompt = "Work."\n'
        'available_tools = ["list_dir"]\n'
    )
    answers = [
        Answer(body=said("", calls=({"tool": "list_dir", "arguments": {"depth": depth}},)))
        for depth in (1, 2, 3, 4, 5)
    ]
    with replay_server_in_thread([*answers, Answer(body=said("done"))]) as server:
        config_of(server.url, more=price)
        tokens = bench.agentctl("run", path, "go", "--limit", "tokens=700", "--json")
        made = len(server.received)

    assert tokens.code == 6, tokens.err
    assert "limits.tokens" in tokens.err
    assert 1 <= made < 5


@pytest.mark.parametrize("end", ["cut", "stopped without its end"])
def test_a_reply_that_broke_off_is_paid_for_as_well(bench: Bench, end: str) -> None:
    """The service told its figures before the connection went: it bills them, and the second try besides."""
    piece = {"choices": [{"index": 0, "delta": {"content": "do"}}], "usage": {"prompt_tokens": MILLION}}
    stream = {"content-type": "text/event-stream"}
    broken = Answer(headers=stream, body=f"data: {json.dumps(piece)}\n\n".encode(), cut=end == "cut")
    whole = Answer(body=chat(prompt_tokens=MILLION, completion_tokens=0))
    price = '[models."mine:m"]\nprice = { input = 1.0, output = 10.0 }\n'
    path = bench.blueprint('[agent]\nname = "a"\n[model]\nuse = ["mine:m"]\n[stages.w]\nprompt = "Work."\n')
    with replay_server_in_thread([broken, whole]) as server:
        config_of(server.url, more=price)
        ran = bench.agentctl("run", path, "go", "--json")
        tried = len(server.received)

    assert (ran.code, tried) == (0, 2), ran.err
    assert (ran.result["steps"], ran.result["tokens"], ran.result["cost_usd"]) == (1, 2 * MILLION, 2.0)
