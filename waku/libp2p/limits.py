"""Limits of one libp2p connection. A `LimitExceeded` error names the exceeded limit."""

from __future__ import annotations

from dataclasses import dataclass, fields

__all__ = ["Limits"]

MEBIBYTE = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of one libp2p connection. Times are in milliseconds, sizes in bytes.

    Raises:
        ValueError: a bound is below 1; the message names it.
    """

    handshake_ms: int = 10_000
    """Time (ms) from the first byte until the muxer runs."""
    negotiation_ms: int = 60_000
    """Time (ms) to agree on the protocol of a new stream. After this time the stream is reset. The
    time is long, because js-waku opens streams before it uses them (T10)."""
    idle_ms: int = 300_000
    """Time (ms) without a received byte after which a connection is closed, as in nim-libp2p."""
    streams_by_peer: int = 1_024
    """Maximum number of open streams that the peer opened. Further streams are reset, but the
    connection stays open."""
    negotiating_streams: int = 256
    """Maximum number of the peer's streams without an agreed protocol. js-waku opens some streams
    before it uses them (T10)."""
    stream_buffer_bytes: int = 4 * MEBIBYTE
    """Maximum number of received bytes of one stream that were not read. A stream with more unread
    bytes is reset. mplex has no flow control, so slow readers reach this limit."""
    connection_buffer_bytes: int = 8 * MEBIBYTE
    """Maximum number of received bytes of all streams together that were not read. A connection
    with more unread bytes is closed."""
    frame_bytes: int = MEBIBYTE
    """Maximum length of a muxer frame (bytes, from the mplex specification)."""
    multistream_line_bytes: int = 1_024
    """Maximum length of a line in a protocol negotiation (bytes, from go-multistream)."""
    multistream_lines: int = 32
    """Maximum number of protocols that a peer may propose in one negotiation."""
    control_bytes: int = 65_536
    """Maximum size (bytes) of answers to pings, window updates and resets that the peer has not
    read."""
    frames_per_s: int = 100_000
    """Maximum number of frames that a peer may send each second, with a burst of two seconds. A
    connection with more frames is closed. A new stream or a ping counts as several frames, and an
    invalid frame as 100 (`budget`)."""
    write_ms: int = 30_000
    """Time (ms) in which a socket must accept 16 KiB of waiting bytes. After this time the
    connection is closed."""

    def __post_init__(self) -> None:
        for field in fields(self):
            if getattr(self, field.name) < 1:
                raise ValueError(
                    f"`{field.name}` must be at least 1 (got {getattr(self, field.name)})"
                )
