"""mplex 6.7, a muxer whose streams have no flow control. js-waku offers no other muxer by default.

The specification is https://github.com/libp2p/specs/blob/master/mplex/README.md.

Each side counts its own streams from 0 (T6). In this module the peer's stream n therefore has the
number -(n + 1).
"""

from __future__ import annotations

from typing import ClassVar, Final

from . import varint
from .budget import Budget
from .errors import InvalidInput, LimitExceeded, PeerViolation
from .limits import Limits
from .muxer import MuxedStream, Muxer, PeerNumbers

__all__ = ["Mplex"]

_NEW, _MESSAGE, _CLOSE, _RESET = 0, 2, 4, 6
"""Flags of the side that opened the stream; the other side's are one less (there is no -1)."""
_FLAGS: Final = 8


class Mplex(Muxer):
    """Muxer for the streams of one mplex connection."""

    protocol: ClassVar[str] = "/mplex/6.7.0"

    def __init__(self, *, dialler: bool, limits: Limits, budget: Budget | None = None) -> None:
        super().__init__(dialler=dialler, limits=limits, budget=budget)
        self._next_id = 0
        self._numbers = PeerNumbers(0, 1)

    def open_stream(self) -> int:
        """Open a stream whose name is its number, as in go-libp2p."""
        stream_id = self._next_id
        self._next_id += 1
        name = varint.prefixed(str(stream_id).encode())
        frame = varint.encode(stream_id * _FLAGS + _NEW) + name
        self._open(stream_id, self._new_stream(by_peer=False), frame)
        return stream_id

    def _take_frame(self, start: int) -> int | None:
        try:
            header = varint.decode(self._received, start)
            size = None if header is None else varint.decode(self._received, header[1])
        except InvalidInput as error:
            raise PeerViolation(f"the header of an mplex frame is damaged: {error}") from error
        if header is None or size is None:
            return None
        length, begin = size
        if length > self._limits.frame_bytes:
            raise LimitExceeded("frame_bytes", self._limits.frame_bytes, f"a frame of {length}")
        if begin + length > len(self._received):
            return None
        number, flag = divmod(header[0], _FLAGS)
        data = bytes(memoryview(self._received)[begin : begin + length])
        self._frame(number, flag, data)
        return begin + length

    def _frame(self, number: int, flag: int, data: bytes) -> None:
        if flag == _NEW:
            self._open_by_peer(number)
            return
        if flag == 7:
            raise PeerViolation("the mplex frame has the unknown flag 7")
        by_opener = flag % 2 == 0
        stream_id = -(number + 1) if by_opener else number
        kind = flag if by_opener else flag + 1
        stream = self._streams.get(stream_id)
        if stream is None:
            self._frame_of_no_stream(stream_id, len(data))
        elif kind == _RESET:
            self._peer_reset(stream_id)
        elif kind == _CLOSE:
            self._peer_ended(stream_id, stream)
        elif stream.remote_ended:
            raise PeerViolation(
                f"the peer sent data on stream {stream_id} after it had ended the stream"
            )
        elif data:
            self._deliver(stream_id, stream, data)
        else:
            self._nonsense("frames without data")

    def _open_by_peer(self, number: int) -> None:
        self._numbers.take(number)
        self._peer_opens(-(number + 1), self._new_stream(by_peer=True))

    def _write_data(self, stream_id: int, data: bytearray) -> None:
        self._out += self._header(stream_id, _MESSAGE) + varint.encode(len(data))
        self._out += data

    def _write_end(self, stream_id: int) -> None:
        self._out += self._header(stream_id, _CLOSE) + b"\0"

    def _write_reset(self, stream_id: int) -> None:
        self._write_control(self._header(stream_id, _RESET) + b"\0")

    def _give_credit(self, stream_id: int, stream: MuxedStream, size_bytes: int) -> None:
        pass  # mplex has no flow control

    def _new_stream(self, *, by_peer: bool) -> MuxedStream:
        return MuxedStream(by_peer, receive_window=self._limits.stream_buffer_bytes)

    @staticmethod
    def _header(stream_id: int, kind: int) -> bytes:
        if stream_id >= 0:
            return varint.encode(stream_id * _FLAGS + kind)
        return varint.encode(-(stream_id + 1) * _FLAGS + kind - 1)
