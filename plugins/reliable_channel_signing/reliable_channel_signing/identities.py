"""Identities of participants, which map a `sender_id` to the keys that may sign for it."""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final, Protocol

from .did_key import public_key_of

REMEMBERED_IDS: Final = 4096
"""Maximum number of cached sender ids. Beyond the maximum, the least recently used id is
evicted."""


class Identities(Protocol):
    """Interface that returns the public keys of participants."""

    def keys_of(self, sender_id: str) -> Sequence[bytes]:
        """Return the keys (32 bytes each) with which `sender_id` may sign.

        Raises:
            ValueError: it has none. The text says why.
        """
        ...


class DidKeys:
    """Identities in which each `sender_id` is the `did:key` of its signing key, without a list.

    A participant whose key leaked must use a new key, and so a new id.
    """

    def keys_of(self, sender_id: str) -> Sequence[bytes]:
        """Return the public key in a `sender_id`.

        Raises:
            ValueError: the id is not a `did:key`.
        """
        return _keys_of_did(sender_id)


class KnownKeys:
    """List of participants with their keys, each given as a `did:key`. Messages of senders that are
    not in the list are refused.

    Raises:
        ValueError: a text other than a `did:key` of Ed25519.
    """

    def __init__(self, keys: Mapping[str, Iterable[str]]) -> None:
        self._keys: dict[str, tuple[bytes, ...]] = {}
        for sender_id, dids in keys.items():
            self.set(sender_id, *dids)

    def set(self, sender_id: str, *dids: str) -> None:
        """Set the keys of a participant from now on, or none to remove the participant. Open
        channels continue with the new keys.

        A removed key also invalidates old messages, so keep the key while they may still arrive.

        Raises:
            ValueError: a text other than a `did:key` of Ed25519. Nothing has changed then.
        """
        self._keys[sender_id] = tuple(public_key_of(did) for did in dids)

    def keys_of(self, sender_id: str) -> Sequence[bytes]:
        """Return the listed keys of a participant.

        Raises:
            ValueError: none is known.
        """
        if keys := self._keys.get(sender_id):
            return keys
        raise ValueError(f"the channel knows no public key of {sender_id[:100]!r}")


@lru_cache(REMEMBERED_IDS)
def _keys_of_did(did: str) -> tuple[bytes]:
    return (public_key_of(did),)
