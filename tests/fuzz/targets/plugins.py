"""The first-party plugins: sealed envelopes, keys as text, and signatures."""

from collections.abc import Callable, Iterator
from typing import Final

from reliable_channel._contracts.encryption import DecryptionFailed
from reliable_channel._contracts.signing import NotProven
from reliable_channel_encryption import Keyring, Secret, SymmetricEncryption
from reliable_channel_encryption.symmetric import OVERHEAD_BYTES
from reliable_channel_signing import (
    Ed25519Signer,
    KnownKeys,
    SigningKey,
    did_of,
    public_key_of,
)

from ..target import Target, joined, records
from .client import at_once

KEY: Final = bytes(range(32))
NONCES: Final = (b"nonce number", b"other number")
PLAIN: Final = (b"", b"hello, everybody")
SIGNER: Final = Ed25519Signer(SigningKey(KEY))
KNOWN: Final = Ed25519Signer(SigningKey(KEY), KnownKeys({"alice": [SIGNER.sender_id]}))


def _always(nonce: bytes) -> Callable[[int], bytes]:
    return lambda _: nonce


def _sealed() -> Iterator[bytes]:
    for algorithm in ("aes-256-gcm", "chacha20-poly1305"):
        for nonce, content in zip(NONCES, PLAIN, strict=True):
            sealing = SymmetricEncryption(
                Keyring(Secret(KEY)),
                algorithm=algorithm,
                random=_always(nonce),
                context=b"fuzz",
            )
            yield at_once(sealing.encrypt(content))


OPENING: Final = SymmetricEncryption(Keyring(Secret(KEY)), context=b"fuzz")
SEALED: Final = dict(zip(_sealed(), PLAIN * 2, strict=True))


def _envelope(data: bytes) -> None:
    """Nothing opens but what was sealed."""
    try:
        content = at_once(OPENING.decrypt(data))
    except DecryptionFailed:
        assert data not in SEALED
        return
    assert SEALED[data] == content
    assert len(data) == len(content) + OVERHEAD_BYTES


def _keys(data: bytes) -> None:
    """A text is a key or a `ValueError`, and a key has one text."""
    text = data.decode("utf-8", "surrogateescape")
    for read in (Secret.from_hex, SigningKey.from_hex):
        try:
            key = read(text).reveal()
        except ValueError as error:
            assert text not in str(error) or len(text) < 16, "it shows what may be a key"
        else:
            assert bytes.fromhex(text) == key
            assert key.hex() not in repr(read(text))
    try:
        public_key = public_key_of(text)
    except ValueError:
        return
    assert did_of(public_key) == text


def _signature(data: bytes) -> None:
    """Three records: who, what, and the signature. Nothing is proven but what was signed."""
    sender_id, signed, signature = (*records(data, most=3), b"", b"", b"")[:3]
    for signer, signs_as in ((SIGNER, SIGNER.sender_id), (KNOWN, "alice")):
        text = sender_id.decode("utf-8", "replace")
        try:
            signer.verify(text, signed, signature)
        except NotProven:
            continue
        assert text == signs_as
        assert SIGNER.sign(signed) == signature


def _signatures() -> Iterator[bytes]:
    for sender_id in (SIGNER.sender_id, "alice"):
        yield joined([sender_id.encode(), b"data", SIGNER.sign(b"data")])


TARGETS: Final = (
    Target("envelope", _envelope, lambda: list(SEALED)),
    Target("keys", _keys, lambda: [KEY.hex().encode(), SIGNER.sender_id.encode()]),
    Target("signature", _signature, _signatures),
)
