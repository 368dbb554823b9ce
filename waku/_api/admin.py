"""Admin v1: peers, other nodes' filter subscriptions, logging (`--rest-admin`)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

from waku import _json
from waku._api.base import Api, confirmation, in_path
from waku._request import Answer, Flavour, Repeat, Request
from waku.models import FilterCriterion, FilterSubscription, Peer, PeerStats, ShardPeers

__all__ = ["AdminApi", "LogLevel"]

PEERS = "/admin/v1/peers"

LogLevel: TypeAlias = Literal["TRACE", "DEBUG", "INFO", "NOTICE", "WARN", "ERROR", "FATAL"]


class AdminApi(Api):
    """Administration. go-waku has `peers` and `add_peers` only.

    Each call may raise `EndpointMissing`: the node runs without `--rest-admin`, without the
    protocol that the call asks about, or is go-waku.
    """

    async def peers(self) -> list[Peer]:
        """Return the peers that the node knows, connected or not."""
        return await self._peers("peers", PEERS)

    async def connected_peers(self, shard: int | None = None) -> list[Peer]:
        """Return the connected peers, of all shards or of one.

        Raises:
            BadRequest: not a shard.
        """
        return await self._peers("connected_peers", _on(f"{PEERS}/connected", shard))

    async def service_peers(self) -> list[Peer]:
        """Return the peers whose services the node uses."""
        return await self._peers("service_peers", f"{PEERS}/service")

    async def relay_peers(self, shard: int | None = None) -> list[ShardPeers]:
        """Return the relay peers by shard. A shard comes once for each cluster."""
        return await self._shards("relay_peers", _on(f"{PEERS}/relay", shard))

    async def mesh_peers(self, shard: int | None = None) -> list[ShardPeers]:
        """Return the peers in the gossip mesh by shard. A shard comes once for each cluster."""
        return await self._shards("mesh_peers", _on(f"{PEERS}/mesh", shard))

    async def peer_stats(self) -> PeerStats:
        """Return counts of peers by connectedness, shard and protocol."""
        request = Request("peer_stats", "GET", f"{PEERS}/stats", Repeat.SAFE)
        return await self._session.call(request, _peer_stats)

    async def peer(self, peer_id: str) -> Peer:
        """Return one peer.

        Raises:
            NotFound: the node does not know it.
            BadRequest: not a peer id.
        """
        path = f"/admin/v1/peer/{in_path(peer_id)}"
        request = Request("peer", "GET", path, Repeat.SAFE)
        return await self._session.call(request, lambda answer: _peer(answer.json()))

    async def add_peers(
        self,
        multiaddrs: Iterable[str],
        *,
        shards: Iterable[int] = (),
        protocols: Iterable[str] = (),
    ) -> None:
        """Add and dial peers.

        nwaku takes all at once and finds shards and protocols itself. go-waku takes one a request
        and uses a peer for services only with the shards and protocols given here.

        Raises:
            BadRequest: nwaku, not an address, or no peer there.
            NodeFailure: go-waku, the same.
        """
        addresses = list(multiaddrs)
        if await self.flavour() is not Flavour.GO_WAKU:
            await self._add(addresses)
            return
        about = {"shards": list(shards), "protocols": list(protocols)}
        for address in addresses:
            await self._add({"multiaddr": address, **about})

    async def filter_subscriptions(self) -> list[FilterSubscription]:
        """Return what other nodes have subscribed to at this node's filter service."""
        path = "/admin/v1/filter/subscriptions"
        request = Request("filter_subscriptions", "GET", path, Repeat.SAFE)
        return await self._session.call(
            request, lambda answer: list(_json.list_of(answer.json(), _filter_subscription))
        )

    async def set_log_level(self, level: LogLevel) -> None:
        """Change how much the node logs.

        Raises:
            BadRequest: below the level that the node is compiled with.
        """
        path = f"/admin/v1/log-level/{in_path(level)}"
        request = Request("set_log_level", "POST", path, Repeat.SAFE)
        await self._session.call(request, confirmation)

    async def _peers(self, call: str, path: str) -> list[Peer]:
        request = Request(call, "GET", path, Repeat.SAFE)
        return await self._session.call(
            request, lambda answer: list(_json.list_of(answer.json(), _peer))
        )

    async def _shards(self, call: str, path: str) -> list[ShardPeers]:
        request = Request(call, "GET", path, Repeat.SAFE)
        return await self._session.call(request, _shard_list)

    async def _add(self, body: object) -> None:
        request = Request("add_peers", "POST", PEERS, Repeat.SAFE, body=body)
        await self._session.call(request, confirmation)


def _on(path: str, shard: int | None) -> str:
    return path if shard is None else f"{path}/on/{shard}"


def _shard_list(answer: Answer) -> list[ShardPeers]:
    """Read a list, or the one object that `/on/{shard}` gives."""
    value = answer.json()
    return (
        [_shard_peers(value)]
        if isinstance(value, dict)
        else list(_json.list_of(value, _shard_peers))
    )


def _shard_peers(value: object) -> ShardPeers:
    fields = _json.object_of(value)
    return ShardPeers(
        shard=_json.integer(fields.get("shard")), peers=_json.list_of(fields.get("peers"), _peer)
    )


def _peer(value: object) -> Peer:
    """Read nwaku's peer (one `multiaddr`, `connected` a word) or go-waku's (an id, a boolean)."""
    fields = _json.object_of(value)
    connected = fields.get("connected")
    score = fields.get("score")
    addresses = _json.list_of(fields.get("multiaddrs"), _json.text)
    if fields.get("multiaddr") is not None:
        addresses = (*addresses, _json.text(fields["multiaddr"]))
    return Peer(
        peer_id=_json.optional_text(fields.get("id")) or _peer_id_of(addresses),
        multiaddrs=addresses,
        protocols=_json.list_of(fields.get("protocols"), _json.text),
        connected=connected is True or connected == "Connected",
        connectedness=connected if isinstance(connected, str) else "",
        shards=_json.list_of(fields.get("shards"), _json.integer),
        pubsub_topics=_json.list_of(
            _json.field(fields, "pubsubTopics", "pubsub_topics"), _json.text
        ),
        agent=_json.optional_text(fields.get("agent")) or "",
        origin=_json.optional_text(fields.get("origin")) or "",
        score=float(score) if isinstance(score, int | float) else None,
    )


def _peer_id_of(multiaddrs: tuple[str, ...]) -> str:
    """Return the last `/p2p/<id>` of an address: in a circuit, that of the far end."""
    for address in multiaddrs:
        _, found, peer_id = address.rpartition("/p2p/")
        if found:
            return peer_id
    raise ValueError("expected a peer with an id, or with an address that ends in /p2p/ID")


def _peer_stats(answer: Answer) -> PeerStats:
    return {
        heading: {name: _json.integer(count) for name, count in _json.object_of(counts).items()}
        for heading, counts in _json.object_of(answer.json()).items()
    }


def _filter_subscription(value: object) -> FilterSubscription:
    fields = _json.object_of(value)
    return FilterSubscription(
        peer_id=_json.text(_json.field(fields, "peerId", "peer_id")),
        filter_criteria=_json.list_of(
            _json.field(fields, "filterCriteria", "filter_criteria"), _filter_criterion
        ),
    )


def _filter_criterion(value: object) -> FilterCriterion:
    fields = _json.object_of(value)
    return FilterCriterion(
        pubsub_topic=_json.text(_json.field(fields, "pubsubTopic", "pubsub_topic")),
        content_topic=_json.text(_json.field(fields, "contentTopic", "content_topic")),
    )
