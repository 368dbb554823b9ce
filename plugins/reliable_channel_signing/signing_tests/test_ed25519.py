"""What Ed25519 proves, and what it does not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reliable_channel.spi import NotProven
from reliable_channel_signing import Ed25519Signer, KnownKeys, SigningKey

ALICE, BOB = (SigningKey(bytes([n] * 32)) for n in (1, 2))


def proves(signer: Ed25519Signer, sender_id: str, data: bytes, signature: bytes) -> bool:
    try:
        signer.verify(sender_id, data, signature)
    except NotProven:
        return False
    return True


def test_the_first_test_of_rfc_8032() -> None:
    key = SigningKey.from_hex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
    assert Ed25519Signer(key).sign(b"").hex() == (
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bac"
        "c61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"
    )


@given(st.binary(max_size=300))
def test_what_is_signed_is_proven_to_everybody(data: bytes) -> None:
    alice, bob = Ed25519Signer(ALICE), Ed25519Signer(BOB)
    assert proves(bob, alice.sender_id, data, alice.sign(data))
    assert not proves(bob, bob.sender_id, data, alice.sign(data))
    assert not proves(bob, alice.sender_id, data + b"x", alice.sign(data))


def test_no_bit_of_a_signature_can_be_flipped() -> None:
    alice = Ed25519Signer(ALICE)
    signature = alice.sign(b"data")
    for bit in range(8 * len(signature)):
        flipped = bytearray(signature)
        flipped[bit // 8] ^= 1 << bit % 8
        assert not proves(alice, alice.sender_id, b"data", bytes(flipped)), f"bit {bit}"


def test_why_something_is_not_proven_is_told() -> None:
    signer = Ed25519Signer(ALICE)
    for sender_id, signature, why in [
        (ALICE.did, bytes(63), r"must have 64 bytes \(got 63\)"),
        (ALICE.did, bytes(64), f"the signature does not belong to '{ALICE.did}'"),
        ("alice", bytes(64), "'alice' is not a did:key"),
    ]:
        with pytest.raises(NotProven, match=why):
            signer.verify(sender_id, b"data", signature)


def test_keys_are_rotated_while_messages_are_under_way() -> None:
    old, new = Ed25519Signer(ALICE), Ed25519Signer(BOB)
    known = KnownKeys({"alice": [ALICE.did]})
    verifier = Ed25519Signer(SigningKey.generate(), known)
    before, after = old.sign(b"data"), new.sign(b"data")
    assert proves(verifier, "alice", b"data", before)
    assert not proves(verifier, "alice", b"data", after)
    known.set("alice", ALICE.did, BOB.did)
    assert proves(verifier, "alice", b"data", before)
    assert proves(verifier, "alice", b"data", after)
    known.set("alice", BOB.did)
    assert not proves(verifier, "alice", b"data", before)


def test_its_repr_shows_no_private_key() -> None:
    assert repr(Ed25519Signer(ALICE)) == f"Ed25519Signer(SigningKey({ALICE.did}))"
