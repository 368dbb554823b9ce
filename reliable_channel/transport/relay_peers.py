"""Check that a node without messages from others has mesh peers.

A node without mesh peers returns and stores own messages, but no other node receives them. If no
messages of others arrive, the transport therefore asks the node for its mesh.
"""

from collections.abc import Iterable
from math import inf
from typing import Final

from waku._request import Flavour
from waku.client import WakuClient
from waku.errors import EndpointMissing, WakuError
from waku.models import Peer
from waku.topics import PubsubTopic

from ..sds.ids import RecentSet

SILENCE_S: Final = 60.0
"""Time without messages of others after which the node is asked for its mesh (s)."""
FIRST_S: Final = 10.0
"""Time between the first own message and the first question (s). A mesh forms within a few
seconds."""
AGAIN_S: Final = 1.0
"""Interval between questions while the mesh is empty (s), for all topics of a shard together."""
OWN_LIMIT: Final = 256
"""Number of remembered own messages (the newest), which the node may return."""


class RelayPeers:
    """Monitor of the peers in a node's mesh on one shard. The node is first asked when messages of
    others arrive, or after the first own message. Later the node is asked only when no messages of
    others arrive."""

    def __init__(self, client: WakuClient, pubsub_topic: str) -> None:
        self._client = client
        self._shard = PubsubTopic.parse(pubsub_topic)
        self._own = RecentSet[bytes](OWN_LIMIT)
        self._published_s: float | None = None
        self._heard_s: float | None = None
        self._asked_s = -inf
        self._before: int | None = None
        """Peers that the node had when it last had any; None before it was asked."""
        self._is_asked = True
        self.reason: str | None = None
        """Why nothing can arrive, while the mesh is empty."""

    def publishing(self, message_hash: bytes, now_s: float) -> None:
        """Note an own message before it is sent."""
        self._own.add(message_hash)
        if self._published_s is None:
            self._published_s = now_s

    async def check(self, arrived: Iterable[bytes], now_s: float) -> None:
        """Note the hashes of received messages, and ask the node for its mesh if it is time."""
        if any(message_hash not in self._own for message_hash in arrived):
            self._heard_s, self.reason = now_s, None
        if not self._is_asked or not self._is_due(now_s):
            return
        self._asked_s = now_s
        try:
            # Clients of a lone embedded node hear one another, so it needs no peer.
            if self._heard_s is None and await self._client.flavour() is Flavour.EMBEDDED:
                return
            count = await self._count()
        except EndpointMissing:
            self._is_asked = False  # a node that is not to be asked, such as nwaku without admin
        except WakuError:
            return  # away: that shows at the next look
        else:
            self._note(count, now_s)

    def _is_due(self, now_s: float) -> bool:
        if self.reason is not None:
            return now_s - self._asked_s >= AGAIN_S
        if self._heard_s is None:
            if self._published_s is None or now_s - self._published_s < FIRST_S:
                return False
            return now_s - self._asked_s >= SILENCE_S
        since_s = self._asked_s if self._before is None else max(self._asked_s, self._heard_s)
        return now_s - since_s >= SILENCE_S

    def _note(self, count: int, now_s: float) -> None:
        if count:
            self._before, self.reason = count, None
        elif self._heard_s is None:
            self.reason = (
                f"the node has no relay peer in its mesh on {self._shard}, so no other node "
                "hears what is published here; connect it to other nodes"
            )
        elif not self._before:
            self._is_asked = False  # others use the same node, as in development
        else:
            self.reason = (
                f"the node has no relay peer in its mesh on {self._shard} any more (it had "
                f"{self._before}), and nothing came from others for {now_s - self._heard_s:.0f} s; "
                "it is asked again until it has one"
            )

    async def _count(self) -> int:
        if await self._client.flavour() is Flavour.GO_WAKU:
            peers = await self._client.peers()
            return sum(peer.connected and self._is_on_shard(peer) for peer in peers)
        found = await self._client.mesh_peers(self._shard.shard)
        return sum(len(shard.peers) for shard in found)

    def _is_on_shard(self, peer: Peer) -> bool:
        return str(self._shard) in peer.pubsub_topics or self._shard.shard in peer.shards
