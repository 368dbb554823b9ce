import mmh3
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reliable_channel.sds.bloom import (
    BloomFilter,
    BloomLayout,
    BloomParameters,
    RollingBloomFilter,
    _hash_utf16_units,
    bloom_hash,
    contains,
    hash_pair,
    positions,
    spread,
)

DEFAULT = BloomParameters()


def ids(first: int, count: int) -> list[str]:
    return [f"{n:064x}" for n in range(first, first + count)]


# -- parameters ------------------------------------------------------------------------------------


@pytest.mark.conformance("SDS-BLOOM-1")
def test_the_default_filter_has_js_wakus_size() -> None:
    assert DEFAULT.bits_per_element == 15
    assert DEFAULT.hash_count == 10
    assert DEFAULT.layout == BloomLayout(150_000, 10)
    assert DEFAULT.layout.byte_count == 18_752


@pytest.mark.conformance("SDS-BLOOM-1")
@pytest.mark.parametrize(
    ("error_rate", "bits", "hashes"), [(0.1, 5, 3), (0.01, 10, 7), (0.001, 15, 10), (0.999, 1, 1)]
)
def test_bits_and_hashes_follow_from_the_error_rate(
    error_rate: float, bits: int, hashes: int
) -> None:
    parameters = BloomParameters(error_rate=error_rate)
    assert (parameters.bits_per_element, parameters.hash_count) == (bits, hashes)


@pytest.mark.parametrize("capacity", [0, -1])
def test_a_capacity_below_one_is_refused(capacity: int) -> None:
    with pytest.raises(ValueError, match=rf"^`capacity` must be between .* \(got {capacity}\)"):
        BloomParameters(capacity=capacity)


@pytest.mark.conformance("SDS-PROBABILITY-2")
@pytest.mark.parametrize("error_rate", [0.0, 1.0, -0.5, 2.0])
def test_an_unachievable_error_rate_is_refused(error_rate: float) -> None:
    with pytest.raises(ValueError, match="`error_rate` must be a number from"):
        BloomParameters(error_rate=error_rate)


# -- one filter ------------------------------------------------------------------------------------


@pytest.mark.conformance("SDS-BLOOM-2", "SDS-BLOOM-4")
@settings(derandomize=True, deadline=None)
@given(st.sets(st.text(st.characters(exclude_categories=["Cs"]))))
def test_what_was_inserted_is_found(items: set[str]) -> None:
    bloom = BloomFilter(BloomParameters(capacity=200).layout)
    for item in items:
        bloom.insert(item)
    assert all(item in bloom for item in items)
    assert all(contains(bytes(bloom), bloom.layout.probes(item)) for item in items)


@pytest.mark.conformance("SDS-BLOOM-7")
def test_an_empty_filter_holds_nothing() -> None:
    bloom = BloomFilter(DEFAULT.layout)
    assert not any(item in bloom for item in ["", "a", *ids(0, 100)])
    assert bytes(bloom) == bytes(18_752)


@pytest.mark.conformance("SDS-BLOOM-5")
def test_bits_lie_big_endian_in_words_of_64() -> None:
    bloom = BloomFilter(BloomLayout(128, 1))
    bloom.add((0, 0))
    assert bytes(bloom).hex() == "0000000000000001" + 2 * "0000000000000000"


@pytest.mark.conformance("SDS-BLOOM-6")
@pytest.mark.parametrize("item", ["", " ", "\0", "é", "漢字", "🙂", "a" * 10_000])
def test_unusual_ids_are_found(item: str) -> None:
    bloom = BloomFilter(DEFAULT.layout)
    bloom.insert(item)
    assert item in bloom


@pytest.mark.conformance("SDS-BLOOM-3", "SDS-BLOOM-8")
@pytest.mark.parametrize(("capacity", "error_rate"), [(10_000, 0.001), (1_000, 0.01), (500, 0.1)])
def test_false_positives_stay_within_bounds_at_capacity(capacity: int, error_rate: float) -> None:
    bloom = RollingBloomFilter(BloomParameters(capacity, error_rate), ids(0, capacity))
    probes = 20_000
    false_positives = sum(item in bloom for item in ids(10**9, probes))
    assert false_positives / probes <= 1.5 * error_rate


@pytest.mark.parametrize(
    ("words", "share"), [(bytes(16), 0.0), (b"\xff" * 16, 1.0), (b"\x0f" * 8 + bytes(8), 0.32)]
)
def test_fill(words: bytes, share: float) -> None:
    assert BloomLayout(100, 1).fill(words) == share


@settings(derandomize=True, deadline=None)
@given(st.sets(st.text(st.characters(exclude_categories=["Cs"]))), st.integers(1, 300))
def test_a_look_by_hashes_finds_what_a_look_by_probes_finds(items: set[str], bits: int) -> None:
    bloom = BloomFilter(BloomLayout(bits, 3))
    for item in list(items)[::2]:
        bloom.insert(item)
    for item in items:
        found = bloom.layout.holds(bytes(bloom), bloom.layout.form.hash_pair(item))
        assert found is (item in bloom)


# -- rolling ---------------------------------------------------------------------------------------


def test_up_to_its_capacity_a_rolling_filter_is_a_plain_one() -> None:
    parameters = BloomParameters(capacity=100)
    plain, rolling = BloomFilter(parameters.layout), RollingBloomFilter(parameters)
    for item in ids(0, 100):
        plain.insert(item)
        rolling.insert(item)
        assert bytes(plain) == bytes(rolling)
    assert (len(rolling), rolling.rollovers) == (100, 0)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(capacity=st.integers(1, 40), count=st.integers(0, 200))
def test_a_rolling_filter_holds_the_newest_half_to_whole_capacity(
    capacity: int, count: int
) -> None:
    rolling = RollingBloomFilter(BloomParameters(capacity, 1e-6))
    inserted = ids(0, count)
    for n, item in enumerate(inserted, start=1):
        rolling.insert(item)
        assert min(n, (capacity + 1) // 2) <= len(rolling) <= capacity
        newest = inserted[n - len(rolling) : n]
        assert all(known in rolling for known in newest)


def test_a_rolling_filter_forgets_the_oldest() -> None:
    rolling = RollingBloomFilter(BloomParameters(1_000, 1e-6), ids(0, 5_000))
    assert not any(item in rolling for item in ids(0, 5_000 - len(rolling)))


def test_false_positives_stay_within_bounds_after_many_rollovers() -> None:
    rolling = RollingBloomFilter(BloomParameters(1_000, 0.001), ids(0, 20_500))
    assert rolling.rollovers == 39
    false_positives = sum(item in rolling for item in ids(10**9, 20_000))
    assert false_positives / 20_000 <= 0.0015
    assert rolling.layout.fill(bytes(rolling)) < 0.55


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
