"""Whose packets are taken."""

import pytest

from reliable_channel_svs import (
    AnyTrust,
    DigestSigner,
    DigestTrust,
    Ed25519Signer,
    HmacSigner,
    KeyTrust,
    Name,
    SignatureRefused,
    Signer,
    Trust,
)
from reliable_channel_svs.packet import decode_data, make_data
from reliable_channel_svs.signing import KEY_LOCATOR, SIGNATURE_TYPE, decode_signature_info
from reliable_channel_svs.tlv import encode, encode_integer

KEY = Name.parse("/group/KEY/%01")
ALICE, MALLORY = Ed25519Signer(b"\x01" * 32, KEY), Ed25519Signer(b"\x02" * 32, KEY)
CERTIFICATE = Ed25519Signer(b"\x01" * 32, KEY.append(Name.parse("/self/v=1")))
STRANGER = Ed25519Signer(b"\x01" * 32, Name.parse("/other/KEY/%01"))
HMAC, OTHER_HMAC = HmacSigner(b"k" * 16), HmacSigner(b"l" * 16, KEY)
KEYS = KeyTrust({KEY: ALICE.public_key})


@pytest.mark.parametrize(
    ("trust", "signer", "is_taken"),
    [
        (AnyTrust(), DigestSigner(), True),
        (AnyTrust(), MALLORY, True),
        (DigestTrust(), DigestSigner(), True),
        (DigestTrust(), ALICE, False),
        (HMAC, HMAC, True),
        (HMAC, OTHER_HMAC, False),
        (HMAC, DigestSigner(), False),
        (KEYS, ALICE, True),
        (KEYS, CERTIFICATE, True),
        (KEYS, MALLORY, False),
        (KEYS, STRANGER, False),
        (KEYS, DigestSigner(), False),
    ],
)
def test_whose_packets_are_taken(trust: Trust, signer: Signer, is_taken: bool) -> None:
    data = decode_data(make_data(Name.parse("/a"), b"content", signer))
    if is_taken:
        data.check(trust)
        return
    with pytest.raises(SignatureRefused, match="/a"):
        data.check(trust)


@pytest.mark.parametrize(
    ("trust", "signer"), [(DigestTrust(), DigestSigner()), (HMAC, HMAC), (KEYS, ALICE)]
)
def test_a_changed_byte_is_noticed(trust: Trust, signer: Signer) -> None:
    wire = make_data(Name.parse("/a"), b"content", signer)
    changed = wire.replace(b"content", b"contenu")
    with pytest.raises(SignatureRefused):
        decode_data(changed).check(trust)


def test_a_locator_that_names_no_key_is_nobody() -> None:
    digest = encode(KEY_LOCATOR, encode(0x1D, b"\x00" * 32))
    info = encode_integer(SIGNATURE_TYPE, 5) + digest
    assert decode_signature_info(memoryview(info)) == (5, None)
