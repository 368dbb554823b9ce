"""Messages of both kinds of peers arrive and are timed."""

import pytest

from .bench import Bench
from .flow import Kind, play


@pytest.mark.parametrize("kind", ["native", "js"])
def test_messages_arrive_and_are_timed(bench: Bench, kind: Kind) -> None:
    with bench.network("store") as network:
        for flow, messages in zip(
            play(network, kind, 0, alone=3, together=10), (3, 10), strict=True
        ):
            assert len(flow.latencies_ms) == messages
            assert 0 < flow.per_s
            assert all(0 <= latency_ms for latency_ms in flow.latencies_ms)
