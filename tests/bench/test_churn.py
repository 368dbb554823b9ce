"""The short form of `make bench-churn`."""

import sys

import anyio
import pytest

from bench.churn import MAX_GROWTH_BYTES, churn
from bench.service_node import service_node


@pytest.mark.skipif(sys.platform != "linux", reason="the system counts files elsewhere on Linux")
def test_clients_that_come_and_go_leave_nothing_behind() -> None:
    with service_node() as node:

        async def run() -> None:
            churned = await churn(node, connections=30, connects=150)
            assert churned.connects == 150
            assert churned.descriptors_after == churned.descriptors_before
            assert churned.growth_bytes < MAX_GROWTH_BYTES

        anyio.run(run)
