"""The secure channel: Noise_XX_25519_ChaChaPoly_SHA256 with libp2p's payloads, without I/O.

What is ours is the handshake's state machine and the framing; X25519, ChaCha20-Poly1305 and the
signatures are OpenSSL's, HMAC and SHA-256 the standard library's. docs/libp2p.md says which vectors
checked it.
"""

from .handshake import HandshakeState
from .session import NoiseSession, RemoteIdentity, StaticKeys

__all__ = ["HandshakeState", "NoiseSession", "RemoteIdentity", "StaticKeys"]
