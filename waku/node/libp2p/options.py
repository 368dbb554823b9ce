"""Addresses at which a node listens for libp2p peers, and limits for peers."""

from __future__ import annotations

import socket
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Final

from waku.discovery import NodeRecord
from waku.libp2p import InvalidInput, Multiaddr, PrivateKey

__all__ = ["Listen", "ListenLimits"]

MIB: Final = 1024 * 1024
_OWN: Final = frozenset({"ip4", "ip6"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenLimits:
    """Limits for libp2p peers, for each of them and for all together. The log names a peer that
    exceeds a limit.

    Further limits: `service_requests_per_s` and `max_message_bytes` of `NodeOptions`. The limits of
    the filter table and of the Store are the same as for REST.

    Raises:
        ValueError: a limit is below 1; the message names it.
    """

    connections: int = 200
    """Maximum number of simultaneous connections, of all peers together. Further connections are
    closed. The limit is lower if the process may not open so many files."""
    connections_by_address: int = 64
    """Connections at once from one IP address. If a TLS proxy stands in front, set it to
    `connections`."""
    handshake_ms: int = 10_000
    """Time from the first byte of a connection until the peer has proven its identity."""
    idle_ms: int = 300_000
    """Time without a byte after which a connection is closed."""
    streams: int = 256
    """Maximum number of open streams of one connection. A further stream is reset."""
    buffer_bytes: int = 4 * MIB
    """Maximum number of received, unread bytes of one connection. A connection with more unread
    bytes is closed."""
    frames_per_s: int = 100_000
    """Frames that a connection may send each second, with a burst of two seconds. A connection that
    sends more is closed. New streams and pings count several times, and invalid frames 100
    times."""
    requests_at_once: int = 8
    """Requests of one peer that are served at once. Further requests wait in `buffer_bytes`."""
    request_ms: int = 30_000
    """Time from the first byte of a request until the peer has read the answer. The node then
    closes the connection."""
    page_bytes: int = 4 * MIB
    """Maximum number of messages in one page of a Store answer. Further messages are in the next
    page."""
    answer_bytes: int = 128 * MIB
    """Maximum number of answers that wait until peers read them, of all peers together. Further
    requests are refused (503)."""
    topic_bytes: int = 256
    """Maximum length of a topic in a filter subscription. Longer topics are refused (400)."""
    push_messages: int = 1_024
    """Maximum number of messages that wait to be pushed to one peer. The oldest messages are
    dropped."""
    push_bytes: int = 4 * MIB
    """Maximum number of bytes that wait to be pushed to one peer. The oldest messages are
    dropped."""
    push_ms: int = 30_000
    """Time limit for a peer to read a pushed message. The node then closes the connection."""

    def __post_init__(self) -> None:
        for one in fields(self):
            if getattr(self, one.name) < 1:
                raise ValueError(f"`{one.name}` must be at least 1 (got {getattr(self, one.name)})")


@dataclass(frozen=True, slots=True)
class Listen:
    """Addresses, keys and limits of a node that serves libp2p peers.

    Raises:
        ValueError: an address that cannot be listened at or announced, `wss` without a certificate,
            or a record that cannot be read.
    """

    addresses: tuple[str, ...]
    """Addresses to listen on, such as `/ip4/0.0.0.0/tcp/60000`, `…/ws` or `…/wss`. Port 0 takes a
    free one."""
    announce: tuple[str, ...] = ()
    """Addresses that the node announces to peers instead, such as
    `/dns4/node.example/tcp/443/wss`."""
    identity: PrivateKey | Path | None = field(default=None, repr=False)
    """Private key of the node, or the path of its key file. A missing file is created. None makes a
    new key at each start."""
    tls_certificate: Path | None = None
    """Path of the certificate chain for `wss` (PEM). The node reads it again after a change."""
    tls_key: Path | None = None
    """Path of the certificate's private key (PEM)."""
    known_peers: tuple[str, ...] = ()
    """Records (`enr:…`) of other nodes, which peers can request (peer exchange)."""
    limits: ListenLimits = ListenLimits()
    bound: tuple[socket.socket, ...] = field(default=(), repr=False, compare=False)
    """Sockets that already listen at some of the addresses. The node takes them over."""

    def __post_init__(self) -> None:
        if not self.addresses:
            raise ValueError("`addresses` must name at least one, such as /ip4/0.0.0.0/tcp/8000/ws")
        for text in self.addresses:
            address = _dialled("addresses", text)
            if address.parts[0][0] not in _OWN:
                raise ValueError(
                    f"`addresses`: {text} has a name; listen at an IP address, such as "
                    "/ip4/0.0.0.0/tcp/8000/ws, and announce the name"
                )
            if address.dial_target.server_name is not None and self.tls_certificate is None:
                raise ValueError(
                    f"`addresses`: {text} needs `tls_certificate` and `tls_key` (PEM files)"
                )
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ValueError(
                "`tls_certificate` and `tls_key` must be given together (got one of them)"
            )
        for text in self.announce:
            _dialled("announce", text)
        for text in self.known_peers:
            try:
                NodeRecord.parse(text)
            except InvalidInput as error:
                raise ValueError(f"`known_peers`: {error}") from error


def _dialled(name: str, text: str) -> Multiaddr:
    try:
        address = Multiaddr.parse(text)
        _ = address.dial_target
    except InvalidInput as error:
        raise ValueError(f"`{name}`: {error}") from error
    return address
