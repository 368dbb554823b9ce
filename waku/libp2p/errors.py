"""Errors of `waku.libp2p`, in one tree.

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
    """A libp2p peer, or data of a peer, breaks a rule or fails."""


class InvalidInput(Libp2pError, ValueError):
    """Bytes or a text cannot be decoded. The text of the error tells what is wrong and where."""


class ProtocolNotSupported(Libp2pError):
    """The peer refused all protocols that were proposed."""

    def __init__(self, offered: tuple[str, ...]) -> None:
        self.offered = offered
        super().__init__(f"the peer supports none of {', '.join(offered)}")


class DialFailed(Libp2pError):
    """The dialled address does not answer, does not speak libp2p, or belongs to another peer."""


class ConnectionClosed(Libp2pError):
    """The connection is over. The text of the error gives the reason."""


class StreamClosed(Libp2pError):
    """The stream is over. The text of the error gives the reason."""


class PeerViolation(Libp2pError):
    """The peer broke a rule of a protocol, so its connection must be closed."""


class HandshakeFailed(PeerViolation):
    """The secure channel could not be established with the expected peer."""


class LimitExceeded(PeerViolation):
    """The peer exceeded a limit in `Limits`.

    The text of the error names the limit, its value and the received value.
    """

    def __init__(self, limit: str, allowed: int, received: str) -> None:
        self.limit = limit
        super().__init__(f"`{limit}` is {allowed}; the peer sent {received}")
