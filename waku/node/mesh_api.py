"""`/mesh/v1`: how embedded nodes exchange messages. Not part of nwaku's API."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import anyio

from waku.node.bodies import read_json
from waku.node.http import Answer, Request, Route, ServedNode
from waku.node.identity import NodeAddress
from waku.node.mesh import PeerInfo
from waku.node.mesh_client import POLL_S, Delivery
from waku.node.outbox import batch_json
from waku.node.remote import WRONG_CLUSTER_STATUS, AcceptedPeer

__all__ = ["ROUTES"]

UNKNOWN: Final = Answer.text(404, "say hello first")


async def hello(node: ServedNode, request: Request) -> Answer:
    """POST /mesh/v1/hello."""
    try:
        body = read_json(request)
        info = PeerInfo.from_json(body)
        cluster_id = body.get("clusterId") if isinstance(body, dict) else None
    except ValueError as error:
        return Answer.text(400, str(error))
    if info.peer_id == node.peer_id:
        return Answer.text(400, "this is the node itself")
    if cluster_id != node.options.cluster_id:
        text = f"this is a node of cluster {node.options.cluster_id}"
        return Answer.text(WRONG_CLUSTER_STATUS, text)
    if not info.multiaddr and request.remote is not None:
        info = replace(info, multiaddr=NodeAddress(*request.remote).multiaddr)
    if not node.accept(info):
        return Answer.text(503, "too many nodes are joined")
    return Answer.json(node.hello_json())


async def take(node: ServedNode, request: Request) -> Answer:
    """GET /mesh/v1/messages: what waits for a node; holds the question until something does."""
    peer = _peer(node, request.query.get("peerId"))
    if peer is None:
        return UNKNOWN
    peer.heard()
    peer.outbox.acknowledge(_number(request, "after"))
    with anyio.move_on_after(min(_number(request, "waitMs") / 1000, POLL_S)):
        await peer.outbox.wait()
    peer.heard()
    limit = _number(request, "maxBytes")
    while True:
        batch, last = peer.outbox.batch()
        answer = Answer.json({**batch_json(batch), "last": last})
        if not (limit and batch and len(answer.body) > limit):
            return answer
        peer.outbox.drop_first()  # a message that the other node takes from nobody


async def give(node: ServedNode, request: Request) -> Answer:
    """POST /mesh/v1/messages: messages of another node."""
    try:
        match read_json(request):
            case {"peerId": str(peer_id), **fields}:
                delivery = Delivery.of(fields)
            case _:
                return Answer.text(400, "peerId and messages are expected")
    except ValueError as error:
        return Answer.text(400, str(error))
    peer = _peer(node, peer_id)
    if peer is None:
        return UNKNOWN
    peer.heard()
    for envelope in delivery.envelopes:
        node.receive(envelope, peer.key)
    try:
        for item in delivery.services:
            await peer.service_link.take(item)
    except ValueError as error:
        return Answer.text(400, str(error))
    return Answer.json({"taken": len(delivery.envelopes) + len(delivery.services)})


def _peer(node: ServedNode, peer_id: str | None) -> AcceptedPeer | None:
    link = node.mesh.links.get(f"accepted {peer_id}")
    return link if isinstance(link, AcceptedPeer) else None


def _number(request: Request, name: str) -> int:
    text = request.query.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else 0


ROUTES: Final = (
    Route(
        "POST",
        "/mesh/v1/hello",
        hello,
        "Join this node to another",
        "mesh",
        body="Hello",
        answer="Hello",
        failures={400: "no introduction", 409: "another cluster", 503: "too many nodes"},
    ),
    Route(
        "GET",
        "/mesh/v1/messages",
        take,
        "Take the messages that wait for a node",
        "mesh",
        answer="MeshMessages",
        query=("peerId", "after", "waitMs", "maxBytes"),
        failures={404: "the node did not say hello"},
    ),
    Route(
        "POST",
        "/mesh/v1/messages",
        give,
        "Hand over messages of a node",
        "mesh",
        body="MeshGift",
        answer="MeshThanks",
        failures={400: "not messages", 404: "the node did not say hello"},
    ),
)
