"""Encryption for a receiver without a known bundle: one Diffie-Hellman with an ephemeral key.

NO FORWARD SECRECY: if the receiver's private key leaks later, it opens all messages. 53/WAKU2-X3DH
does not name this header, but clients read it and use it for users without a bundle.
"""

import os
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from ..envelope import IV_BYTES, TAG_BYTES, Random
from ..keys import PrivateKey, PublicKey

ANY_DEVICE: Final = "none"
"""Installation id of a message for every device of its receiver."""


def encrypt_dh(
    plain: bytes, receiver: PublicKey, ephemeral: PrivateKey, *, random: Random = os.urandom
) -> bytes:
    """Encrypt under the x coordinate that both keys share. Return ciphertext, tag and iv."""
    iv = random(IV_BYTES)
    return AESGCM(ephemeral.shared_secret(receiver)).encrypt(iv, plain, None) + iv


def decrypt_dh(sealed: bytes, ephemeral: PublicKey, key: PrivateKey) -> bytes | None:
    """Decrypt. Return None if another key encrypted it, or it was changed."""
    if len(sealed) < IV_BYTES + TAG_BYTES:
        return None
    cipher = AESGCM(key.shared_secret(ephemeral))
    try:
        return cipher.decrypt(sealed[-IV_BYTES:], sealed[:-IV_BYTES], None)
    except InvalidTag:
        return None
