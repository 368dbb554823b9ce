"""Connected peers, with their request budgets, their turns and their filter subscriptions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import anyio
from anyio.abc import TaskGroup

from waku.libp2p import ConnectionClosed, Libp2pError, PeerId
from waku.libp2p.driver import Carrier
from waku.node.budget import RequestBudget
from waku.node.envelope import Envelope
from waku.node.host import ServiceHost
from waku.node.libp2p.options import ListenLimits
from waku.node.libp2p.push_stream import PushEncoder, Pusher
from waku.node.libp2p.reports import Reports
from waku.node.services import ServiceRefused

__all__ = ["Guest", "Guests"]

REQUEST_CPU_S: Final = 0.001
"""CPU time of a Store query (s) that is charged as one more request."""


class Guest:
    """Peer with all of its connections, which is a subscriber for the filter service."""

    def __init__(self, guests: Guests, peer_id: PeerId) -> None:
        self.peer_id: Final = str(peer_id)
        self.turn: Final = anyio.Semaphore(guests.limits.requests_at_once, fast_acquire=True)
        """One of the requests that are served at once."""
        self.links: dict[Carrier, None] = {}
        """Its connections; filter pushes leave on the one that was used last."""
        self._guests = guests
        self._budget = RequestBudget(guests.node.options.service_requests_per_s)
        self._was_refused = False
        self._pusher: Pusher | None = None
        self._pushing = anyio.CancelScope()

    def admit(self) -> None:
        """Count one request against the peer's budget.

        Raises:
            ServiceRefused: the peer asks too much, or too many answers wait to be taken.
        """
        if not self._budget.takes(self._guests.node.options.now_ns()):
            if not self._was_refused:
                self._was_refused = True
                limit = "`service_requests_per_s`"
                self._guests.reports.note("rate", self.peer_id, f"asks too much ({limit})")
            raise ServiceRefused(429, "TOO_MANY_REQUESTS: wait some seconds before the next one")
        self._guests.check_room()

    def spent(self, cpu_s: float) -> None:
        """Charge the CPU time of a request to the peer's budget."""
        self._budget.charge(cpu_s / REQUEST_CPU_S)

    def filter_subscriber(self) -> Guest:
        """Return the peer as a filter subscriber, and start the task for its pushes."""
        if self._pusher is None:
            self._pusher = Pusher(
                self._guests.limits, self._link, self._guests.encoder, self._missed
            )
            self._pushing = anyio.CancelScope()
            self._guests.tasks.start_soon(self._push, self._pusher)
        return self

    @property
    def queued_bytes(self) -> int:
        """Size of the messages that wait to be pushed to the peer (bytes)."""
        return 0 if self._pusher is None else self._pusher.queued_bytes

    def stop(self) -> None:
        self._pushing.cancel()

    def push(self, envelope: Envelope) -> None:
        """Accept a message that matches the peer's filter, without waiting."""
        if self._pusher is not None:
            self._pusher.put(envelope)

    def __repr__(self) -> str:
        return f"<Guest {self.peer_id}>"

    def _link(self) -> Carrier:
        for link in reversed(self.links):
            if link.is_open:
                return link
        raise ConnectionClosed("the peer is gone")

    def _missed(self) -> None:
        self._guests.reports.note(
            "slow reader",
            self.peer_id,
            "reads too slowly: messages of its filter subscription are dropped (`push_messages`, "
            "`push_bytes`)",
        )

    async def _push(self, pusher: Pusher) -> None:
        try:
            with self._pushing:
                await pusher.run()
        except Libp2pError as error:
            if any(link.is_open for link in self.links):
                self._guests.reports.note(
                    "no pushes", self.peer_id, f"takes no filter pushes, and is forgotten: {error}"
                )
        finally:
            self._pusher = None
            self._guests.node.filter.drop(self)


class Guests:
    """Connected peers that have sent a request."""

    def __init__(
        self, node: ServiceHost, limits: ListenLimits, reports: Reports, tasks: TaskGroup
    ) -> None:
        self.node: Final = node
        self.limits: Final = limits
        self.reports: Final = reports
        self.encoder: Final = PushEncoder()
        self.answering_bytes = 0
        """Answers that wait to be taken."""
        self.tasks: Final = tasks
        self._guests: dict[PeerId, Guest] = {}

    def __len__(self) -> int:
        return len(self._guests)

    def __iter__(self) -> Iterator[Guest]:
        return iter(self._guests.values())

    def of(self, link: Carrier) -> Guest:
        """Return the peer of a connection, and note that the connection was used."""
        peer_id = link.peer_id
        guest = self._guests.get(peer_id)
        if guest is None:
            guest = self._guests[peer_id] = Guest(self, peer_id)
        guest.links.pop(link, None)
        guest.links[link] = None
        return guest

    def left(self, peer_id: PeerId) -> None:
        """Remove the closed connections of a peer. The peer is removed together with its last
        connection."""
        guest = self._guests.get(peer_id)
        if guest is None:
            return
        for link in [link for link in guest.links if not link.is_open]:
            del guest.links[link]
        if not guest.links:
            del self._guests[peer_id]
            self.node.filter.drop(guest)
            guest.stop()

    def check_room(self) -> None:
        """Raise an error unless one more answer may wait to be read.

        Raises:
            ServiceRefused: peers take their answers too slowly.
        """
        if self.answering_bytes >= self.limits.answer_bytes:
            raise ServiceRefused(
                503, "SERVICE_UNAVAILABLE: other peers take their answers slowly; ask again later"
            )
