"""Reserve, settle, release: one budget for the tree of agents."""

from dataclasses import replace

import pytest

from agentctl.policy.budgets import Budgets, CallCost, Reservation, StepCost
from agentctl.policy.ceilings import BUILT_IN_CEILINGS, Ceilings, ceilings_in_effect
from agentctl.policy.paths import Place
from agentctl.policy.refusals import Refusal
from agentctl.policy.rules import Rule
from agentctl.protocol.effects import RunProgram

PLACE = Place(workdir="/repo/app", home="/home/u")
GIB = 2**30


def budgets(**ceilings: object) -> Budgets:
    return Budgets(replace(Ceilings(), **ceilings), PLACE)


def writing(size: int, *, free: int | None = None, files: int = 1) -> CallCost:
    return CallCost(tool="write_file", writes=True, bytes_written=size, files_written=files, free_bytes=free)


def taken(answer: Reservation | Refusal) -> Reservation:
    assert isinstance(answer, Reservation), answer
    return answer


def refused(answer: Reservation | Refusal) -> Refusal:
    assert isinstance(answer, Refusal), answer
    return answer


def test_the_second_write_of_a_step_sees_what_the_first_reserved() -> None:
    one = budgets(per_call_bytes=100, per_run_bytes=10)

    taken(one.reserve_call(writing(8)))
    refusal = refused(one.reserve_call(writing(8)))

    assert (refusal.key, refusal.used, refusal.ceiling) == ("write_budget.per_run", 16, 10)
    assert "8 bytes" in refusal.message


def test_a_released_reservation_leaves_no_trace() -> None:
    one = budgets(per_run_bytes=10)

    first = taken(one.reserve_call(writing(8)))
    one.release(first)
    one.release(first)

    taken(one.reserve_call(writing(10)))
    assert one.spent() == {}


def test_a_settled_call_counts_what_it_really_wrote_and_only_once() -> None:
    one = budgets(per_run_bytes=100)

    call = taken(one.reserve_call(writing(8)))
    one.settle_call(call, 50, 2)
    one.settle_call(call, 50, 2)

    assert one.spent() == {"bytes_written": 50, "files_written": 2}
    refused(one.reserve_call(writing(51)))


def test_a_run_over_its_budget_may_still_look_but_not_write_a_byte() -> None:
    one = budgets(per_run_bytes=100)
    one.restore({"bytes_written": 200})

    assert refused(one.reserve_call(writing(0))).key == "write_budget.per_run"
    taken(one.reserve_call(CallCost(tool="read_file")))


def test_the_disk_floor_comes_first_and_names_no_key() -> None:
    one = budgets(per_call_bytes=10)

    refusal = refused(one.reserve_call(writing(500, free=GIB + 100)))

    assert refusal.key == ""
    assert "1.0 GiB" in refusal.message
    assert "write_budget" not in refusal.message


def test_a_child_draws_on_its_parents_budget() -> None:
    parent = budgets(per_run_bytes=100)
    child = parent.child(Ceilings(per_run_bytes=1000))

    child.settle_call(taken(child.reserve_call(writing(80))), 80, 1)

    assert parent.spent()["bytes_written"] == 80
    assert refused(child.reserve_call(writing(30))).ceiling == 100
    assert refused(parent.reserve_call(writing(30))).ceiling == 100


def test_a_childs_own_ceiling_counts_its_own_spending_only() -> None:
    parent = budgets(steps=100)
    child = parent.child(Ceilings(steps=1))
    parent.settle_step(taken(parent.reserve_step(StepCost())), tokens=5, cost_usd=0.0)

    child.settle_step(taken(child.reserve_step(StepCost())), tokens=5, cost_usd=0.0)

    assert refused(child.reserve_step(StepCost())).key == "limits.steps"
    assert parent.spent()["steps"] == 2
    taken(parent.reserve_step(StepCost()))


def test_the_fourth_level_of_a_limit_of_three_is_refused() -> None:
    node = budgets(depth=3)
    for _ in range(3):
        taken(node.reserve_spawn())
        node = node.child(Ceilings())

    refusal = refused(node.reserve_spawn())

    assert (refusal.key, refusal.used, refusal.ceiling) == ("limits.depth", 4, 3)


def test_calls_are_counted_by_rule_when_they_ran() -> None:
    one = budgets(calls=((Rule(tool="shell", pattern="git push *"), 1),))
    push = CallCost(tool="shell", effects=(RunProgram(argv=("git", "push", "origin")),))
    look = CallCost(tool="shell", effects=(RunProgram(argv=("git", "status")),))

    one.release(taken(one.reserve_call(push)))
    one.settle_call(taken(one.reserve_call(push)), 0, 0)

    assert refused(one.reserve_call(push)).key == 'limits.calls."shell(git push *)"'
    taken(one.reserve_call(look))
    assert one.spent() == {"calls:shell(git push *)": 1}


def test_money_is_compared_as_people_count_it() -> None:
    one = budgets(cost_usd=0.3)
    for cost in (0.1, 0.2):
        one.settle_step(taken(one.reserve_step(StepCost(cost_usd=cost))), tokens=1, cost_usd=cost)

    assert refused(one.reserve_step(StepCost())).key == "limits.cost_usd"


def test_an_unknown_price_is_not_zero() -> None:
    unknown = StepCost(model="acme:big", price_known=False)
    strict, lax = budgets(cost_usd=1.0, unknown_price="refuse"), budgets(cost_usd=1.0, unknown_price="allow")

    refusal = refused(strict.reserve_step(unknown))
    lax.settle_step(taken(lax.reserve_step(unknown)), tokens=10, cost_usd=None)

    assert "acme:big" in refusal.message
    assert lax.spent() == {"steps": 1, "tokens": 10, "unpriced_steps": 1}


def test_wall_time_goes_on_after_a_resume() -> None:
    one = budgets(wall_time_s=60.0)
    one.restore({"wall_time_s": 50.0})

    one.measure_time(lambda: 4.0)
    assert one.seconds_left() == pytest.approx(6.0)
    assert one.spent() == {"wall_time_s": 54.0}
    one.measure_time(lambda: 10.0)
    assert refused(one.reserve_step(StepCost())).key == "limits.wall_time"


def test_a_token_ceiling_that_is_reached_ends_it_and_a_higher_one_goes_on() -> None:
    one = budgets(tokens=100)
    one.settle_step(taken(one.reserve_step(StepCost(tokens=90))), tokens=100, cost_usd=None)

    assert refused(one.reserve_step(StepCost())).key == "limits.tokens"
    one.set_ceilings(Ceilings(tokens=200))
    taken(one.reserve_step(StepCost()))


def test_the_lowest_ceiling_holds_and_a_blueprint_cannot_exceed_the_built_in_one() -> None:
    held = ceilings_in_effect(user=Ceilings(), narrower=[Ceilings(steps=300, tokens=5)])
    raised = ceilings_in_effect(user=Ceilings(steps=500), narrower=[Ceilings(steps=300), Ceilings(files=1)])

    assert held == replace(BUILT_IN_CEILINGS, tokens=5)
    assert raised == replace(BUILT_IN_CEILINGS, steps=300, files=1)


def test_ceilings_on_calls_add_up_and_the_lower_of_one_rule_holds() -> None:
    push, rm = Rule(tool="shell", pattern="git push *"), Rule(tool="shell", pattern="rm *")

    held = ceilings_in_effect(
        user=Ceilings(calls=((push, 3),)), narrower=[Ceilings(calls=((push, 1), (rm, 2)))]
    )

    assert held.calls == ((push, 1), (rm, 2))


def test_what_a_tree_spent_is_the_sum_of_what_each_agent_spent() -> None:
    root = budgets()
    left, right = root.child(Ceilings()), root.child(Ceilings())
    below = left.child(Ceilings())
    for number, node in enumerate((root, left, below, right, below), start=1):
        reservation = node.reserve_step(StepCost())
        assert isinstance(reservation, Reservation)
        node.settle_step(reservation, number, None)
    spawn = left.reserve_spawn()
    assert isinstance(spawn, Reservation)
    left.settle_spawn(spawn)

    everyone = [node.own() for node in (root, left, below, right)]

    total = {name: sum(own.get(name, 0.0) for own in everyone) for name in root.spent()}
    assert total == root.spent()
    assert left.own() == {"steps": 1, "tokens": 2, "unpriced_steps": 1, "subagents": 1}
    left.restore(left.spent(), left.own())
    assert (left.spent()["steps"], left.own()["steps"]) == (3, 1)
