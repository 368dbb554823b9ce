"""Whole groups: what the settings do shows in what is measured."""

from typing import Any

import pytest

from reliable_channel._contracts.repair_policies import REPAIR_POLICIES, sds_r_only
from reliable_channel._plugins.hooks import Register, hookimpl
from reliable_channel._plugins.loading import process_registry
from reliable_channel_lab.sweep.group import GroupRun


def measured(**settings: Any) -> dict[str, Any]:
    return dict(GroupRun.of({"seed": 1, "messages": 20, **settings}).record())


def test_without_loss_everything_arrives_at_once() -> None:
    record = measured()
    assert record["delivery_probability"] == 1
    assert record["different_logs"] == record["lost"] == record["failed"] == 0
    assert record["latency_p99_ms"] <= 300 + 5  # the network's longest, and the own node's
    assert record["content_per_message"] == 1
    assert record["repair_per_message"] == 0


def test_what_is_lost_comes_by_store_or_by_others_or_not_at_all() -> None:
    by_store = measured(loss=0.3)
    by_others = measured(loss=0.3, retrieval_strategy="sds-r-only")
    neither = measured(loss=0.3, retrieval_strategy="none")
    assert by_store["delivery_probability"] == by_others["delivery_probability"] == 1
    assert by_store["latency_p95_ms"] < by_others["latency_p95_ms"]
    assert by_store["store_request_per_message"] > 0
    assert by_others["store_request_per_message"] == 0
    assert by_others["repair_per_message"] > by_store["repair_per_message"]
    assert neither["delivery_probability"] < 0.9
    assert neither["different_logs"] > 0


@pytest.mark.parametrize("policy", REPAIR_POLICIES)
def test_every_repair_policy_is_obeyed(policy: str) -> None:
    record = measured(loss=0.3, retrieval_strategy=policy)
    assert (record["store_request_per_message"] > 0) == (policy not in ("sds-r-only", "none"))
    assert (record["delivery_probability"] == 1) == (policy != "none")


def test_adaptive_asks_store_less_often_for_what_it_lacks() -> None:
    both, adaptive = (
        measured(topology="islands", retrieval_strategy=policy) for policy in ("both", "adaptive")
    )
    assert adaptive["store_request_per_message"] < both["store_request_per_message"]
    assert adaptive["delivery_probability"] == both["delivery_probability"] == 1


def test_the_policy_of_a_plugin_is_obeyed() -> None:
    class Plugin:
        @hookimpl
        def register_repair_policies(self, register: Register) -> None:
            register("neighbours", sds_r_only)

    with pytest.raises(
        ValueError, match=r"^`retrieval_strategy` must be one of .*both.*neighbours"
    ):
        measured(retrieval_strategy="neighbours")
    process_registry().add(Plugin(), "neighbours")
    try:
        record = measured(loss=0.3, retrieval_strategy="neighbours")
    finally:
        process_registry.cache_clear()
    assert record["store_request_per_message"] == 0
    assert record["repair_per_message"] > 0
    assert record["delivery_probability"] == 1


def test_the_network_goes_on_losing_to_the_end_of_the_run() -> None:
    record = measured(loss=0.95, retrieval_strategy="sds-r-only", drain_ms=60_000)
    assert record["delivery_probability"] < 0.5


def test_options_reach_the_core() -> None:
    large, small = (measured(bloom_capacity=capacity) for capacity in (10_000, 100))
    assert large["bytes_per_message"] > small["bytes_per_message"] + 18_000


def test_a_relay_loses_less_and_takes_longer() -> None:
    settings = {"participants": 60, "loss": 0.1, "retrieval_strategy": "none"}
    direct, relay = (measured(topology=name, **settings) for name in ("broadcast", "relay"))
    assert relay["delivery_probability"] > direct["delivery_probability"]
    direct, relay = (measured(topology=name, participants=60) for name in ("broadcast", "relay"))
    assert relay["latency_p50_ms"] > direct["latency_p50_ms"]


def test_islands_have_to_make_up_for_what_they_missed() -> None:
    whole, islands = (measured(topology=name) for name in ("broadcast", "islands"))
    assert islands["delivery_probability"] == 1
    assert islands["latency_p95_ms"] > 10 * whole["latency_p95_ms"]
