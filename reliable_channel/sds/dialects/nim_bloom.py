"""Bloom filter of nim-sds, a protobuf message that contains the size of the filter.

Bits have the same places as in js-waku, but in little-endian words, and use another hash. nim-sds
makes a larger filter when the first filter is full, so a reader takes the size from the filter.
"""

from typing import Final

from google.protobuf.message import DecodeError

from ..bloom import BloomFilterError, BloomForm, BloomLayout, BloomParameters
from ..bloom_hash import HashPair
from . import nim_sds_pb2
from .fields import VARINTS, parsed
from .nim_strings import magnitude, string_hash

_WORDS_TAG: Final = bytes([nim_sds_pb2.BloomFilter.WORDS_FIELD_NUMBER << 3 | 2])
MAX_HASH_COUNT: Final = 64
"""Maximum number of hashes of a filter. An error rate of 10^-12 needs 40 hashes, and more hashes
only cost time."""


class NimBloomForm:
    """Bloom filters of nim-sds, with little-endian words and their parameters."""

    byte_flip = 0

    def hash_pair(self, message_id: str) -> HashPair:
        """Return the FarmHash values (64 bits) of a message id."""
        return magnitude(string_hash(message_id)), magnitude(string_hash(message_id + " b"))

    def write(self, parameters: BloomParameters, words: bytes) -> bytes:
        """Encode the words and the parameters of a filter."""
        # Joined, because each write of the state takes this form, and protobuf copies more slowly.
        rest = nim_sds_pb2.BloomFilter(
            capacity=parameters.capacity,
            error_rate_ppm=int(parameters.error_rate * 1_000_000),
            hash_count=parameters.hash_count,
            bit_count=parameters.bit_count,
        )
        return b"".join((_WORDS_TAG, VARINTS[len(words)], words, rest.SerializeToString()))

    def read(self, field: bytes, parameters: BloomParameters) -> tuple[BloomLayout, bytes]:
        """Return the layout and the words that a received filter contains.

        Raises:
            BloomFilterError: not protobuf, a field is absent, or sizes that do not fit each other.
        """
        try:
            raw = parsed(nim_sds_pb2.BloomFilter, field)
        except DecodeError as error:
            raise BloomFilterError(
                f"the bytes are not a bloom filter of nim-sds: {error}"
            ) from error
        if len(raw.ListFields()) < len(raw.DESCRIPTOR.fields):
            raise BloomFilterError("the bloom filter of nim-sds lacks a field")
        layout = BloomLayout(raw.bit_count, raw.hash_count, self)
        if not (
            0 < layout.bit_count
            and 0 < layout.hash_count <= MAX_HASH_COUNT
            and len(raw.words) == layout.byte_count
        ):
            raise BloomFilterError(
                f"the bloom filter of nim-sds has {len(raw.words)} bytes, which do not match its "
                f"{layout.bit_count} bits, or sets too many bits for each id ({layout.hash_count})"
            )
        return layout, raw.words


NIM_BLOOM: Final[BloomForm] = NimBloomForm()
