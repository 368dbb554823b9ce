"""Book of the known service peers, which decides which peers to use.

The peer book does no I/O and reads no clock. The caller passes all times as arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

from waku.discovery import Capability, NodeRecord
from waku.errors import (
    BadAnswer,
    EndpointMissing,
    NodeFailure,
    NodeUnreachable,
    NoPeers,
    OutOfRlnProofs,
    RateLimited,
    WakuError,
    WrongNetwork,
)
from waku.libp2p import InvalidInput, Multiaddr, PeerId

from .codec import Metadata
from .protocols import ROLE_PROTOCOLS, Role

__all__ = ["Entry", "PeerBook", "check_record", "dialled_addresses"]

MAX_ENTRIES: Final = 500
"""Maximum number of known peers. If there are more, the found peer with the most failures is
removed."""
MAX_ADDRESSES: Final = 8
FIRST_REST_MS: Final = 1_000
LONGEST_REST_MS: Final = 60_000
"""Longest pause (ms) between dials of a peer that does not answer (1, 2, 4 … 60 s)."""
MISFIT_REST_MS: Final = 10 * 60_000
"""Pause (ms) of a peer of another network or without services, because its settings may change."""
EPOCH_PAUSE_MS: Final = 30_000
"""First pause (ms) after a peer answers 504. The longest such pause is an epoch of The Waku
Network."""
LONGEST_PAUSE_MS: Final = 60_000
LONGEST_EPOCH_PAUSE_MS: Final = 600_000

_CAPABILITIES: Final = {
    Role.LIGHT_PUSH: Capability.LIGHT_PUSH,
    Role.FILTER: Capability.FILTER,
    Role.STORE: Capability.STORE,
}


@dataclass(slots=True)
class _Pause:
    until_ms: int
    wait_ms: int
    error: WakuError
    is_binding: bool
    """True if the peer asked for it. If not, others merely go first."""


@dataclass(eq=False, slots=True)
class Entry:
    """Service peer that is known, connected or not."""

    addresses: tuple[Multiaddr, ...]
    peer_id: PeerId | None
    roles: frozenset[Role] | None
    """Services by the peer's node record or, once connected, by its own report. The value is None
    while the services are unknown."""
    is_configured: bool
    is_connected: bool = False
    is_dialling: bool = False
    failures: int = 0
    rest_until_ms: int = 0
    failure: WakuError | None = None
    """Reason why the last attempt to use the peer failed."""
    order: int = 0
    """Random number by which dials are ordered, so that clients choose different peers."""
    pauses: dict[Role, _Pause] = field(default_factory=dict)
    deaf: dict[str, str] = field(default_factory=dict)
    """Shards on which the peer pushes no messages although it should, with the evidence."""

    def is_deaf_for(self, role: Role) -> bool:
        """Return True if the peer does not count as serving a shard, because it gets no messages
        there."""
        return bool(self.deaf) and role is not Role.LIGHT_PUSH


class PeerBook:
    """Book of all known peers, at most 500."""

    def __init__(
        self, network: Metadata, *, random: Callable[[], int], limit: int = MAX_ENTRIES
    ) -> None:
        """Args:
        network: own cluster and shards. Records of others are not taken.
        random: a number for the order in which found peers are dialled.
        limit: peers known at once.
        """
        self._network = network
        self._random = random
        self._limit = limit
        self._entries: dict[PeerId | str, Entry] = {}
        self._turn = 0

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def connected(self) -> list[Entry]:
        return [entry for entry in self._entries.values() if entry.is_connected]

    def add_address(self, address: Multiaddr) -> None:
        """Add a peer that the application named, or a further address of the peer."""
        self._add((address,), address.peer_id, None, is_configured=True)

    def add_record(self, record: NodeRecord, *, is_configured: bool = False) -> bool:
        """Add a peer that was found by its node record. Return True if the peer is new.

        Raises:
            WrongNetwork: another cluster, or none of our shards.
            InvalidInput: no address that can be dialled.
        """
        check_record(record, self._network)
        addresses = dialled_addresses(record)
        roles = None
        if record.capabilities is not None:
            roles = frozenset(role for role, b in _CAPABILITIES.items() if b in record.capabilities)
        return self._add(addresses, record.peer_id, roles, is_configured=is_configured)

    # Dialling

    def lacking(self, wanted: Mapping[Role, int]) -> set[Role]:
        """Return the services that too few peers offer."""
        return {role for role, count in wanted.items() if len(self.serving(role)) < count}

    def to_dial(
        self,
        roles: Collection[Role],
        now_ms: int,
        count: int,
        *,
        besides: Collection[Entry] = (),
    ) -> list[Entry]:
        """Return peers that may offer some of the services, named peers first, then by number of
        failures."""
        fit = [
            entry
            for entry in self._entries.values()
            if self._may_help(entry, roles)
            and entry.rest_until_ms <= now_ms
            and entry not in besides
        ]
        fit.sort(key=lambda entry: (not entry.is_configured, entry.failures, entry.order))
        return fit[: max(0, count)]

    def next_dial_ms(self, roles: Collection[Role]) -> int | None:
        """Return the time at which the next useful peer may be dialled (ms), or None."""
        return min(
            (e.rest_until_ms for e in self._entries.values() if self._may_help(e, roles)),
            default=None,
        )

    def connect(self, entry: Entry, peer_id: PeerId, protocols: Collection[str]) -> Entry | None:
        """Note a connection to a peer. Return the entry of the peer, or None if the peer was
        already connected.

        An address without a peer id may lead to a peer that is known by its id.
        """
        entry.is_dialling = False
        other = self._entries.get(peer_id)
        if entry.peer_id is None:
            self._entries.pop(_key(entry), None)
            entry.peer_id = peer_id
            self._entries.setdefault(peer_id, entry)
        if other is not None and other is not entry:
            other.addresses = _merged(entry.addresses, other.addresses)
            other.is_configured = other.is_configured or entry.is_configured
            entry = other
        if entry.is_connected:
            return None
        entry.is_connected = True
        entry.roles = frozenset(
            role for role, names in ROLE_PROTOCOLS.items() if not names.isdisjoint(protocols)
        )
        return entry

    def fail(self, entry: Entry, error: WakuError, now_ms: int) -> None:
        """Note that a dial failed, or that the peer cannot be used."""
        entry.is_connected = entry.is_dialling = False
        entry.failure = error
        # A node that has just started may listen before it serves: asked again soon, ever later.
        longest_ms = MISFIT_REST_MS if isinstance(error, EndpointMissing) else LONGEST_REST_MS
        rest_ms = min(FIRST_REST_MS << min(entry.failures, 16), longest_ms)
        if isinstance(error, WrongNetwork):
            rest_ms = MISFIT_REST_MS
        entry.rest_until_ms = now_ms + rest_ms
        entry.failures += 1

    def lose(self, entry: Entry, error: WakuError) -> None:
        """Note that a lasting connection to a peer ended. The peer is dialled again at once."""
        entry.is_connected = False
        entry.failure = error
        entry.failures = entry.rest_until_ms = 0

    def wake_all(self) -> None:
        """Allow dials of all peers at once, because the network has changed."""
        for entry in self._entries.values():
            if not isinstance(entry.failure, WrongNetwork | EndpointMissing):
                entry.rest_until_ms = 0

    # Asking

    def find(self, peer_id: PeerId) -> Entry | None:
        return self._entries.get(peer_id)

    def serving(self, role: Role) -> list[Entry]:
        return [entry for entry in self._offering(role) if not entry.is_deaf_for(role)]

    def _offering(self, role: Role) -> list[Entry]:
        return [e for e in self._entries.values() if e.is_connected and role in (e.roles or ())]

    def choose(
        self, role: Role | None, count: int, now_ms: int, *, besides: Collection[Entry] = ()
    ) -> list[Entry]:
        """Return connected peers to ask in turn, without those that asked for a pause, and deaf
        peers last.

        If no role is given, any connected peer is returned.
        """
        fit: list[tuple[int, Entry]] = []
        for entry in self.connected if role is None else self._offering(role):
            pause = None if role is None else entry.pauses.get(role)
            is_paused = pause is not None and pause.until_ms > now_ms
            if entry not in besides and not (is_paused and pause and pause.is_binding):
                is_deaf = role is not None and entry.is_deaf_for(role)
                fit.append((is_paused + 2 * is_deaf, entry))
        self._turn += 1
        turn = self._turn % len(fit) if fit else 0
        fit = fit[turn:] + fit[:turn]
        return [entry for _, entry in sorted(fit, key=lambda item: item[0])[:count]]

    def refused(self, entry: Entry, role: Role, error: WakuError, now_ms: int) -> int:
        """Note that a peer refused a request or failed. Return the pause of the peer that follows
        (ms, 0 for no pause)."""
        before = entry.pauses.get(role)
        match error:
            case RateLimited():
                first_ms, longest_ms, is_binding = FIRST_REST_MS, LONGEST_PAUSE_MS, True
            case OutOfRlnProofs():
                first_ms, longest_ms, is_binding = EPOCH_PAUSE_MS, LONGEST_EPOCH_PAUSE_MS, True
            case NoPeers() | NodeFailure() | NodeUnreachable() | BadAnswer():
                first_ms, longest_ms, is_binding = FIRST_REST_MS, LONGEST_PAUSE_MS, False
            case EndpointMissing():
                entry.roles = (entry.roles or frozenset()) - {role}
                return 0
            case _:
                return 0
        if before is not None and before.until_ms > now_ms:
            return 0  # one of several requests in flight: the pause has begun
        wait_ms = first_ms if before is None else min(2 * before.wait_ms, longest_ms)
        entry.pauses[role] = _Pause(now_ms + wait_ms, wait_ms, error, is_binding)
        return wait_ms

    def answered(self, entry: Entry, role: Role) -> None:
        """Note that a peer answered a request."""
        if entry.pauses:
            entry.pauses.pop(role, None)

    def pause_error(self, role: Role, now_ms: int) -> WakuError | None:
        """Return the refusal because of which no peer can be asked now, or None."""
        first = self._first_pause(role, now_ms)
        if first is None:
            return None
        left_ms = first.until_ms - now_ms
        detail = f"{first.error.detail or 'refused'} (not asked again for {left_ms / 1000:.1f} s)"
        return type(first.error)(first.error.call, status=first.error.status, detail=detail)

    def pause_ends_ms(self, role: Role, now_ms: int) -> int | None:
        """Return the time at which the next pause of a peer ends (ms), or None."""
        first = self._first_pause(role, now_ms)
        return None if first is None else first.until_ms

    def is_limited(self, role: Role) -> bool:
        """Return True if the last answer of a peer was 429."""
        pauses = (entry.pauses.get(role) for entry in self._offering(role))
        return any(pause and isinstance(pause.error, RateLimited) for pause in pauses)

    def _first_pause(self, role: Role, now_ms: int) -> _Pause | None:
        pauses = [
            pause
            for entry in self._offering(role)
            if (pause := entry.pauses.get(role)) is not None and pause.until_ms > now_ms
        ]
        return min(pauses, key=lambda pause: pause.until_ms, default=None)

    def failure(self) -> WakuError | None:
        """Return the reason why no peer can be used, preferably that the last peer did not fit."""
        failures = [e.failure for e in self._entries.values() if e.failure is not None]
        misfits = [error for error in failures if isinstance(error, WrongNetwork)]
        return (misfits or failures or [None])[-1]

    def _may_help(self, entry: Entry, roles: Collection[Role]) -> bool:
        if entry.is_connected or entry.is_dialling:
            return False
        return entry.roles is None or not entry.roles.isdisjoint(roles)

    def _add(
        self,
        addresses: tuple[Multiaddr, ...],
        peer_id: PeerId | None,
        roles: frozenset[Role] | None,
        *,
        is_configured: bool,
    ) -> bool:
        key = peer_id or str(addresses[0])
        known = self._entries.get(key)
        if known is not None:
            known.addresses = _merged(addresses, known.addresses)
            known.is_configured = known.is_configured or is_configured
            return False
        if len(self._entries) >= self._limit and not self._make_room():
            return False
        order = 0 if is_configured else self._random()
        self._entries[key] = Entry(addresses, peer_id, roles, is_configured, order=order)
        return True

    def _make_room(self) -> bool:
        idle = [
            (entry.failures, key)
            for key, entry in self._entries.items()
            if not (entry.is_configured or entry.is_connected or entry.is_dialling)
        ]
        if not idle:
            return False
        del self._entries[max(idle, key=lambda item: item[0])[1]]
        return True


def check_record(record: NodeRecord, own: Metadata) -> None:
    """Raise an error unless a node record belongs to the own network.

    Raises:
        WrongNetwork: another cluster, or none of our shards.
    """
    cluster_id, shards = record.cluster_id, record.shards
    if cluster_id is not None and cluster_id != own.cluster_id:
        detail = f"peer {record.peer_id} is in cluster {cluster_id}, not {own.cluster_id}"
    elif own.shards and shards and not own.shards & shards:
        detail = f"peer {record.peer_id} has none of the shards {sorted(own.shards)}"
    else:
        return
    raise WrongNetwork("discover", detail=detail)


def dialled_addresses(record: NodeRecord) -> tuple[Multiaddr, ...]:
    """Return the addresses in a node record that can be dialled, at most 8.

    Raises:
        InvalidInput: the record has no such address.
    """
    addresses = tuple(filter(_can_be_dialled, record.addresses))[:MAX_ADDRESSES]
    if not addresses:
        raise InvalidInput(f"peer {record.peer_id} has no address that can be dialled")
    return addresses


def _key(entry: Entry) -> PeerId | str:
    return entry.peer_id or str(entry.addresses[0])


def _can_be_dialled(address: Multiaddr) -> bool:
    try:
        return bool(address.dial_target.port)
    except InvalidInput:
        return False


def _merged(*lists: Iterable[Multiaddr]) -> tuple[Multiaddr, ...]:
    return tuple(dict.fromkeys(chain(*lists)))[:MAX_ADDRESSES]
