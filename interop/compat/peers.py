"""The nodes that a node is connected to: what they offer, and which came and went."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NoReturn

import anyio

from waku.node import EmbeddedNode

from .events import Emit, connection_change, connection_status_change, topic_health_change

__all__ = ["PeerWatch"]

RELAY: Final = "/vac/waku/relay/2.0.0"
STORE: Final = "/vac/waku/store-query/3.0.0"
LIGHTPUSH: Final = "/vac/waku/lightpush/3.0.0"
FILTER: Final = "/vac/waku/filter-subscribe/2.0.0-beta1"
_EDGE_NEEDS: Final = (LIGHTPUSH, FILTER, STORE)

D_LOW: Final = 4
"""Relay peers from which gossipsub, and so nwaku, calls a topic healthy."""
LOOK_S: Final = 0.05


class PeerWatch:
    """Emits connected and disconnected peers, and the state of the connection and its topics."""

    def __init__(self, node: EmbeddedNode, topics: Iterable[str], emit: Emit) -> None:
        self._node = node
        self._topics = topics
        self._emit = emit
        self._peers: set[str] = set()
        self._status = "Disconnected"
        self._health: dict[str, str] = {}

    async def run(self) -> NoReturn:
        while True:
            self.look()
            await anyio.sleep(LOOK_S)

    def look(self) -> None:
        """Emit what changed since the last look."""
        peers = set(self._node.mesh.peers())
        for peer_id in sorted(peers ^ self._peers):
            self._emit(connection_change(peer_id, is_connected=peer_id in peers))
        self._peers = peers
        if (status := self._status_now()) != self._status:
            self._status = status
            self._emit(connection_status_change(status))
        for shard in {self._node.shard_for(topic) for topic in self._topics}:
            health = _graded(
                self._node.mesh.followers(shard),
                ("UnHealthy", "MinimallyHealthy", "SufficientlyHealthy"),
            )
            if health != self._health.get(shard, "UnHealthy"):
                self._emit(topic_health_change(shard, health))
            self._health[shard] = health

    def _status_now(self) -> str:
        offered = [
            protocol for info in self._node.mesh.peers().values() for protocol in info.protocols
        ]
        if self._node.options.relay:
            count = offered.count(RELAY)
        else:
            count = min(offered.count(protocol) for protocol in _EDGE_NEEDS)
        return _graded(count, ("Disconnected", "PartiallyConnected", "Connected"))


def _graded(peers: int, words: tuple[str, str, str]) -> str:
    return words[0] if not peers else words[1] if peers < D_LOW else words[2]
