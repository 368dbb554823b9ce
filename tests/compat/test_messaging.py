"""The messaging layer: what is told of a message from its request on."""

import json
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from result import Err, Ok

from interop.compat.config import NodeConfig
from interop.compat.messaging import WINDOW_EXPIRED, Messaging
from interop.compat.wrapper import NodeWrapper
from waku import WakuMessage
from waku.node import EmbeddedNode, NodeOptions

from .nodes import TOPIC, NodeEvents, Nodes, message

pytestmark = pytest.mark.slow


def of_request(told: NodeEvents, request_id: str) -> list[str]:
    return [e["eventType"] for e in told.events if e.get("requestId") == request_id]


def send(node: NodeWrapper, content: bytes, **fields: object) -> str:
    return node.send_message(message(content, **fields)).unwrap()


def test_a_message_waits_for_somebody_to_take_it(nodes: Nodes) -> None:
    alice, to_alice = nodes.start("alice")
    request_id = send(alice, b"hello")
    bob, to_bob = nodes.create("bob", join=alice)
    bob.subscribe_content_topic(TOPIC).unwrap()
    bob.start_node().unwrap()
    assert to_alice.until(lambda: of_request(to_alice, request_id) == ["message_propagated"])
    assert to_bob.hears(b"hello")
    assert to_alice.of("message_received") == []
    kinds = [e["eventType"] for e in to_alice.events]
    assert kinds.index("connection_status_change") < kinds.index("message_propagated")


def test_the_connection_and_its_topics_are_told(nodes: Nodes) -> None:
    alice, to_alice = nodes.start("alice")
    alice.subscribe_content_topic(TOPIC).unwrap()
    nodes.start("bob", join=alice)
    assert to_alice.until(lambda: len(to_alice.events) == 3)
    came, status, health = to_alice.events
    assert came["peerEvent"] == "EventConnected"
    assert status["connectionStatus"] == "PartiallyConnected"
    assert (health["pubsubTopic"], health["topicHealth"]) == (
        "/waku/2/rs/198/0",
        "MinimallyHealthy",
    )


def test_a_message_that_is_too_long_is_an_error(nodes: Nodes) -> None:
    alice, to_alice = nodes.start("alice")
    request_id = send(alice, b"x" * 200_000)
    assert to_alice.until(lambda: of_request(to_alice, request_id) == ["message_error"])
    (error,) = to_alice.of("message_error")
    assert error["error"] == "Message size exceeded maximum of 153600 bytes"


@pytest.mark.parametrize(
    "topic", ["no-leading-slash", "", "/app/1/name", "/app//name/proto"], ids=repr
)
def test_a_topic_without_a_shard_is_refused(nodes: Nodes, topic: str) -> None:
    alice, to_alice = nodes.start("alice")
    refused = alice.send_message(message(b"hello", contentTopic=topic)).unwrap_err()
    assert "Send failed: Failed to auto-subscribe before sending: " in refused
    subscribed = alice.subscribe_content_topic(topic).unwrap_err()
    assert subscribed.startswith(f"callback failed in _wait_cb_ok: subscribe({topic}) (ret=1)")
    nodes.end()
    assert to_alice.events == []
    bob, _ = nodes.create("bob")
    assert bob.subscribe_content_topic(topic) == Err(subscribed)


def test_what_was_unsubscribed_is_subscribed_again_to_send(nodes: Nodes) -> None:
    alice, to_alice = nodes.start("alice")
    assert alice.subscribe_content_topic(TOPIC) == Ok(0)
    assert alice.unsubscribe_content_topic(TOPIC) == Ok(0)
    nodes.start("bob", join=alice)
    request_id = send(alice, b"hello")
    assert to_alice.until(lambda: of_request(to_alice, request_id) == ["message_propagated"])


def test_an_edge_node_sends_by_light_push(nodes: Nodes) -> None:
    service, _ = nodes.start("service")
    edge, to_edge = nodes.start("edge", join=service, mode="Edge")
    request_id = send(edge, b"hello")
    relay, to_relay = nodes.create("relay", join=service)
    relay.subscribe_content_topic(TOPIC).unwrap()
    relay.start_node().unwrap()
    assert to_edge.until(lambda: of_request(to_edge, request_id) == ["message_propagated"])
    assert to_relay.hears(b"hello")


def test_a_store_node_makes_it_sent(nodes: Nodes) -> None:
    alice, to_alice = nodes.start("alice", reliabilityEnabled=True)
    nodes.start("bob", join=alice, store=True)
    kept, fleeting = send(alice, b"hello"), send(alice, b"typing", ephemeral=True)
    assert to_alice.until(
        lambda: of_request(to_alice, kept) == ["message_propagated", "message_sent"]
    )
    assert of_request(to_alice, fleeting) == ["message_propagated"]


def test_what_a_node_stored_outlives_it(nodes: Nodes, tmp_path: Path) -> None:
    store: dict[str, Any] = {
        "store": True,
        "storeMessageDbUrl": f"sqlite://{tmp_path / 'store.sqlite3'}",
    }
    for stored in (1, 2):
        alice, _ = nodes.start("alice", rest=True, restPort=0, **store)
        bob, to_bob = nodes.start("bob", join=alice)
        bob.subscribe_content_topic(TOPIC).unwrap()
        send(alice, b"hello")
        assert to_bob.hears(b"hello")
        port = json.loads(alice.get_node_info("MyBoundPorts").unwrap())["rest"]
        page = httpx.get(f"http://127.0.0.1:{port}/store/v3/messages", trust_env=False).json()
        assert len(page["messages"]) == stored
        nodes.end()


@pytest.mark.anyio
async def test_a_message_nobody_takes_is_given_up(virtual_time: None) -> None:
    told: list[dict[str, Any]] = []
    config = NodeConfig.of({"numShardsInNetwork": 1})
    async with EmbeddedNode(NodeOptions(num_shards=1, self_service=False)) as node:
        messaging = Messaging(node, config, {}, told.append)
        async with anyio.create_task_group() as tasks:
            await tasks.start(messaging.run)
            request_id = await messaging.send(WakuMessage(b"hello", TOPIC))
            await anyio.sleep(59)
            assert told == []
            await anyio.sleep(2)
            (error,) = told
            assert (error["requestId"], error["error"]) == (request_id, WINDOW_EXPIRED)
            tasks.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("variable", "payload"), [("", [104, 105]), ("base64", "aGk=")], ids=["numbers", "base64"]
)
def test_bytes_are_put_as_the_suite_of_the_day_reads_them(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch, variable: str, payload: object
) -> None:
    monkeypatch.setenv("RELIABLE_CHANNEL_COMPAT_PAYLOAD", variable)
    alice, _ = nodes.start("alice")
    bob, to_bob = nodes.start("bob", join=alice)
    bob.subscribe_content_topic(TOPIC).unwrap()
    send(alice, b"hi")
    assert to_bob.until(lambda: bool(to_bob.of("message_received")))
    assert to_bob.of("message_received")[0]["message"]["payload"] == payload
