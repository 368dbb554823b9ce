"""The envelope of questions and answers, byte for byte."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reliable_channel.conversation.envelope import (
    UnreadableEnvelope,
    decode,
    encode,
    is_envelope,
)

parts = st.tuples(st.binary(min_size=16, max_size=16), st.binary(), st.text())


@given(parts)
def test_what_is_encoded_is_decoded(parts: tuple[bytes, bytes, str]) -> None:
    payload = encode(*parts)
    found = decode(payload)
    assert is_envelope(payload)
    assert (found.question_id, found.content, found.asker_id) == parts


@given(parts, st.data())
def test_what_is_cut_short_is_unreadable_or_shorter(
    parts: tuple[bytes, bytes, str], data: st.DataObject
) -> None:
    payload = encode(*parts)
    cut = payload[: data.draw(st.integers(5, len(payload)))]
    try:
        found = decode(cut)
    except UnreadableEnvelope:
        return
    assert len(found.content) <= len(parts[1])


@given(st.text())
def test_no_text_is_an_envelope(text: str) -> None:
    assert not is_envelope(text.encode(errors="replace"))


def test_golden_bytes() -> None:
    payload = encode(bytes(range(16)), b"half past six", "alice")
    assert payload.hex() == (
        "0d524351a110011a10000102030405060708090a0b0c0d0e0f2205616c6963652a0d"
        "68616c66207061737420736978"
    )


def test_a_wrong_version_or_id_is_unreadable() -> None:
    payload = encode(bytes(16), b"x")
    with pytest.raises(UnreadableEnvelope, match=r"version 1 \(got 2\)"):
        decode(payload.replace(b"\x10\x01", b"\x10\x02"))
    with pytest.raises(UnreadableEnvelope, match="16 bytes"):
        decode(encode(b"short", b"x"))
