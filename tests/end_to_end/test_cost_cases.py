"""Reported faults in counting money elsewhere, each tried here through the real command.

CO-001 is tried in tests/run/test_children.py, CO-003 in tests/policy/test_budgets.py as well, CO-005 in
tests/llm/test_providers.py: each needs what a scripted model has not.
"""

from tests.end_to_end.command import Bench

DIMES = """
[agent]
name = "spender"
[model]
use = ["scripted:"]
[stages.work]
prompt = "Work."
available_tools = ["current_time"]
[[script.replies]]
tool_calls = [{ tool = "current_time" }]
usage = { input_tokens = 1, output_tokens = 1, cost_usd = 0.1 }
[[script.replies]]
tool_calls = [{ tool = "current_time" }]
usage = { input_tokens = 1, output_tokens = 1, cost_usd = 0.2 }
[[script.replies]]
text = "Done."
usage = { input_tokens = 1, output_tokens = 1, cost_usd = 0.1 }
"""


def test_a_limit_is_reached_by_the_sum_that_a_person_would_add_up(bench: Bench) -> None:
    """CO-003: 0.1 and 0.2 are 0.3, neither more nor less."""
    ran = bench.agentctl("run", bench.blueprint(DIMES), "go", "--limit", "cost_usd=0.3", "--json")

    assert ran.code == 6, ran.err
    assert "limits.cost_usd" in ran.err
    assert ran.result["steps"] == 2


def test_a_new_run_begins_to_count_at_nothing(bench: Bench) -> None:
    """CO-006: what one run spent is not on the next one's bill, on the same thread neither."""
    path = bench.blueprint(DIMES)

    first = bench.agentctl("run", path, "go", "--limit", "cost_usd=1", "--json")
    same_thread = bench.agentctl(
        "run", path, "go", "--limit", "cost_usd=0.45", "--thread", str(first.result["thread"]), "--json"
    )

    assert (first.code, same_thread.code) == (0, 0), same_thread.err
    assert round(float(str(first.result["cost_usd"])), 9) == 0.4
    assert same_thread.result["cost_usd"] == first.result["cost_usd"]
