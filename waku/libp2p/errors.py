"""Every failure of `waku.libp2p`, in one tree.

Libp2pError
├── InvalidInput          bytes or a text that are not what they claim to be (also a ValueError)
├── ProtocolNotSupported  the peer speaks none of the protocols that were asked for
├── DialFailed            no peer, or another one, answers at an address
├── ConnectionClosed      the connection is over
├── StreamClosed          the stream is over; the connection may go on
└── PeerViolation         the peer broke a rule: its connection ends
    ├── HandshakeFailed   a wrong signature, key, peer id or ciphertext
    └── LimitExceeded     the peer passed a named limit (`Limits`)
"""

from __future__ import annotations

__all__ = [
    "ConnectionClosed",
    "DialFailed",
    "HandshakeFailed",
    "InvalidInput",
    "Libp2pError",
    "LimitExceeded",
    "PeerViolation",
    "ProtocolNotSupported",
    "StreamClosed",
]


class Libp2pError(Exception):
    """A libp2p peer, or what was read of one, is not in order."""


class InvalidInput(Libp2pError, ValueError):
    """Bytes or text that cannot be decoded; the message names what and where."""


class ProtocolNotSupported(Libp2pError):
    """The peer refused every protocol that was offered."""

    def __init__(self, offered: tuple[str, ...]) -> None:
        self.offered = offered
        super().__init__(f"the peer supports none of {', '.join(offered)}")


class DialFailed(Libp2pError):
    """Nothing answers at the address, or not with libp2p, or another peer."""


class ConnectionClosed(Libp2pError):
    """The connection is over; the message says why."""


class StreamClosed(Libp2pError):
    """The stream is over; the message says why."""


class PeerViolation(Libp2pError):
    """The peer broke a rule of a protocol; close the connection."""


class HandshakeFailed(PeerViolation):
    """The secure channel could not be established with the expected peer."""


class LimitExceeded(PeerViolation):
    """The peer passed one of the `Limits`.

    The message names the limit, its value and what was received.
    """

    def __init__(self, limit: str, allowed: int, received: str) -> None:
        self.limit = limit
        super().__init__(f"`{limit}` is {allowed}; the peer sent {received}")
