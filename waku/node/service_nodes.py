"""The nodes that serve this one's light clients, and the filter subscriptions there."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final

import anyio

from waku.node.envelope import Envelope
from waku.node.filter import FilterTable, in_requests
from waku.node.host import Host
from waku.node.identity import NodeAddress
from waku.node.mesh import Link
from waku.node.protocols import FILTER, LEGACY_LIGHTPUSH, LIGHTPUSH, STORE
from waku.node.remote_services import RemoteServices
from waku.node.services import ServiceKind, ServiceRefused, Services, Subscriber

__all__ = ["ServiceNodes"]

PROTOCOLS: Final[Mapping[ServiceKind, str]] = {
    "filter": FILTER,
    "lightpush": LIGHTPUSH,
    "store": STORE,
}
SERVED: Final[Mapping[ServiceKind, tuple[str, ...]]] = {
    "filter": (FILTER,),
    "lightpush": (LIGHTPUSH, LEGACY_LIGHTPUSH),
    "store": (STORE,),
}
"""All that a service is offered under."""

_log = logging.getLogger("waku.node.mesh")


class ServiceNodes:
    """Finds a service node for each request of a client, and keeps filter subscriptions alive.

    Filter subscriptions at nodes elsewhere are renewed when the node that carries them comes back,
    and move to another one when it does not.

    Args:
        node: whose clients are served.
        named: the only node to ask for a service, where one is named.

    Raises:
        ValueError: a service that there is not.
    """

    def __init__(self, node: Host, named: Mapping[ServiceKind, NodeAddress]) -> None:
        for kind in named:
            if kind not in PROTOCOLS:
                names = "filter, lightpush or store"
                raise ValueError(f"`service_nodes` must name {names} (got {kind!r})")
        self._node = node
        self._named = dict(named)
        self.subscriptions: Final = FilterTable(node.options.now_ns)
        """What our clients want of nodes elsewhere."""
        self._carrier: Link | None = None
        """The link to the node that pushes them."""

    def find(self, kind: ServiceKind, peer_id: str | None = None) -> Services | None:
        """Return the services of the best node for a kind of request; None where none is known.

        One that is known and away refuses each request in nwaku's words.

        Args:
            kind: the service.
            peer_id: take that node or none.
        """
        return next(iter(self.all(kind, peer_id)), None)

    def all(self, kind: ServiceKind, peer_id: str | None = None) -> list[Services]:
        """Return the services of all nodes for a kind of request, the best first."""
        options = self._node.options
        links = self._named_links(kind) if peer_id is None else None
        alone = peer_id is None and links is None
        own = alone and options.self_service and getattr(options, kind)
        if links is None:
            links = [
                link
                for link in self._node.mesh.links.values()
                if link.info is not None
                and PROTOCOLS[kind] in link.info.protocols
                and peer_id in (None, link.info.peer_id)
            ]
            links.sort(key=lambda link: (not link.connected, link is not self._carrier))
        if kind == "filter" and not own and links:
            self._carry(links[0])
        found = [link.services for link in links]
        return [self._node.services, *found] if own else found

    def named_peers(self) -> Iterator[tuple[str, str]]:
        """Yield protocol and multiaddress of each named node that has answered."""
        for kind in self._named:
            for link in self._named_links(kind) or ():
                if (peer := link.info) is not None:
                    served = (name for name in SERVED[kind] if name in peer.protocols)
                    yield from ((protocol, peer.multiaddr) for protocol in served)

    def take_push(self, envelope: Envelope) -> None:
        """Take a message that a node pushes; only clients that want it get it."""
        if self._node.is_publishable(envelope.message):
            self.subscriptions.deliver(envelope)

    def link_up(self, link: Link) -> None:
        """Renew our clients' subscriptions at a node that has come or come back."""
        if link.info is None or FILTER not in link.info.protocols:
            return
        if self._carrier is None or link.key == self._carrier.key or not self._carrier.connected:
            self._carrier = None
            self._carry(link)

    def drop(self, subscriber: Subscriber) -> None:
        """Forget a client, at every node."""
        criteria = self.subscriptions.drop(subscriber)
        carrier = None if self._carrier is None else self._carrier.services
        if criteria and isinstance(carrier, RemoteServices):
            carrier.forget(criteria)

    def _named_links(self, kind: ServiceKind) -> list[Link] | None:
        """The links to the node that is named for a service; None where none is."""
        named = self._named.get(kind)
        if named is None:
            return None
        found = []
        for link in self._node.mesh.links.values():
            peer_id = None if link.info is None else link.info.peer_id
            if link.key == named.url or (peer_id is not None and peer_id == named.peer_id):
                found.append(link)
        return sorted(found, key=lambda link: not link.connected)

    def _carry(self, link: Link) -> None:
        """Have another node push what our clients want, if there is anything."""
        if link is self._carrier or (self._carrier is not None and not link.connected):
            return
        self._carrier = link
        if self.subscriptions.criteria and isinstance(link.services, RemoteServices):
            self._node.start_soon(partial(self._renew, link, link.services))

    async def _renew(self, link: Link, services: RemoteServices) -> None:
        while link is self._carrier and link.connected:
            try:
                for part in in_requests(list(self.subscriptions.criteria)):
                    await services.renew(part)
                return
            except ServiceRefused as refusal:
                _log.warning("%s does not renew filter subscriptions: %s", link.key, refusal)
                await anyio.sleep(self._node.options.redial_max_s)
