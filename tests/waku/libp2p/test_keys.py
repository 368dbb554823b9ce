import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa, utils
from hypothesis import given
from hypothesis import strategies as st

from waku.libp2p import InvalidInput, KeyType, PeerId, PrivateKey, PublicKey, varint

SECP256K1_ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
OWN = [PrivateKey(KeyType.ED25519, b"\x07" * 32), PrivateKey(KeyType.SECP256K1, b"\x07" * 32)]


@given(st.binary(max_size=200))
def test_signatures_of_secp256k1_have_the_low_s(message: bytes) -> None:
    """T1: js-libp2p refuses the other half."""
    key = OWN[1]
    signature = key.sign(message)
    _, s = utils.decode_dss_signature(signature)
    assert s <= SECP256K1_ORDER // 2
    assert key.public_key.verify(message, signature)


@pytest.mark.parametrize("key", OWN, ids=lambda key: key.type.name)
def test_keys_outlive_a_file_and_keep_their_secret(key: PrivateKey) -> None:
    assert PrivateKey.parse(key.encode()).peer_id == key.peer_id
    assert ("07" * 8) not in repr(key)
    assert str(key.peer_id) in repr(key)


def test_the_peer_id_is_taken_over_the_bytes_as_sent() -> None:
    """T13: written anew, another encoding of the same key would be another peer."""
    key = OWN[0].public_key
    assert PublicKey(key.encoded).peer_id.multihash[2:] == key.encoded


def _public(type: KeyType, data: bytes) -> PublicKey:
    return PublicKey(bytes([8, type, 0x12]) + varint.prefixed(data))


def _der(key: rsa.RSAPublicKey | ec.EllipticCurvePublicKey) -> bytes:
    return key.public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )


P256 = _der(ec.derive_private_key(7, ec.SECP256R1()).public_key())


@pytest.mark.parametrize(
    "key",
    [
        PublicKey(b""),
        PublicKey(b"\x12\x01x\x08\x01"),
        PublicKey(b"\x08\x09\x12\x01x"),
        PublicKey(b"\x08\x01\x12\x05x"),
        PublicKey(b"\x08\x01\x12\x01xx"),
        PublicKey(b"\x08\x00\x12\xff\xff\x03" + bytes(65_535)),
        _public(KeyType.ED25519, b"short"),
        _public(KeyType.SECP256K1, b"\x05" + bytes(32)),
        _public(KeyType.RSA, b"not DER"),
        _public(KeyType.RSA, P256),
        _public(KeyType.ECDSA, _der(ec.derive_private_key(7, ec.SECP256K1()).public_key())),
        _public(KeyType.RSA, _der(rsa.RSAPublicNumbers(3, (1 << 1023) + 1).public_key())),
    ],
    ids=range(12),
)
def test_what_is_not_a_usable_key_says_so(key: PublicKey) -> None:
    with pytest.raises(InvalidInput):
        key.verify(b"message", b"signature")


def test_a_peer_with_an_ecdsa_key_is_verified() -> None:
    assert not _public(KeyType.ECDSA, P256).verify(b"message", b"signature")


@pytest.mark.parametrize(
    ("type", "secret"),
    [
        (KeyType.RSA, b"\x07" * 32),
        (KeyType.ED25519, b"short"),
        (KeyType.SECP256K1, bytes(32)),
        (KeyType.SECP256K1, b"\xff" * 32),
    ],
)
def test_bad_secrets_are_refused(type: KeyType, secret: bytes) -> None:
    with pytest.raises(InvalidInput):
        PrivateKey(type, secret)


@pytest.mark.parametrize(
    "text", ["", "0OIl", "16Uiu2", "x" * 500, "bafy", "b!!", "Qm" + "1" * 44, "12D3KooW"]
)
def test_what_is_not_a_peer_id_says_so(text: str) -> None:
    with pytest.raises(InvalidInput):
        PeerId.parse(text)
