"""The driver of a gossip router: a stream to each peer, heartbeats, paced publishing."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

import anyio
from anyio.abc import TaskGroup, TaskStatus

from waku.libp2p import InvalidInput, Libp2pError, PeerViolation
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
"""Messages that may leave at once: go-libp2p queues 32 for each peer, and drops the rest."""
SEND_S: Final = 30.0
"""So long a peer may take for what is sent to it; then its connection is closed."""


class _Sender:
    """What sends to one peer."""

    def __init__(self, link: Carrier) -> None:
        self.link = link
        self.wake = anyio.Event()


class Meshes:
    """One router, and the streams to its peers. `run` is its task."""

    def __init__(
        self,
        options: GossipOptions,
        *,
        publish_per_second: int,
        random: Random,
        is_valid: Callable[[str, bytes], bool],
        on_arrived: Callable[[str, bytes], None],
        on_full: Callable[[Carrier], None],
    ) -> None:
        self.options: Final = options
        self._random = random
        self._is_valid = is_valid
        self._on_arrived = on_arrived
        self._on_full = on_full
        self._interval_s = 1 / publish_per_second
        self._next_slot_s = 0.0
        self._topics: list[str] = []
        self._senders: dict[Peer, _Sender] = {}
        self._changed: anyio.Event | None = None
        """What publishers wait for: a peer that subscribes, or has taken what was sent."""
        self._router: Router | None = None
        self._tasks: TaskGroup | None = None

    def join(self, topic: str) -> None:
        """Take part in a topic from the start of `run` on."""
        self._topics.append(topic)

    def has(self, topic: str) -> bool:
        """Whether this is one of the topics."""
        return topic in self._topics

    def peers_of(self, topic: str) -> int:
        """How many peers are subscribed to a topic."""
        return 0 if self._router is None else self._router.peers_of(topic)

    async def run(self, *, task_status: TaskStatus[None]) -> None:
        """Keep the heartbeat until cancelled."""
        router = self._router = Router(
            random=self._random, now_ms=now_ms(), options=self.options, is_valid=self._is_valid
        )
        for topic in self._topics:
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
                if not sender.link.is_open:
                    sender.wake.set()

    def meet(self, link: Carrier) -> None:
        """Speak with a peer until its connection ends; again does nothing."""
        if link not in self._senders and self._router is not None and self._tasks is not None:
            sender = self._senders[link] = _Sender(link)
            self._router.connected(link)
            self._tasks.start_soon(self._speak, sender, self._router)

    def take(self, link: Carrier, data: bytes) -> None:
        """Take an RPC of a peer, which may speak first (T15).

        Raises:
            InvalidInput: it cannot be read.
        """
        self.meet(link)
        if self._router is None:
            return
        try:
            self._router.receive(link, data, now_ms())
        except InvalidInput:
            self._review(self._router)  # the peer may be blamed now
            raise
        self._review(self._router)

    def refuse(self, link: Carrier, error: Libp2pError) -> None:
        """Count an RPC that was not read as a fault of its peer."""
        self.meet(link)
        if self._router is not None:
            self._router.misbehaved(link, f"an RPC that cannot be read: {error}")
            self._review(self._router)

    async def publish(self, topic: str, data: bytes) -> int:
        """Send a message to the topic's peers, in turn; return how many there are.

        It waits for a peer, and while each is slow.
        """
        router = self._router
        assert router is not None, "meshes publish while they `run`"
        now_s = anyio.current_time()
        slot_s = max(self._next_slot_s, now_s - BURST * self._interval_s)
        self._next_slot_s = slot_s + self._interval_s
        if slot_s > now_s:
            await anyio.sleep(slot_s - now_s)
        while not router.peers_of(topic) or router.is_congested(topic):
            if self._changed is None:
                self._changed = anyio.Event()
            await self._changed.wait()
        count = router.publish(topic, data, now_ms())
        self._review(router)
        return count

    def _review(self, router: Router) -> None:
        """Wake senders, and hand on what happened."""
        for peer in router.waiting:
            self._senders[peer].wake.set()
        while (event := router.next_event()) is not None:
            match event:
                case Arrived(topic, data):
                    self._on_arrived(topic, data)
                case Blamed(peer, reason):
                    fault = PeerViolation(f"relay: too many faults, the last: {reason}")
                    self._senders[peer].link.close(fault)
                case QueueFull(peer):  # others bring it the message, or IHAVE does
                    self._on_full(self._senders[peer].link)
        self._notify()

    def _notify(self) -> None:
        if self._changed is not None:
            self._changed.set()
            self._changed = None

    async def _speak(self, sender: _Sender, router: Router) -> None:
        link = sender.link
        try:
            async with link.open([RELAY]) as stream:
                while link.is_open:
                    if rpcs := router.take_outgoing(link):
                        with anyio.fail_after(SEND_S):
                            await stream.send(b"".join(map(prefixed, rpcs)))
                        self._notify()
                        continue
                    sender.wake = anyio.Event()
                    await sender.wake.wait()
        except TimeoutError:
            link.close(PeerViolation(f"relay: nothing was taken within {SEND_S:.0f} s"))
        except Libp2pError as error:
            link.close(error)
        finally:
            router.gone(link)
            del self._senders[link]
