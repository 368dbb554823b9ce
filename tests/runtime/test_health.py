"""Health of the channel, of its topic and of its nodes, as events and in the statistics."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reliable_channel import MessageSent
from reliable_channel.diagnostics import NodeHealth, NodeHealthChanged, TopicHealthChanged
from reliable_channel.events import AnyEvent, ConnectionStatusChanged
from reliable_channel.runtime.health import Health
from reliable_channel.transport import MemoryNetwork, PoolTransport
from tests.channel.world import listening, make_channel

TOPIC = "/test/1/topic/proto"
UNTRIED = NodeHealth("a", "unsubscribed", last_error="", for_ms=0)
HEALTHY = replace(UNTRIED, state="healthy")
FAILING = replace(UNTRIED, state="failing", last_error="no store peers")
AWAY = replace(UNTRIED, last_error="nobody listens")


def health(events: list[AnyEvent], *, enough_nodes: int = 2) -> Health:
    return Health(
        lambda: 5,
        events.append,
        ("send", "receive"),
        content_topic=TOPIC,
        enough_nodes=enough_nodes,
    )


def named(address: str, node: NodeHealth) -> NodeHealth:
    return replace(node, address=address)


def test_the_status_says_whether_all_some_or_none_work() -> None:
    events: list[AnyEvent] = []
    it = health(events)
    it.failed("send", "a")
    it.failed("receive", "b")
    it.failed("receive", "c", "silence")
    assert it.status == "disconnected"
    assert it.succeeded("receive") == 5
    assert it.degraded == ("receive", "send")
    it.succeeded("receive", "silence")
    it.succeeded("send")
    assert [event.status for event in events if isinstance(event, ConnectionStatusChanged)] == [
        "partially_connected", "disconnected", "partially_connected", "connected",
    ]  # fmt: skip


def test_a_topic_is_as_healthy_as_what_arrives() -> None:
    events: list[AnyEvent] = []
    it = health(events)
    it.failed("send", "a")
    it.failed("receive", "b", "silence")
    it.failed("receive", "c")
    it.succeeded("receive", "silence")
    it.succeeded("receive")
    assert [event for event in events if isinstance(event, TopicHealthChanged)] == [
        TopicHealthChanged(TOPIC, "unhealthy"),
        TopicHealthChanged(TOPIC, "sufficiently_healthy"),
    ]


@pytest.mark.parametrize(
    ("nodes", "enough_nodes", "topic"),
    [
        ([], 2, "sufficiently_healthy"),
        ([HEALTHY], 2, "sufficiently_healthy"),
        ([UNTRIED], 2, "sufficiently_healthy"),
        ([FAILING], 2, "sufficiently_healthy"),
        ([AWAY], 2, "unhealthy"),
        ([HEALTHY, AWAY], 2, "minimally_healthy"),
        ([HEALTHY, AWAY], 1, "sufficiently_healthy"),
        ([HEALTHY, HEALTHY, AWAY], 2, "sufficiently_healthy"),
        ([HEALTHY, HEALTHY, AWAY], 3, "minimally_healthy"),
        ([AWAY, AWAY], 1, "unhealthy"),
    ],
)
def test_a_topic_needs_as_many_nodes_as_the_redundancy_says(
    nodes: list[NodeHealth], enough_nodes: int, topic: str
) -> None:
    it = health([], enough_nodes=enough_nodes)
    it.nodes_are(nodes)
    assert it.topic == topic


def test_a_node_is_told_when_its_state_changes_and_not_before_it_was_tried() -> None:
    events: list[AnyEvent] = []
    it = health(events)
    for node in (UNTRIED, HEALTHY, FAILING, FAILING, AWAY, HEALTHY, HEALTHY):
        it.nodes_are([named("a", node), named("b", HEALTHY)])
    assert [event for event in events if isinstance(event, NodeHealthChanged)] == [
        NodeHealthChanged("a", "failing", "no store peers"),
        NodeHealthChanged("a", "unsubscribed", "nobody listens"),
        NodeHealthChanged("a", "healthy", ""),
    ]


@pytest.mark.anyio
async def test_a_pool_s_nodes_stand_in_the_statistics_and_in_the_events() -> None:
    network, away = MemoryNetwork(), MemoryNetwork()
    away.away = True
    it = make_channel(PoolTransport([network.transport(), away.transport()]), "bob")
    async with listening(it) as told:
        await it.send(b"hello")
        await told.first(MessageSent)
        assert await told.first(NodeHealthChanged) == NodeHealthChanged(
            "node 1", "unsubscribed", "the network is away"
        )
        assert (await told.first(TopicHealthChanged)).health == "minimally_healthy"
        statistics = it.statistics()
        assert [node.state for node in statistics.nodes] == ["healthy", "unsubscribed"]
        assert statistics.nodes[1].last_error == "the network is away"
        assert (statistics.health, statistics.topic_health) == ("connected", "minimally_healthy")
