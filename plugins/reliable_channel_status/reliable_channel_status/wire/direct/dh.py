"""Encryption for a receiver without a known bundle: one Diffie-Hellman with an ephemeral key.

NO FORWARD SECRECY: the receiver's private key, if it leaks however late, opens all of it.
53/WAKU2-X3DH does not name this header; clients send it to users without a bundle and read it.
"""

import os
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from ..envelope import IV_BYTES, TAG_BYTES, Random
from ..keys import PrivateKey, PublicKey

ANY_DEVICE: Final = "none"
"""The installation id under which a message is for every device of its receiver."""


def encrypt_dh(
    plain: bytes, receiver: PublicKey, ephemeral: PrivateKey, *, random: Random = os.urandom
) -> bytes:
    """Encrypt: ciphertext, tag and iv, under the x coordinate that both keys share."""
    iv = random(IV_BYTES)
    return AESGCM(ephemeral.shared_secret(receiver)).encrypt(iv, plain, None) + iv


def decrypt_dh(sealed: bytes, ephemeral: PublicKey, key: PrivateKey) -> bytes | None:
    """Decrypt; None if another key encrypted it, or it was changed."""
    if len(sealed) < IV_BYTES + TAG_BYTES:
        return None
    cipher = AESGCM(key.shared_secret(ephemeral))
    try:
        return cipher.decrypt(sealed[-IV_BYTES:], sealed[:-IV_BYTES], None)
    except InvalidTag:
        return None
