"""Where a node listens for libp2p peers, and what each of them may cost."""

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
    """What peers may cost, each and all together. A peer that passes a limit is named in the log.

    Beside them: `service_requests_per_s` and `max_message_bytes` of `NodeOptions`, and the limits
    of its filter table and of its Store, which are those of REST.

    Raises:
        ValueError: a limit is below 1; the message names it.
    """

    connections: int = 200
    """Connections at once; fewer where the process may not have so many files open. One beyond is
    closed."""
    connections_by_address: int = 64
    """The same from one IP address. A TLS proxy in front has one: give it `connections`."""
    handshake_ms: int = 10_000
    """From the first byte until the peer has proven its identity."""
    idle_ms: int = 300_000
    """A connection without a byte for so long is closed."""
    streams: int = 256
    """Streams that one connection may have open; one beyond is reset."""
    buffer_bytes: int = 4 * MIB
    """Bytes of a connection that were received and not read yet; beyond them it is closed."""
    frames_per_s: int = 100_000
    """Frames that one connection may send, with a burst of two seconds; beyond them it is closed.
    New streams and pings count several times, nonsense 100 times."""
    requests_at_once: int = 8
    """Requests of one peer that are served at once; further ones wait in `buffer_bytes`."""
    request_ms: int = 30_000
    """From the first byte of a request until its answer is taken; then the connection is closed."""
    page_bytes: int = 4 * MIB
    """Messages of one page of Store; the rest comes with the next page."""
    answer_bytes: int = 128 * MIB
    """Answers that wait to be taken, of all peers; requests beyond are refused (503)."""
    topic_bytes: int = 256
    """Length of a topic in a filter subscription; a longer one is refused (400)."""
    push_messages: int = 1_024
    """Messages that wait to be pushed to one peer; the oldest are dropped."""
    push_bytes: int = 4 * MIB
    """The same in bytes."""
    push_ms: int = 30_000
    """Time that a peer may take for a pushed message; then the connection is closed."""

    def __post_init__(self) -> None:
        for one in fields(self):
            if getattr(self, one.name) < 1:
                raise ValueError(f"`{one.name}` must be at least 1 (got {getattr(self, one.name)})")


@dataclass(frozen=True, slots=True)
class Listen:
    """Where a node serves libp2p peers.

    Raises:
        ValueError: an address that cannot be listened at or announced, `wss` without a certificate,
            or a record that cannot be read.
    """

    addresses: tuple[str, ...]
    """`/ip4/0.0.0.0/tcp/60000`, `…/ws`, `…/wss`; port 0 takes a free one."""
    announce: tuple[str, ...] = ()
    """Addresses that peers are given instead, such as `/dns4/node.example/tcp/443/wss`."""
    identity: PrivateKey | Path | None = field(default=None, repr=False)
    """Own key, or the file of it, which is made where it does not exist; None makes a new key at
    each start."""
    tls_certificate: Path | None = None
    """Certificate chain for `wss`, PEM. It is read again when it changes."""
    tls_key: Path | None = None
    """Private key of the certificate, PEM."""
    known_peers: tuple[str, ...] = ()
    """Records (`enr:…`) of other nodes, for peers that ask (peer exchange)."""
    limits: ListenLimits = ListenLimits()
    bound: tuple[socket.socket, ...] = field(default=(), repr=False, compare=False)
    """Sockets that listen already, at some of the addresses; the node takes them over."""

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
            raise ValueError("`tls_certificate` and `tls_key` must be given together")
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
