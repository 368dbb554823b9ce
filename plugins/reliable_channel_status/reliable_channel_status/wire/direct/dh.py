"""Encryption for a receiver without a known bundle, by one Diffie-Hellman with an ephemeral key.

The encryption has NO FORWARD SECRECY, so a leaked private key of the receiver opens all messages.
53/WAKU2-X3DH does not describe this header, but clients use it for users without a bundle.
"""

import os
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from ..envelope import IV_BYTES, TAG_BYTES, Random
from ..keys import PrivateKey, PublicKey

ANY_DEVICE: Final = "none"
"""Installation id of a message that every device of its receiver may decrypt."""


def encrypt_dh(
    plain: bytes, receiver: PublicKey, ephemeral: PrivateKey, *, random: Random = os.urandom
) -> bytes:
    """Encrypt with the x coordinate that the sender's and the receiver's keys share. `encrypt_dh`
    returns ciphertext, tag and iv."""
    iv = random(IV_BYTES)
    return AESGCM(ephemeral.shared_secret(receiver)).encrypt(iv, plain, None) + iv


def decrypt_dh(sealed: bytes, ephemeral: PublicKey, key: PrivateKey) -> bytes | None:
    """Decrypt bytes that `encrypt_dh` encrypted. If the bytes were changed or another key encrypted
    them, `decrypt_dh` returns None."""
    if len(sealed) < IV_BYTES + TAG_BYTES:
        return None
    cipher = AESGCM(key.shared_secret(ephemeral))
    try:
        return cipher.decrypt(sealed[-IV_BYTES:], sealed[:-IV_BYTES], None)
    except InvalidTag:
        return None
