"""What one connection may cost: each bound has a name, and `LimitExceeded` quotes it."""

from __future__ import annotations

from dataclasses import dataclass, fields

__all__ = ["Limits"]

MEBIBYTE = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of one connection. Times in milliseconds, sizes in bytes.

    Raises:
        ValueError: a bound is below 1; the message names it.
    """

    handshake_ms: int = 10_000
    """From the first byte until the muxer runs."""
    negotiation_ms: int = 60_000
    """From the opening of a stream until its protocol is agreed; then the stream is reset. Not
    short, because js-waku opens streams ahead of their use (T10)."""
    idle_ms: int = 300_000
    """A connection without any byte received for this long is closed. nim-libp2p has the same."""
    streams_by_peer: int = 1_024
    """Open streams that the peer opened. A stream beyond is reset; the connection lives on."""
    negotiating_streams: int = 256
    """Streams by the peer whose protocol is not agreed yet. js-waku opens some ahead (T10)."""
    stream_buffer_bytes: int = 4 * MEBIBYTE
    """Received and not consumed on one stream; the stream is reset beyond. mplex has no flow
    control, so a slow reader meets it."""
    connection_buffer_bytes: int = 8 * MEBIBYTE
    """The same, on all streams together; the connection ends beyond."""
    frame_bytes: int = MEBIBYTE
    """Longest muxer frame (the mplex specification's value)."""
    multistream_line_bytes: int = 1_024
    """Longest line of a protocol negotiation (go-multistream's value)."""
    multistream_lines: int = 32
    """Protocols that a peer may ask for before it agrees to one."""
    control_bytes: int = 65_536
    """Answers to pings, window updates and resets that the peer has not read yet."""
    frames_per_s: int = 100_000
    """Frames that the peer may send, with a burst of two seconds. The connection ends beyond. New
    streams and pings count several times, nonsense 100 times (`budget`)."""
    write_ms: int = 30_000
    """A connection is closed if bytes wait and its socket takes less than 16 KiB in this time."""

    def __post_init__(self) -> None:
        for field in fields(self):
            if getattr(self, field.name) < 1:
                raise ValueError(
                    f"`{field.name}` must be at least 1 (got {getattr(self, field.name)})"
                )
