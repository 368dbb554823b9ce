"""Encryption of reliable channels with a shared key: AES-256-GCM and ChaCha20-Poly1305."""

from typing import TYPE_CHECKING

from reliable_channel.spi import lazy_names

if TYPE_CHECKING:
    from .errors import EncryptionError, KeyExhausted, NonceRefused
    from .keys import Keyring, Secret
    from .symmetric import Algorithm, SymmetricEncryption
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "errors": (
                "EncryptionError",
                "KeyExhausted",
                "NonceRefused",
            ),
            "keys": (
                "Keyring",
                "Secret",
            ),
            "symmetric": (
                "Algorithm",
                "SymmetricEncryption",
            ),
        },
    )

__all__ = [
    "Algorithm",
    "EncryptionError",
    "KeyExhausted",
    "Keyring",
    "NonceRefused",
    "Secret",
    "SymmetricEncryption",
]
