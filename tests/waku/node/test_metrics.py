"""The figures of a node, read with Prometheus' own parser."""

import re
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from waku import WakuMessage
from waku.node import EmbeddedNode, NodeOptions
from waku.node.metrics import METRICS

from .test_app import caller

pytestmark = pytest.mark.anyio
SHARD = "/waku/2/rs/1/0"
PAGE = Path(__file__).parents[3] / "docs" / "operations.md"


async def samples(http: httpx.AsyncClient) -> dict[tuple[str, ...], float]:
    answer = await http.get("/metrics")
    assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/plain")
    return {
        (one.name, *one.labels.values()): one.value
        for family in text_string_to_metric_families(answer.text)
        for one in family.samples
    }


async def test_messages_requests_and_the_store_are_counted() -> None:
    async with EmbeddedNode() as node, caller(node) as http:
        for number in range(3):
            node.publish(SHARD, WakuMessage(b"%d" % number, "/a/1/b/proto", timestamp=1 + number))
        await http.get("/health")
        await http.get("/nothing/here")
        await http.get("/nothing/there")
        found = await samples(http)
        assert found["waku_node_messages_total", "relay"] == 3
        assert found["waku_archive_messages", "stored"] == 3
        assert found["waku_archive_ready",] == 1
        assert found["waku_rest_requests_total", "GET", "/health", "200"] == 1
        assert found["waku_rest_requests_total", "", "other", "404"] == 2
        assert found["waku_service_network_bytes_total", "rest", "out"] > 0
        assert ("waku_version", node.agent) in found
        assert {name for name, *_ in found} == set(METRICS)


async def test_a_message_counts_once_and_a_peer_while_it_is_there() -> None:
    async with EmbeddedNode() as node, EmbeddedNode() as other, caller(node) as http:
        node.join(other)
        other.publish(SHARD, WakuMessage(b"x", "/a/1/b/proto", timestamp=1))
        found = await samples(http)
        assert found["waku_node_messages_total", "relay"] == 1
        assert found["waku_connected_peers", "/vac/waku/relay/2.0.0"] == 1


async def test_nwaku_has_them_elsewhere_and_a_node_without_store_has_no_figures_of_it() -> None:
    async with EmbeddedNode(NodeOptions(behave_as="nwaku")) as node, caller(node) as http:
        assert (await http.get("/metrics")).status_code == 404
    async with EmbeddedNode(NodeOptions(store=False)) as node, caller(node) as http:
        assert not [name for name, *_ in await samples(http) if "archive" in name]


def test_the_page_has_every_metric() -> None:
    assert set(re.findall(r"`(waku_\w+)`", PAGE.read_text())) == set(METRICS)
