"""Attacks on the secure channel; that honest peers understand each other, the vectors show."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waku.libp2p import HandshakeFailed, PeerViolation, StaticKeys
from waku.libp2p.libp2p_pb2 import NoiseHandshakePayload
from waku.libp2p.noise import HandshakeState, NoiseSession
from waku.libp2p.noise.session import MAX_PLAINTEXT_BYTES

from .pair import DIALLER, LISTENER

KEYS = [StaticKeys.from_random(bytes(range(n, n + 64))) for n in (0, 64)]


def sessions() -> tuple[NoiseSession, NoiseSession]:
    return (
        NoiseSession(initiator=True, identity=DIALLER, keys=KEYS[0], expected=LISTENER.peer_id),
        NoiseSession(initiator=False, identity=LISTENER, keys=KEYS[1]),
    )


def established() -> tuple[NoiseSession, NoiseSession]:
    first, second = sessions()
    second.receive(first.data_to_send())
    first.receive(second.data_to_send())
    second.receive(first.data_to_send())
    assert first.is_established
    assert second.is_established
    assert first.handshake_hash == second.handshake_hash
    return first, second


@given(st.binary(max_size=200_000), st.integers(1, 70_000))
def test_plaintext_of_any_length_in_any_pieces(data: bytes, size: int) -> None:
    first, second = established()
    sealed = first.encrypt(data)
    assert (len(sealed) > MAX_PLAINTEXT_BYTES) == (len(data) + 18 > MAX_PLAINTEXT_BYTES)
    got = b"".join(second.receive(sealed[at : at + size]) for at in range(0, len(sealed), size))
    assert got == data


def test_repeated_reordered_and_changed_messages_are_refused() -> None:
    for attack in ("repeat", "reorder", "change", "drop"):
        first, second = established()
        one, two = first.encrypt(b"one"), first.encrypt(b"two")
        wire = {
            "repeat": one + one,
            "reorder": two + one,
            "change": one[:-1] + bytes([one[-1] ^ 1]),
            "drop": two,
        }[attack]
        with pytest.raises(PeerViolation, match="authentication of a noise message failed"):
            second.receive(wire)


def _answer_with(payload: bytes) -> None:
    """A responder that does the handshake right and shows this payload."""
    initiator = sessions()[0]
    responder = HandshakeState(initiator=False, static=KEYS[1].static, ephemeral=KEYS[1].ephemeral)
    responder.read_message(initiator.data_to_send()[2:])
    message = responder.write_message(payload)
    initiator.receive(len(message).to_bytes(2, "big") + message)


def _payload(key: bytes, signature: bytes) -> bytes:
    return NoiseHandshakePayload(identity_key=key, identity_sig=signature).SerializeToString()


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"", "identity"),
        (b"\xff\xff", "identity"),
        (_payload(b"", b""), "identity"),
        (_payload(LISTENER.public_key.encoded, b"x" * 64), "does not own"),
        (
            _payload(
                LISTENER.public_key.encoded,
                # of another static key: a signature that was seen elsewhere
                LISTENER.sign(b"noise-libp2p-static-key:" + bytes(32)),
            ),
            "does not own",
        ),
    ],
)
def test_who_cannot_prove_an_identity_is_refused(payload: bytes, reason: str) -> None:
    with pytest.raises(HandshakeFailed, match=reason):
        _answer_with(payload)


def test_keys_of_low_order_are_refused() -> None:
    """Whose shared secret is zero, known to everybody."""
    _, responder = sessions()
    with pytest.raises(HandshakeFailed, match="low order"):
        responder.receive(b"\x00\x20" + bytes(32))


@pytest.mark.parametrize("data", [b"\x00\x00", b"\x00\x05short", b"\x00\x1f" + b"x" * 31])
def test_a_message_that_is_too_short_is_refused(data: bytes) -> None:
    _, responder = sessions()
    with pytest.raises(HandshakeFailed, match="ends within a key"):
        responder.receive(data)
