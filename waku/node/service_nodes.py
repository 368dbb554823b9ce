"""Nodes whose services this node's light clients use, and the filter subscriptions at these
nodes."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final

import anyio

from waku.node.envelope import Envelope
from waku.node.filter import FilterTable, in_requests
from waku.node.host import ServiceHost
from waku.node.mesh import MeshLink
from waku.node.protocols import FILTER, LEGACY_LIGHTPUSH, LIGHTPUSH, STORE
from waku.node.services import (
    RemoteServices,
    ServiceKind,
    ServiceRefused,
    Services,
    Subscriber,
)

__all__ = ["ServiceNodes"]

SERVED: Final[Mapping[ServiceKind, tuple[str, ...]]] = {
    "filter": (FILTER,),
    "lightpush": (LIGHTPUSH, LEGACY_LIGHTPUSH),
    "store": (STORE,),
}
"""Ids of the protocols that offer each service."""
PING_S: Final = 60.0
"""Interval (s) between two pings of the filter node. nwaku removes a subscriber that has not pinged
for five minutes."""
RENEW_S: Final = 5.0
"""Pause (s) after a peer refused to renew subscriptions."""

_log = logging.getLogger("waku.node.services")


class ServiceNodes:
    """Choice of a service node for each request, and renewal of filter subscriptions.

    A subscription is renewed when the peer returns or has lost the subscription. If the peer of a
    subscription is away, the subscription moves to another peer.

    Args:
        node: whose clients are served.
        named: the peer id of the only node to ask for a service, where one is named.

    Raises:
        ValueError: a service that there is not.
    """

    def __init__(self, node: ServiceHost, named: Mapping[ServiceKind, str]) -> None:
        for kind in named:
            if kind not in SERVED:
                names = "filter, lightpush or store"
                raise ValueError(f"`service_nodes` must name {names} (got {kind!r})")
        self._node = node
        self._named = dict(named)
        self.subscriptions: Final = FilterTable(node.options.now_ns)
        """What our clients want of peers that serve filter."""
        self._carrier: MeshLink | None = None
        """The link to the peer that pushes them."""

    async def run(self) -> None:
        """Renew filter subscriptions until the task is cancelled."""
        while True:
            await anyio.sleep(PING_S)
            carrier = self._carrier
            if carrier is not None and carrier.connected and self.subscriptions.criteria:
                await self._check(carrier)

    def find(self, kind: ServiceKind, peer_id: str | None = None) -> Services | None:
        """Return the services of the best node for a kind of request, or None if no node is known.

        If the only known node is away, its services refuse each request in nwaku's words.

        Args:
            kind: the service.
            peer_id: take that node or none.
        """
        return next(iter(self.all(kind, peer_id)), None)

    def all(self, kind: ServiceKind, peer_id: str | None = None) -> list[Services]:
        """Return the services of all nodes for a kind of request, with the best node first."""
        options = self._node.options
        own = (
            peer_id is None
            and kind not in self._named
            and options.self_service
            and getattr(options, kind)
        )
        links = self._links(kind, peer_id)
        if kind == "filter" and not own and links:
            self._carry(links[0])
        found = [link.services for link in links]
        return [self._node.services, *found] if own else found

    def named_peers(self) -> Iterator[tuple[str, str]]:
        """Yield the protocol and the multiaddress of each named node that has answered."""
        for kind in self._named:
            for link in self._links(kind):
                if (peer := link.info) is not None:
                    served = (name for name in SERVED[kind] if name in peer.protocols)
                    yield from ((protocol, peer.multiaddr) for protocol in served)

    def take_push(self, peer_id: str, envelope: Envelope) -> None:
        """Receive a message that the filter service of a peer pushed. Only clients that want the
        message get it."""
        is_expected = self._carrier is not None and self._carrier.key == peer_id
        if is_expected and self._node.is_publishable(envelope.message):
            self.subscriptions.deliver(envelope)

    def link_up(self, link: MeshLink) -> None:
        """Renew the clients' subscriptions at a peer that has connected."""
        if link not in self._links("filter"):
            return
        if self._carrier is None or link is self._carrier or not self._carrier.connected:
            self._carrier = None
            self._carry(link)

    def link_down(self, link: MeshLink) -> None:
        """Ask another peer to push the messages that the lost peer pushed."""
        others = self._links("filter")
        if link is self._carrier and others and others[0].connected:
            self._carry(others[0])

    def drop(self, subscriber: Subscriber) -> None:
        """Remove a client's subscriptions at every service node."""
        criteria = self.subscriptions.drop(subscriber)
        carrier = None if self._carrier is None else self._carrier.services
        if criteria and isinstance(carrier, RemoteServices):
            self._node.start_soon(partial(carrier.forget, criteria))

    def _links(self, kind: ServiceKind, peer_id: str | None = None) -> list[MeshLink]:
        """The links to the nodes to ask for a service, connected ones first."""
        wanted = peer_id or self._named.get(kind)
        known = self._node.mesh.links.values()
        links = [link for link in known if _offers(link, kind) and wanted in (None, link.key)]
        if not links and wanted is not None and peer_id is None:
            links = [link for link in known if link.key == wanted]  # it refuses in nwaku's words
        return sorted(links, key=lambda link: (not link.connected, link is not self._carrier))

    def _carry(self, link: MeshLink) -> None:
        """Have another node push what our clients want, if there is anything."""
        if link is self._carrier or (self._carrier is not None and not link.connected):
            return
        self._carrier = link
        if self.subscriptions.criteria and isinstance(link.services, RemoteServices):
            self._node.start_soon(partial(self._renew, link, link.services))

    async def _check(self, carrier: MeshLink) -> None:
        services = carrier.services
        if isinstance(services, RemoteServices):
            try:
                await services.check()
            except ServiceRefused as refusal:
                _log.info("%s has forgotten filter subscriptions: %s", carrier.key, refusal)
                await self._renew(carrier, services)

    async def _renew(self, link: MeshLink, services: RemoteServices) -> None:
        while link is self._carrier and link.connected:
            try:
                for part in in_requests(list(self.subscriptions.criteria)):
                    await services.renew(part)
                return
            except ServiceRefused as refusal:
                _log.warning("%s does not renew filter subscriptions: %s", link.key, refusal)
                await anyio.sleep(RENEW_S)


def _offers(link: MeshLink, kind: ServiceKind) -> bool:
    return link.info is not None and not set(SERVED[kind]).isdisjoint(link.info.protocols)
