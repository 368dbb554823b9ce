import pytest
from hypothesis import given
from hypothesis import strategies as st

from waku import _base58


@given(st.binary(min_size=1, max_size=64))
def test_round_trip(data: bytes) -> None:
    assert _base58.decode(_base58.encode(data)) == data


def test_leading_zeros_are_ones() -> None:
    assert _base58.encode(b"\0\0\x39") == "11z"
    assert _base58.decode("11z") == b"\0\0\x39"


@pytest.mark.parametrize("text", ["", "0", "O", "I", "l", "ä", "1" * 129])
def test_what_is_not_base58_says_why(text: str) -> None:
    with pytest.raises(ValueError, match="base58"):
        _base58.decode(text)
