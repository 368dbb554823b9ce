from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reliable_channel.sds.bloom import (
    BloomFilter,
    BloomFilterError,
    BloomLayout,
    BloomParameters,
    RollingBloomFilter,
)
from reliable_channel.sds.bloom_hash import spread
from reliable_channel.sds.dialects import nim_sds_pb2
from reliable_channel.sds.dialects.nim_bloom import MAX_HASH_COUNT, NIM_BLOOM

OWN = BloomParameters()


def field(words: bytes = bytes(16), **changes: int) -> bytes:
    """A filter of 100 bits, but for what is named."""
    parts = {
        "capacity": 10,
        "error_rate_ppm": 10_000,
        "hash_count": 7,
        "bit_count": 100,
        **changes,
    }
    return nim_sds_pb2.BloomFilter(words=words, **parts).SerializeToString()


def test_the_default_filter_has_nim_sds_size() -> None:
    made = RollingBloomFilter(OWN, form=NIM_BLOOM)
    assert made.layout == BloomLayout(150_000, 10, NIM_BLOOM)
    assert len(bytes(made)) == 18_768


@settings(derandomize=True, deadline=None, max_examples=50)
@given(
    st.sets(st.text(st.characters(exclude_categories=["Cs"])), max_size=50),
    st.integers(1, 200),
    st.floats(0.0001, 0.5),
)
def test_what_was_inserted_is_found_by_who_knows_only_the_bytes(
    items: set[str], capacity: int, error_rate: float
) -> None:
    made = BloomFilter(BloomParameters(capacity, error_rate).layout_in(NIM_BLOOM))
    for item in items:
        made.insert(item)
    sent = NIM_BLOOM.write(BloomParameters(capacity, error_rate), bytes(made))
    layout, words = NIM_BLOOM.read(sent, OWN)
    assert layout == made.layout
    assert all(layout.holds(words, NIM_BLOOM.hash_pair(item)) for item in items)


@pytest.mark.parametrize("length", [0, 16, 200, 93_760])
def test_a_filter_is_written_as_protobuf_writes_it(length: int) -> None:
    words = Random(length).randbytes(length)
    assert NIM_BLOOM.write(BloomParameters(10, 0.01), words) == field(words)


def test_a_rolling_filter_is_written_whole() -> None:
    parameters = BloomParameters(500, 1e-6)
    ids = [f"m{n}" for n in range(3_000)]
    rolling = RollingBloomFilter(parameters, ids, form=NIM_BLOOM)
    layout, words = NIM_BLOOM.read(bytes(rolling), OWN)
    assert all(layout.holds(words, NIM_BLOOM.hash_pair(i)) for i in ids[-len(rolling) :])
    assert not any(layout.holds(words, NIM_BLOOM.hash_pair(i)) for i in ids[: -len(rolling)])


def test_words_are_little_endian() -> None:
    made = BloomFilter(BloomLayout(128, 1, NIM_BLOOM))
    made.add((0, 0))
    made.add((65, 0))
    assert bytes(made).hex() == "01" + 7 * "00" + "02" + 15 * "00"
    assert made.layout.probes_of((65, 0)) == [(8, 2)]


def test_the_lowest_hash_lies_where_nim_puts_it() -> None:
    # |A + i*B| mod m with A = -(2^63 mod m): `abs` overflows there.
    assert spread((-(1 << 63), 5), 3, 100) == [8, 3, 2]


@pytest.mark.parametrize(
    "unreadable",
    [
        b"",
        b"\xff",
        bytes(18_752),
        field(words=bytes(8)),
        field(words=bytes(15)),
        field(bit_count=0),
        field(bit_count=128),
        field(bit_count=2**64 - 1),
        field(hash_count=0),
        field(hash_count=MAX_HASH_COUNT + 1),
        field(hash_count=2**64 - 1),
        field()[:-2],
        field()[18:],
    ],
)
def test_a_filter_that_does_not_fit_itself_is_refused(unreadable: bytes) -> None:
    NIM_BLOOM.read(field(), OWN)
    with pytest.raises(BloomFilterError):
        NIM_BLOOM.read(unreadable, OWN)


def test_the_smallest_filter_is_one() -> None:
    layout, words = NIM_BLOOM.read(field(bytes(8), bit_count=1, hash_count=1), OWN)
    assert (layout.bit_count, layout.hash_count, words) == (1, 1, bytes(8))
