"""Secure channel: Noise_XX_25519_ChaChaPoly_SHA256 with libp2p's payloads, without I/O.

The state machine of the handshake and the framing are our own. X25519, ChaCha20-Poly1305 and
signatures come from OpenSSL, HMAC and SHA-256 from the standard library. docs/libp2p.md lists the
test vectors.
"""

from .handshake import HandshakeState
from .session import NoiseSession, RemoteIdentity, StaticKeys

__all__ = ["HandshakeState", "NoiseSession", "RemoteIdentity", "StaticKeys"]
