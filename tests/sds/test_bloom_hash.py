"""The golden vectors `hashn` and `bloom` of js-waku hold the numbers; here is what they are for."""

import mmh3
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reliable_channel.sds.bloom_hash import (
    _hash_utf16_units,
    bloom_hash,
    hash_pair,
    positions,
    spread,
)


def test_the_published_example_of_positions() -> None:
    first, step = 351, 874
    assert positions("hello", 6, 1000) == [(first + n * step) % 1000 for n in range(6)]
    assert positions("hello", 6, 1000)[-1] == 721


@settings(derandomize=True)
@given(st.text(st.characters(max_codepoint=127)))
def test_ascii_is_plain_murmur3(text: str) -> None:
    assert bloom_hash(text) == mmh3.hash(text, 0, True)
    assert _hash_utf16_units(text) == bloom_hash(text)


@settings(derandomize=True)
@given(
    st.text(st.characters(exclude_categories=["Cs"])), st.integers(1, 12), st.integers(1, 200_000)
)
def test_positions_lie_in_the_filter(text: str, hash_count: int, bit_count: int) -> None:
    found = positions(text, hash_count, bit_count)
    assert len(found) == hash_count
    assert all(0 <= position < bit_count for position in found)
    assert found == positions(text, hash_count, bit_count)


def test_astral_characters_of_one_block_collide_as_they_do_in_js_waku() -> None:
    assert bloom_hash("🙂") == bloom_hash("🙃")
    assert bloom_hash("🙂") != bloom_hash("🚀" + "a")


@pytest.mark.parametrize("text", ["é", "ab漢", "abcdé", "abcde漢字fg"])
def test_a_hash_is_a_signed_32_bit_number(text: str) -> None:
    assert -(2**31) <= bloom_hash(text) < 2**31


@pytest.mark.parametrize("text", ["hello", "é", "ab漢"])
def test_a_pair_has_the_hashes_of_an_id_and_of_its_second_form(text: str) -> None:
    assert hash_pair(text) == (abs(bloom_hash(text)), abs(bloom_hash(text + " b")))
    assert spread(hash_pair(text), 6, 1000) == positions(text, 6, 1000)


@pytest.mark.parametrize(
    ("pair", "found"),
    [((-7, 3), [7, 4, 1, 2]), ((7, -3), [7, 4, 1, 2]), ((-(2**63), -(2**63)), [8, 6, 4, 2])],
    ids=["first", "step", "the lowest number of Nim, whose `abs` is itself"],
)
def test_a_negative_hash_is_divided_as_nim_does_it(pair: tuple[int, int], found: list[int]) -> None:
    assert spread(pair, 4, 10) == found
