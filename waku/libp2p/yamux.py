"""yamux 1.0, a muxer whose streams have flow control.

The specifications are https://github.com/hashicorp/yamux/blob/master/spec.md and
https://github.com/libp2p/specs/blob/master/yamux/README.md.
"""

from __future__ import annotations

from struct import Struct
from typing import ClassVar, Final

from .budget import PING, Budget
from .errors import LimitExceeded, PeerViolation
from .limits import Limits
from .muxer import GoneAway, MuxedStream, Muxer, PeerNumbers, StreamWritable

__all__ = ["INITIAL_WINDOW_BYTES", "Yamux"]

INITIAL_WINDOW_BYTES: Final = 256 * 1024
_MAX_WINDOW: Final = 2**32 - 1

_HEADER: Final = Struct(">BBHII")
_VERSION: Final = 0
_DATA, _WINDOW_UPDATE, _PING, _GO_AWAY = range(4)
_SYN, _ACK, _FIN, _RST = 1, 2, 4, 8
_SESSION: Final = 0
_NORMAL_TERMINATION: Final = 0


def _frame(kind: int, flags: int, stream_id: int, length: int) -> bytes:
    return _HEADER.pack(_VERSION, kind, flags, stream_id, length)


class Yamux(Muxer):
    """Muxer for the streams of one yamux connection. The dialling side gives its streams odd
    numbers."""

    protocol: ClassVar[str] = "/yamux/1.0.0"

    def __init__(self, *, dialler: bool, limits: Limits, budget: Budget | None = None) -> None:
        super().__init__(dialler=dialler, limits=limits, budget=budget)
        self._next_id = 1 if dialler else 2
        self._numbers = PeerNumbers(2 if dialler else 1, 2)

    def open_stream(self) -> int:
        """Open a stream by sending a window update with SYN (T5)."""
        stream_id = self._next_id
        if stream_id > _MAX_WINDOW - 2:
            raise PeerViolation("the stream numbers are used up; open a new connection")
        self._next_id += 2
        frame = _frame(_WINDOW_UPDATE, _SYN, stream_id, 0)
        self._open(stream_id, _new_stream(by_peer=False), frame)
        return stream_id

    def go_away(self) -> None:
        """Announce that this side opens no more streams and accepts none."""
        self._out += _frame(_GO_AWAY, 0, _SESSION, _NORMAL_TERMINATION)

    def _take_frame(self, start: int) -> int | None:
        if len(self._received) - start < _HEADER.size:
            return None
        header: tuple[int, int, int, int, int] = _HEADER.unpack_from(self._received, start)
        version, kind, flags, stream_id, length = header
        if version != _VERSION:
            raise PeerViolation(f"the yamux frame has version {version} instead of {_VERSION}")
        begin = start + _HEADER.size
        if kind != _DATA:
            self._control(kind, flags, stream_id, length)
            return begin
        if length > self._limits.frame_bytes:
            raise LimitExceeded("frame_bytes", self._limits.frame_bytes, f"a frame of {length}")
        end: int = begin + length
        if end > len(self._received):
            return None
        stream = self._stream_of(stream_id, flags, length)
        if stream is not None and length:
            self._data(stream_id, stream, bytes(memoryview(self._received)[begin:end]))
        if flags:
            self._closing_flags(stream_id, flags)
        elif not length:
            self._nonsense("frames without data")
        return end

    def _control(self, kind: int, flags: int, stream_id: int, length: int) -> None:
        if kind == _WINDOW_UPDATE:
            stream = self._stream_of(stream_id, flags)
            if stream is not None and length:
                self._more_credit(stream_id, stream, length)
            elif not length and not flags:
                self._nonsense("window updates without credit")
            self._closing_flags(stream_id, flags)
        elif kind == _PING:
            if flags & _SYN:
                self.budget.charge(PING, "pings of yamux")
                self._write_control(_frame(_PING, _ACK, _SESSION, length))
            else:  # this side sends none
                self._nonsense("answers to no ping")
        elif kind == _GO_AWAY:
            self._nonsense("frames that say that it goes away")
            self._events.append(GoneAway(length))
        else:
            raise PeerViolation(f"the yamux frame has the unknown type {kind}")

    def _stream_of(self, stream_id: int, flags: int, size_bytes: int = 0) -> MuxedStream | None:
        """The frame's stream; None for one that is gone, which is normal after a reset (T5)."""
        if not flags & _SYN:
            if stream_id == _SESSION:
                raise PeerViolation("a yamux frame for a stream has the number of the session")
            stream = self._streams.get(stream_id)
            if stream is None:
                self._frame_of_no_stream(stream_id, size_bytes)
            return stream
        if stream_id == _SESSION or (stream_id % 2 == 1) == self._dialler:
            raise PeerViolation(
                f"the peer opened stream {stream_id}, a number that belongs to this side"
            )
        self._numbers.take(stream_id)
        if self._peer_opens(stream_id, _new_stream(by_peer=True)):
            self._write_control(_frame(_WINDOW_UPDATE, _ACK, stream_id, 0))
        return self._streams.get(stream_id)

    def _closing_flags(self, stream_id: int, flags: int) -> None:
        if flags & _RST:
            self._peer_reset(stream_id)
        elif flags & _FIN and (stream := self._streams.get(stream_id)) is not None:
            self._peer_ended(stream_id, stream)

    def _data(self, stream_id: int, stream: MuxedStream, data: bytes) -> None:
        if stream.remote_ended:
            raise PeerViolation(
                f"the peer sent data on stream {stream_id} after it had ended the stream"
            )
        if len(data) > stream.receive_window:
            raise PeerViolation(
                f"the peer sent {len(data)} bytes on stream {stream_id}, whose window is "
                f"{stream.receive_window}"
            )
        stream.receive_window -= len(data)
        self._deliver(stream_id, stream, data)

    def _give_credit(self, stream_id: int, stream: MuxedStream, size_bytes: int) -> None:
        stream.credit += size_bytes
        if stream.credit >= INITIAL_WINDOW_BYTES // 2 and not stream.remote_ended:
            stream.receive_window += stream.credit
            self._out += _frame(_WINDOW_UPDATE, 0, stream_id, stream.credit)
            stream.credit = 0

    def _more_credit(self, stream_id: int, stream: MuxedStream, size_bytes: int) -> None:
        stream.send_window = min(stream.send_window + size_bytes, _MAX_WINDOW)
        if stream.waiting:
            self._sending[stream_id] = None
            if not self.waiting_bytes(stream_id):
                self._events.append(StreamWritable(stream_id))

    def _write_data(self, stream_id: int, data: bytearray) -> None:
        self._out += _frame(_DATA, 0, stream_id, len(data))
        self._out += data

    def _write_end(self, stream_id: int) -> None:
        self._out += _frame(_WINDOW_UPDATE, _FIN, stream_id, 0)

    def _write_reset(self, stream_id: int) -> None:
        self._write_control(_frame(_WINDOW_UPDATE, _RST, stream_id, 0))


def _new_stream(*, by_peer: bool) -> MuxedStream:
    return MuxedStream(
        by_peer, receive_window=INITIAL_WINDOW_BYTES, send_window=INITIAL_WINDOW_BYTES
    )
