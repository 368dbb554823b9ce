"""Which keys belong to a `sender_id`: the id is the key, or a list says so."""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final, Protocol

from .did_key import public_key_of

REMEMBERED_IDS: Final = 4096
"""Number of cached ids. The least recently used id is evicted."""


class Identities(Protocol):
    """Knows the public keys of participants."""

    def keys_of(self, sender_id: str) -> Sequence[bytes]:
        """Return the keys (32 bytes each) with which `sender_id` may sign.

        Raises:
            ValueError: it has none. The text says why.
        """
        ...


class DidKeys:
    """Every `sender_id` is the `did:key` of its signing key: participants may be strangers.

    A key that leaked is given up together with the id.
    """

    def keys_of(self, sender_id: str) -> Sequence[bytes]:
        """Return the key in the id.

        Raises:
            ValueError: the id is not a `did:key`.
        """
        return _keys_of_did(sender_id)


class KnownKeys:
    """List of participants and their keys, each a `did:key`. Other names prove nothing.

    Raises:
        ValueError: a text other than a `did:key` of Ed25519.
    """

    def __init__(self, keys: Mapping[str, Iterable[str]]) -> None:
        self._keys: dict[str, tuple[bytes, ...]] = {}
        for sender_id, dids in keys.items():
            self.set(sender_id, *dids)

    def set(self, sender_id: str, *dids: str) -> None:
        """Use these keys of a participant from now on, or no key. Open channels continue.

        A key that is taken out proves nothing any more, what it signed before included: keep it
        as long as old messages may come from Store or from other participants.

        Raises:
            ValueError: a text other than a `did:key` of Ed25519. Nothing has changed then.
        """
        self._keys[sender_id] = tuple(public_key_of(did) for did in dids)

    def keys_of(self, sender_id: str) -> Sequence[bytes]:
        """Return the keys of a participant.

        Raises:
            ValueError: none is known.
        """
        if keys := self._keys.get(sender_id):
            return keys
        raise ValueError(f"no key of {sender_id[:100]!r} is known")


@lru_cache(REMEMBERED_IDS)
def _keys_of_did(did: str) -> tuple[bytes]:
    return (public_key_of(did),)
