"""Limits of one connection. `LimitExceeded` quotes the name of a limit."""

from __future__ import annotations

from dataclasses import dataclass, fields

__all__ = ["Limits"]

MEBIBYTE = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of one connection. Times are in milliseconds, sizes in bytes.

    Raises:
        ValueError: a bound is below 1; the message names it.
    """

    handshake_ms: int = 10_000
    """Time from the first byte until the muxer runs."""
    negotiation_ms: int = 60_000
    """Time to agree on the protocol of a new stream. The stream is then reset. It is long, because
    js-waku opens streams before it uses them (T10)."""
    idle_ms: int = 300_000
    """Time without a received byte after which a connection is closed, as in nim-libp2p."""
    streams_by_peer: int = 1_024
    """Open streams of the peer. Further streams are reset, and the connection lives on."""
    negotiating_streams: int = 256
    """Streams of the peer without an agreed protocol. js-waku opens some ahead (T10)."""
    stream_buffer_bytes: int = 4 * MEBIBYTE
    """Received bytes of one stream that were not consumed. A stream with more is reset. mplex has
    no flow control, so slow readers reach this limit."""
    connection_buffer_bytes: int = 8 * MEBIBYTE
    """Received bytes of all streams together that were not consumed. A connection with more is
    closed."""
    frame_bytes: int = MEBIBYTE
    """Maximum length of a muxer frame (value of the mplex specification)."""
    multistream_line_bytes: int = 1_024
    """Maximum length of a line in a protocol negotiation (value of go-multistream)."""
    multistream_lines: int = 32
    """Protocols that a peer may propose before it agrees to one."""
    control_bytes: int = 65_536
    """Answers to pings, window updates and resets that the peer has not read yet."""
    frames_per_s: int = 100_000
    """Frames that the peer may send each second, with a burst of two seconds. The connection then
    ends. New streams and pings count several times, and invalid frames 100 times (`budget`)."""
    write_ms: int = 30_000
    """Time in which a socket must accept 16 KiB of waiting bytes. Otherwise the connection is
    closed."""

    def __post_init__(self) -> None:
        for field in fields(self):
            if getattr(self, field.name) < 1:
                raise ValueError(
                    f"`{field.name}` must be at least 1 (got {getattr(self, field.name)})"
                )
