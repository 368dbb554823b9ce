"""Encryption of reliable channels with a shared key: AES-256-GCM and ChaCha20-Poly1305."""

from .errors import EncryptionError, KeyExhausted, NonceRefused
from .keys import Keyring, Secret
from .symmetric import Algorithm, SymmetricEncryption

__all__ = [
    "Algorithm",
    "EncryptionError",
    "KeyExhausted",
    "Keyring",
    "NonceRefused",
    "Secret",
    "SymmetricEncryption",
]
