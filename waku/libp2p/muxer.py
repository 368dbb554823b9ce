"""Many streams over one connection: what yamux and mplex have in common.

A muxer takes bytes (`receive`), hands out what happened (`next_event`) and what to send
(`data_to_send`). Streams are numbers. What was received counts against the limits until the
application says that it `consumed` it; only then yamux gives the peer credit for more.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from dataclasses import dataclass, field
from typing import ClassVar, Final

from .errors import LimitExceeded, PeerViolation
from .limits import Limits

__all__ = [
    "GoneAway",
    "Muxer",
    "MuxerEvent",
    "PeerNumbers",
    "Received",
    "RemoteEnded",
    "StreamOpened",
    "StreamReset",
    "StreamWritable",
]

LATE: Final = 64
"""Numbers that may still come after a higher one."""


@dataclass(frozen=True, slots=True)
class StreamOpened:
    """The peer opened a stream."""

    stream_id: int


@dataclass(frozen=True, slots=True)
class Received:
    """Bytes came on a stream."""

    stream_id: int
    data: bytes


@dataclass(frozen=True, slots=True)
class RemoteEnded:
    """The peer sends nothing more on a stream; this side still may."""

    stream_id: int


@dataclass(frozen=True, slots=True)
class StreamReset:
    """A stream is gone, with what was not delivered."""

    stream_id: int
    reason: str


@dataclass(frozen=True, slots=True)
class StreamWritable:
    """The peer gave credit: nothing of the stream waits any longer."""

    stream_id: int


@dataclass(frozen=True, slots=True)
class GoneAway:
    """The peer opens and takes no more streams."""

    code: int


MuxerEvent = StreamOpened | Received | RemoteEnded | StreamReset | StreamWritable | GoneAway


@dataclass(slots=True)
class MuxedStream:
    """One stream as the muxer knows it."""

    by_peer: bool
    receive_window: int = 0
    """Bytes that the peer may still send (yamux)."""
    send_window: int = 0
    """Bytes that may still be sent to the peer (yamux)."""
    unconsumed: int = 0
    credit: int = 0
    """Consumed bytes for which the peer has no credit yet (yamux)."""
    waiting: bytearray = field(default_factory=bytearray)
    """Bytes that wait for the peer's credit (yamux)."""
    local_ended: bool = False
    remote_ended: bool = False


class PeerNumbers:
    """The numbers of streams that a peer opens: each once, and a little out of order.

    T21: go-libp2p's opening frames overtake each other where several streams are opened at once.
    """

    def __init__(self, first: int, step: int) -> None:
        self._next = first
        self._step = step
        self._late: dict[int, None] = {}
        """The latest numbers that were left out."""

    def take(self, number: int) -> None:
        """Note a number.

        Raises:
            PeerViolation: it was used before, or is far behind the others.
        """
        if number >= self._next:
            begin = max(self._next, number - LATE * self._step)
            self._late.update(dict.fromkeys(range(begin, number, self._step)))
            while len(self._late) > LATE:
                del self._late[next(iter(self._late))]
            self._next = number + self._step
        elif number in self._late:
            del self._late[number]
        else:
            raise PeerViolation(f"the peer opens stream {number} again")


class Muxer(ABC):
    """The streams of one connection."""

    protocol: ClassVar[str]

    def __init__(self, *, dialler: bool, limits: Limits) -> None:
        self._dialler = dialler
        self._limits = limits
        self._streams: dict[int, MuxedStream] = {}
        self._by_peer = 0
        self._buffered = 0
        self._events: deque[MuxerEvent] = deque()
        self._received = bytearray()
        self._out = bytearray()
        self._control_bytes = 0

    def next_event(self) -> MuxerEvent | None:
        """Return the oldest event that was not handed out yet."""
        return self._events.popleft() if self._events else None

    def data_to_send(self) -> bytes:
        """Return and forget the bytes for the peer."""
        data = bytes(self._out)
        self._out.clear()
        self._control_bytes = 0
        return data

    @property
    def has_data_to_send(self) -> bool:
        """Whether `data_to_send` would return any."""
        return bool(self._out)

    def receive(self, data: bytes) -> None:
        """Take bytes of the peer.

        Raises:
            PeerViolation: they break the muxer's rules, or pass a limit.
        """
        self._received += data
        start = 0
        while (end := self._take_frame(start)) is not None:
            start = end
        del self._received[:start]

    @abstractmethod
    def open_stream(self) -> int:
        """Open a stream; return its number."""

    def send(self, stream_id: int, data: bytes) -> None:
        """Send bytes on a stream that this side has not ended; nothing on one that is gone."""
        stream = self._streams.get(stream_id)
        if stream is not None and not stream.local_ended and data:
            self._send(stream_id, stream, data)

    def end(self, stream_id: int) -> None:
        """Send nothing more on a stream; what waits for credit still goes."""
        stream = self._streams.get(stream_id)
        if stream is not None and not stream.local_ended:
            stream.local_ended = True
            self._end(stream_id, stream)
            self._forget_if_over(stream_id, stream)

    def reset(self, stream_id: int) -> None:
        """Drop a stream, with all that waits on it."""
        if self._forget(stream_id):
            self._write_reset(stream_id)

    def consumed(self, stream_id: int, size_bytes: int) -> None:
        """Say that received bytes were taken from their buffer."""
        stream = self._streams.get(stream_id)
        if stream is None:
            return
        size_bytes = min(size_bytes, stream.unconsumed)
        stream.unconsumed -= size_bytes
        self._buffered -= size_bytes
        self._give_credit(stream_id, stream, size_bytes)

    def waiting_bytes(self, stream_id: int) -> int:
        """Bytes of a stream that wait for the peer's credit."""
        stream = self._streams.get(stream_id)
        return 0 if stream is None else len(stream.waiting)

    @property
    def stream_count(self) -> int:
        """Streams that are open in at least one direction."""
        return len(self._streams)

    @abstractmethod
    def _take_frame(self, start: int) -> int | None:
        """Handle the frame at `start` of `_received`; return where the next begins."""

    @abstractmethod
    def _send(self, stream_id: int, stream: MuxedStream, data: bytes) -> None: ...

    @abstractmethod
    def _end(self, stream_id: int, stream: MuxedStream) -> None: ...

    @abstractmethod
    def _write_reset(self, stream_id: int) -> None: ...

    @abstractmethod
    def _give_credit(self, stream_id: int, stream: MuxedStream, size_bytes: int) -> None: ...

    def _peer_opens(self, stream_id: int, stream: MuxedStream) -> bool:
        """Add a stream of the peer; reset it where there are too many."""
        if self._by_peer >= self._limits.streams_by_peer:
            self._write_reset(stream_id)
            return False
        self._streams[stream_id] = stream
        self._by_peer += 1
        self._events.append(StreamOpened(stream_id))
        return True

    def _deliver(self, stream_id: int, stream: MuxedStream, data: bytes) -> None:
        """Hand out received bytes, within the limits."""
        stream.unconsumed += len(data)
        self._buffered += len(data)
        limits = self._limits
        if self._buffered > limits.connection_buffer_bytes:
            raise LimitExceeded(
                "connection_buffer_bytes", limits.connection_buffer_bytes, "more, unread"
            )
        if stream.unconsumed > limits.stream_buffer_bytes:
            self.reset(stream_id)
            reason = f"it was not read: `stream_buffer_bytes` is {limits.stream_buffer_bytes}"
            self._events.append(StreamReset(stream_id, reason))
            return
        self._events.append(Received(stream_id, data))

    def _peer_ended(self, stream_id: int, stream: MuxedStream) -> None:
        if not stream.remote_ended:
            stream.remote_ended = True
            self._events.append(RemoteEnded(stream_id))
            self._forget_if_over(stream_id, stream)

    def _peer_reset(self, stream_id: int) -> None:
        if self._forget(stream_id):
            self._events.append(StreamReset(stream_id, "the peer reset it"))

    def _forget_if_over(self, stream_id: int, stream: MuxedStream) -> None:
        if stream.local_ended and stream.remote_ended and not stream.waiting:
            self._forget(stream_id)

    def _forget(self, stream_id: int) -> bool:
        stream = self._streams.pop(stream_id, None)
        if stream is None:
            return False
        self._buffered -= stream.unconsumed
        self._by_peer -= stream.by_peer
        return True

    def _write_control(self, frame: bytes) -> None:
        """Queue a frame that the peer provoked."""
        self._control_bytes += len(frame)
        if self._control_bytes > self._limits.control_bytes:
            raise LimitExceeded(
                "control_bytes", self._limits.control_bytes, "frames and reads no answers"
            )
        self._out += frame
