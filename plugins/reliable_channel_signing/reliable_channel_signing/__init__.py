"""Signed senders for reliable channels: Ed25519, with ids that are keys or a list of keys."""

from .did_key import did_of, public_key_of
from .ed25519 import Ed25519Signer
from .identities import DidKeys, Identities, KnownKeys
from .keys import SigningKey

__all__ = [
    "DidKeys",
    "Ed25519Signer",
    "Identities",
    "KnownKeys",
    "SigningKey",
    "did_of",
    "public_key_of",
]
