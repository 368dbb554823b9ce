"""Noise handshake with the pattern XX, the only pattern of libp2p (Noise specification, section
5.3).

→ e
← e, ee, s, es
→ s, se
"""

from __future__ import annotations

from typing import Final

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from ..errors import HandshakeFailed
from .symmetric import TAG_BYTES, CipherState, SymmetricState

__all__ = ["PROTOCOL_NAME", "HandshakeState"]

PROTOCOL_NAME: Final = b"Noise_XX_25519_ChaChaPoly_SHA256"
KEY_BYTES: Final = 32

_PATTERN: Final = (("e",), ("e", "ee", "s", "es"), ("s", "se"))
"""Tokens of each message; the initiator writes the first and the third."""


class HandshakeState:
    """State of one side of a Noise handshake. Each side writes and reads the three messages in
    turn."""

    def __init__(
        self,
        *,
        initiator: bool,
        static: X25519PrivateKey,
        ephemeral: X25519PrivateKey,
        prologue: bytes = b"",
    ) -> None:
        """Args:
        initiator: whether this side writes first.
        static: the key that the peer will know this side by.
        ephemeral: a fresh key for this handshake alone; using one twice breaks secrecy.
        prologue: data that both sides must agree on; libp2p has none.
        """
        self._symmetric = SymmetricState(PROTOCOL_NAME)
        self._symmetric.mix_hash(prologue)
        self._initiator = initiator
        self._own = {"e": ephemeral, "s": static}
        self._remote: dict[str, X25519PublicKey] = {}
        self._step = 0

    @property
    def is_finished(self) -> bool:
        """True if all three messages were written and read."""
        return self._step == len(_PATTERN)

    @property
    def writes_next(self) -> bool:
        """True if this side writes the next message."""
        return not self.is_finished and (self._step % 2 == 0) == self._initiator

    @property
    def handshake_hash(self) -> bytes:
        """Hash of the handshake, equal on both sides, which identifies the session."""
        return self._symmetric.handshake_hash

    @property
    def knows_remote_static(self) -> bool:
        """True if the message with the peer's static key `s` was read."""
        return "s" in self._remote

    @property
    def remote_static(self) -> bytes:
        """Static key of the peer, known after the message with `s` was read."""
        return self._remote["s"].public_bytes_raw()

    def write_message(self, payload: bytes) -> bytes:
        """Return the next message of the handshake. The payload of the message is encrypted as soon
        as there is a key."""
        assert self.writes_next
        out = bytearray()
        for token in _PATTERN[self._step]:
            if token in self._own:
                public = self._own[token].public_key().public_bytes_raw()
                if token == "e":
                    self._symmetric.mix_hash(public)
                    out += public
                else:
                    out += self._symmetric.encrypt_and_hash(public)
            else:
                self._mix_shared_secret(token)
        self._step += 1
        return bytes(out + self._symmetric.encrypt_and_hash(payload))

    def read_message(self, message: bytes) -> bytes:
        """Read the peer's next handshake message, and return its payload.

        Raises:
            HandshakeFailed: it is too short, fails authentication, or has a key of low order.
        """
        assert not self.writes_next
        for token in _PATTERN[self._step]:
            if token in self._own:
                # `s` is encrypted in both messages of XX that have it.
                size = KEY_BYTES if token == "e" else KEY_BYTES + TAG_BYTES
                if len(message) < size:
                    raise HandshakeFailed("the noise message ends within a key")
                public, message = message[:size], message[size:]
                if token == "e":
                    self._symmetric.mix_hash(public)
                else:
                    public = self._symmetric.decrypt_and_hash(public)
                self._remote[token] = X25519PublicKey.from_public_bytes(public)
            else:
                self._mix_shared_secret(token)
        self._step += 1
        return self._symmetric.decrypt_and_hash(message)

    def split(self) -> tuple[CipherState, CipherState]:
        """Return the ciphers for sent and for received messages after the handshake."""
        assert self.is_finished
        initiators, responders = self._symmetric.split()
        return (initiators, responders) if self._initiator else (responders, initiators)

    def _mix_shared_secret(self, token: str) -> None:
        """`ee`, `es` and `se` name the initiator's key first."""
        own, remote = token[0], token[1]
        if not self._initiator:
            own, remote = remote, own
        try:
            secret = self._own[own].exchange(self._remote[remote])
        except ValueError:  # OpenSSL refuses points of low order, whose secret is zero
            raise HandshakeFailed("the noise key has a low order") from None
        self._symmetric.mix_key(secret)
