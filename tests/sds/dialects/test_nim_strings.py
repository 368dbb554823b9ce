import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reliable_channel.sds.bloom_hash import remainder
from reliable_channel.sds.dialects.nim_strings import magnitude, raw, string_hash, text

LOWEST = -(1 << 63)


@settings(derandomize=True, max_examples=200)
@given(st.binary(max_size=30) | st.text(st.characters(exclude_categories=["Cs"])).map(str.encode))
def test_any_bytes_become_text_that_anybody_may_write_and_those_bytes_again(data: bytes) -> None:
    try:
        read = text(data)
    except ValueError:
        assert any(0x10FE80 <= ord(char) <= 0x10FEFF for char in data.decode(errors="replace"))
        return
    assert read.encode().decode() == read
    assert raw(read) == data


@pytest.mark.parametrize(
    ("data", "read"),
    [
        (b"", ""),
        (b"m1", "m1"),
        ("é漢🙂".encode(), "é漢🙂"),
        (b"\xff\x80", "\U0010feff\U0010fe80"),
        (b"a\xc3", "a\U0010fec3"),
    ],
)
def test_a_byte_that_is_no_utf8_becomes_a_private_character(data: bytes, read: str) -> None:
    assert text(data) == read
    assert raw(read) == data


def test_a_private_character_that_would_be_taken_for_a_byte_is_refused() -> None:
    with pytest.raises(ValueError, match="private-use"):
        text("\U0010fec3".encode())


def test_the_hash_is_signed_and_of_the_bytes() -> None:
    assert string_hash("m1") == -1652044978079387191
    assert string_hash(text(b"\xff\x80")) != string_hash("ÿ\x80")


@pytest.mark.parametrize(
    ("number", "expected"), [(5, 5), (-5, 5), (LOWEST + 1, -LOWEST - 1), (LOWEST, LOWEST)]
)
def test_the_lowest_number_has_no_magnitude(number: int, expected: int) -> None:
    assert magnitude(number) == expected


@pytest.mark.parametrize(
    ("dividend", "divisor", "expected"), [(7, 3, 1), (-7, 3, -1), (LOWEST, 1000, -808), (-6, 3, 0)]
)
def test_a_remainder_has_the_sign_of_the_dividend(
    dividend: int, divisor: int, expected: int
) -> None:
    assert remainder(dividend, divisor) == expected
