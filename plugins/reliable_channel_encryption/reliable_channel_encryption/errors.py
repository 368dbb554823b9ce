"""Errors of a message that could not be encrypted. A message that cannot be encrypted is not sent,
and never sent as plain text.

EncryptionError
├── KeyExhausted  the key encrypted as many messages as it may: rotate it
└── NonceRefused  the random source is broken: it repeats itself or gives the wrong length

Data that cannot be decrypted raises `reliable_channel.spi.DecryptionFailed`. A bad key or option
raises `ValueError`.
"""

from reliable_channel.errors import ReliableChannelError


class EncryptionError(ReliableChannelError):
    """Base class of the errors of encryption."""


class KeyExhausted(EncryptionError):
    """Error that the key has encrypted its maximum number of messages. To continue, call `rotate`
    with a new key."""


class NonceRefused(EncryptionError):
    """Error that the random source returned a nonce that must not be used."""
