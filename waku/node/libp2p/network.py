"""Network of a node among libp2p peers. One libp2p host listens, dials, serves, relays and sends
requests."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack
from functools import partial
from random import Random
from typing import Final, Protocol

import anyio
from anyio.abc import SocketListener, TaskStatus

from waku.discovery import NodeRecord, SystemResolver
from waku.errors import WakuError, WrongNetwork
from waku.libp2p import (
    InvalidInput,
    KeyType,
    LimitExceeded,
    Limits,
    Multiaddr,
    PeerId,
    PeerViolation,
    PrivateKey,
)
from waku.libp2p.driver import Carrier, Host, HostLimits, LinkEnded, MessageSink
from waku.node.envelope import Envelope
from waku.node.errors import CannotListen, DialFailed, WrongCluster
from waku.node.host import ServiceHost
from waku.node.libp2p.addresses import own_record, reachable
from waku.node.libp2p.certificate import Certificate
from waku.node.libp2p.gossip import RelayGossip
from waku.node.libp2p.identity_file import IdentityFile
from waku.node.libp2p.options import Listen, ListenLimits
from waku.node.libp2p.peers import PeerLink
from waku.node.libp2p.reports import Reports
from waku.node.libp2p.serving import Serving
from waku.node.listening import already_bound
from waku.node.open_files import files_allowed
from waku.node.protocols import FILTER_PUSH, RELAY, STORE
from waku.node.service_nodes import ServiceNodes
from waku.node.services import ServiceKind
from waku.node.store_resume import StoreResume
from waku.p2p import ClientEvent, PeerConnected, PeerLost
from waku.p2p.codec import Metadata, decode_push
from waku.p2p.kept_peers import KeptPeers
from waku.p2p.protocols import OVERHEAD_BYTES
from waku.p2p.service_peer import ServicePeer

__all__ = ["Network"]

TELL_S: Final = 1.0
"""Time (s) for which a call that connects waits for slow peers to get the node's topics."""
CERTIFICATE_S: Final = 60.0
"""Interval (s) between two checks of the certificate files for changes."""

_log = logging.getLogger("waku.node.libp2p")


class NetworkHost(ServiceHost, Protocol):
    """Interface of `EmbeddedNode` for its network."""

    @property
    def service_nodes(self) -> ServiceNodes:
        """Peers whose services this node's light clients use."""

    @property
    def store_resume(self) -> StoreResume | None:
        """Fetcher of missed messages from the Stores of peers."""


class Network:
    """Connections of a node to libp2p peers, in both directions. The method `run` is the task of
    the network.

    Args:
        node: the node around it.
        listen: where to listen; None dials alone, with a new key.
        relay_peers: peers to stay connected to for relay.
        service_nodes: the only peer to ask for a service.
        random_bytes: source of keys and choices.

    Raises:
        CannotListen: the identity or the certificate cannot be used.
        InvalidInput: an address that cannot be dialled.
        WrongNetwork: a record of another cluster.
    """

    def __init__(
        self,
        node: NetworkHost,
        listen: Listen | None = None,
        *,
        relay_peers: Sequence[str] = (),
        service_nodes: Mapping[ServiceKind, str] | None = None,
        random_bytes: Callable[[int], bytes] = os.urandom,
    ) -> None:
        self.reports: Final = Reports(node.options.now_ns)
        """What peers did that they may not."""
        self.addresses: tuple[Multiaddr, ...] = ()
        """Where peers reach the node, with its peer id; empty until it listens."""
        self.bound: tuple[Multiaddr, ...] = ()
        """Where the node listens; `addresses` may name others."""
        self.record = ""
        """The node's own record (`enr:…`); empty until it listens, and where it has none."""
        self.serving: Serving | None = None
        """What answers the requests of peers; None until it runs."""
        self._node = node
        self._listen = listen
        self._limits = ListenLimits() if listen is None else listen.limits
        self._random_bytes = random_bytes
        self._file: IdentityFile | None = None
        self._certificate: Certificate | None = None
        if listen is not None and listen.tls_certificate is not None and listen.tls_key is not None:
            self._certificate = Certificate(listen.tls_certificate, listen.tls_key)
        with ExitStack() as taken:
            self.identity: Final = self._identity()
            taken.callback(self._give_identity_back)
            random = Random(random_bytes(16))
            self.gossip: Final = self._gossip(relay_peers, random)
            """The node's part in relay; None where it takes none."""
            self._host = self._new_host()
            self._peers = KeptPeers(
                self._host,
                (*relay_peers, *(service_nodes or {}).values()),
                own=self._metadata,
                met=self._met,
                lost=self._lost,
                resolver=SystemResolver(),
                timeout_ms=int(1000 * node.options.peer_timeout_s),
                max_message_bytes=node.options.max_message_bytes,
                random=random,
                random_bytes=random_bytes,
                on_event=_report,
            )
            for text in (*relay_peers, *(service_nodes or {}).values()):
                if (peer_id := _peer_id_of(text)) is not None:
                    self._link(peer_id).is_kept = True
            taken.pop_all()  # `run` gives it back

    def _give_identity_back(self) -> None:
        if self._file is not None:
            self._file.close()

    @property
    def connections(self) -> int:
        """Number of connections, including connections with an unfinished handshake."""
        return len(self._host.links)

    @property
    def dials(self) -> Mapping[bool, int]:
        """Number of dial attempts, by success (True) and failure (False)."""
        return self._host.dials

    async def run(self, *, task_status: TaskStatus[None]) -> None:
        """Listen for peers and keep connections until the task is cancelled.

        Raises:
            CannotListen: an address is taken, or not one of this machine.
        """
        stack = AsyncExitStack()
        try:
            await self._start(stack)
            task_status.started()
            await anyio.Event().wait()  # until cancelled
        finally:
            # Without the exception, which task groups would wrap in an ExceptionGroup.
            await stack.aclose()

    async def connect(self, text: str, *, stay: bool) -> None:
        """Connect to a peer now. With `stay`, the node dials the peer again whenever the connection
        ends.

        Raises:
            WrongCluster: the peer is of another network.
            DialFailed: the text is no address, or no peer answers there.
        """
        try:
            peer_id = _peer_id_of(text)
            if peer_id == str(self.identity.peer_id):
                raise DialFailed(f"cannot join {text}: this is the node itself")
            await self._peers.connect(text, stay=stay)
        except WrongNetwork as error:
            raise WrongCluster(f"cannot join {text}: {error}") from error
        except (InvalidInput, WakuError) as error:
            raise DialFailed(f"cannot join {text}: {error}") from error
        if stay and peer_id is not None:
            self._link(peer_id).is_kept = True
        await self.peers_told(TELL_S)

    async def peers_told(self, within_s: float) -> None:
        """Wait until the relay peers were sent all waiting messages, at most `within_s`."""
        if self.gossip is not None:
            await self.gossip.meshes.told(within_s)

    def keep(self, text: str) -> None:
        """Connect to a peer as soon as the peer answers, and again whenever the connection ends.

        Raises:
            InvalidInput: the address cannot be dialled.
        """
        self._peers.keep(text)
        if (peer_id := _peer_id_of(text)) is not None:
            self._link(peer_id).is_kept = True

    # Inside

    def _identity(self) -> PrivateKey:
        given = None if self._listen is None else self._listen.identity
        if isinstance(given, PrivateKey):
            return given
        if given is None:
            return PrivateKey(KeyType.SECP256K1, self._random_bytes(32))
        self._file = IdentityFile(given)
        return self._file.key

    def _gossip(self, relay_peers: Sequence[str], random: Random) -> RelayGossip | None:
        options = self._node.options
        if not options.relay or options.has_rln:
            return None
        allowed = [PeerId.parse(text) for text in options.relay_allow]
        named = [PeerId.parse(text) for text in map(_peer_id_of, relay_peers) if text is not None]
        return RelayGossip(
            self._node,
            allowed=(*allowed, *named) if allowed else (),
            has_peers=bool(relay_peers),
            random=random,
            reports=self.reports,
        )

    def _new_host(self) -> Host:
        limits, options = self._limits, self._node.options
        push_bytes = options.max_message_bytes + OVERHEAD_BYTES
        handlers = {FILTER_PUSH: MessageSink(push_bytes, self._take_push)}
        if self.gossip is not None:
            handlers[RELAY] = self.gossip.sink
        return Host(
            self.identity,
            handlers=handlers,
            agent=self._node.agent,
            limits=Limits(
                handshake_ms=limits.handshake_ms,
                idle_ms=limits.idle_ms,
                streams_by_peer=limits.streams,
                negotiating_streams=limits.streams,
                stream_buffer_bytes=limits.buffer_bytes,
                connection_buffer_bytes=limits.buffer_bytes,
                frames_per_s=limits.frames_per_s,
                write_ms=limits.request_ms,
            ),
            host_limits=HostLimits(
                connections=min(limits.connections, files_allowed()),
                connections_by_address=limits.connections_by_address,
            ),
            origins=() if "*" in options.allow_origins else options.allow_origins,
            random_bytes=self._random_bytes,
            on_accepted=lambda link: self._peers.accepted(link),
            on_ended=self._ended,
        )

    async def _start(self, stack: AsyncExitStack) -> None:
        if self._file is not None:
            stack.callback(self._file.close)
        host = await stack.enter_async_context(self._host)
        tasks = await stack.enter_async_context(anyio.create_task_group())
        stack.callback(tasks.cancel_scope.cancel)
        self.serving = Serving(self._node, self._limits, self.reports, self._records, tasks)
        host.handlers.update(self.serving.handlers())
        if self.gossip is not None:
            await self.gossip.run(tasks)
        await tasks.start(self._peers.run)
        if self._listen is not None:
            await self._listen_at(host, self._listen)
        if self._certificate is not None:
            tasks.start_soon(self._follow_certificate, self._certificate)

    async def _listen_at(self, host: Host, listen: Listen) -> None:
        """Bind the addresses; announce where they can be dialled."""
        context = None if self._certificate is None else self._certificate.context
        for text in listen.addresses:
            address = Multiaddr.parse(text)
            target = address.dial_target
            try:
                ready = already_bound(listen.bound, target.host, target.port)
                listener = None if ready is None else await SocketListener.from_socket(ready)
                bound = await host.listen(address, ssl_context=context, listener=listener)
            except OSError as error:
                raise CannotListen(
                    f"cannot listen at {text}: {error.strerror or error}; choose another port or "
                    "address (--listen)"
                ) from error
            self.bound += (bound,)
            self.addresses += tuple(reachable(bound))
        if listen.announce:
            announced = map(Multiaddr.parse, listen.announce)
            peer_id = self.identity.peer_id
            self.addresses = tuple(address.with_peer_id(peer_id) for address in announced)
        host.listen_addresses[:] = self.addresses
        self.record = own_record(
            self.identity,
            self.addresses,
            self._node.options,
            relays=self.gossip is not None,
        )

    async def _follow_certificate(self, certificate: Certificate) -> None:
        while True:
            await anyio.sleep(CERTIFICATE_S)
            certificate.follow()

    # Peers

    def _metadata(self) -> Metadata:
        return Metadata(self._node.options.cluster_id, self._node.shards)

    def _link(self, peer_id: str) -> PeerLink:
        """The link to a peer, a new one if there is none."""
        links = self._node.mesh.links
        link = links.get(peer_id)
        if not isinstance(link, PeerLink):
            table = self._node.service_nodes.subscriptions
            link = links[peer_id] = PeerLink(
                peer_id,
                self.gossip,
                table,
                max_message_bytes=self._node.options.max_message_bytes,
                dial=lambda text: self._peers.hurry(PeerId.parse(text)),
            )
        return link

    def _met(self, peer: ServicePeer) -> None:
        link = self._link(str(peer.link.peer_id))
        link.met(peer)
        self._node.service_nodes.link_up(link)
        if self.gossip is not None and RELAY in peer.info.protocols and self.gossip.meet(peer.link):
            resume = self._node.store_resume
            if resume is not None and STORE in peer.info.protocols:
                self._node.start_soon(partial(resume.fetch, link.key, link.services))

    def _lost(self, peer: ServicePeer) -> None:
        link = self._link(str(peer.link.peer_id))
        link.lost(peer)
        if link.connected:
            return
        self._node.service_nodes.link_down(link)
        links = self._node.mesh.links
        if not link.is_kept:
            del links[link.key]
        is_alone = not any(one.connected and isinstance(one, PeerLink) for one in links.values())
        if is_alone and self._node.store_resume is not None:
            self._node.store_resume.begin_gap()

    def _take_push(self, link: Carrier, data: bytes) -> None:
        """Take a message that a peer's filter pushes.

        Raises:
            InvalidInput: it cannot be read.
        """
        pubsub_topic, message = decode_push(data)
        if pubsub_topic is not None:
            envelope = Envelope.of(pubsub_topic, message)
            self._node.service_nodes.take_push(str(link.peer_id), envelope)

    def _records(self) -> list[bytes]:
        """Node records for peers that ask: those of the options, and our own."""
        known = () if self._listen is None else self._listen.known_peers
        texts = (*known, *((self.record,) if self.record else ()))
        return [NodeRecord.parse(text).encoded for text in texts]

    def _ended(self, ended: LinkEnded) -> None:
        reason = ended.reason
        if isinstance(reason, PeerViolation):
            kind = reason.limit if isinstance(reason, LimitExceeded) else type(reason).__name__
            who = f"{ended.peer_id or 'without a name'} at {ended.address or 'an unknown address'}"
            self.reports.note(kind, who, f"its connection is closed: {reason}")
        if ended.peer_id is not None and self.serving is not None:
            self.serving.guests.left(ended.peer_id)


def _peer_id_of(text: str) -> str | None:
    """The peer that a multiaddress or a record names; None for one of neither."""
    if text.startswith("enr:"):
        return str(NodeRecord.parse(text).peer_id)
    peer_id = Multiaddr.parse(text).peer_id if text.startswith("/") else None
    return None if peer_id is None else str(peer_id)


def _report(event: ClientEvent) -> None:
    match event:
        case PeerConnected(peer_id, agent):
            _log.info("peer %s is connected (%s)", peer_id, agent)
        case PeerLost(reason, peer_id):
            _log.warning("peer %s is lost: %s", peer_id or "without a name", reason)
        case _:
            _log.warning("%s", event)
