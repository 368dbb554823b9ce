"""The part of libp2p that Waku needs, without I/O.

    varint keys multiaddr             notation
    multistream noise muxer           the layers of a connection: yamux and mplex are its muxers
    connection                        all of them together, as one side of one connection
    driver                            sockets and tasks: the one room with I/O

https://github.com/libp2p/specs. The comments' T numbers are the list of traps in docs/libp2p.md.
Needs the extra `[libp2p]` (`cryptography`, and for the driver `websockets`).
"""

from .connection import (
    Connected,
    Connection,
    ConnectionEvent,
    GoneAway,
    Received,
    RemoteEnded,
    StreamAgreed,
    StreamReset,
    StreamWritable,
)
from .errors import (
    ConnectionClosed,
    DialFailed,
    HandshakeFailed,
    InvalidInput,
    Libp2pError,
    LimitExceeded,
    PeerViolation,
    ProtocolNotSupported,
    StreamClosed,
)
from .keys import KeyType, PeerId, PrivateKey, PublicKey
from .limits import Limits
from .multiaddr import DialTarget, Multiaddr
from .noise import RemoteIdentity, StaticKeys

__all__ = [
    "Connected",
    "Connection",
    "ConnectionClosed",
    "ConnectionEvent",
    "DialFailed",
    "DialTarget",
    "GoneAway",
    "HandshakeFailed",
    "InvalidInput",
    "KeyType",
    "Libp2pError",
    "LimitExceeded",
    "Limits",
    "Multiaddr",
    "PeerId",
    "PeerViolation",
    "PrivateKey",
    "ProtocolNotSupported",
    "PublicKey",
    "Received",
    "RemoteEnded",
    "RemoteIdentity",
    "StaticKeys",
    "StreamAgreed",
    "StreamClosed",
    "StreamReset",
    "StreamWritable",
]
