"""Keeper of a client's connections, with enough working peers for each service.

The keeper dials no peer before the first request. One task dials, and requests wait until a peer is
connected.
"""

from __future__ import annotations

import ssl
import time
from collections import OrderedDict
from collections.abc import Callable, Collection
from typing import Final

import anyio
from anyio.abc import TaskGroup

from waku import errors
from waku.errors import WakuError
from waku.libp2p import DialFailed, PeerId
from waku.libp2p.driver import Host, Link
from waku.libp2p.driver.link import now_ms

from .codec import FilterRequest, Metadata
from .events import (
    ClientEvent,
    PeerConnected,
    PeerDeaf,
    PeerLost,
    PeerPaused,
    SurroundingsChanged,
    TooFewPeers,
)
from .network_interfaces import LOOK_S, NetworkInterfaces, local_address
from .peer_book import Entry, PeerBook
from .protocols import Role
from .search import Search
from .service_peer import ServicePeer, check_network
from .subscriptions import Subscriptions

__all__ = ["Keeper"]

MAX_CONNECTED: Final = 10
AT_ONCE: Final = 4
"""Maximum number of dials at the same time."""
STEADY_MS: Final = 10_000
"""Minimum duration of a successful connection (ms). A shorter connection counts as a failed dial,
because otherwise peers could be dialled forever."""
IDLE_ROUND_MS: Final = 60_000
"""Interval (ms) in which peers are asked for further peers while there are too few."""
MAX_HEARD: Final = 64

Chosen = tuple[Entry, ServicePeer]


class Keeper:
    """Connections of one light client to service peers."""

    def __init__(
        self,
        host: Host,
        book: PeerBook,
        search: Search,
        subscriptions: Subscriptions,
        *,
        own: Metadata,
        redundancy: int,
        timeout_ms: int,
        keep_alive_ms: int,
        max_message_bytes: int,
        ssl_context: ssl.SSLContext | None,
        random_bytes: Callable[[int], bytes],
        on_event: Callable[[ClientEvent], None],
        wall_clock: Callable[[], float] = time.time,
        own_address: Callable[[], str] = local_address,
    ) -> None:
        self.peers: dict[Entry, ServicePeer] = {}
        """Those with a connection."""
        self._host = host
        self._book = book
        self._search = search
        self._subscriptions = subscriptions
        self._own = own
        self._counts = {
            Role.LIGHT_PUSH: redundancy,
            Role.FILTER: max(2, redundancy),
            Role.STORE: 2,
        }
        self._timeout_ms = timeout_ms
        self._keep_alive_ms = keep_alive_ms
        self._max_message_bytes = max_message_bytes
        self._ssl_context = ssl_context
        self._random_bytes = random_bytes
        self._on_event = on_event
        self._wall_clock = wall_clock
        self._own_address = own_address
        self._wanted: dict[Role, int] = {}
        """How many peers for each service that was used so far."""
        self._heard: OrderedDict[PeerId, Metadata] = OrderedDict()
        """Networks that peers named when they asked for ours."""
        self.rounds_begun = self._rounds_done = 0
        self._few: dict[Role, int] = {}
        self._checking: set[ServicePeer] = set()
        self._wake = anyio.Event()
        self._changed = anyio.Event()
        self._registering = anyio.Lock()
        self._tasks: TaskGroup | None = None

    async def run(self) -> None:
        """Keep the connections until the task is cancelled."""
        async with anyio.create_task_group() as self._tasks:
            await self._wake.wait()
            self._tasks.start_soon(self._watch_interfaces)
            while True:
                self._wake = anyio.Event()
                self.rounds_begun += 1
                await self._round()
                self._rounds_done = self.rounds_begun
                self._notify()
                with anyio.move_on_after(self._pause_s()):
                    await self._wake.wait()

    async def serving(
        self, role: Role | None, count: int, *, besides: Collection[Entry] = ()
    ) -> list[Chosen]:
        """Return at least one peer to ask for a service. Return None if `besides` names every peer
        that was tried, and no dial is in progress.

        Raises:
            WakuError: no peer can be asked. The error says why.
        """
        if role is not None and role not in self._wanted:
            self._wanted[role] = self._counts[role]
            self._wake.set()
        begun = self.rounds_begun
        while not (found := self._book.choose(role, count, now_ms(), besides=besides)):
            if besides:
                if self._rounds_done >= begun:
                    return []
                await self._changed.wait()
                continue
            if role is not None and (error := self._book.pause_error(role, now_ms())) is not None:
                raise error
            if self._rounds_done > begun:
                raise self._nobody(role)
            changed = self._changed
            self._wake.set()
            await changed.wait()
        return [(entry, self.peers[entry]) for entry in found]

    def answered(self, entry: Entry, role: Role) -> None:
        """Note that a peer answered a request."""
        self._book.answered(entry, role)

    def refused(self, entry: Entry, role: Role, error: WakuError) -> None:
        """Note that a peer refused a request or failed. Pause the peer, or check that its
        connection works."""
        if pause_ms := self._book.refused(entry, role, error, now_ms()):
            self._on_event(PeerPaused(entry.peer_id, role, pause_ms, str(error)))
        if pause_ms or isinstance(error, errors.EndpointMissing):
            self._wake.set()  # others may have to stand in
        peer = self.peers.get(entry)
        if isinstance(error, errors.NodeUnreachable) and peer and peer not in self._checking:
            assert self._tasks is not None
            self._checking.add(peer)
            self._tasks.start_soon(self._check_once, entry, peer)

    async def rested(self, role: Role) -> None:
        """Wait until a pausing peer may be asked again, or the known peers change."""
        changed, ends_ms = self._changed, self._book.pause_ends_ms(role, now_ms())
        with anyio.move_on_after(max(0, (ends_ms or 0) - now_ms()) / 1000):
            await changed.wait()

    def renew(self) -> None:
        self._subscriptions.forget_peers()
        self._wake.set()

    def heard(self, peer_id: PeerId, metadata: Metadata) -> None:
        """Note that a peer named its network in answer to a metadata request."""
        self._heard[peer_id] = metadata
        while len(self._heard) > MAX_HEARD:
            self._heard.popitem(last=False)

    # Rounds

    async def _round(self) -> None:
        """Dial until every service has enough peers, or all were dialled once."""
        dialled: set[Entry] = set()
        while True:
            lacking = self._lacking()
            short = (n - len(self._book.serving(role)) for role, n in self._wanted.items())
            count = min(AT_ONCE, MAX_CONNECTED - len(self.peers), max(short, default=1))
            batch = self._book.to_dial(lacking, now_ms(), count, besides=dialled) if lacking else []
            dialled.update(batch)
            if batch:
                async with anyio.create_task_group() as tasks:
                    for entry in batch:
                        entry.is_dialling = True
                        tasks.start_soon(self._dial, entry)
            elif not lacking or not await self._search.look(self.peers.values(), now_ms()):
                break
        await self._renew()
        self._report_few(lacking)

    def _lacking(self) -> set[Role]:
        if not self._wanted and not self.peers:
            return set(Role)  # somebody wants any peer
        return self._book.lacking(self._wanted)

    def _pause_s(self) -> float | None:
        """How long nothing is due. None where only a wake can bring something."""
        lacking = self._lacking()
        is_short = self._subscriptions_lack()
        due = [now_ms() + IDLE_ROUND_MS] if lacking or is_short else []
        if is_short and (ends_ms := self._book.pause_ends_ms(Role.FILTER, now_ms())) is not None:
            due.append(ends_ms)
        if lacking:
            due += [ms for ms in (self._book.next_dial_ms(lacking), self._search.next_ms) if ms]
        return max(0.05, (min(due) - now_ms()) / 1000) if due else None

    def _report_few(self, lacking: set[Role]) -> None:
        few = {role: len(self._book.serving(role)) for role in lacking & self._wanted.keys()}
        for role, connected in few.items():
            if self._few.get(role) != connected:
                self._on_event(TooFewPeers(role, connected, self._wanted[role]))
        self._few = few

    def _nobody(self, role: Role | None) -> WakuError:
        error = self._search.failure or self._book.failure()
        if self.peers and role is not None:
            return errors.EndpointMissing(
                role.value.replace(" ", "_"),
                detail=f"none of {len(self.peers)} connected peers offers {role.value}",
            )
        return error or errors.NodeUnreachable(
            "connect", detail="no service peer is known", sent=False
        )

    def _notify(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    # Peers

    async def _dial(self, entry: Entry) -> None:
        """Connect to a peer, check its network, and keep it."""
        try:
            peer = await self._meet(await self._reach(entry))
        except WakuError as error:
            self._book.fail(entry, error, now_ms())
            self._on_event(PeerLost(str(error), entry.peer_id))
        else:
            await self._take(entry, peer)
        finally:
            entry.is_dialling = False
        self._notify()

    async def _reach(self, entry: Entry) -> Link:
        failure = ""
        for address in entry.addresses:
            try:
                return await self._host.dial(address, ssl_context=self._ssl_context)
            except DialFailed as error:
                failure = str(error)
        raise errors.NodeUnreachable("connect", detail=failure, sent=False)

    async def _meet(self, link: Link) -> ServicePeer:
        try:
            return await ServicePeer.greet(
                link,
                self._own,
                timeout_ms=self._timeout_ms,
                max_message_bytes=self._max_message_bytes,
                random_bytes=self._random_bytes,
            )
        except BaseException as error:
            link.close()
            heard = self._heard.pop(link.peer_id, None)
            if isinstance(error, errors.NodeUnreachable) and heard is not None:
                # A peer of another network hangs up, maybe before it has answered (T12).
                check_network(link.peer_id, self._own, heard)
            raise

    async def _take(self, entry: Entry, peer: ServicePeer) -> None:
        assert self._tasks is not None
        kept = self._book.connect(entry, peer.link.peer_id, peer.info.protocols)
        if kept is None:
            peer.link.close()
        elif not kept.roles:
            await self._search.look([peer], now_ms())
            error = errors.EndpointMissing(
                "connect", detail=f"peer {kept.peer_id} offers no light push, filter or Store"
            )
            peer.link.close()
            self._book.fail(kept, error, now_ms())
            self._on_event(PeerLost(str(error), kept.peer_id))
        else:
            self.peers[kept] = peer
            self._on_event(PeerConnected(peer.link.peer_id, peer.info.agent))
            self._tasks.start_soon(self._keep, kept, peer, now_ms())

    async def _keep(self, entry: Entry, peer: ServicePeer, since_ms: int) -> None:
        while peer.link.failure is None:
            with anyio.move_on_after(self._keep_alive_ms / 1000):
                await peer.link.closed.wait()
            if peer.link.failure is None:
                await self._check(entry, peer)
        reason = str(peer.link.failure)
        error = errors.NodeUnreachable("connect", detail=reason, sent=False)
        del self.peers[entry]
        if now_ms() - since_ms < STEADY_MS:
            self._book.fail(entry, error, now_ms())
        else:
            self._book.lose(entry, error)
        self._on_event(PeerLost(reason, entry.peer_id))
        self._subscriptions.forget(entry, reason)
        self._wake.set()

    async def _check(self, entry: Entry, peer: ServicePeer) -> None:
        """Ping the peer. Renew what it forgot. Give it up if it does not answer."""
        known = self._subscriptions.known_to(entry)
        try:
            if not known:
                await peer.ping()
                return
            try:
                await peer.filter(FilterRequest.SUBSCRIBER_PING)
            except errors.NotSubscribed:
                self._subscriptions.forget(entry, "the peer had forgotten the subscription")
                await self._subscriptions.register(entry, peer, known)
        except errors.RateLimited:
            self._wake.set()  # it lives
        except WakuError:
            peer.link.close()

    async def _check_once(self, entry: Entry, peer: ServicePeer) -> None:
        """Check a peer for all requests that failed at a time: it serves few pings at once."""
        try:
            await self._check(entry, peer)
        finally:
            self._checking.discard(peer)

    # Subscriptions

    def _subscriptions_lack(self) -> bool:
        return bool(self._subscriptions.lacking(self._counts[Role.FILTER]))

    async def _renew(self) -> None:
        """Register subscriptions that too few peers know with others."""
        async with self._registering:
            for entry in self._book.choose(Role.FILTER, MAX_CONNECTED, now_ms()):
                lacking = self._subscriptions.lacking(self._counts[Role.FILTER])
                wanted = [one for one in lacking if entry not in one.peers]
                if wanted and entry in self.peers:
                    try:
                        await self._subscriptions.register(entry, self.peers[entry], wanted)
                    except WakuError as error:
                        self.refused(entry, Role.FILTER, error)
                    else:
                        self.answered(entry, Role.FILTER)

    # Network interfaces

    def _look_for_deaf(self) -> None:
        assert self._tasks is not None
        for entry, shard, reason in self._subscriptions.deaf(now_ms() / 1000):
            self._on_event(PeerDeaf(entry.peer_id, shard, reason))
            self._wake.set()
            if (peer := self.peers.get(entry)) is not None:
                self._tasks.start_soon(self._check, entry, peer)  # it may have forgotten us

    async def _watch_interfaces(self) -> None:
        before = self._look_around()
        while True:
            await anyio.sleep(LOOK_S)
            self._look_for_deaf()
            now = self._look_around()
            if (reason := now.change_since(before)) is not None:
                self._on_event(SurroundingsChanged(reason))
                self._book.wake_all()
                self._wake.set()
                async with anyio.create_task_group() as tasks:
                    for entry, peer in list(self.peers.items()):
                        tasks.start_soon(self._check, entry, peer)
                now = self._look_around()
            before = now

    def _look_around(self) -> NetworkInterfaces:
        return NetworkInterfaces(anyio.current_time(), self._wall_clock(), self._own_address())
