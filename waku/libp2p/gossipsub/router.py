"""Gossipsub router, with meshes by GRAFT and PRUNE, and gossip by IHAVE and IWANT.

The router does no I/O, and gets time and randomness from its owner. `receive` accepts RPCs of
peers, `take_outgoing` returns RPCs for peers, and `next_event` returns events. Call `on_heartbeat`
at the time `next_heartbeat_ms`.

The router relays only within its topics, keeps no scores, and exchanges no peers. A peer that
breaks rules collects faults, and is reported when it has too many.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final, Protocol, TypeVar

from google.protobuf.message import DecodeError

from ..errors import InvalidInput
from ..gossipsub_pb2 import GossipControl, GossipMessage, GossipRpc
from .caches import MessageCache, SeenIds
from .options import GossipOptions

__all__ = ["Arrived", "Blamed", "GossipEvent", "Peer", "QueueFull", "Router", "message_id"]

Peer = Hashable
"""Name of a peer inside the router."""

T = TypeVar("T")

ID_BYTES: Final = 32
FLOOD_ENTRIES: Final = 100
"""Number of entries beyond `entries_per_heartbeat` that count as one more fault."""
FLOOD: Final = "a flood of subscriptions, IHAVE, IWANT, GRAFT, PRUNE or of messages of other topics"
MANY: Final = 20
"""Multiple of `ids_per_heartbeat` that counts as one fault of the peer. Other routers limit the
number of ids by topic."""


class Random(Protocol):
    """Functions of `random.Random` that a router needs."""

    def sample(self, population: Sequence[T], k: int) -> list[T]:
        """Return a random choice of `k` elements."""


@dataclass(frozen=True, slots=True)
class Arrived:
    """New and valid message from a peer."""

    topic: str
    data: bytes
    message_id: bytes
    peer: Peer


@dataclass(frozen=True, slots=True)
class Blamed:
    """Report of a peer that broke rules too often, so that its connection must end."""

    peer: Peer
    reason: str
    """Rule that the peer broke most recently."""


@dataclass(frozen=True, slots=True)
class QueueFull:
    """Report of a peer that reads so slowly that messages for it are dropped."""

    peer: Peer


GossipEvent = Arrived | Blamed | QueueFull


def message_id(data: bytes) -> bytes:
    """Return Waku's id of a message in gossip, which is not the Waku message hash (T15)."""
    return sha256(data).digest()


@dataclass(slots=True)
class _Peer:
    topics: set[str] = field(default_factory=set)
    backoff_until_ms: dict[str, int] = field(default_factory=dict)
    """Topics for which neither side may graft."""
    outgoing: deque[bytes] = field(default_factory=deque)
    outgoing_bytes: int = 0
    is_full: bool = False
    faults: float = 0.0
    is_blamed: bool = False
    promised: int = 0
    """Messages that it was asked for and that have not come."""
    # Since the last heartbeat:
    given: int = 0
    """IHAVE that it got because it had just subscribed."""
    have: int = 0
    have_ids: int = 0
    want_ids: int = 0
    ids: int = 0
    """Ids of IHAVE and IWANT, those too that are not looked at."""
    entries: int = 0
    want_bytes: int = 0
    grafts: int = 0


class Router:
    """Participant in the meshes of its topics."""

    def __init__(
        self,
        *,
        random: Random,
        now_ms: int,
        options: GossipOptions | None = None,
        is_valid: Callable[[str, bytes], bool] = lambda _topic, _data: True,
    ) -> None:
        """Args:
        random: chooses mesh peers, and peers to give ids to.
        now_ms: the time, on any clock that does not go back.
        options: parameters and limits; None for the defaults.
        is_valid: whether a message of a topic may be delivered and passed on; called once each.
        """
        self.options = options or GossipOptions()
        self.next_heartbeat_ms = now_ms + self.options.heartbeat_ms
        self._random = random
        self._is_valid = is_valid
        self.peers: dict[Peer, _Peer] = {}
        self._meshes: dict[str, set[Peer]] = {}
        self.seen = SeenIds(self.options.seen_ids, self.options.seen_ms)
        self.cache = MessageCache(
            self.options.history, self.options.gossip_history, self.options.cache_bytes
        )
        self._promises: dict[bytes, tuple[Peer, int]] = {}
        """Messages that were asked for: of which peer, and until when."""
        self._events: deque[GossipEvent] = deque()

    # The application

    def subscribe(self, topic: str) -> None:
        """Join the mesh of a topic, at once with the peers that are already subscribed."""
        if topic not in self._meshes:
            self._meshes[topic] = set()
            for peer in self.peers.values():
                self._queue_control(peer, _subscription(topic, subscribe=True))
            self._fill(topic, self.options.mesh_size)

    def unsubscribe(self, topic: str, now_ms: int) -> None:
        for name in self._meshes.pop(topic, ()):
            self._prune(name, topic, now_ms, self.options.unsubscribe_backoff_ms)
        for peer in self.peers.values():
            self._queue_control(peer, _subscription(topic, subscribe=False))

    def publish(self, topic: str, data: bytes, now_ms: int) -> int:
        """Send a message to every peer that is subscribed to its topic. Return the number of these
        peers.

        A peer that subscribes a few heartbeats later can request the message. A message that the
        router has already seen is not sent.

        Raises:
            ValueError: the message is too long.
        """
        if len(data) > self.options.message_bytes:
            raise ValueError(
                f"`data` must have at most {self.options.message_bytes} bytes (got {len(data)})"
            )
        others = self.subscribers(topic)
        identity = message_id(data)
        if identity not in self.seen:
            self.seen.add(identity, now_ms)
            self.cache.add(identity, topic, data)
            self._spread(others, topic, data)
        return len(others)

    def mesh(self, topic: str) -> frozenset[Peer]:
        """Return the peers in the mesh of a topic."""
        return frozenset(self._meshes.get(topic, ()))

    def subscribers(self, topic: str) -> list[Peer]:
        """Return the peers that are subscribed to a topic."""
        return [name for name, peer in self.peers.items() if topic in peer.topics]

    @property
    def has_subscribers(self) -> bool:
        """True if a peer has announced the topics that it follows."""
        return any(peer.topics for peer in self.peers.values())

    def is_congested(self, topic: str) -> bool:
        """Return True if the queues of all peers of a topic are at least half full."""
        half = self.options.queue_bytes // 2
        peers = self.subscribers(topic)
        return bool(peers) and all(self.peers[name].outgoing_bytes >= half for name in peers)

    def next_event(self) -> GossipEvent | None:
        """Return the oldest event that was not returned yet, or None."""
        return self._events.popleft() if self._events else None

    # Peers

    def connected(self, name: Peer) -> None:
        """Add a peer, and send it the topics of this router."""
        peer = self.peers[name] = _Peer()
        if self._meshes:
            self._queue_control(peer, _subscription(*self._meshes, subscribe=True))

    def gone(self, name: Peer) -> None:
        if self.peers.pop(name, None) is not None:
            for mesh in self._meshes.values():
                mesh.discard(name)

    def take_outgoing(self, name: Peer, limit_bytes: int = 65_536) -> list[bytes]:
        """Remove and return RPCs for a peer, at most about `limit_bytes` but at least one."""
        peer = self.peers.get(name)
        taken: list[bytes] = []
        size = 0
        while peer is not None and peer.outgoing and size < limit_bytes:
            rpc = peer.outgoing.popleft()
            peer.outgoing_bytes -= len(rpc)
            size += len(rpc)
            taken.append(rpc)
        if peer is not None and peer.outgoing_bytes < self.options.queue_bytes // 2:
            peer.is_full = False
        return taken

    @property
    def waiting(self) -> list[Peer]:
        """Return the peers for which RPCs are waiting."""
        return [name for name, peer in self.peers.items() if peer.outgoing]

    def receive(self, name: Peer, data: bytes, now_ms: int) -> None:
        """Process an RPC of a peer, unless the peer is disconnected.

        Raises:
            InvalidInput: it cannot be read.
        """
        peer = self.peers.get(name)
        if peer is None:
            return
        try:
            rpc = GossipRpc.FromString(data)
        except DecodeError as error:
            self._fault(name, peer, "an RPC that cannot be read")
            raise InvalidInput(f"the bytes are not a gossipsub RPC: {error}") from error
        control, most = rpc.control, self.options.entries_per_heartbeat
        entries = len(rpc.subscriptions) + len(control.have) + len(control.want)
        entries += len(control.graft) + len(control.prune)
        self._count(name, peer, entries or not rpc.publish)
        for one in rpc.subscriptions[:most]:
            self._take_subscription(name, peer, one.topic, is_subscribed=one.subscribe)
        for message in rpc.publish:
            self._take_message(name, peer, message, now_ms)
            if peer.is_blamed:
                return
        self._take_control(name, peer, control, now_ms)

    def _count(self, name: Peer, peer: _Peer, entries: int) -> None:
        """Blame a flood, however it is spread over RPCs; an RPC is one fault at most."""
        before = max(0, peer.entries - self.options.entries_per_heartbeat)
        peer.entries += entries
        beyond = peer.entries - self.options.entries_per_heartbeat
        if beyond // FLOOD_ENTRIES > before // FLOOD_ENTRIES:
            self._fault(name, peer, FLOOD)

    def _count_ids(self, name: Peer, peer: _Peer, ids: int) -> None:
        """Blame a flood of ids, far above what the specification lets peers send."""
        many = MANY * self.options.ids_per_heartbeat
        before, peer.ids = peer.ids, peer.ids + ids
        if peer.ids // many > before // many:
            self._fault(name, peer, "a flood of ids in IHAVE and IWANT")

    def _take_subscription(
        self, name: Peer, peer: _Peer, topic: str, *, is_subscribed: bool
    ) -> None:
        if not is_subscribed:
            peer.topics.discard(topic)
            self._meshes.get(topic, set()).discard(name)
        elif topic in self._meshes or len(peer.topics) < self.options.topics_by_peer:
            self._note_topic(peer, topic)
            if topic in self._meshes:
                self._fill(topic, self.options.mesh_size)

    def _note_topic(self, peer: _Peer, topic: str) -> None:
        """Note that a peer follows a topic, and give it the ids of what passed just before.

        The next heartbeat would do that as well. A peer that comes and goes gets few at once.
        """
        if topic in peer.topics:
            return
        peer.topics.add(topic)
        if topic in self._meshes and peer.given < self.options.have_per_heartbeat:
            if rpc := self._recent(topic):
                peer.given += 1
                self._queue_control(peer, rpc)

    def _take_message(self, name: Peer, peer: _Peer, message: GossipMessage, now_ms: int) -> None:
        topic, data = message.topic, message.data
        if message.sender or message.seqno or message.signature or message.key:
            self._fault(name, peer, "a message with a sender: Waku's are anonymous")
            return
        if topic not in self._meshes:
            self._count(name, peer, 1)  # just left, maybe
            return
        identity = message_id(data)
        self._forget_promise(identity)
        if identity in self.seen:
            return
        self.seen.add(identity, now_ms)
        if len(data) > self.options.message_bytes or not self._is_valid(topic, data):
            self._fault(name, peer, f"a message on {topic} that is not valid")
            return
        self.cache.add(identity, topic, data)
        self._events.append(Arrived(topic, data, identity, name))
        self._spread(self._meshes[topic] - {name}, topic, data)

    def _take_control(self, name: Peer, peer: _Peer, control: GossipControl, now_ms: int) -> None:
        most = self.options.entries_per_heartbeat
        for have in control.have[:most]:
            self._take_have(name, peer, have.topic, have.message_ids, now_ms)
        for want in control.want[:most]:
            self._take_want(name, peer, want.message_ids)
        for topic in {graft.topic for graft in control.graft[:most]} & self._meshes.keys():
            self._take_graft(name, peer, topic, now_ms)
        for prune in control.prune[:most]:
            if prune.topic in self._meshes:
                self._meshes[prune.topic].discard(name)
                asked_ms = 1_000 * prune.backoff_s or self.options.prune_backoff_ms
                self._back_off(peer, prune.topic, now_ms, asked_ms)

    def _take_have(
        self, name: Peer, peer: _Peer, topic: str, ids: Sequence[bytes], now_ms: int
    ) -> None:
        options = self.options
        self._count_ids(name, peer, len(ids))
        peer.have += 1
        if peer.have == options.have_per_heartbeat + 1:
            self._fault(name, peer, "a flood of IHAVE")
        if topic not in self._meshes or peer.have > options.have_per_heartbeat:
            return
        room = max(0, options.ids_per_heartbeat - peer.have_ids)
        peer.have_ids += min(len(ids), room)
        wanted = []
        for identity in ids[:room]:
            is_full = (
                len(self._promises) >= options.promises or peer.promised >= options.promises_by_peer
            )
            is_new = identity not in self.seen and identity not in self._promises
            if is_new and not is_full and len(identity) == ID_BYTES:
                self._promises[identity] = name, now_ms + options.promise_ms
                peer.promised += 1
                wanted.append(identity)
        if wanted:
            rpc = GossipRpc()
            rpc.control.want.add(message_ids=wanted)
            self._queue_control(peer, rpc)

    def _take_want(self, name: Peer, peer: _Peer, ids: Sequence[bytes]) -> None:
        options = self.options
        self._count_ids(name, peer, len(ids))
        room = max(0, options.ids_per_heartbeat - peer.want_ids)
        peer.want_ids += min(len(ids), room)
        for identity in ids[:room]:
            kept = self.cache.get(identity)
            if kept is None or kept.sent[name] >= options.sendings:
                continue
            if peer.want_bytes + len(kept.data) > options.wanted_bytes_per_heartbeat:
                return
            kept.sent[name] += 1
            peer.want_bytes += len(kept.data)
            self._queue(name, peer, _publication(kept.topic, kept.data))

    def _take_graft(self, name: Peer, peer: _Peer, topic: str, now_ms: int) -> None:
        mesh = self._meshes[topic]
        self._note_topic(peer, topic)  # T15: a GRAFT may come before the subscription
        if name in mesh:
            return
        peer.grafts += 1
        # Honest peers graft each topic that both follow, at once when they have just met.
        if peer.grafts > max(self.options.grafts_per_heartbeat, len(self._meshes)):
            self._fault(name, peer, "a flood of GRAFT")
            return
        if now_ms < peer.backoff_until_ms.get(topic, 0):
            self._fault(name, peer, "a GRAFT within the back-off")
            self._prune(name, topic, now_ms, self.options.prune_backoff_ms)
        elif len(mesh) >= self.options.mesh_high:
            self._prune(name, topic, now_ms, self.options.prune_backoff_ms)
        else:
            mesh.add(name)

    # Heartbeat

    def on_heartbeat(self, now_ms: int) -> None:
        """Repair the meshes, announce message ids to other peers, and remove old ids."""
        self.next_heartbeat_ms = now_ms + self.options.heartbeat_ms
        self.seen.expire(now_ms)
        self._review_promises(now_ms)
        for peer in self.peers.values():
            peer.have = peer.have_ids = peer.want_ids = peer.want_bytes = peer.grafts = 0
            peer.given = peer.ids = peer.entries = 0
            peer.faults *= 0.5 ** (self.options.heartbeat_ms / 60_000)
            over = [t for t, until_ms in peer.backoff_until_ms.items() if until_ms <= now_ms]
            for topic in over:
                del peer.backoff_until_ms[topic]
        for topic in self._meshes:
            self._gossip(topic)  # first, so that those who are grafted now get the last ids, too
            self._mend(topic, now_ms)
        self.cache.shift()

    def _mend(self, topic: str, now_ms: int) -> None:
        mesh, options = self._meshes[topic], self.options
        if len(mesh) > options.mesh_high:
            for name in self._chosen(sorted(mesh, key=repr), len(mesh) - options.mesh_size):
                mesh.discard(name)
                self._prune(name, topic, now_ms, options.prune_backoff_ms)
        self._fill(topic, options.mesh_low)

    def _fill(self, topic: str, least: int) -> None:
        """Graft peers of a topic, if its mesh has fewer than `least`."""
        mesh, options = self._meshes[topic], self.options
        if len(mesh) >= least:
            return
        fit = [
            name
            for name in self.subscribers(topic)
            if name not in mesh and topic not in self.peers[name].backoff_until_ms
        ]
        for name in self._chosen(fit, options.mesh_size - len(mesh)):
            mesh.add(name)
            self._queue_control(self.peers[name], _graft(topic))

    def _gossip(self, topic: str) -> None:
        rpc = self._recent(topic)
        if rpc is None:
            return
        others = [name for name in self.subscribers(topic) if name not in self._meshes[topic]]
        count = max(self.options.gossip_peers, len(others) // 4)
        for name in self._chosen(others, count):
            self._queue_control(self.peers[name], rpc)

    def _recent(self, topic: str) -> GossipRpc | None:
        """An IHAVE of the last heartbeats' messages; None if there are none."""
        ids = self.cache.gossip_ids(topic, self.options.ids_per_heartbeat)
        if not ids:
            return None
        rpc = GossipRpc()
        rpc.control.have.add(topic=topic, message_ids=ids)
        return rpc

    def _review_promises(self, now_ms: int) -> None:
        """A peer that announced a message and did not send it is at fault once a heartbeat."""
        broken: Counter[Peer] = Counter()
        for identity, (name, until_ms) in list(self._promises.items()):
            if until_ms > now_ms:
                break  # the others are younger
            self._forget_promise(identity)
            broken[name] += 1
        for name in broken:
            if (peer := self.peers.get(name)) is not None:
                self._fault(name, peer, "messages that it said it has do not come")

    def _forget_promise(self, identity: bytes) -> None:
        name, _ = self._promises.pop(identity, (None, 0))
        if name is not None and (peer := self.peers.get(name)) is not None:
            peer.promised -= 1

    # Inside

    def _chosen(self, names: Sequence[Peer], count: int) -> list[Peer]:
        return self._random.sample(names, max(0, min(count, len(names))))

    def _prune(self, name: Peer, topic: str, now_ms: int, backoff_ms: int) -> None:
        peer = self.peers.get(name)
        if peer is not None:
            self._back_off(peer, topic, now_ms, backoff_ms)
            rpc = GossipRpc()
            rpc.control.prune.add(topic=topic, backoff_s=-(-backoff_ms // 1_000))
            self._queue_control(peer, rpc)

    def _back_off(self, peer: _Peer, topic: str, now_ms: int, asked_ms: int) -> None:
        until_ms = now_ms + min(asked_ms, self.options.longest_backoff_ms)
        peer.backoff_until_ms[topic] = max(until_ms, peer.backoff_until_ms.get(topic, 0))

    def misbehaved(self, name: Peer, reason: str) -> None:
        """Count a fault of a peer that the caller noticed, such as an RPC that is too long."""
        if (peer := self.peers.get(name)) is not None:
            self._fault(name, peer, reason)

    def _fault(self, name: Peer, peer: _Peer, reason: str) -> None:
        peer.faults += 1
        if peer.faults >= self.options.faults and not peer.is_blamed:
            peer.is_blamed = True
            self._events.append(Blamed(name, reason))

    def _spread(self, names: Iterable[Peer], topic: str, data: bytes) -> None:
        """Queue a message for peers; its bytes are made once."""
        rpc = _publication(topic, data)
        for name in names:
            self._queue(name, self.peers[name], rpc)

    def _queue(self, name: Peer, peer: _Peer, rpc: bytes) -> None:
        if peer.outgoing_bytes + len(rpc) > self.options.queue_bytes:
            if not peer.is_full:
                peer.is_full = True
                self._events.append(QueueFull(name))
            return
        peer.outgoing.append(rpc)
        peer.outgoing_bytes += len(rpc)

    def _queue_control(self, peer: _Peer, rpc: GossipRpc) -> None:
        """Queue a control message; there is room for some beyond the messages' limit."""
        data = rpc.SerializeToString()
        if peer.outgoing_bytes + len(data) <= self.options.queue_bytes + self.options.rpc_bytes:
            peer.outgoing.append(data)
            peer.outgoing_bytes += len(data)


def _subscription(*topics: str, subscribe: bool) -> GossipRpc:
    rpc = GossipRpc()
    for topic in topics:
        rpc.subscriptions.add(subscribe=subscribe, topic=topic)
    return rpc


def _graft(topic: str) -> GossipRpc:
    rpc = GossipRpc()
    rpc.control.graft.add(topic=topic)
    return rpc


def _publication(topic: str, data: bytes) -> bytes:
    rpc = GossipRpc()
    rpc.publish.add(topic=topic, data=data)
    return rpc.SerializeToString()
