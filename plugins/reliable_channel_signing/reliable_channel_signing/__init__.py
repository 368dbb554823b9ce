"""Signed senders for reliable channels: Ed25519, with ids that are keys or a list of keys."""

from typing import TYPE_CHECKING

from reliable_channel.spi import lazy_names

if TYPE_CHECKING:
    from .did_key import did_of, public_key_of
    from .ed25519 import Ed25519Signer
    from .identities import DidKeys, Identities, KnownKeys
    from .keys import SigningKey
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "did_key": (
                "did_of",
                "public_key_of",
            ),
            "ed25519": ("Ed25519Signer",),
            "identities": (
                "DidKeys",
                "Identities",
                "KnownKeys",
            ),
            "keys": ("SigningKey",),
        },
    )

__all__ = [
    "DidKeys",
    "Ed25519Signer",
    "Identities",
    "KnownKeys",
    "SigningKey",
    "did_of",
    "public_key_of",
]
