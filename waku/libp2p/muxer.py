"""Common part of the muxers yamux and mplex, which carry many streams over one connection.

`receive` accepts bytes, `next_event` returns events, and `data_to_send` returns bytes to send. Each
stream has a number. Received bytes count against the limits until the application calls `consumed`.
In yamux, the peer gets more credit after a call of `consumed`.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections import deque
from dataclasses import dataclass, field
from typing import ClassVar, Final

from .budget import FRAME, NONSENSE, STREAM, Budget
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
"""Maximum number of stream numbers that are still accepted after a higher number."""
PIECE_BYTES: Final = 64 * 1024
"""Maximum length of a sent data frame (bytes). Peers close a connection that sends a frame above 1
MiB."""
GONE: Final = 1_024
"""Number of closed streams whose late frames are accepted."""
LATE_BYTES: Final = 64
"""Maximum size of late data on a closed stream, in addition to its window (bytes). A late frame
without data counts as one byte."""


@dataclass(frozen=True, slots=True)
class StreamOpened:
    """The peer opened a new stream."""

    stream_id: int


@dataclass(frozen=True, slots=True)
class Received:
    """Bytes of the peer arrived on a stream."""

    stream_id: int
    data: bytes


@dataclass(frozen=True, slots=True)
class RemoteEnded:
    """The peer sends no more data on a stream. This side may still send data."""

    stream_id: int


@dataclass(frozen=True, slots=True)
class StreamReset:
    """A stream is closed at once, with its undelivered data."""

    stream_id: int
    reason: str


@dataclass(frozen=True, slots=True)
class StreamWritable:
    """The peer gave credit, and no data of the stream is waiting any longer."""

    stream_id: int


@dataclass(frozen=True, slots=True)
class GoneAway:
    """The peer opens no more streams, and accepts no more streams."""

    code: int


MuxerEvent = StreamOpened | Received | RemoteEnded | StreamReset | StreamWritable | GoneAway


@dataclass(slots=True)
class MuxedStream:
    """State of one stream inside the muxer."""

    by_peer: bool
    receive_window: int = 0
    """Number of bytes that the peer may still send. In mplex, the value is the number of bytes that
    are expected after a reset."""
    send_window: int = sys.maxsize
    """Number of bytes that may still be sent to the peer (yamux)."""
    unconsumed: int = 0
    credit: int = 0
    """Number of read bytes for which the peer has no credit yet (yamux)."""
    waiting: bytearray = field(default_factory=bytearray)
    """Bytes that wait to be sent. If the stream is reset, its waiting bytes are dropped."""
    local_ended: bool = False
    remote_ended: bool = False

    @property
    def is_over(self) -> bool:
        """True if both sides have ended the stream."""
        return self.local_ended and self.remote_ended


class PeerNumbers:
    """Set of a peer's stream numbers, which come once each and slightly out of order.

    Opening frames of go-libp2p can overtake each other if several streams are opened at once (T21).
    """

    def __init__(self, first: int, step: int) -> None:
        self._next = first
        self._step = step
        self._late: dict[int, None] = {}
        """The latest numbers that were left out."""

    def take(self, number: int) -> None:
        """Add a new stream number to the set.

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
            raise PeerViolation(f"the peer opened stream {number} twice")


class Muxer(ABC):
    """Muxer for the streams of one connection."""

    protocol: ClassVar[str]

    def __init__(self, *, dialler: bool, limits: Limits, budget: Budget | None = None) -> None:
        self._dialler = dialler
        self._limits = limits
        self.budget = budget or Budget(limits.frames_per_s)
        self._streams: dict[int, MuxedStream] = {}
        self._by_peer = 0
        self._buffered = 0
        self._events: deque[MuxerEvent] = deque()
        self._received = bytearray()
        self._out = bytearray()
        self._control_bytes = 0
        self._opening: dict[int, bytes] = {}
        """Own streams whose first frame has not left."""
        self._sending: dict[int, None] = {}
        """Streams on which something may leave, in this order."""
        self._gone: dict[int, int] = {}
        """Late bytes that are expected of each stream that is gone: sent before the peer knew."""

    def next_event(self) -> MuxerEvent | None:
        """Return the oldest event that was not returned yet, or None."""
        return self._events.popleft() if self._events else None

    def data_to_send(self) -> bytes:
        """Remove and return the bytes for the peer."""
        sending, self._sending = self._sending, {}
        for stream_id in sending:
            if (stream := self._streams.get(stream_id)) is not None:
                self._out += self._opening.pop(stream_id, b"")
                self._pack(stream_id, stream)
                self._finish(stream_id, stream)
        data = bytes(self._out)
        self._out.clear()
        self._control_bytes = 0
        return data

    @property
    def has_data_to_send(self) -> bool:
        """True if `data_to_send` would return bytes."""
        return bool(self._out or self._sending)

    def receive(self, data: bytes) -> None:
        """Receive bytes from the peer. Bytes beyond the turn of the connection are kept for the
        next call.

        Raises:
            PeerViolation: they break the muxer's rules, or pass a limit.
        """
        self._received += data
        start = 0
        budget = self.budget
        while not budget.is_spent and (end := self._take_frame(start)) is not None:
            budget.charge(FRAME, "frames of the muxer")
            start = end
        del self._received[:start]

    @abstractmethod
    def open_stream(self) -> int:
        """Open a stream and return its number."""

    def send(self, stream_id: int, data: bytes) -> None:
        """Send bytes on a stream that this side has not ended. If the stream is closed, nothing is
        sent."""
        stream = self._streams.get(stream_id)
        if stream is not None and not stream.local_ended and data:
            stream.waiting += data
            self._sending[stream_id] = None

    def end(self, stream_id: int) -> None:
        """End this side of a stream, after waiting data is sent."""
        stream = self._streams.get(stream_id)
        if stream is not None and not stream.local_ended:
            stream.local_ended = True
            if stream_id not in self._sending:
                self._finish(stream_id, stream)

    def reset(self, stream_id: int) -> None:
        """Drop a stream at once, with all its waiting data.

        If both sides have ended the stream and the credit suffices, waiting data is still sent.
        """
        stream = self._streams.get(stream_id)
        if stream is not None and stream.is_over and not self.waiting_bytes(stream_id):
            return  # because `data_to_send` forgets the stream behind its end
        is_known = stream_id not in self._opening
        if self._forget(stream_id) and is_known:
            self._write_reset(stream_id)

    def consumed(self, stream_id: int, size_bytes: int) -> None:
        """Note that received bytes were read, so that the peer may send more."""
        stream = self._streams.get(stream_id)
        if stream is None:
            return
        size_bytes = min(size_bytes, stream.unconsumed)
        stream.unconsumed -= size_bytes
        self._buffered -= size_bytes
        self._give_credit(stream_id, stream, size_bytes)

    def waiting_bytes(self, stream_id: int) -> int:
        """Return how many bytes of a stream wait until the peer gives credit."""
        stream = self._streams.get(stream_id)
        return 0 if stream is None else max(0, len(stream.waiting) - stream.send_window)

    @property
    def stream_count(self) -> int:
        """Number of streams that are open in at least one direction."""
        return len(self._streams)

    @abstractmethod
    def _take_frame(self, start: int) -> int | None:
        """Handle the frame at `start` of `_received`; return where the next begins."""

    @abstractmethod
    def _write_data(self, stream_id: int, data: bytearray) -> None: ...

    @abstractmethod
    def _write_end(self, stream_id: int) -> None: ...

    @abstractmethod
    def _write_reset(self, stream_id: int) -> None: ...

    @abstractmethod
    def _give_credit(self, stream_id: int, stream: MuxedStream, size_bytes: int) -> None: ...

    def _pack(self, stream_id: int, stream: MuxedStream) -> None:
        """Move what waits to `_out`, as far as the peer's credit goes."""
        size = min(len(stream.waiting), stream.send_window)
        for begin in range(0, size, PIECE_BYTES):
            self._write_data(stream_id, stream.waiting[begin : min(begin + PIECE_BYTES, size)])
        del stream.waiting[:size]
        stream.send_window -= size

    def _open(self, stream_id: int, stream: MuxedStream, frame: bytes) -> None:
        """Add a stream of this side, which `frame` opens."""
        self._streams[stream_id] = stream
        self._opening[stream_id] = frame
        self._sending[stream_id] = None

    def _peer_opens(self, stream_id: int, stream: MuxedStream) -> bool:
        """Add a stream of the peer; reset it where there are too many."""
        self.budget.charge(STREAM, "new streams")
        if self._by_peer >= self._limits.streams_by_peer:
            self._expect_late_frames(stream_id, stream)
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
        stream = self._streams.get(stream_id)
        if stream is not None:
            stream.remote_ended = True
            self._forget(stream_id)
            if not stream.local_ended:
                self._nonsense("resets")
            self._events.append(StreamReset(stream_id, "the peer reset it"))

    def _frame_of_no_stream(self, stream_id: int, size_bytes: int) -> None:
        """Pay for a frame whose stream is unknown: cheap where it was open a moment ago (T5)."""
        left = self._gone.get(stream_id, 0) - max(size_bytes, 1)
        if left >= 0:
            self._gone[stream_id] = left
        else:
            self._nonsense("frames for no stream")

    def _nonsense(self, what: str) -> None:
        self.budget.charge(NONSENSE, what)

    def _expect_late_frames(self, stream_id: int, stream: MuxedStream) -> None:
        window = 0 if stream.remote_ended else stream.receive_window
        self._gone[stream_id] = window + LATE_BYTES
        if len(self._gone) > GONE:
            del self._gone[next(iter(self._gone))]

    def _finish(self, stream_id: int, stream: MuxedStream) -> None:
        """Send the end, once it is this side's turn: it waits behind data (T5)."""
        if stream.local_ended and not stream.waiting:
            self._write_end(stream_id)
            self._forget_if_over(stream_id, stream)

    def _forget_if_over(self, stream_id: int, stream: MuxedStream) -> None:
        if stream.is_over and not stream.waiting and stream_id not in self._sending:
            self._forget(stream_id)

    def _forget(self, stream_id: int) -> bool:
        stream = self._streams.pop(stream_id, None)
        if stream is None:
            return False
        self._buffered -= stream.unconsumed
        self._by_peer -= stream.by_peer
        self._opening.pop(stream_id, None)
        self._expect_late_frames(stream_id, stream)
        return True

    def _write_control(self, frame: bytes) -> None:
        """Queue a frame that the peer provoked."""
        self._control_bytes += len(frame)
        if self._control_bytes > self._limits.control_bytes:
            raise LimitExceeded(
                "control_bytes", self._limits.control_bytes, "frames and reads no answers"
            )
        self._out += frame
