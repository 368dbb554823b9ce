"""Why a message was not encrypted. It does not go out then: there is no way back to plain text.

EncryptionError
├── KeyExhausted  the key encrypted as many messages as it may: rotate it
└── NonceRefused  the random source is broken: it repeats itself or gives the wrong length

Data that cannot be decrypted raises `reliable_channel.spi.DecryptionFailed`. A bad key or option
raises `ValueError`.
"""

from reliable_channel.errors import ReliableChannelError


class EncryptionError(ReliableChannelError):
    """Root of what encryption raises."""


class KeyExhausted(EncryptionError):
    """The key encrypted its maximum number of messages. Call `rotate` with a new key."""


class NonceRefused(EncryptionError):
    """The random source gave a nonce that must not be used."""
