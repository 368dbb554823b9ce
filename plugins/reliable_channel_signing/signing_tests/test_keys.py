"""Keys, their text, and who has which."""

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reliable_channel_signing import DidKeys, KnownKeys, SigningKey, did_of, public_key_of
from reliable_channel_signing.did_key import _SMALL_ORDER

SEED_0 = bytes(32)
PUBLIC_0 = bytes.fromhex("3b6a27bcceb6a42d62a3a8d02a6f0d73653215771de243a63ac048a18b59da29")
DID_0 = "did:key:z6MkiTBz1ymuepAQ4HEHYSF1H8quG5GLVVQR3djdX3mDooWp"
"""The key of the seed of 32 zero bytes: the first Ed25519 example of the did:key test vectors."""
OTHERS = [
    (
        "did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK",
        "2e6fcce36701dc791488e0d0b1745cc1e33a4c1c9fcc41c63bd343dbbe0970e6",
    ),
]
FIELD_PRIME = 2**255 - 19


def test_a_key_is_what_others_make_of_its_seed() -> None:
    key = SigningKey(SEED_0)
    assert key.did == DID_0 == did_of(PUBLIC_0)
    assert public_key_of(DID_0) == PUBLIC_0
    assert key.reveal() == SEED_0


@pytest.mark.parametrize(("did", "public_key"), OTHERS)
def test_examples_of_the_specification(did: str, public_key: str) -> None:
    assert public_key_of(did).hex() == public_key
    assert did_of(bytes.fromhex(public_key)) == did


@given(st.binary(min_size=32, max_size=32))
def test_every_key_has_one_text(public_key: bytes) -> None:
    try:
        did = did_of(public_key)
    except ValueError:
        return
    assert did.startswith("did:key:z6Mk")
    assert len(did) == len(DID_0)
    assert public_key_of(did) == public_key


@pytest.mark.parametrize(
    "did",
    [
        "",
        "alice",
        "did:key:",
        DID_0[:-1],
        DID_0 + "1",
        DID_0.replace("z6Mk", "z16Mk"),
        DID_0 + "#" + DID_0[8:],
        DID_0.upper(),
        DID_0[:-1] + "0",
        DID_0[:-1] + "\udc80",
        "did:key:z6LSbysY2xFMRpGMhb7tFTLMpeuPRaqaWM1yECx2AtzE3KCc",  # X25519
        "did:key:zQ3shokFTS3brHcDQrn82RUDfCZESWL1ZdCEJwekUDPQiYBme",  # secp256k1
        "did:key:z" + "z" * 47,
        "did:key:z" + "1" * 47,
    ],
)
def test_what_is_no_did_key_of_ed25519_is_refused(did: str) -> None:
    with pytest.raises(ValueError, match=r"did:key|base58"):
        public_key_of(did)


@pytest.mark.parametrize("y", [*sorted(_SMALL_ORDER), FIELD_PRIME, FIELD_PRIME + 1])
@pytest.mark.parametrize("sign", [0, 1 << 255])
def test_a_key_under_which_anybody_signs_is_refused(y: int, sign: int) -> None:
    with pytest.raises(ValueError, match="is not a usable public key"):
        did_of((y | sign).to_bytes(32, "little"))


def test_the_points_of_small_order_are_those_of_the_curve() -> None:
    """Each y is that of a point which is the neutral element when it is added to itself 7 times."""
    d = -121665 * pow(121666, -1, FIELD_PRIME)

    def doubled_y(y_squared: int) -> int:
        """y² of the doubled point; the curve gives x² from y²."""
        x_squared = (y_squared - 1) * pow(d * y_squared + 1, -1, FIELD_PRIME)
        y = (y_squared + x_squared) * pow(1 - d * x_squared * y_squared, -1, FIELD_PRIME)
        return y * y % FIELD_PRIME

    for y in _SMALL_ORDER:
        y_squared = y * y % FIELD_PRIME
        for _ in range(2):
            y_squared = doubled_y(y_squared)
        assert y_squared == 1
    assert len(_SMALL_ORDER) == 5


@pytest.mark.parametrize("length", [0, 31, 33])
def test_a_key_has_32_bytes(length: int) -> None:
    with pytest.raises(ValueError, match=rf"\(got {length}\)"):
        SigningKey(bytes(length))
    with pytest.raises(ValueError, match=rf"\(got {length}\)"):
        did_of(bytes(length))


def test_a_key_is_written_down_and_read() -> None:
    key = SigningKey.generate()
    assert SigningKey.from_hex(key.reveal().hex()).did == key.did
    assert SigningKey.generate().did != key.did
    for text in ("", "zz", "00" * 31):
        with pytest.raises(ValueError, match=r"64 digits|must have 32 bytes"):
            SigningKey.from_hex(text)


def test_a_key_does_not_show_itself() -> None:
    key = SigningKey(SEED_0)
    assert repr(key) == str(key) == f"SigningKey({DID_0})"
    for copied in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="reveal"):
            copied(key)


def test_an_id_is_its_own_key() -> None:
    assert list(DidKeys().keys_of(DID_0)) == [PUBLIC_0]
    with pytest.raises(ValueError, match="'alice' is not a did:key"):
        DidKeys().keys_of("alice")


def test_a_list_tells_who_has_which_keys() -> None:
    other = SigningKey.generate()
    known = KnownKeys({"alice": [DID_0, other.did], "nobody": []})
    assert known.keys_of("alice") == (PUBLIC_0, public_key_of(other.did))
    known.set("alice", other.did)
    assert known.keys_of("alice") == (public_key_of(other.did),)
    known.set("alice")
    for unknown in ("alice", "nobody", DID_0):
        with pytest.raises(ValueError, match="knows no public key of "):
            known.keys_of(unknown)


def test_a_list_with_a_bad_key_is_refused_and_changes_nothing() -> None:
    with pytest.raises(ValueError, match="did:key"):
        KnownKeys({"alice": ["alice"]})
    known = KnownKeys({"alice": [DID_0]})
    with pytest.raises(ValueError, match="did:key"):
        known.set("alice", DID_0, "nonsense")
    assert known.keys_of("alice") == (PUBLIC_0,)
