"""Peers with lasting connections, which are all named peers, and as many found peers as a mesh
needs.

Peers that dialled this host are served in the same way while they are connected.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Final

import anyio
from anyio.abc import TaskGroup, TaskStatus

from waku.discovery import Capability, NodeRecord, Resolver, check_entry
from waku.errors import NodeUnreachable, WakuError, WrongNetwork
from waku.libp2p import DialFailed, InvalidInput, Libp2pError, Multiaddr, PeerId
from waku.libp2p.driver import Host, Link
from waku.libp2p.driver.link import now_ms

from .codec import Metadata
from .events import ClientEvent, PeerConnected, PeerLost
from .peer_book import LONGEST_REST_MS, MAX_ENTRIES, MISFIT_REST_MS, check_record, dialled_addresses
from .protocols import MAX_MESSAGE_BYTES
from .search import Search
from .service_peer import ServicePeer

__all__ = ["KeptPeers"]

TIMEOUT_MS: Final = 10_000
FIRST_REST_MS: Final = 1_000
STEADY_MS: Final = 10_000
"""Minimum duration of a successful connection (ms). A shorter connection counts as a failed
dial."""
KEEP_ALIVE_MS: Final = 60_000
WANTED: Final = 6
"""Number of found peers that stay connected, which is D of gossipsub."""
IDLE_LOOK_MS: Final = 60_000
"""Interval (ms) in which connected peers are asked for further peers while there are too few."""


@dataclass(eq=False, slots=True)
class _Candidate:
    """A peer and its addresses, which are dialled in turn."""

    addresses: tuple[Multiaddr, ...]
    peer_id: PeerId | None
    is_found: bool
    rest_ms: int = FIRST_REST_MS
    rest_until_ms: int = 0
    is_kept: bool = False
    hurry: anyio.Event = field(default_factory=anyio.Event)
    """Set to dial without the rest of the pause."""


class KeptPeers:
    """Lasting connections of a host to its peers. The method `run` is the task of the
    connections."""

    def __init__(
        self,
        host: Host,
        texts: Sequence[str],
        *,
        own: Callable[[], Metadata],
        met: Callable[[ServicePeer], None],
        lost: Callable[[ServicePeer], None] = lambda _: None,
        resolver: Resolver,
        timeout_ms: int = TIMEOUT_MS,
        max_message_bytes: int = MAX_MESSAGE_BYTES,
        ssl_context: ssl.SSLContext | None = None,
        random: Random,
        random_bytes: Callable[[int], bytes],
        on_event: Callable[[ClientEvent], None],
    ) -> None:
        """Args:
            host: dials, and has the connections.
            texts: peers to stay connected to: multiaddresses, `enr:…` and `enrtree://…`.
            own: returns the network to which peers must belong.
            met: called with each peer of the network that is connected. A `WakuError` refuses it.
            lost: called with a peer that was met, when its connection is over.
            resolver: asks the DNS for `enrtree://`.
            timeout_ms: time that a peer has for each answer.
            max_message_bytes: limit of the network's messages.
            ssl_context: trusted certificates for `wss`. None for the system's.
            random: chooses found peers.
            random_bytes: source of request ids.
            on_event: called with each `ClientEvent`.

        Raises:
            InvalidInput: a text is none of these, or cannot be dialled.
            WrongNetwork: an `enr:…` of another cluster, or of none of our shards.
        """
        self._host = host
        self._own = own
        self._met = met
        self._lost = lost
        self._timeout_ms = timeout_ms
        self._max_message_bytes = max_message_bytes
        self._ssl_context = ssl_context
        self._random = random
        self._random_bytes = random_bytes
        self._on_event = on_event
        self._named: list[_Candidate] = []
        self._found: dict[PeerId, _Candidate] = {}
        self._peers: dict[Link, ServicePeer] = {}
        """Those with a connection, by it."""
        trees = []
        for text in texts:
            check_entry(text)
            if text.startswith("enrtree:"):
                trees.append(text)
            else:
                self._name(self._candidate(text))
        self._search = Search(self, trees, resolver, on_event) if trees else None
        self._wake = anyio.Event()
        self._tasks: TaskGroup | None = None

    def add_record(self, record: NodeRecord) -> bool:
        """Note the node record of a found peer. Return True if the peer is new.

        Raises:
            WrongNetwork: another cluster, or none of our shards.
            InvalidInput: it does not relay, or has no address that can be dialled.
        """
        check_record(record, self._own())
        if record.capabilities is not None and Capability.RELAY not in record.capabilities:
            raise InvalidInput(f"peer {record.peer_id} does not offer relay")
        addresses = dialled_addresses(record)
        is_named = any(record.peer_id == one.peer_id for one in self._named)
        if is_named or record.peer_id in self._found or len(self._found) >= MAX_ENTRIES:
            return False
        self._found[record.peer_id] = _Candidate(addresses, record.peer_id, is_found=True)
        return True

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Keep the connections until the task is cancelled."""
        async with anyio.create_task_group() as self._tasks:
            task_status.started()
            for candidate in self._named:
                self._tasks.start_soon(self._keep, candidate)
            if self._search is not None:
                await self._fill_up(self._search, self._tasks)
            await anyio.Event().wait()  # others are named and accepted later

    async def connect(self, text: str, *, stay: bool = True) -> None:
        """Connect to a further peer now. With `stay`, dial the peer again whenever its connection
        ends.

        Raises:
            InvalidInput: the address cannot be dialled.
            WakuError: nothing answers there, or a peer of another network.
        """
        assert self._tasks is not None, "peers are dialled while this runs"
        candidate = self._candidate(text)
        link = self._link_to(candidate)
        if link not in self._peers:
            peer = await self._meet(link or await self._dial(candidate))
            candidate.peer_id = peer.link.peer_id  # an address need not name it
        if stay and self._name(candidate):
            self._tasks.start_soon(self._keep, candidate)

    def keep(self, text: str) -> None:
        """Connect to a further peer as soon as it answers, and again whenever its connection ends.

        Raises:
            InvalidInput: the address cannot be dialled.
        """
        assert self._tasks is not None, "peers are dialled while this runs"
        candidate = self._candidate(text)
        if self._name(candidate):
            self._tasks.start_soon(self._keep, candidate)

    def hurry(self, peer_id: PeerId) -> None:
        """Dial a named peer that is away, without waiting until its pause ends."""
        for candidate in self._named:
            if candidate.peer_id == peer_id:
                candidate.hurry.set()

    def accepted(self, link: Link) -> None:
        """Serve a peer that dialled this host, until its connection ends. A peer of another network
        is ignored."""
        if self._tasks is not None:
            self._tasks.start_soon(self._greet_accepted, link)

    def _candidate(self, text: str) -> _Candidate:
        """Read a multiaddress or a record.

        Raises:
            InvalidInput, WrongNetwork: as the constructor.
        """
        if text.startswith("/"):
            address = Multiaddr.parse(text)
            _ = address.dial_target  # raises where it cannot be dialled
            return _Candidate((address,), address.peer_id, is_found=False)
        record = NodeRecord.parse(text)
        check_record(record, self._own())
        return _Candidate(dialled_addresses(record), record.peer_id, is_found=False)

    def _name(self, candidate: _Candidate) -> bool:
        """Note a peer to stay connected to. Return whether it is new."""
        for one in self._named:
            if candidate.peer_id is not None and one.peer_id == candidate.peer_id:
                one.addresses = tuple(dict.fromkeys((*one.addresses, *candidate.addresses)))
                return False
        self._named.append(candidate)
        return True

    async def _fill_up(self, search: Search, tasks: TaskGroup) -> None:
        """Be connected to `WANTED` found peers. Look for others where these do not suffice."""
        while True:
            self._wake = anyio.Event()
            rested = [c for c in self._found.values() if self._may_be_dialled(c)]
            lacking = WANTED - sum(candidate.is_kept for candidate in self._found.values())
            for candidate in self._random.sample(rested, max(0, min(lacking, len(rested)))):
                candidate.is_kept = True
                tasks.start_soon(self._keep, candidate)
            if lacking > len(rested) and await search.look(self._peers.values(), now_ms()):
                continue
            with anyio.move_on_after(self._pause_ms(search) / 1_000 if lacking > 0 else None):
                await self._wake.wait()

    def _may_be_dialled(self, candidate: _Candidate) -> bool:
        return not candidate.is_kept and candidate.rest_until_ms <= now_ms()

    def _pause_ms(self, search: Search) -> int:
        """How long nothing is due."""
        resting = [c.rest_until_ms for c in self._found.values() if not c.is_kept]
        due_ms = min([now_ms() + IDLE_LOOK_MS, search.next_ms or 0, *resting])
        return max(50, due_ms - now_ms())

    async def _keep(self, candidate: _Candidate) -> None:
        """Stay connected to a peer. Dial a named one again when the connection ends."""
        while True:
            begun_ms, pause_ms = now_ms(), candidate.rest_ms
            try:
                link = self._link_to(candidate) or await self._dial(candidate)
                peer = self._peers.get(link) or await self._meet(link)
                await self._until_closed(peer)
                reason = str(link.failure)
            except WrongNetwork as error:
                reason, pause_ms = str(error), MISFIT_REST_MS
            except (Libp2pError, WakuError) as error:
                reason = str(error)
            lasted = now_ms() - begun_ms > STEADY_MS
            candidate.rest_ms = (
                FIRST_REST_MS if lasted else min(2 * candidate.rest_ms, LONGEST_REST_MS)
            )
            self._on_event(PeerLost(reason, candidate.peer_id))
            if candidate.is_found:
                candidate.rest_until_ms, candidate.is_kept = now_ms() + pause_ms, False
                self._wake.set()
                return
            candidate.hurry = anyio.Event()
            with anyio.move_on_after(pause_ms / 1_000):
                await candidate.hurry.wait()

    def _link_to(self, candidate: _Candidate) -> Link | None:
        """The connection to a peer, which it may have dialled. None where there is none."""
        if candidate.peer_id is None:
            return None
        links = (link for link in self._host.links if link.is_ready)
        return next((link for link in links if link.peer_id == candidate.peer_id), None)

    async def _dial(self, candidate: _Candidate) -> Link:
        failure: DialFailed | None = None
        for address in candidate.addresses:
            try:
                return await self._host.dial(address, ssl_context=self._ssl_context)
            except DialFailed as error:
                failure = error
        assert failure is not None
        raise NodeUnreachable("connect", detail=str(failure), sent=False) from failure

    async def _meet(self, link: Link) -> ServicePeer:
        """Check a peer that we dialled. Close the connection where it does not fit.

        Raises:
            WakuError: as `_greet`.
        """
        try:
            return await self._greet(link)
        except BaseException:
            link.close()
            raise

    async def _greet(self, link: Link) -> ServicePeer:
        """Ask a peer what it is, and note it.

        Raises:
            WakuError: another network, no answer, or `met` refuses it.
        """
        peer = await ServicePeer.greet(
            link,
            self._own(),
            timeout_ms=self._timeout_ms,
            max_message_bytes=self._max_message_bytes,
            random_bytes=self._random_bytes,
        )
        if link in self._peers:  # it dialled us while we wanted to dial it
            return self._peers[link]
        self._met(peer)
        self._peers[link] = peer
        assert self._tasks is not None
        self._tasks.start_soon(self._forget_closed, peer)
        self._on_event(PeerConnected(link.peer_id, peer.info.agent))
        return peer

    async def _forget_closed(self, peer: ServicePeer) -> None:
        await peer.link.closed.wait()
        del self._peers[peer.link]
        self._lost(peer)

    async def _greet_accepted(self, link: Link) -> None:
        with suppress(WakuError):
            await self._greet(link)

    async def _until_closed(self, peer: ServicePeer) -> None:
        """Return when the connection has ended. A quiet one is pinged, as both sides end silent
        ones.

        Raises:
            WakuError: no answer.
        """
        link = peer.link
        while link.is_open:
            with anyio.move_on_after(KEEP_ALIVE_MS / 1_000):
                await link.closed.wait()
            if link.is_open:
                try:
                    await peer.ping()
                except WakuError:
                    link.close()
                    raise
