import pytest
from hypothesis import given
from hypothesis import strategies as st

from waku.libp2p import InvalidInput, LimitExceeded
from waku.libp2p.varint import MessageReader, decode, encode, prefixed


@given(st.integers(0, 2**63 - 1), st.binary(max_size=3))
def test_what_is_encoded_is_decoded(value: int, behind: bytes) -> None:
    data = encode(value)
    assert decode(data + behind) == (value, len(data))
    assert all(decode(data[:cut]) is None for cut in range(len(data)))


@pytest.mark.parametrize("data", [b"\x80\x00", b"\xff\x80\x00", b"\x80" * 9, b"\xff" * 20])
def test_long_forms_and_endless_ones_are_refused(data: bytes) -> None:
    with pytest.raises(InvalidInput):
        decode(data)


@given(st.lists(st.binary(max_size=300), max_size=5), st.integers(1, 50))
def test_messages_are_cut_from_any_pieces(messages: list[bytes], size: int) -> None:
    reader, found = MessageReader(300), []
    data = b"".join(map(prefixed, messages)) + b"\x05tail"
    for at in range(0, len(data), size):
        reader.feed(data[at : at + size])
        while (message := reader.next_message()) is not None:
            found.append(message)
    assert found == messages
    assert reader.rest == b"\x05tail"


def test_a_long_message_is_refused_before_it_is_there() -> None:
    reader = MessageReader(300, "frame_bytes")
    reader.feed(encode(301))
    with pytest.raises(LimitExceeded, match=r"`frame_bytes` is 300.*301"):
        reader.next_message()
