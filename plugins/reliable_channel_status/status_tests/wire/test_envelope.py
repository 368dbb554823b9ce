"""26/WAKU2-PAYLOAD; what other implementations sealed is in tests/vectors and interop/status."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from reliable_channel_status import (
    MalformedEnvelope,
    NotForThisKey,
    Opened,
    PrivateKey,
    SymmetricKey,
    open_ecies,
    open_symmetric,
    seal_ecies,
    seal_symmetric,
)
from reliable_channel_status.wire.ecies import OVERHEAD_BYTES, encrypt
from reliable_channel_status.wire.envelope import pack, unpack
from status_tests.world import ALICE, BOB, MALLORY

KEY = SymmetricKey(bytes(range(1, 33)))
OTHER_KEY = SymmetricKey(bytes(range(2, 34)))
SIGNATURE_BYTES = 65


@dataclass(frozen=True)
class Kind:
    seal: Callable[[bytes, PrivateKey | None], bytes]
    open_: Callable[[bytes], Opened]
    open_wrongly: Callable[[bytes], Opened]
    overhead_bytes: int


KINDS = {
    "symmetric": Kind(
        lambda payload, signer: seal_symmetric(payload, KEY, signer),
        lambda data: open_symmetric(data, KEY),
        lambda data: open_symmetric(data, OTHER_KEY),
        28,
    ),
    "ecies": Kind(
        lambda payload, signer: seal_ecies(payload, BOB.public_key, signer),
        lambda data: open_ecies(data, BOB),
        lambda data: open_ecies(data, MALLORY),
        OVERHEAD_BYTES,
    ),
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    return KINDS[request.param]


@pytest.mark.parametrize("signer", [None, ALICE])
@pytest.mark.parametrize("size", [0, 1, 187, 188, 189, 253, 254, 255, 256, 65_535, 65_536])
def test_what_is_sealed_opens(kind: Kind, size: int, signer: PrivateKey | None) -> None:
    payload = bytes(range(256)) * (size // 256 + 1)
    sealed = kind.seal(payload[:size], signer)
    assert kind.open_(sealed) == Opened(
        payload[:size], None if signer is None else signer.public_key
    )
    assert (len(sealed) - kind.overhead_bytes) % 256 == 0


def test_what_is_aligned_already_is_padded_by_256_bytes() -> None:
    assert len(pack(bytes(253))) == 256
    assert len(pack(bytes(254))) == 512
    assert len(pack(bytes(253 - SIGNATURE_BYTES), ALICE)) == 256
    assert len(pack(bytes(254 - SIGNATURE_BYTES), ALICE)) == 512


def test_the_same_payload_is_never_sealed_alike(kind: Kind) -> None:
    assert len({kind.seal(b"hello", ALICE) for _ in range(50)}) == 50


def test_the_wrong_key_opens_nothing(kind: Kind) -> None:
    with pytest.raises(NotForThisKey):
        kind.open_wrongly(kind.seal(b"hello", ALICE))


def test_cut_short_or_changed_it_does_not_open(kind: Kind) -> None:
    sealed = kind.seal(b"hello", ALICE)
    for size in range(len(sealed)):
        with pytest.raises(NotForThisKey):
            kind.open_(sealed[:size])
    for at in range(len(sealed)):
        if kind is KINDS["ecies"] and at == 0:
            continue  # 06 and 07 are other ways to write the same point
        with pytest.raises(NotForThisKey):
            kind.open_(sealed[:at] + bytes([sealed[at] ^ 1]) + sealed[at + 1 :])


def test_a_signature_is_not_carried_over_to_another_payload() -> None:
    theirs = pack(b"pay Bob 1", ALICE)
    forged = pack(b"pay Bob 9", ALICE)[:-SIGNATURE_BYTES] + theirs[-SIGNATURE_BYTES:]
    try:
        signer = unpack(forged).signer
    except MalformedEnvelope:
        return
    assert signer != ALICE.public_key


def test_a_signature_that_is_cut_off_leaves_no_unsigned_message() -> None:
    plain = pack(b"hello", ALICE)
    with pytest.raises(MalformedEnvelope):
        for _ in range(20):  # most signatures are somebody's, but never Alice's
            assert unpack(plain[:-SIGNATURE_BYTES]).signer != ALICE.public_key
            plain = pack(b"hello", ALICE)
        raise MalformedEnvelope


@pytest.mark.parametrize(
    "plain",
    [b"", b"\x01", b"\x01\x02a", b"\x03\xff\xff\xff", b"\x04", b"\x05\x00" + bytes(64), bytes([7])],
)
def test_what_opens_and_is_not_version_1_is_told(plain: bytes) -> None:
    with pytest.raises(MalformedEnvelope):
        unpack(plain)
    if plain:
        with pytest.raises(MalformedEnvelope):
            open_ecies(encrypt(plain, BOB.public_key, random=bytes), BOB)


@pytest.mark.parametrize(
    ("plain", "payload"), [(b"\x00", b""), (b"\x00abc", b""), (b"\x01\x01a", b"a")]
)
def test_other_padding_is_taken(plain: bytes, payload: bytes) -> None:
    assert unpack(plain) == Opened(payload, None)


def test_a_payload_whose_length_cannot_be_written_is_refused() -> None:
    with pytest.raises(ValueError, match="at most 16777215 bytes"):
        pack(bytes(256**3))
