"""State machine of a whole libp2p connection, with negotiation, noise, a muxer, and streams.

`receive` accepts bytes from the socket, and `data_to_send` and `next_event` return the results. The
stack is built bottom up:

    multistream (/noise) → noise → muxer, agreed in noise or by multistream → streams,
    each of which begins with multistream

The specification is https://github.com/libp2p/specs/blob/master/connections/README.md.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Final

from . import multistream, muxer
from .budget import FRAME, Budget
from .errors import HandshakeFailed, PeerViolation, ProtocolNotSupported
from .keys import PeerId, PrivateKey
from .limits import Limits
from .mplex import Mplex
from .muxer import Muxer
from .noise import NoiseSession, RemoteIdentity, StaticKeys
from .noise.session import NOISE
from .yamux import Yamux

__all__ = [
    "MUXERS",
    "Connected",
    "Connection",
    "ConnectionEvent",
    "GoneAway",
    "Received",
    "RemoteEnded",
    "StreamAgreed",
    "StreamReset",
    "StreamWritable",
]

MUXERS: Final = (Yamux.protocol, Mplex.protocol)
"""Muxers in order of preference, with yamux first because it has flow control."""
_MUXERS: Final[dict[str, type[Muxer]]] = {Yamux.protocol: Yamux, Mplex.protocol: Mplex}


@dataclass(frozen=True, slots=True)
class Connected:
    """The peer proved its identity, so streams may be opened."""

    remote: RemoteIdentity
    muxer: str


@dataclass(frozen=True, slots=True)
class StreamAgreed:
    """Both sides agreed on the protocol of a new stream."""

    stream_id: int
    protocol: str
    by_peer: bool


GoneAway = muxer.GoneAway
Received = muxer.Received
RemoteEnded = muxer.RemoteEnded
StreamReset = muxer.StreamReset
StreamWritable = muxer.StreamWritable

ConnectionEvent = (
    Connected | StreamAgreed | Received | RemoteEnded | StreamReset | StreamWritable | GoneAway
)


@dataclass(frozen=True, slots=True)
class _Negotiation:
    side: multistream.Dialler | multistream.Listener
    by_peer: bool
    deadline_ms: int


class Connection:
    """State machine of one connection, for either side.

    If the peer breaks a rule, `receive` raises an error and the connection is over. After an error,
    send the bytes that `data_to_send` still returns, and close the socket.
    """

    def __init__(
        self,
        *,
        dialler: bool,
        identity: PrivateKey,
        keys: StaticKeys,
        now_ms: int,
        expected: PeerId | None = None,
        muxers: Sequence[str] = MUXERS,
        muxers_in_noise: bool = True,
        supports: Callable[[str], bool] = lambda _: False,
        limits: Limits | None = None,
    ) -> None:
        """Args:
            dialler: whether this side opened the socket.
            identity: own libp2p key.
            keys: fresh X25519 keys, for this connection alone.
            now_ms: the time, on any clock that does not go back.
            expected: the peer that must answer; None for any.
            muxers: the muxers to agree to, in order of preference.
            muxers_in_noise: offer them in the handshake, which saves a round trip (T4).
            supports: whether a stream of the peer may speak a protocol.
            limits: bounds; None for the defaults.

        Raises:
            ValueError: no muxer, or an unknown one.
        """
        if not muxers or set(muxers) - set(_MUXERS):
            raise ValueError(f"`muxers` must be some of {', '.join(_MUXERS)} (got {muxers!r})")
        self.remote: RemoteIdentity | None = None
        """The peer; None until its identity is proven."""
        self.limits: Final = limits or Limits()
        self.budget = Budget(self.limits.frames_per_s, now_ms)
        """What the peer may still send. Drivers pay for what they make of its bytes, too."""
        self._dialler = dialler
        self._muxers = tuple(muxers)
        self._muxers_in_noise = muxers_in_noise
        self._supports = supports
        self._out = bytearray()
        self._events: deque[ConnectionEvent] = deque()
        self.noise = NoiseSession(
            initiator=dialler,
            identity=identity,
            keys=keys,
            expected=expected,
            muxers=self._muxers if muxers_in_noise else (),
        )
        self._negotiation = self._first_negotiation([NOISE])
        self.muxer: Muxer | None = None
        self._streams: dict[int, _Negotiation] = {}
        """Streams whose protocol is not agreed, the oldest first: all have the same time."""
        self._negotiating_by_peer = 0
        self._handshake_deadline_ms = now_ms + self.limits.handshake_ms
        self._heard_ms = now_ms
        if dialler:
            # The first noise message may follow the wish without an answer (T3).
            self._collect_negotiation()
            self._out += self.noise.data_to_send()

    # Bytes

    def receive(self, data: bytes, now_ms: int) -> None:
        """Receive bytes from the socket, and handle as many as fit into one turn.

        If `budget.is_spent` afterwards, call `receive` without bytes again in the next turn.

        Raises:
            PeerViolation: the peer broke a rule, failed to prove its identity, or passed a limit.
            ProtocolNotSupported: the peer has no common secure channel or muxer.
        """
        self.budget.begin_turn(now_ms)
        if data:
            self._heard_ms = now_ms
        if self._negotiation is not None and self.remote is None:
            data = self._negotiate(self._negotiation, data)
            if self._negotiation is not None:
                return
        self._take(b"", now_ms)  # what the last turn has left
        self.noise.receive(data, 0)
        while not self.budget.is_spent and self.noise.has_message:
            self.budget.charge(FRAME, "messages of noise")
            self._take(self.noise.receive(b"", 1), now_ms)

    def close(self) -> None:
        """Delete all streams and waiting bytes, because the socket is closed."""
        self.muxer = None
        self._streams.clear()
        self.noise.forget()

    def data_to_send(self) -> bytes:
        """Remove and return the bytes for the socket."""
        self._out += self.noise.data_to_send()
        if self.muxer is not None:
            plaintext = self.muxer.data_to_send()
            if plaintext:
                self._out += self.noise.encrypt(plaintext)
        data = bytes(self._out)
        self._out.clear()
        return data

    @property
    def has_data_to_send(self) -> bool:
        """True if `data_to_send` would return bytes."""
        if self.muxer is not None:
            return bool(self._out) or self.muxer.has_data_to_send
        return bool(self._out) or self.noise.has_data_to_send

    def next_event(self) -> ConnectionEvent | None:
        """Return the oldest event that was not returned yet, or None."""
        return self._events.popleft() if self._events else None

    # Streams

    def open_stream(self, protocols: Sequence[str], now_ms: int) -> int:
        """Open a stream that speaks the first of `protocols` that the peer supports.

        With one protocol, data sent before `StreamAgreed` leaves at once, and a peer may reset the
        stream. With several protocols, wait for `StreamAgreed` before you send.

        Raises:
            PeerViolation: the numbers of streams are used up.
        """
        assert self.muxer is not None, "streams can be opened after `Connected`"
        stream_id = self.muxer.open_stream()
        self._negotiate_stream(
            stream_id, multistream.Dialler(protocols, self.limits), now_ms, by_peer=False
        )
        return stream_id

    def send(self, stream_id: int, data: bytes) -> None:
        """Send bytes on a stream."""
        if self.muxer is not None:
            self.muxer.send(stream_id, data)

    def end(self, stream_id: int) -> None:
        """End this side of a stream, so that no more data can be sent."""
        if self.muxer is not None:
            self.muxer.end(stream_id)

    def reset(self, stream_id: int) -> None:
        """Drop a stream at once, with all its waiting data."""
        if self.muxer is not None:
            self._forget_negotiation(stream_id)
            self.muxer.reset(stream_id)

    def consumed(self, stream_id: int, size_bytes: int) -> None:
        """Give the peer credit for received bytes that were read, so that it may send more."""
        if self.muxer is not None:
            self.muxer.consumed(stream_id, size_bytes)

    def waiting_bytes(self, stream_id: int) -> int:
        """Return how many bytes of a stream wait until the peer gives credit."""
        return 0 if self.muxer is None else self.muxer.waiting_bytes(stream_id)

    @property
    def stream_count(self) -> int:
        """Number of streams that are open in at least one direction."""
        return 0 if self.muxer is None else self.muxer.stream_count

    # Time

    @property
    def next_deadline_ms(self) -> int:
        """Time (ms) at which `on_deadline` must be called, unless another call comes before."""
        if self.muxer is None:
            return self._handshake_deadline_ms
        idle = self._heard_ms + self.limits.idle_ms
        for negotiation in self._streams.values():
            return min(idle, negotiation.deadline_ms)
        return idle

    def on_deadline(self, now_ms: int) -> None:
        """Reset streams whose protocol negotiation takes too long.

        Raises:
            PeerViolation: the handshake took too long, or the peer has been silent too long.
        """
        if self.muxer is None:
            if now_ms >= self._handshake_deadline_ms:
                raise HandshakeFailed(
                    f"the peer did not finish the handshake within {self.limits.handshake_ms} ms"
                )
            return
        if now_ms >= self._heard_ms + self.limits.idle_ms:
            raise PeerViolation(f"the peer sent no byte for {self.limits.idle_ms} ms")
        late = takewhile(lambda item: item[1].deadline_ms <= now_ms, self._streams.items())
        for stream_id, _ in list(late):
            self._drop(stream_id, f"no protocol within {self.limits.negotiation_ms} ms")

    # Inside

    def _take(self, plaintext: bytes, now_ms: int) -> None:
        if self.muxer is None:
            plaintext = self._agree_on_muxer(plaintext)
        if self.muxer is not None:
            self.muxer.receive(plaintext)
            self._take_muxer_events(now_ms)

    def _first_negotiation(
        self, protocols: Sequence[str]
    ) -> multistream.Dialler | multistream.Listener | None:
        if self._dialler:
            return multistream.Dialler(protocols, self.limits)
        return multistream.Listener(protocols.__contains__, self.limits)

    def _collect_negotiation(self) -> None:
        """Pass on what the negotiation of the connection wants to send."""
        assert self._negotiation is not None
        data = self._negotiation.data_to_send()
        self._out += self.noise.encrypt(data) if self.noise.is_established else data

    def _negotiate(self, side: multistream.Dialler | multistream.Listener, data: bytes) -> bytes:
        """Feed the negotiation; return what lies behind it once it is over."""
        side.receive(data)
        self._collect_negotiation()
        if side.protocol is None:
            return b""
        self._negotiation = None
        return side.rest

    def _agree_on_muxer(self, plaintext: bytes) -> bytes:
        """Start the muxer as soon as both sides know it; return the bytes for it."""
        if not self.noise.is_established:
            return b""
        if self.remote is None:
            self.remote = self.noise.remote
            assert self.remote is not None
            self._out += self.noise.data_to_send()
            if self._muxers_in_noise and self.remote.muxers:
                self._start_muxer(self._common_muxer(self.remote.muxers))
                return plaintext
            self._negotiation = self._first_negotiation(self._muxers)
            self._collect_negotiation()
        if not plaintext:
            return b""
        assert self._negotiation is not None
        side = self._negotiation
        rest = self._negotiate(side, plaintext)
        if side.protocol is not None:
            self._start_muxer(side.protocol)
        return rest

    def _common_muxer(self, remote: tuple[str, ...]) -> str:
        """The initiator's first that the responder has (T4)."""
        first, second = (self._muxers, remote) if self._dialler else (remote, self._muxers)
        for name in first:
            if name in second and name in _MUXERS:
                return name
        raise ProtocolNotSupported(self._muxers)

    def _start_muxer(self, name: str) -> None:
        assert self.remote is not None
        self.muxer = _MUXERS[name](dialler=self._dialler, limits=self.limits, budget=self.budget)
        self._events.append(Connected(self.remote, name))

    def _take_muxer_events(self, now_ms: int) -> None:
        """Pass on what happened on streams that the application knows; negotiate on the others."""
        assert self.muxer is not None
        dropped: set[int] = set()
        while (event := self.muxer.next_event()) is not None:
            if isinstance(event, GoneAway):
                self._events.append(event)
            elif event.stream_id in dropped:
                continue  # what came behind the bytes for which it was reset
            elif isinstance(event, muxer.StreamOpened):
                if not self._stream_of_peer(event.stream_id, now_ms):
                    dropped.add(event.stream_id)
            elif event.stream_id not in self._streams:
                self._events.append(event)
            elif not self._negotiate_further(event):
                dropped.add(event.stream_id)

    def _stream_of_peer(self, stream_id: int, now_ms: int) -> bool:
        if self._negotiating_by_peer >= self.limits.negotiating_streams:
            self.reset(stream_id)
            return False
        self._negotiating_by_peer += 1
        listener = multistream.Listener(self._supports, self.limits)
        self._negotiate_stream(stream_id, listener, now_ms, by_peer=True)
        return True

    def _negotiate_stream(
        self,
        stream_id: int,
        side: multistream.Dialler | multistream.Listener,
        now_ms: int,
        *,
        by_peer: bool,
    ) -> None:
        deadline_ms = now_ms + self.limits.negotiation_ms
        self._streams[stream_id] = _Negotiation(side, by_peer, deadline_ms)
        self.send(stream_id, side.data_to_send())

    def _negotiate_further(
        self, event: Received | RemoteEnded | StreamReset | StreamWritable
    ) -> bool:
        """Whether the stream lives on."""
        match event:
            case Received(stream_id, data):
                return self._negotiate_with(stream_id, data)
            case RemoteEnded(stream_id):
                self._drop(stream_id, "the peer ended it before a protocol was agreed")
                return False
            case StreamReset(stream_id, reason):
                self._drop(stream_id, reason)
                return False
            case StreamWritable():
                return True

    def _negotiate_with(self, stream_id: int, data: bytes) -> bool:
        negotiation = self._streams[stream_id]
        side = negotiation.side
        try:
            side.receive(data)
        except (PeerViolation, ProtocolNotSupported) as error:
            # One stream's bad negotiation does not end the connection (T3).
            self._drop(stream_id, str(error))
            return False
        if answer := side.data_to_send():
            self.send(stream_id, answer)
        rest = side.rest if side.protocol is not None else b""
        self.consumed(stream_id, len(data) - len(rest))
        if side.protocol is not None:
            self._forget_negotiation(stream_id)
            self._events.append(StreamAgreed(stream_id, side.protocol, negotiation.by_peer))
            if rest:
                self._events.append(Received(stream_id, rest))
        return True

    def _drop(self, stream_id: int, reason: str) -> None:
        """Reset a stream that did not agree; the application hears only of streams it opened."""
        negotiation = self._streams[stream_id]
        self.reset(stream_id)
        if not negotiation.by_peer:
            self._events.append(StreamReset(stream_id, reason))

    def _forget_negotiation(self, stream_id: int) -> None:
        negotiation = self._streams.pop(stream_id, None)
        if negotiation is not None and negotiation.by_peer:
            self._negotiating_by_peer -= 1
