"""Driver of a gossipsub router, with a stream to each peer, heartbeats and paced publishing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random
from typing import Final

import anyio
from anyio.abc import TaskGroup, TaskStatus

from waku.libp2p import InvalidInput, Libp2pError, PeerId, PeerViolation
from waku.libp2p.driver import Carrier
from waku.libp2p.driver.link import now_ms
from waku.libp2p.gossipsub import (
    RELAY,
    Arrived,
    Blamed,
    GossipOptions,
    Peer,
    QueueFull,
    Router,
)
from waku.libp2p.varint import prefixed

__all__ = ["Meshes"]

BURST: Final = 16
"""Maximum number of messages that are sent in one burst. go-libp2p queues 32 messages for each peer
and drops further messages."""
SEND_S: Final = 30.0
"""Time (s) in which a peer must read sent data. After this time the connection to the peer is
closed."""


class _Sender:
    """What sends to one peer, on one of its connections."""

    def __init__(self, link: Carrier) -> None:
        self.links = [link]
        self.wake = anyio.Event()
        self.taken = 0
        """RPCs that were taken from the router."""
        self.sent = 0
        """Those of them that the socket has taken."""

    def open_link(self) -> Carrier | None:
        """Return the oldest connection that is open. None if all are over."""
        self.links = [link for link in self.links if link.is_open]
        return self.links[0] if self.links else None

    def close(self, reason: Libp2pError) -> None:
        for link in self.links:
            link.close(reason)


class Meshes:
    """Gossipsub router with the streams to its peers. The method `run` is the task of the
    router."""

    def __init__(
        self,
        options: GossipOptions,
        *,
        publish_per_second: int,
        random: Random,
        is_valid: Callable[[str, bytes], bool],
        on_arrived: Callable[[str, bytes], None],
        on_full: Callable[[PeerId], None],
    ) -> None:
        self.options: Final = options
        self._random = random
        self._is_valid = is_valid
        self._on_arrived = on_arrived
        self._on_full = on_full
        self._interval_s = 1 / publish_per_second
        self._next_slot_s = 0.0
        self._topics: set[str] = set()
        self._senders: dict[PeerId, _Sender] = {}
        self._changed: anyio.Event | None = None
        """What publishers wait for: a peer that subscribes, or has taken what was sent."""
        self._router: Router | None = None
        self._tasks: TaskGroup | None = None

    def join(self, topic: str) -> None:
        """Join the mesh of a topic."""
        self._topics.add(topic)
        if self._router is not None:
            self._router.subscribe(topic)
            self._review(self._router)

    def leave(self, topic: str) -> None:
        """Leave the mesh of a topic."""
        self._topics.discard(topic)
        if self._router is not None:
            self._router.unsubscribe(topic, now_ms())
            self._review(self._router)

    @property
    def topics(self) -> frozenset[str]:
        """Topics whose meshes this node has joined."""
        return frozenset(self._topics)

    def subscribers(self, topic: str) -> list[PeerId]:
        """Return the peers that are subscribed to a topic."""
        return [] if self._router is None else _ids(self._router.subscribers(topic))

    def mesh(self, topic: str) -> list[PeerId]:
        """Return the peers of the mesh of a topic."""
        return [] if self._router is None else _ids(self._router.mesh(topic))

    @property
    def has_met_some(self) -> bool:
        """True if a peer has announced its topics."""
        return self._router is not None and self._router.has_subscribers

    async def met_some(self) -> None:
        """Wait until a peer has announced its topics."""
        while not self.has_met_some:
            await self._next_change()

    async def told(self, within_s: float) -> None:
        """Wait until the peers were sent all waiting data, at most `within_s`.

        Peers then know of a joined topic before they receive later messages.
        """
        router = self._router
        if router is None:
            return
        due = {
            sender: (peer, sender.taken + len(router.peers[peer].outgoing))
            for peer, sender in self._senders.items()
        }
        with anyio.move_on_after(within_s):
            for sender, (peer, count) in due.items():
                while sender.sent < count and self._senders.get(peer) is sender:
                    await self._next_change()

    async def run(self, *, task_status: TaskStatus[None]) -> None:
        """Run the heartbeats of the router until cancelled."""
        router = self._router = Router(
            random=self._random, now_ms=now_ms(), options=self.options, is_valid=self._is_valid
        )
        for topic in sorted(self._topics):
            router.subscribe(topic)
        async with anyio.create_task_group() as self._tasks:
            task_status.started()
            try:
                await self._beat(router)
            finally:
                self._router = None  # peers that still speak are not answered any more

    async def _beat(self, router: Router) -> None:
        while True:
            await anyio.sleep(max(0, router.next_heartbeat_ms - now_ms()) / 1000)
            router.on_heartbeat(now_ms())
            self._review(router)
            for sender in self._senders.values():
                if not sender.links[0].is_open:
                    sender.wake.set()

    def meet(self, link: Carrier) -> None:
        """Exchange messages with a peer until its last connection ends. A second call for the same
        peer does nothing."""
        if self._router is None or self._tasks is None:
            return
        sender = self._senders.get(link.peer_id)
        if sender is not None and sender.open_link() is None:
            # The peer is back before its end was noticed, and may have forgotten our topics.
            self._end(link.peer_id, sender, self._router)
            sender = None
        if sender is None:
            sender = self._senders[link.peer_id] = _Sender(link)
            self._router.connected(link.peer_id)
            self._tasks.start_soon(self._speak, link.peer_id, sender, self._router)
        elif link not in sender.links:
            sender.links.append(link)

    def take(self, link: Carrier, data: bytes) -> None:
        """Process an RPC of a peer, which may be sent before this side sends (T15).

        Raises:
            InvalidInput: it cannot be read.
        """
        self.meet(link)
        if self._router is None:
            return
        try:
            self._router.receive(link.peer_id, data, now_ms())
        except InvalidInput:
            self._review(self._router)  # the peer may be blamed now
            raise
        self._review(self._router)

    def refuse(self, link: Carrier, error: Libp2pError) -> None:
        """Count an RPC that cannot be read as a fault of its peer."""
        self.meet(link)
        if self._router is not None:
            self._router.misbehaved(link.peer_id, f"an RPC that cannot be read: {error}")
            self._review(self._router)

    def keep(self, topic: str, data: bytes) -> None:
        """Keep a message that no peer takes now, for peers that subscribe within seconds."""
        if self._router is not None:
            self._router.publish(topic, data, now_ms())

    def offer(self, topic: str, data: bytes) -> bool:
        """Publish a message if that is possible without waiting. Return False if the message was
        not published."""
        router, now_s = self._router, anyio.current_time()
        if router is None or not router.subscribers(topic) or router.is_congested(topic):
            return False
        if self._next_slot_s > now_s:
            return False
        self._take_slot(now_s)
        router.publish(topic, data, now_ms())
        self._review(router)
        return True

    def _take_slot(self, now_s: float) -> float:
        """Return the time of the next publication."""
        slot_s = max(self._next_slot_s, now_s - BURST * self._interval_s)
        self._next_slot_s = slot_s + self._interval_s
        return slot_s

    async def publish(self, topic: str, data: bytes) -> int:
        """Send a message to the peers of its topic, and return their number.

        The method waits while there is no peer, and while every peer is slow.
        """
        router = self._router
        assert router is not None, "meshes publish while they `run`"
        now_s = anyio.current_time()
        if (slot_s := self._take_slot(now_s)) > now_s:
            await anyio.sleep(slot_s - now_s)
        while not router.subscribers(topic) or router.is_congested(topic):
            await self._next_change()
        count = router.publish(topic, data, now_ms())
        self._review(router)
        return count

    def _review(self, router: Router) -> None:
        """Wake senders, and hand on what happened."""
        for peer in _ids(router.waiting):
            self._senders[peer].wake.set()
        while (event := router.next_event()) is not None:
            match event:
                case Arrived(topic, data):
                    self._on_arrived(topic, data)
                case Blamed(PeerId() as peer, reason):
                    fault = PeerViolation(f"relay: too many faults, the last: {reason}")
                    self._senders[peer].close(fault)
                case QueueFull(PeerId() as peer):  # others bring the message, or IHAVE does
                    self._on_full(peer)
        self._notify()

    async def _next_change(self) -> None:
        if self._changed is None:
            self._changed = anyio.Event()
        await self._changed.wait()

    def _notify(self) -> None:
        if self._changed is not None:
            self._changed.set()
            self._changed = None

    async def _speak(self, peer: PeerId, sender: _Sender, router: Router) -> None:
        try:
            while (link := sender.open_link()) is not None:
                await self._speak_on(link, peer, sender, router)
        finally:
            self._end(peer, sender, router)

    def _end(self, peer: PeerId, sender: _Sender, router: Router) -> None:
        if self._senders.get(peer) is sender:
            router.gone(peer)
            del self._senders[peer]
            sender.wake.set()
            self._notify()

    async def _speak_on(self, link: Carrier, peer: PeerId, sender: _Sender, router: Router) -> None:
        try:
            async with link.open([RELAY]) as stream:
                while link.is_open:
                    if rpcs := router.take_outgoing(peer):
                        sender.taken += len(rpcs)
                        with anyio.fail_after(SEND_S):
                            await stream.send(b"".join(map(prefixed, rpcs)))
                        sender.sent = sender.taken
                        self._notify()
                        continue
                    sender.wake = anyio.Event()
                    await sender.wake.wait()
        except TimeoutError:
            link.close(PeerViolation(f"relay: nothing was taken within {SEND_S:.0f} s"))
        except Libp2pError as error:
            link.close(error)


def _ids(peers: Iterable[Peer]) -> list[PeerId]:
    """Return the names of the router's peers, which are peer ids here."""
    return [peer for peer in peers if isinstance(peer, PeerId)]
