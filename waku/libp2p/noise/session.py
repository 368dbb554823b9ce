"""Secure channel of libp2p, with frames, identity payloads, and the muxers that they offer.

The specification is https://github.com/libp2p/specs/blob/master/noise/README.md.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from struct import Struct
from typing import Final

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from google.protobuf.message import DecodeError

from ..errors import HandshakeFailed, InvalidInput
from ..keys import PeerId, PrivateKey, PublicKey
from ..libp2p_pb2 import NoiseHandshakePayload
from .handshake import HandshakeState
from .symmetric import TAG_BYTES, CipherState

__all__ = ["NOISE", "NoiseSession", "RemoteIdentity", "StaticKeys"]

NOISE: Final = "/noise"
_SIGNED_PREFIX: Final = b"noise-libp2p-static-key:"
_LENGTH: Final = Struct(">H")
MAX_MESSAGE_BYTES: Final = 65_535
MAX_PLAINTEXT_BYTES: Final = MAX_MESSAGE_BYTES - TAG_BYTES

MAX_MUXERS: Final = 16
"""Maximum number of muxers that are read from the peer's list. Further muxers are ignored."""


@dataclass(frozen=True, slots=True)
class StaticKeys:
    """X25519 keys of one handshake, made from given random bytes."""

    static: X25519PrivateKey
    ephemeral: X25519PrivateKey

    @classmethod
    def from_random(cls, random_bytes: bytes) -> StaticKeys:
        """Make both keys from 64 new random bytes."""
        if len(random_bytes) != 64:
            raise InvalidInput(f"64 random bytes are needed (got {len(random_bytes)})")
        return cls(
            X25519PrivateKey.from_private_bytes(random_bytes[:32]),
            X25519PrivateKey.from_private_bytes(random_bytes[32:]),
        )


@dataclass(frozen=True, slots=True)
class RemoteIdentity:
    """Identity that the peer proved in the handshake."""

    public_key: PublicKey
    static_key: bytes
    muxers: tuple[str, ...]
    """Muxers that the peer offers in its payload, or an empty list."""

    @property
    def peer_id(self) -> PeerId:
        """Peer id of the key that the peer proved."""
        return self.public_key.peer_id


class NoiseSession:
    """State machine of one side of the secure channel.

    `receive` accepts bytes of the peer and returns the decrypted data. `data_to_send` returns the
    bytes of the handshake. `encrypt` can be called as soon as `remote` is known.
    """

    def __init__(
        self,
        *,
        initiator: bool,
        identity: PrivateKey,
        keys: StaticKeys,
        expected: PeerId | None = None,
        muxers: tuple[str, ...] = (),
    ) -> None:
        """Args:
        initiator: whether this side dialled.
        identity: own libp2p key.
        keys: fresh X25519 keys.
        expected: the peer that was dialled; another one fails the handshake (T13).
        muxers: offered in the payload (T4); empty to negotiate by multistream.
        """
        self.remote: RemoteIdentity | None = None
        """The peer; None until its identity is proven."""
        self._handshake = HandshakeState(
            initiator=initiator, static=keys.static, ephemeral=keys.ephemeral
        )
        static = keys.static.public_key().public_bytes_raw()
        self.payload = _encode_payload(identity, static, muxers)
        self._expected = expected
        self._ciphers: tuple[CipherState, CipherState] | None = None
        self._received = bytearray()
        self._out = bytearray()
        if initiator:
            self._write(b"")

    @property
    def handshake_hash(self) -> bytes:
        """Hash of the handshake, equal on both sides, which identifies the session."""
        return self._handshake.handshake_hash

    @property
    def is_established(self) -> bool:
        """True if both sides have proven their identity, so that messages may be sent."""
        return self._ciphers is not None

    @property
    def has_data_to_send(self) -> bool:
        """True if `data_to_send` would return bytes."""
        return bool(self._out)

    def data_to_send(self) -> bytes:
        """Remove and return the bytes for the peer."""
        data = bytes(self._out)
        self._out.clear()
        return data

    @property
    def has_message(self) -> bool:
        """True if a whole message of the peer waits for `receive`."""
        size = len(self._received) - _LENGTH.size
        return size >= 0 and size >= _LENGTH.unpack_from(self._received)[0]

    def receive(self, data: bytes, most: int = sys.maxsize) -> bytes:
        """Receive bytes from the peer, and return the decrypted data of at most `most` messages.

        Raises:
            HandshakeFailed: the peer is another one than expected, or broke the protocol.
            PeerViolation: a message fails authentication.
        """
        buffer = self._received
        buffer += data
        out = []
        while most and self.has_message:
            most -= 1
            end = _LENGTH.size + _LENGTH.unpack_from(buffer)[0]
            message = bytes(memoryview(buffer)[_LENGTH.size : end])
            del buffer[:end]
            if self._ciphers is not None:
                out.append(self._ciphers[1].decrypt(message))
            else:
                self._read_handshake(message)
        return out[0] if len(out) == 1 else b"".join(out)

    def forget(self) -> None:
        """Delete received bytes that were not read."""
        self._received.clear()

    def encrypt(self, plaintext: bytes) -> bytes:
        """Encrypt data for the peer, in as many messages as needed."""
        assert self._ciphers is not None
        cipher = self._ciphers[0]
        out = bytearray()
        for begin in range(0, len(plaintext), MAX_PLAINTEXT_BYTES):
            sealed = cipher.encrypt(plaintext[begin : begin + MAX_PLAINTEXT_BYTES])
            out += _LENGTH.pack(len(sealed))
            out += sealed
        return bytes(out)

    def _read_handshake(self, message: bytes) -> None:
        payload = self._handshake.read_message(message)
        if self._handshake.knows_remote_static:
            self._identify(payload)
        if self._handshake.writes_next:
            self._write(self.payload)
        if self._handshake.is_finished:
            self._ciphers = self._handshake.split()

    def _write(self, payload: bytes) -> None:
        message = self._handshake.write_message(payload)
        self._out += _LENGTH.pack(len(message)) + message

    def _identify(self, payload: bytes) -> None:
        static = self._handshake.remote_static
        try:
            read = NoiseHandshakePayload.FromString(payload)
            key = PublicKey(read.identity_key)
            valid = key.verify(_SIGNED_PREFIX + static, read.identity_sig)
        except (DecodeError, InvalidInput) as error:
            raise HandshakeFailed(f"the peer sent an invalid identity: {error}") from error
        if not valid:
            raise HandshakeFailed("the peer does not own the identity key that it shows")
        if self._expected is not None and key.peer_id != self._expected:
            raise HandshakeFailed(f"dialled peer {self._expected}, but peer {key.peer_id} answered")
        muxers = tuple(read.extensions.stream_muxers[:MAX_MUXERS])
        self.remote = RemoteIdentity(key, static, muxers)


def _encode_payload(identity: PrivateKey, static: bytes, muxers: tuple[str, ...]) -> bytes:
    payload = NoiseHandshakePayload(
        identity_key=identity.public_key.encoded,
        identity_sig=identity.sign(_SIGNED_PREFIX + static),
    )
    if muxers:
        payload.extensions.stream_muxers.extend(muxers)
    return payload.SerializeToString()
