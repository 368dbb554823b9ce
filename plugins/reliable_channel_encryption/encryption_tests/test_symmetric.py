"""Sealing and opening, and everything that must not open."""

import secrets
from collections.abc import Callable
from typing import Any

import pytest
from Crypto.Cipher import AES, ChaCha20_Poly1305
from hypothesis import given
from hypothesis import strategies as st

from reliable_channel.spi import DecryptionFailed, Encryption
from reliable_channel_encryption import (
    Algorithm,
    KeyExhausted,
    Keyring,
    NonceRefused,
    Secret,
    SymmetricEncryption,
)
from reliable_channel_encryption.symmetric import HEADER_BYTES, OVERHEAD_BYTES, TAG_BYTES

pytestmark = pytest.mark.anyio

KEY = bytes(range(32))
OTHER_KEY = bytes(range(1, 33))
NONCE = bytes(range(100, 112))
ALGORITHMS: tuple[Algorithm, ...] = ("aes-256-gcm", "chacha20-poly1305")

each_algorithm = pytest.mark.parametrize("algorithm", ALGORITHMS)


def sealing(
    *keys: bytes,
    algorithm: Algorithm = "aes-256-gcm",
    context: bytes = b"general",
    random: Callable[[int], bytes] = secrets.token_bytes,
) -> SymmetricEncryption:
    keyring = Keyring(*map(Secret, keys or (KEY,)))
    return SymmetricEncryption(keyring, algorithm=algorithm, context=context, random=random)


async def opens(encryption: Encryption, payload: bytes) -> bool:
    try:
        await encryption.decrypt(payload)
    except DecryptionFailed:
        return False
    return True


@each_algorithm
@given(content=st.binary(max_size=300), context=st.binary(max_size=20))
async def test_what_is_sealed_is_opened(
    algorithm: Algorithm, content: bytes, context: bytes
) -> None:
    sealed = await sealing(algorithm=algorithm, context=context).encrypt(content)
    assert await sealing(algorithm=algorithm, context=context).decrypt(sealed) == content
    assert len(sealed) == len(content) + OVERHEAD_BYTES == len(content) + 38


@each_algorithm
async def test_an_empty_message_is_sealed_as_any(algorithm: Algorithm) -> None:
    sealed = await sealing(algorithm=algorithm).encrypt(b"")
    assert len(sealed) == OVERHEAD_BYTES
    assert await sealing().decrypt(sealed) == b""


@each_algorithm
async def test_another_implementation_opens_it(algorithm: Algorithm) -> None:
    sealed = await sealing(algorithm=algorithm, random=lambda _: NONCE).encrypt(b"hello")
    header, body, tag = sealed[:HEADER_BYTES], sealed[HEADER_BYTES:-TAG_BYTES], sealed[-TAG_BYTES:]
    assert header == bytes([1, 1 + ALGORITHMS.index(algorithm)]) + Secret(KEY).id + NONCE

    cipher: Any
    if algorithm == "aes-256-gcm":
        cipher = AES.new(KEY, AES.MODE_GCM, nonce=NONCE)
    else:
        cipher = ChaCha20_Poly1305.new(key=KEY, nonce=NONCE)
    cipher.update(header + b"general")
    assert cipher.decrypt_and_verify(body, tag) == b"hello"


@pytest.mark.parametrize(
    ("algorithm", "sealed"),
    [
        ("aes-256-gcm", "207eb20a16c374601becc9fe0074d8876c50b005f2"),
        ("chacha20-poly1305", "5c74d7a6f7c6b3d6076d1b2726f962f17d1c0a4341"),
    ],
)
async def test_an_envelope_stays_as_it_is(algorithm: Algorithm, sealed: str) -> None:
    header = bytes([1, 1 + ALGORITHMS.index(algorithm)]) + bytes.fromhex("2454a21b2bfcdc05") + NONCE
    assert await sealing().decrypt(header + bytes.fromhex(sealed)) == b"hello"


async def test_both_algorithms_are_opened_whichever_is_sealed_with() -> None:
    sealed = [await sealing(algorithm=algorithm).encrypt(b"hello") for algorithm in ALGORITHMS]
    for encryption in (sealing(algorithm=algorithm) for algorithm in ALGORITHMS):
        assert [await encryption.decrypt(payload) for payload in sealed] == [b"hello"] * 2


async def test_equal_messages_look_different() -> None:
    encryption = sealing()
    assert len({await encryption.encrypt(b"hello") for _ in range(100)}) == 100


@each_algorithm
async def test_no_bit_can_be_flipped(algorithm: Algorithm) -> None:
    sealed = await sealing(algorithm=algorithm).encrypt(b"hello")
    for bit in range(8 * len(sealed)):
        flipped = bytearray(sealed)
        flipped[bit // 8] ^= 1 << bit % 8
        assert not await opens(sealing(), bytes(flipped)), f"bit {bit}"


@each_algorithm
async def test_nothing_can_be_cut_off_or_added(algorithm: Algorithm) -> None:
    sealed = await sealing(algorithm=algorithm).encrypt(b"hello")
    for length in range(len(sealed)):
        assert not await opens(sealing(), sealed[:length]), f"the first {length} bytes"
    assert not await opens(sealing(), sealed + b"\0")
    assert not await opens(sealing(), b"\0" + sealed)
    assert not await opens(sealing(), sealed + sealed)


@pytest.mark.parametrize("version", [0, 2, 255])
async def test_an_unknown_version_does_not_open(version: int) -> None:
    sealed = await sealing().encrypt(b"hello")
    assert not await opens(sealing(), bytes([version]) + sealed[1:])


@pytest.mark.parametrize("algorithm", [0, 2, 3, 255])
async def test_an_unknown_or_swapped_algorithm_does_not_open(algorithm: int) -> None:
    sealed = await sealing(algorithm="aes-256-gcm").encrypt(b"hello")
    assert not await opens(sealing(), sealed[:1] + bytes([algorithm]) + sealed[2:])


async def test_a_wrong_key_does_not_open() -> None:
    sealed = await sealing(KEY).encrypt(b"hello")
    assert not await opens(sealing(OTHER_KEY), sealed)
    under_our_key_id = sealed[:2] + Secret(OTHER_KEY).id + sealed[10:]
    assert not await opens(sealing(OTHER_KEY), under_our_key_id)
    assert not await opens(sealing(KEY, OTHER_KEY), under_our_key_id)


async def test_another_context_does_not_open() -> None:
    sealed = await sealing(context=b"general").encrypt(b"hello")
    assert not await opens(sealing(context=b"random"), sealed)
    assert not await opens(sealing(context=b""), sealed)


async def test_plain_text_is_never_taken_for_a_message() -> None:
    assert not await opens(sealing(), b"hello")
    assert not await opens(sealing(), b"")


async def test_keys_are_rotated_while_messages_are_under_way() -> None:
    alice, bob = sealing(KEY), sealing(KEY)
    under_way = await alice.encrypt(b"old")
    new = Secret(OTHER_KEY)

    bob.rotate(Keyring(bob.keys.current, new))  # 1. everybody can open with the new key
    alice.rotate(Keyring(new, alice.keys.current))  # 2. seal with it
    assert await bob.decrypt(await alice.encrypt(b"new")) == b"new"
    assert await alice.decrypt(await bob.encrypt(b"still old")) == b"still old"

    bob.rotate(Keyring(new, bob.keys.current))
    assert await bob.decrypt(under_way) == b"old"
    bob.rotate(Keyring(new))  # 3. the old one is gone
    assert not await opens(bob, under_way)


@each_algorithm
async def test_a_repeated_nonce_seals_nothing(algorithm: Algorithm) -> None:
    nonces = [b"first nonce!", b"other nonce!", b"first nonce!", b"third nonce!"]
    encryption = sealing(algorithm=algorithm, random=lambda _: nonces.pop(0))
    await encryption.encrypt(b"one")
    await encryption.encrypt(b"two")
    with pytest.raises(NonceRefused, match="repeated"):
        await encryption.encrypt(b"three")


async def test_a_nonce_is_refused_over_all_channels_that_share_the_key() -> None:
    secret = Secret(KEY)
    first, second, third = (
        SymmetricEncryption(Keyring(*keys), context=context, random=lambda _: NONCE)
        for keys, context in [
            ([secret], b"general"),
            ([secret, Secret(OTHER_KEY)], b"random"),
            ([Secret(OTHER_KEY), secret], b"random"),
        ]
    )
    await first.encrypt(b"one")
    with pytest.raises(NonceRefused):
        await second.encrypt(b"two")
    await third.encrypt(b"another key may use the nonce")


@pytest.mark.parametrize("length", [0, 11, 13])
async def test_a_nonce_of_the_wrong_length_is_refused(length: int) -> None:
    with pytest.raises(NonceRefused, match=f"gave {length} bytes"):
        await sealing(random=lambda _: bytes(length)).encrypt(b"hello")


async def test_a_random_source_that_fails_seals_nothing() -> None:
    def fails(_: int) -> bytes:
        raise OSError("no entropy")

    with pytest.raises(OSError, match="no entropy"):
        await sealing(random=fails).encrypt(b"hello")


async def test_an_exhausted_key_seals_no_more_but_opens_until_it_is_rotated() -> None:
    encryption = SymmetricEncryption(Keyring(Secret(KEY)), max_messages=3)
    sealed = [await encryption.encrypt(b"hello") for _ in range(3)]
    for _ in range(2):
        with pytest.raises(KeyExhausted, match=r"3 messages.*rotate"):
            await encryption.encrypt(b"one too many")
    assert await encryption.decrypt(sealed[-1]) == b"hello"

    encryption.rotate(Keyring(Secret(OTHER_KEY), encryption.keys.current))
    assert await encryption.decrypt(await encryption.encrypt(b"again")) == b"again"
    encryption.rotate(Keyring(encryption.keys.older[0]))
    with pytest.raises(KeyExhausted):
        await encryption.encrypt(b"rotating back does not help")


@pytest.mark.parametrize("max_messages", [0, -1, 2**32 + 1])
async def test_a_limit_above_that_of_the_algorithm_is_refused(max_messages: int) -> None:
    with pytest.raises(ValueError, match="`max_messages` must be"):
        SymmetricEncryption(Keyring(Secret(KEY)), max_messages=max_messages)


async def test_an_unknown_algorithm_is_refused() -> None:
    with pytest.raises(
        ValueError, match="'rot13'; known algorithms are aes-256-gcm, chacha20-poly1305"
    ):
        SymmetricEncryption(Keyring(Secret(KEY)), algorithm="rot13")  # type: ignore[arg-type]


async def test_its_repr_shows_no_key() -> None:
    shown = repr(sealing(KEY, OTHER_KEY))
    assert KEY.hex() not in shown
    assert repr(KEY) not in shown
    assert Secret(KEY).id.hex() in shown
