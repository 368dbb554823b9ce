"""Random nonces for one key, with checks of a broken random source and of too many messages.

Two messages with the same key and nonce reveal what they have in common. With AES-GCM, a repeated
nonce also allows forged messages. Random nonces of 96 bits are safe for 2^32 messages of a key
(NIST SP 800-38D, 8.3).
"""

from collections import deque
from collections.abc import Callable
from typing import Final

from .errors import KeyExhausted, NonceRefused

NONCE_BYTES: Final = 12
"""Length of a nonce of AES-GCM (SP 800-38D, 8.2) and ChaCha20-Poly1305 (RFC 8439, 2.8) (bytes)."""

MAX_MESSAGES: Final = 2**32
"""Maximum number of messages for one key with random nonces (SP 800-38D, 8.3)."""

REMEMBERED_NONCES: Final = 4096
"""Number of recent nonces that are compared with a new nonce (0.75 MB per key). Beyond 4,096
nonces, the oldest nonce is forgotten. A broken random source repeats nonces at once or after a
fork, not after a long time."""


class NonceLedger:
    """Number of messages of one key, with the key's recent nonces."""

    __slots__ = ("_order", "_recent", "drawn")

    def __init__(self) -> None:
        self.drawn = 0
        self._order: deque[bytes] = deque()
        self._recent: set[bytes] = set()

    def draw(self, random: Callable[[int], bytes], *, max_messages: int = MAX_MESSAGES) -> bytes:
        """Return a nonce for the next message of the key.

        Raises:
            KeyExhausted: the key encrypted `max_messages` messages.
            NonceRefused: the source repeats itself, or does not give as many bytes as asked for. It
                is not asked again: what repeats once is no random source.
        """
        if self.drawn >= max_messages:
            raise KeyExhausted(
                f"this key encrypted {self.drawn:,} messages, which is its limit; rotate to a new "
                "key"
            )
        nonce = random(NONCE_BYTES)
        if len(nonce) != NONCE_BYTES:
            raise NonceRefused(
                f"the random source gave {len(nonce)} bytes for a nonce of {NONCE_BYTES}"
            )
        if nonce in self._recent:
            raise NonceRefused(
                "the random source repeated a nonce, so nothing was encrypted with the nonce"
            )
        self._remember(nonce)
        self.drawn += 1
        return nonce

    def _remember(self, nonce: bytes) -> None:
        if len(self._order) == REMEMBERED_NONCES:
            self._recent.remove(self._order.popleft())
        self._order.append(nonce)
        self._recent.add(nonce)
