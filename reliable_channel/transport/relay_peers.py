"""Whether a node that brings nothing has anybody to hear it from.

A node without relay peers gives own messages back and stores them, and no peer hears them. So
where others were heard and nothing more comes, the node is asked for its peers.
"""

from math import inf
from typing import Final

from waku._request import Flavour
from waku.client import WakuClient
from waku.errors import EndpointMissing, WakuError
from waku.models import Peer
from waku.topics import PubsubTopic

SILENCE_S: Final = 60.0
"""Silence after which the node is asked, and then as often."""


class RelayPeers:
    """Asks a node for its relay peers on one shard: once when others are heard first, and then in
    silence only. A node that has none from the start, as one for development, is not asked again.
    """

    def __init__(self, client: WakuClient, pubsub_topic: str) -> None:
        self._client = client
        self._shard = PubsubTopic.parse(pubsub_topic)
        self._heard_s: float | None = None
        self._asked_s = -inf
        self._before: int | None = None
        """Peers that the node had when it last had any; None before it was asked."""
        self._is_asked = True
        self.reason: str | None = None
        """Why nothing can arrive, while the node has no relay peer."""

    async def check(self, others_came: bool, now_s: float) -> None:
        """Note a look, and ask the node where it is time to."""
        if others_came:
            self._heard_s, self.reason = now_s, None
        if self._heard_s is None or not self._is_asked or not self._is_due(now_s):
            return
        self._asked_s = now_s
        try:
            count = await self._count()
        except EndpointMissing:
            self._is_asked = False  # a node that is not to be asked, such as nwaku without admin
        except WakuError:
            return  # away: that shows at the next look
        else:
            self._note(count, now_s - self._heard_s)

    def _is_due(self, now_s: float) -> bool:
        if self.reason is not None:
            return True
        since_s = self._asked_s
        if self._before is not None and self._heard_s is not None:
            since_s = max(since_s, self._heard_s)
        return now_s - since_s >= SILENCE_S

    def _note(self, count: int, silent_s: float) -> None:
        if count:
            self._before, self.reason = count, None
        elif not self._before:
            self._is_asked = False
        else:
            self.reason = (
                f"the node has no relay peer on {self._shard} any more (it had {self._before}), "
                f"and nothing came from others for {silent_s:.0f} s; it is asked again until it "
                "has one"
            )

    async def _count(self) -> int:
        if await self._client.flavour() is Flavour.GO_WAKU:
            peers = await self._client.peers()
            return sum(peer.connected and self._is_on_shard(peer) for peer in peers)
        found = await self._client.relay_peers(self._shard.shard)
        return sum(len(shard.peers) for shard in found)

    def _is_on_shard(self, peer: Peer) -> bool:
        return str(self._shard) in peer.pubsub_topics or self._shard.shard in peer.shards
