"""The peers of a relay leaf: named ones are always dialled again, found ones fill up a mesh."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final, NoReturn

import anyio
from anyio.abc import TaskGroup

from waku.discovery import Capability, NodeRecord, Resolver, check_entry
from waku.errors import EndpointMissing, NodeUnreachable, WakuError, WrongNetwork
from waku.libp2p import DialFailed, InvalidInput, Libp2pError, Multiaddr, PeerId
from waku.libp2p.driver import Host, Link
from waku.libp2p.driver.link import now_ms
from waku.libp2p.gossipsub import RELAY

from .codec import Metadata
from .events import ClientEvent, PeerConnected, PeerLost
from .meshes import Meshes
from .peer_book import LONGEST_REST_MS, MAX_ENTRIES, MISFIT_REST_MS, check_record, dialled_addresses
from .search import Search
from .service_peer import ServicePeer

__all__ = ["RelayPeers"]

TIMEOUT_MS: Final = 10_000
FIRST_REST_MS: Final = 1_000
STEADY_MS: Final = 10_000
"""A connection that ends sooner counts as a dial that failed."""
KEEP_ALIVE_MS: Final = 60_000
WANTED: Final = 6
"""Found peers that a leaf is connected to: D of gossipsub."""
IDLE_LOOK_MS: Final = 60_000
"""While found peers are lacking, connected ones are asked for others so often."""


@dataclass(eq=False, slots=True)
class _Candidate:
    """A peer and its addresses, which are dialled in turn."""

    addresses: tuple[Multiaddr, ...]
    peer_id: PeerId | None
    is_found: bool
    rest_ms: int = FIRST_REST_MS
    rest_until_ms: int = 0
    is_kept: bool = False


class RelayPeers:
    """Keeps a leaf connected. `run` is its task."""

    def __init__(
        self,
        host: Host,
        meshes: Meshes,
        texts: Sequence[str],
        *,
        own: Metadata,
        resolver: Resolver,
        ssl_context: ssl.SSLContext | None,
        random: Random,
        random_bytes: Callable[[int], bytes],
        on_event: Callable[[ClientEvent], None],
    ) -> None:
        """Args:
            texts: multiaddresses, `enr:…` and `enrtree://…`.

        Raises:
            InvalidInput: a text is none of these, or cannot be dialled.
            WrongNetwork: an `enr:…` of another cluster, or of none of our shards.
        """
        self._host = host
        self._meshes = meshes
        self._own = own
        self._ssl_context = ssl_context
        self._random = random
        self._random_bytes = random_bytes
        self._on_event = on_event
        self._named: list[_Candidate] = []
        self._found: dict[PeerId, _Candidate] = {}
        self._peers: list[ServicePeer] = []
        """Those with a connection."""
        trees = []
        for text in texts:
            check_entry(text)
            if text.startswith("/"):
                address = Multiaddr.parse(text)
                self._named.append(_Candidate((address,), address.peer_id, is_found=False))
            elif text.startswith("enr:"):
                record = NodeRecord.parse(text)
                check_record(record, own)
                addresses = dialled_addresses(record)
                self._named.append(_Candidate(addresses, record.peer_id, is_found=False))
            else:
                trees.append(text)
        self._search = Search(self, trees, resolver, on_event) if trees else None
        self._wake = anyio.Event()

    def add_record(self, record: NodeRecord) -> bool:
        """Note a peer that was found; return whether it is new.

        Raises:
            WrongNetwork: another cluster, or none of our shards.
            InvalidInput: it does not relay, or has no address that can be dialled.
        """
        check_record(record, self._own)
        if record.capabilities is not None and Capability.RELAY not in record.capabilities:
            raise InvalidInput(f"peer {record.peer_id} does not relay")
        addresses = dialled_addresses(record)
        is_named = any(record.peer_id == one.peer_id for one in self._named)
        if is_named or record.peer_id in self._found or len(self._found) >= MAX_ENTRIES:
            return False
        self._found[record.peer_id] = _Candidate(addresses, record.peer_id, is_found=True)
        return True

    async def run(self) -> None:
        """Keep the connections until cancelled."""
        async with anyio.create_task_group() as tasks:
            for candidate in self._named:
                tasks.start_soon(self._keep, candidate)
            if self._search is not None:
                await self._fill_up(self._search, tasks)

    async def _fill_up(self, search: Search, tasks: TaskGroup) -> None:
        """Be connected to `WANTED` found peers; look for others where these do not suffice."""
        while True:
            self._wake = anyio.Event()
            rested = [c for c in self._found.values() if self._may_be_dialled(c)]
            lacking = WANTED - sum(candidate.is_kept for candidate in self._found.values())
            for candidate in self._random.sample(rested, max(0, min(lacking, len(rested)))):
                candidate.is_kept = True
                tasks.start_soon(self._keep, candidate)
            if lacking > len(rested) and await search.look(self._peers, now_ms()):
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
        """Stay connected to a peer; dial a named one again when the connection ends."""
        while True:
            begun_ms, pause_ms = now_ms(), candidate.rest_ms
            try:
                await self._serve(await self._reach(candidate))
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
            await anyio.sleep(pause_ms / 1_000)

    async def _reach(self, candidate: _Candidate) -> Link:
        failure: DialFailed | None = None
        for address in candidate.addresses:
            try:
                return await self._host.dial(address, ssl_context=self._ssl_context)
            except DialFailed as error:
                failure = error
        assert failure is not None
        raise failure

    async def _serve(self, link: Link) -> NoReturn:
        """Check a peer's network, and be in meshes with it until the connection ends.

        Raises:
            WakuError: another network, no relay, no answer; or why the connection ended.
        """
        try:
            peer = await ServicePeer.greet(
                link, self._own, timeout_ms=TIMEOUT_MS, random_bytes=self._random_bytes
            )
            if RELAY not in peer.info.protocols:
                raise EndpointMissing("connect", detail=f"{link.peer_id} does not speak {RELAY}")
        except BaseException:
            link.close()
            raise
        self._on_event(PeerConnected(link.peer_id, peer.info.agent))
        self._meshes.meet(link)
        self._peers.append(peer)
        try:
            await _until_closed(peer)
        finally:
            self._peers.remove(peer)
        assert link.failure is not None
        raise NodeUnreachable("relay", detail=str(link.failure), sent=True)


async def _until_closed(peer: ServicePeer) -> None:
    """Return when the connection has ended; a quiet one is pinged, as both sides end silent ones.

    Raises:
        WakuError: no answer.
    """
    link = peer.link
    while link.failure is None:
        with anyio.move_on_after(KEEP_ALIVE_MS / 1_000):
            await link.closed.wait()
        if link.failure is None:
            try:
                await peer.ping()
            except WakuError:
                link.close()
                raise
