"""Nodes of the bindings and containers of the REST harness in one network, as S11 and S25 have
them: a sender of the bindings, and a container as the Store that validates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from interop.compat.rest import Container, Engine
from tests.compat.nodes import NodeEvents, Nodes, address_of, message

pytestmark = pytest.mark.slow

SHARD = "/waku/2/rs/198/0"


class Node:
    """A container, with a Store unless told otherwise, at an address of another network."""

    def __init__(self, engine: Engine, number: int, **flags: str) -> None:
        given = {
            "relay": "true",
            "store": "true",
            "cluster-id": "198",
            "shard": "0",
            "rest-admin": "true",
            "rest-port": "0",
            "tcp-port": "60001",
            "nat": f"extip:172.18.9.{number}",
            **flags,
        }
        self.container: Container = engine.run([f"--{k}={v}" for k, v in given.items()])

    def get(self, path: str) -> Any:
        return httpx.get(f"{self.container.address}{path}", trust_env=False).json()

    def post(self, path: str, body: object) -> None:
        url = f"{self.container.address}{path}"
        httpx.post(url, json=body, trust_env=False).raise_for_status()

    @property
    def multiaddr(self) -> str:
        address: str = self.get("/debug/v1/info")["listenAddresses"][0]
        return address

    def stored(self) -> int:
        return len(self.get("/store/v3/messages?pageSize=100")["messages"])


@pytest.fixture
def engine() -> Iterator[Engine]:
    with Engine() as one:
        yield one


def sent(told: NodeEvents, request_id: str) -> bool:
    return told.until(
        lambda: any(event["requestId"] == request_id for event in told.of("message_sent")),
        within_s=600,
    )


def test_an_edge_node_pushes_through_the_bindings_and_validates_at_a_container(
    nodes: Nodes, engine: Engine
) -> None:
    """S11: the edge was told an address of Docker's network, and nobody answered there."""
    relay, _ = nodes.start("relay", relay=True, lightpush=True, rest=True, restPort=0)
    store = Node(engine, 1)
    store.post("/admin/v1/peers", [address_of(relay)])
    store.post("/relay/v1/subscriptions", [SHARD])
    edge, told = nodes.start(
        "edge",
        mode="Edge",
        staticnodes=[address_of(relay), store.multiaddr],
        reliabilityEnabled=True,
    )
    request_id = edge.send_message(message(b"hello")).unwrap()
    assert sent(told, request_id)
    kinds = [event["eventType"] for event in told.events if event.get("requestId") == request_id]
    assert kinds == ["message_propagated", "message_sent"]
    assert store.stored() == 1


def test_a_relay_node_validates_at_a_container_but_not_what_is_ephemeral(
    nodes: Nodes, engine: Engine
) -> None:
    """S25."""
    store = Node(engine, 2)
    sender, told = nodes.start("sender", staticnodes=[store.multiaddr], reliabilityEnabled=True)
    assert told.until(lambda: bool(told.of("connection_status_change")), within_s=600)
    store.post("/relay/v1/subscriptions", [SHARD])
    fleeting = sender.send_message(message(b"fleeting", ephemeral=True)).unwrap()
    kept = sender.send_message(message(b"kept")).unwrap()
    assert sent(told, kept)
    assert fleeting not in [event["requestId"] for event in told.of("message_sent")]
    assert store.stored() == 1


def test_an_edge_sends_many_at_once_while_the_containers_restart(
    nodes: Nodes, engine: Engine
) -> None:
    """S31: the edge asked the REST API of its light push node, which looked for another one."""
    kinds = {"relay": {"store": "false"}, "lightpush": {"lightpush": "true"}, "store": {}}
    containers = [Node(engine, 3 + n, **flags) for n, flags in enumerate(kinds.values())]
    for one in containers:
        one.post("/relay/v1/subscriptions", [SHARD])
        one.post("/admin/v1/peers", [other.multiaddr for other in containers if other is not one])
    edge, told = nodes.start(
        "edge", mode="Edge", lightpushnode=containers[1].multiaddr, reliabilityEnabled=True
    )
    for one in containers:
        one.post("/admin/v1/peers", [address_of(edge)])
    first = [edge.send_message(message(b"%d" % n)).unwrap() for n in range(8)]
    for one in containers:
        one.container.restart()
    second = [edge.send_message(message(b"%d" % n)).unwrap() for n in range(8, 16)]
    for one in containers:
        one.post("/admin/v1/peers", [address_of(edge)])
    third = [edge.send_message(message(b"%d" % n)).unwrap() for n in range(16, 24)]
    for request_id in first + second + third:
        assert sent(told, request_id)
    assert told.of("message_error") == []
    assert containers[2].stored() == 24
