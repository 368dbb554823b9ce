"""Random nonces for one key, and the two ways in which they could go wrong.

A nonce used twice with one key gives away what both messages have in common and, with AES-GCM, lets
anybody forge more. With 96 random bits that is a matter of luck up to 2^32 messages (NIST SP
800-38D, 8.3: the chance stays below 2^-32), and of a broken random source at any time.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

from .errors import KeyExhausted, NonceRefused

NONCE_BYTES: Final = 12
"""The nonce of AES-GCM (SP 800-38D, 8.2) and ChaCha20-Poly1305 (RFC 8439, 2.8)."""

MAX_MESSAGES: Final = 2**32
"""How many messages one key may encrypt with random nonces (SP 800-38D, 8.3)."""

REMEMBERED_NONCES: Final = 4096
"""How many nonces are kept to be compared with new ones (0.75 MB a key); then the oldest is
forgotten. A source that repeats itself does so at once or after a fork, not after a long period."""


class NonceLedger:
    """How often one key was used, and with which nonces lately."""

    __slots__ = ("_order", "_recent", "drawn")

    def __init__(self) -> None:
        self.drawn = 0
        self._order: deque[bytes] = deque()
        self._recent: set[bytes] = set()

    def draw(self, random: Callable[[int], bytes], *, max_messages: int = MAX_MESSAGES) -> bytes:
        """A nonce for the next message.

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
