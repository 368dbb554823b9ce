"""Random nonces for one key, and the two ways in which they could go wrong.

A nonce used twice with one key reveals what both messages have in common. With AES-GCM it allows
forgeries. With 96 random bits that is a matter of luck up to 2^32 messages (NIST SP
800-38D, 8.3: the chance stays below 2^-32), and of a broken random source at any time.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

from .errors import KeyExhausted, NonceRefused

NONCE_BYTES: Final = 12
"""The nonce of AES-GCM (SP 800-38D, 8.2) and ChaCha20-Poly1305 (RFC 8439, 2.8)."""

MAX_MESSAGES: Final = 2**32
"""Maximum number of messages of one key with random nonces (SP 800-38D, 8.3)."""

REMEMBERED_NONCES: Final = 4096
"""Number of remembered nonces for comparison (0.75 MB a key). The oldest is
evicted. A source that repeats itself does so at once or after a fork, not after a long period."""


class NonceLedger:
    """Number of uses of one key, with its recent nonces."""

    __slots__ = ("_order", "_recent", "drawn")

    def __init__(self) -> None:
        self.drawn = 0
        self._order: deque[bytes] = deque()
        self._recent: set[bytes] = set()

    def draw(self, random: Callable[[int], bytes], *, max_messages: int = MAX_MESSAGES) -> bytes:
        """Return a nonce for the next message.

        Raises:
            KeyExhausted: the key encrypted `max_messages` messages.
            NonceRefused: the source repeats itself, or does not give as many bytes as asked for. It
                is not asked again: what repeats once is no random source.
        """
        if self.drawn >= max_messages:
            raise KeyExhausted(
                f"this key encrypted {self.drawn:,} messages and may encrypt no more: rotate to a "
                "new one"
            )
        nonce = random(NONCE_BYTES)
        if len(nonce) != NONCE_BYTES:
            raise NonceRefused(
                f"the random source gave {len(nonce)} bytes for a nonce of {NONCE_BYTES}"
            )
        if nonce in self._recent:
            raise NonceRefused("the random source repeated a nonce: nothing is encrypted with it")
        self._remember(nonce)
        self.drawn += 1
        return nonce

    def _remember(self, nonce: bytes) -> None:
        if len(self._order) == REMEMBERED_NONCES:
            self._recent.remove(self._order.popleft())
        self._order.append(nonce)
        self._recent.add(nonce)
