"""Light pushes that may have succeeded although no answer says so."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from waku.errors import BadAnswer, NodeUnreachable, NoPeers, WakuError

__all__ = ["RecentPushes"]

LIMIT: Final = 1024
"""Messages that are remembered, the newest; all topics of a client share them."""
NOT_PUBLISHED: Final = 505
"""Status of nwaku for a message that reached no peer, or that it has already."""


class RecentPushes:
    """Messages that went out to a service node without a clear refusal."""

    def __init__(self) -> None:
        self._hashes: dict[bytes, None] = {}
        """Of messages that a peer took; after the peer's id, of those that it may have taken."""

    @contextmanager
    def pushing(self, message_hash: bytes, peer: bytes = b"") -> Iterator[None]:
        """Push a message inside; 505 is no failure for a message that the peer may have already."""
        at_peer = peer + message_hash
        try:
            yield
        except NoPeers as error:
            is_out = message_hash in self._hashes or at_peer in self._hashes
            if error.status != NOT_PUBLISHED or not is_out:
                raise
        except WakuError as error:
            if isinstance(error, BadAnswer) or (isinstance(error, NodeUnreachable) and error.sent):
                self._remember(at_peer)
            raise
        except BaseException:  # cancelled while the answer was on its way
            self._remember(at_peer)
            raise
        else:
            self._remember(message_hash)

    def _remember(self, key: bytes) -> None:
        self._hashes.pop(key, None)
        self._hashes[key] = None
        if len(self._hashes) > LIMIT:
            del self._hashes[next(iter(self._hashes))]
