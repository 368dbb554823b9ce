"""The benchmark measures what it says: a few messages of it, all of which arrive."""

import pytest

from .bench import Bench
from .benchmark import Plan, Row, run, table
from .flow import Flow, Latency

PLAN = Plan(warm_up=1, alone=3, together=10, window=4)


@pytest.mark.timeout(300)
def test_messages_of_both_kinds_arrive_and_are_measured(bench: Bench) -> None:
    rows: tuple[Row, ...] = (("ours", "js"), ("js", "ours (light)"))
    with bench.network("store") as network:
        results = run(network, PLAN, rounds=1, rows=rows)
    for measured in results.values():
        for flow, messages in ((measured.alone, 3), (measured.together, 10)):
            assert flow.messages == messages
            assert 0 < flow.per_s
            assert all(0 < cpu_s for cpu_s in flow.cpu_s.values())
            assert all(0 <= latency_ms < 60_000 for latency_ms in flow.latencies_ms)
    ours_to_js, js_to_ours = results.values()
    assert ours_to_js.together.cpu_s.keys() == {"sender", "sender's gateway", "receiver", "node"}
    assert js_to_ours.together.cpu_s.keys() == {"sender", "receiver", "receiver's gateway", "node"}
    lines = "\n".join(table(results, PLAN))
    assert "| ours → js | 13 |" in lines
    assert "| js → ours (light) | 13 |" in lines


def test_several_rounds_become_one() -> None:
    rounds = [Flow([10, 30], 5, {"node": 1}), Flow([20, 40], 9, {"node": 2})]
    together = Flow.of_all([*rounds, Flow([50], 6, {"node": 2})])
    assert together.messages == 5
    assert together.per_s == 6
    assert together.cpu_s_per_1000 == {"node": 1000}


def test_percentiles_are_of_all_messages() -> None:
    latency = Latency.of(range(101))
    assert (latency.p50, latency.p95, latency.p99) == (50, 95, 99)
