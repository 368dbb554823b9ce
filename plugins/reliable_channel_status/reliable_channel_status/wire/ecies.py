"""ECIES of 26/WAKU2-PAYLOAD and devp2p, with secp256k1, AES-128-CTR and HMAC-SHA-256.

The encrypted bytes are the ephemeral public key (65), iv (16), ciphertext and MAC (32).
"""

from collections.abc import Callable
from hashlib import sha256
from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CTR
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.hmac import HMAC
from cryptography.hazmat.primitives.kdf.concatkdf import ConcatKDFHash

from .keys import UNCOMPRESSED_BYTES, PrivateKey, PublicKey

IV_BYTES: Final = 16
MAC_BYTES: Final = 32
OVERHEAD_BYTES: Final = UNCOMPRESSED_BYTES + IV_BYTES + MAC_BYTES
_KEY_BYTES: Final = 16


def encrypt(plain: bytes, receiver: PublicKey, *, random: Callable[[int], bytes]) -> bytes:
    """Encrypt bytes for the owner of a public key. The ephemeral key comes from the operating
    system, and the iv from `random`."""
    ephemeral = PrivateKey.generate()
    cipher_key, mac_key = _keys(ephemeral, receiver)
    iv = random(IV_BYTES)
    encryptor = Cipher(AES(cipher_key), CTR(iv)).encryptor()
    body = iv + encryptor.update(plain) + encryptor.finalize()
    return ephemeral.public_key.uncompressed + body + _mac(mac_key, body).finalize()


def decrypt(sealed: bytes, key: PrivateKey) -> bytes | None:
    """Decrypt bytes with a private key. If the bytes were changed or encrypted for another key,
    `decrypt` returns None."""
    if len(sealed) <= OVERHEAD_BYTES:
        return None
    try:
        ephemeral = PublicKey(sealed[:UNCOMPRESSED_BYTES])
    except ValueError:
        return None
    cipher_key, mac_key = _keys(key, ephemeral)
    body = sealed[UNCOMPRESSED_BYTES:-MAC_BYTES]
    try:
        _mac(mac_key, body).verify(sealed[-MAC_BYTES:])
    except InvalidSignature:
        return None
    decryptor = Cipher(AES(cipher_key), CTR(body[:IV_BYTES])).decryptor()
    return decryptor.update(body[IV_BYTES:]) + decryptor.finalize()


def _keys(ours: PrivateKey, theirs: PublicKey) -> tuple[bytes, bytes]:
    """The keys of the cipher and of the MAC (NIST SP 800-56A, 5.8.1)."""
    kdf = ConcatKDFHash(SHA256(), 2 * _KEY_BYTES, otherinfo=None)
    derived = kdf.derive(ours.shared_secret(theirs))
    return derived[:_KEY_BYTES], sha256(derived[_KEY_BYTES:]).digest()


def _mac(key: bytes, body: bytes) -> HMAC:
    mac = HMAC(key, SHA256())
    mac.update(body)
    return mac
