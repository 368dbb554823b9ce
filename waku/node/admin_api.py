"""REST operations below `/admin/v1` for the peers of the node, and connections to further peers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Final, TypeAlias

from waku.node.bodies import BadBody, read_json, text_list
from waku.node.errors import DialFailed, WrongCluster
from waku.node.http import OK, Request, Response, Route, ServedNode
from waku.node.identity import BadAddress, check_address, is_peer_id
from waku.node.lightpush_api import presto_error
from waku.node.mesh import PeerInfo
from waku.node.protocols import COUNTED_PROTOCOLS, SERVICE_PROTOCOLS
from waku.topics import InvalidTopic, PubsubTopic

__all__ = ["ROUTES"]

NO_RELAY: Final = Response.text(503, "Error: Relay Protocol is not mounted to the node")
LOG_LEVELS: Final = {
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "NOTICE": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}


async def peers(node: ServedNode, request: Request) -> Response:
    """Answer GET /admin/v1/peers and /admin/v1/peers/connected with the peers of the node. This
    node is connected to every peer that it knows."""
    return _list(node.mesh.peers().values())


async def peers_on_shard(node: ServedNode, request: Request) -> Response:
    """Answer GET /admin/v1/peers/connected/on/{shard} with the peers on a shard."""
    shard = _shard(request)
    if isinstance(shard, Response):
        return shard
    return _list(peer for peer in node.mesh.peers().values() if shard in peer.shards)


async def service_peers(node: ServedNode, request: Request) -> Response:
    """Answer GET /admin/v1/peers/service with the peers that offer a service."""
    found = []
    for peer in node.mesh.peers().values():
        services = [name for name in peer.protocols if name in SERVICE_PROTOCOLS]
        if services:
            found.append({**_peer_json(peer), "protocols": services})
    return Response.json(found)


async def relay_peers(node: ServedNode, request: Request) -> Response:
    """Answer GET /admin/v1/peers/relay with the relay peers, by shard."""
    return _by_shard(node, node.relay_peers)


async def mesh_peers(node: ServedNode, request: Request) -> Response:
    """Answer GET /admin/v1/peers/mesh with the mesh peers, by shard."""
    return _by_shard(node, node.mesh_peers)


async def relay_peers_on_shard(node: ServedNode, request: Request) -> Response:
    """Answer GET /admin/v1/peers/relay/on/{shard} with the relay peers of a shard."""
    return _on_shard(node, request, node.relay_peers)


async def mesh_peers_on_shard(node: ServedNode, request: Request) -> Response:
    """Answer GET /admin/v1/peers/mesh/on/{shard} with the mesh peers of a shard."""
    return _on_shard(node, request, node.mesh_peers)


async def stats(node: ServedNode, request: Request) -> Response:
    """Answer GET /admin/v1/peers/stats with the numbers of peers."""
    known = list(node.mesh.peers().values())
    relay = _counted(node, node.relay_peers)
    mesh = _counted(node, node.mesh_peers)
    return Response.json(
        {
            "Sum": {"Total peers": len(known)},
            "By Connectedness": {
                "Connected": len(known),
                "NotConnected": 0,
                "CannotConnect": 0,
                "CanConnect": 0,
            },
            "Relay peers": {**relay, "Total relay peers": len(node.relay_peers())},
            "Mesh peers": {**mesh, "Total mesh peers": sum(mesh.values())},
            "By Protocols": {
                name: sum(name in peer.protocols for peer in known) for name in COUNTED_PROTOCOLS
            },
        }
    )


async def peer(node: ServedNode, request: Request) -> Response:
    """Answer GET /admin/v1/peer/{peerId} with one peer."""
    peer_id = request.path_values[0]
    if not is_peer_id(peer_id):
        return Response.text(400, "Invalid argument:peerid: incorrect PeerId string")
    found = node.mesh.peers().get(peer_id)
    if found is None:
        return Response.text(404, f"Peer with ID ok({peer_id}) not found")
    return Response.json(_peer_json(found))


async def add_peers(node: ServedNode, request: Request) -> Response:
    """Connect to peers by their multiaddresses (POST /admin/v1/peers)."""
    try:
        addresses = text_list(read_json(request))
    except BadBody as error:
        return Response.text(400, f"Failed to decode request: {presto_error(str(error))}")
    for index, text in enumerate(addresses):
        try:
            peer_id = check_address(text)
        except BadAddress as error:
            return Response.text(400, f"Couldn't parse remote peer info: {error}")
        if peer_id in node.mesh.peers():
            continue  # as in nwaku, a known peer is reached the way it was, whatever the address
        try:
            await node.dial(text)
        except WrongCluster:
            continue  # as in nwaku, which connects, and hangs up once it knows the cluster
        except DialFailed:
            return Response.text(400, f"Failed to connect to peer at index: {index} - {text}")
    return OK


async def filter_subscriptions(node: ServedNode, request: Request) -> Response:
    """Answer GET /admin/v1/filter/subscriptions with the filter criteria of each peer."""
    if not node.options.filter:
        return Response.text(400, "Error: Filter Protocol is not mounted to the node")
    return Response.json(
        [
            {
                "peerId": peer_id,
                "filterCriteria": [
                    {"pubsubTopic": pubsub_topic, "contentTopic": content_topic}
                    for pubsub_topic, content_topic in criteria
                ],
            }
            for peer_id, criteria in node.filter.criteria_by_peer().items()
        ]
    )


async def set_log_level(node: ServedNode, request: Request) -> Response:
    """Set the log level of the node (POST /admin/v1/log-level/{level})."""
    given = request.path_values[0]
    name = given.upper()
    if name == "TRACE":
        text = f"Log level {name} is lower than the lowest log level - DEBUG - the binary is"
        return Response.text(400, f"{text} compiled with.")
    level = LOG_LEVELS.get(name)
    if level is None:
        names = "TRACE, DEBUG, INFO, NOTICE, WARN, ERROR or FATAL"
        return Response.text(400, f"Invalid log-level: {given}. Please specify one of {names}")
    logging.getLogger("waku.node").setLevel(level)
    return OK


def _list(found: Iterable[PeerInfo]) -> Response:
    return Response.json([_peer_json(peer) for peer in found])


def _peer_json(found: PeerInfo) -> Mapping[str, object]:
    return {
        "multiaddr": f"{found.multiaddr}/p2p/{found.peer_id}",
        "protocols": list(found.protocols),
        "shards": list(found.shards),
        "connected": "Connected",
        "agent": found.agent,
        "origin": "UnknownOrigin",
    }


def _topics(node: ServedNode) -> list[PubsubTopic]:
    """The static shards that are followed."""
    found = []
    for topic in node.relay.pubsub_topics:
        with suppress(InvalidTopic):
            found.append(PubsubTopic.parse(topic))
    return found


PeersOf: TypeAlias = Callable[[str], list[PeerInfo]]


def _counted(node: ServedNode, peers_of: PeersOf) -> dict[str, int]:
    topics = _topics(node) if node.options.relay else []
    return {str(topic.shard): len(peers_of(str(topic))) for topic in topics}


def _by_shard(node: ServedNode, peers_of: PeersOf) -> Response:
    """The peers of each followed topic; a shard of two clusters comes twice."""
    if not node.options.relay:
        return NO_RELAY
    return Response.json([_shard_json(one.shard, peers_of(str(one))) for one in _topics(node)])


def _on_shard(node: ServedNode, request: Request, peers_of: PeersOf) -> Response:
    if not node.options.relay:
        return NO_RELAY
    shard = _shard(request)
    if isinstance(shard, Response):
        return shard
    topic = PubsubTopic(node.options.cluster_id, shard)
    return Response.json(_shard_json(shard, peers_of(str(topic))))


def _shard_json(shard: int, found: Iterable[PeerInfo]) -> Mapping[str, object]:
    return {"shard": shard, "peers": [{**_peer_json(peer), "score": 0.0} for peer in found]}


def _shard(request: Request) -> int | Response:
    text = request.path_values[0]
    if not (text.isascii() and text.isdigit()):
        return Response.text(400, "Invalid shardId: Non-decimal character encountered")
    if len(text) > 5 or int(text) > 0xFFFF:
        return Response.text(400, "Invalid shardId: Integer overflow")
    return int(text)


_BAD_SHARD: Final = {400: "not a shard"}
_PEERS: Final = "/admin/v1/peers"
_RELAY_FAILURES: Final = {**_BAD_SHARD, 503: "the node has no relay"}

ROUTES: Final = (
    Route("GET", _PEERS, peers, "List the connected peers", "admin", answer="Peers"),
    Route(
        "POST",
        _PEERS,
        add_peers,
        "Connect to peers",
        "admin",
        body="TopicList",
        failures={400: "not a multiaddress, or no peer answers there"},
    ),
    Route("GET", f"{_PEERS}/connected", peers, "List the connected nodes", "admin", answer="Peers"),
    Route(
        "GET",
        f"{_PEERS}/connected/on/{{shard}}",
        peers_on_shard,
        "List the connected nodes of a shard",
        "admin",
        answer="Peers",
        failures=_BAD_SHARD,
    ),
    Route(
        "GET",
        f"{_PEERS}/service",
        service_peers,
        "List the nodes that offer a service",
        "admin",
        answer="Peers",
    ),
    Route("GET", f"{_PEERS}/stats", stats, "Count the nodes", "admin", answer="PeerStats"),
    *(
        Route(
            "GET",
            f"{_PEERS}/{kind}",
            handler,
            f"List the {kind} peers by shard",
            "admin",
            answer="PeersOfShards",
            failures={503: "the node has no relay"},
        )
        for kind, handler in (("relay", relay_peers), ("mesh", mesh_peers))
    ),
    *(
        Route(
            "GET",
            f"{_PEERS}/{kind}/on/{{shard}}",
            handler,
            f"List the {kind} peers of a shard",
            "admin",
            answer="PeersOfShard",
            failures=_RELAY_FAILURES,
        )
        for kind, handler in (("relay", relay_peers_on_shard), ("mesh", mesh_peers_on_shard))
    ),
    Route(
        "GET",
        "/admin/v1/peer/{peerId}",
        peer,
        "Return what is known of a node",
        "admin",
        answer="Peer",
        failures={400: "not a peer id", 404: "not known"},
    ),
    Route(
        "GET",
        "/admin/v1/filter/subscriptions",
        filter_subscriptions,
        "List the filter subscriptions by node",
        "admin",
        answer="FilterSubscriptions",
        failures={400: "the node has no filter service"},
    ),
    Route(
        "POST",
        "/admin/v1/log-level/{level}",
        set_log_level,
        "Set the log level",
        "admin",
        failures={400: "not a level"},
    ),
)
