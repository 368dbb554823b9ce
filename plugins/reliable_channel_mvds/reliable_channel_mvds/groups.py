"""Peers of each group of a node."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from reliable_channel.spi import Recorder, Row, Table

from .errors import NodeFull
from .message import GROUP_ID_BYTES, GroupId, PeerId

PEERS: Final = Table("mvds_peers", (("group_and_peer", "BLOB"),))


class Groups:
    """Peers of each group, in the order in which they were added."""

    def __init__(self, limit: int, recorder: Recorder) -> None:
        self._limit, self._recorder = limit, recorder
        self._peers: dict[GroupId, dict[PeerId, None]] = {}
        self._memberships: Counter[PeerId] = Counter()

    def __contains__(self, peer_id: PeerId) -> bool:
        """Return True if a peer shares any group."""
        return peer_id in self._memberships

    def __len__(self) -> int:
        return self._memberships.total()

    def peers(self, group_id: GroupId) -> tuple[PeerId, ...]:
        """Return the peers of a group, or no peers for an unknown group."""
        return tuple(self._peers.get(group_id, ()))

    def has(self, group_id: GroupId, peer_id: PeerId) -> bool:
        """Return True if a peer is in a group."""
        return peer_id in self._peers.get(group_id, ())

    def add(self, group_id: GroupId, peer_id: PeerId) -> None:
        """Add a peer to a group. A second call for the same peer changes nothing.

        Raises:
            NodeFull: the limit of memberships is reached.
        """
        if self.has(group_id, peer_id):
            return
        if len(self) >= self._limit:
            raise NodeFull(
                f"the node has {len(self)} memberships, the maximum of limits.memberships"
            )
        self._peers.setdefault(group_id, {})[peer_id] = None
        self._memberships[peer_id] += 1
        self._recorder.put(PEERS, group_id + peer_id)

    def remove(self, group_id: GroupId, peer_id: PeerId) -> None:
        """Remove a peer from a group. If the peer is not in the group, nothing changes."""
        if not self.has(group_id, peer_id):
            return
        del self._peers[group_id][peer_id]
        if not self._peers[group_id]:
            del self._peers[group_id]
        self._memberships[peer_id] -= 1
        if not self._memberships[peer_id]:
            del self._memberships[peer_id]
        self._recorder.delete(PEERS, group_id + peer_id)

    def restore(self, rows: Iterable[Row]) -> None:
        for (key,) in rows:
            assert isinstance(key, bytes)
            group_id, peer_id = GroupId(key[:GROUP_ID_BYTES]), PeerId(key[GROUP_ID_BYTES:])
            self._peers.setdefault(group_id, {})[peer_id] = None
            self._memberships[peer_id] += 1
