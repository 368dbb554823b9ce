"""The identity of a container: its `--nodekey`, and the record (`enr:…`) that others get of it."""

from __future__ import annotations

import secrets
from typing import Final

from waku.discovery import NodeRecord
from waku.libp2p import InvalidInput, KeyType, PrivateKey

__all__ = ["address_in", "node_key"]

KEY_BYTES: Final = 32


def node_key(text: str) -> PrivateKey:
    """Read the hexadecimal key of `--nodekey`; an empty text makes a new one.

    Raises:
        ValueError: not hexadecimal.
        InvalidInput: no secp256k1 key.
    """
    secret = bytes.fromhex(text) or secrets.token_bytes(KEY_BYTES)
    return PrivateKey(KeyType.SECP256K1, secret)


def address_in(record: str) -> str:
    """Return the first address in a record, with the peer id.

    Raises:
        InvalidInput: not a record, its signature is wrong, or it has no address.
    """
    for address in NodeRecord.parse(record).addresses:
        return str(address)
    raise InvalidInput(f"{record} has no address")
