"""The figures of a node, read with Prometheus' own parser."""

import re
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from waku import WakuMessage
from waku.node import DialFailed, EmbeddedNode, NodeOptions, ServiceKind
from waku.node.metrics import METRICS

from .test_app import caller
from .wires import HERE, until

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
        parts = re.compile(r"_(bucket|sum|count)$")
        without_peers = set(METRICS) - {"waku_service_peers"}
        assert {parts.sub("", name) for name, *_ in found} == without_peers


async def test_sizes_of_messages_are_counted_in_nwakus_classes() -> None:
    async with EmbeddedNode() as node, caller(node) as http:
        for size in (0, 1_000, 1_001, 4_000):
            node.publish(SHARD, WakuMessage(bytes(size), "/a/1/b/proto", timestamp=1))
        found = await samples(http)
        name = "waku_histogram_message_size"
        assert [found[f"{name}_bucket", bound] for bound in ("0.0", "1.0", "3.0", "5.0")] == [
            *(1, 2, 3, 4)
        ]
        assert found[f"{name}_bucket", "+Inf"] == found[f"{name}_count",] == 4
        assert found[f"{name}_sum",] == pytest.approx(6.001)


async def test_topics_are_counted_when_they_are_begun_to_follow() -> None:
    async with EmbeddedNode(NodeOptions(num_shards=2)) as node, caller(node) as http:
        others = ["/waku/2/rs/1/7", SHARD]
        assert (await http.post("/relay/v1/subscriptions", json=others)).status_code == 200
        await http.request("DELETE", "/relay/v1/subscriptions", json=others[:1])
        found = await samples(http)
        assert found["libp2p_pubsub_topics",] == 2
        assert found["libp2p_pubsub_subscriptions_total",] == 3


async def test_dials_and_service_nodes_are_counted() -> None:
    async with EmbeddedNode(listen=HERE) as other:
        named = NodeOptions(self_service=False)
        services: dict[ServiceKind, str] = {"lightpush": other.libp2p_addresses[0]}
        async with EmbeddedNode(named, service_nodes=services) as node, caller(node) as http:
            await until(lambda: bool(node.mesh.peers()))
            with pytest.raises(DialFailed):
                await node.dial("/ip4/127.0.0.1/tcp/2/p2p/" + node.peer_id)
            found = await samples(http)
            assert found["libp2p_total_dial_attempts_total",] == 2
            assert found["libp2p_successful_dials_total",] == 1
            assert found["libp2p_failed_dials_total",] == 1
            assert found["libp2p_peers",] == found["waku_peer_store_size",] == 1
            ids = {labels[0] for name, *labels in found if name == "waku_service_peers"}
            assert ids == {"/vac/waku/lightpush/3.0.0", "/vac/waku/lightpush/2.0.0-beta1"}


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
    assert set(re.findall(r"`((?:waku|libp2p|total)_\w+)`", PAGE.read_text())) == set(METRICS)
