"""Bloom filter of nim-sds: a protobuf message that contains its size.

Bits have the same places as in js-waku, but in little-endian words, and come from another hash.
nim-sds makes a larger filter when its first one overflows, so a reader takes the size from the
filter.
"""

from typing import Final

from google.protobuf.message import DecodeError

from ..bloom import BloomFilterError, BloomForm, BloomLayout, BloomParameters
from ..bloom_hash import HashPair
from . import nim_sds_pb2
from .fields import parsed
from .nim_strings import magnitude, string_hash

MAX_HASH_COUNT: Final = 64
"""Maximum number of hashes. An error rate of 10^-12 needs 40, and a filter with more only causes
work."""


class NimBloomForm:
    """Filters of nim-sds: little-endian words with their parameters."""

    byte_flip = 0

    def hash_pair(self, message_id: str) -> HashPair:
        """Return FarmHash values of 64 bits."""
        return magnitude(string_hash(message_id)), magnitude(string_hash(message_id + " b"))

    def write(self, parameters: BloomParameters, words: bytes) -> bytes:
        """Encode the words and the parameters."""
        return nim_sds_pb2.BloomFilter(
            words=words,
            capacity=parameters.capacity,
            error_rate_ppm=int(parameters.error_rate * 1_000_000),
            hash_count=parameters.hash_count,
            bit_count=parameters.bit_count,
        ).SerializeToString()

    def read(self, field: bytes, parameters: BloomParameters) -> tuple[BloomLayout, bytes]:
        """Return the words and the layout that the filter contains.

        Raises:
            BloomFilterError: not protobuf, a field is absent, or sizes that do not fit each other.
        """
        try:
            raw = parsed(nim_sds_pb2.BloomFilter, field)
        except DecodeError as error:
            raise BloomFilterError(f"it is not a filter of nim-sds: {error}") from error
        if len(raw.ListFields()) < len(raw.DESCRIPTOR.fields):
            raise BloomFilterError("it is not a filter of nim-sds: a field is absent")
        layout = BloomLayout(raw.bit_count, raw.hash_count, self)
        if not (
            0 < layout.bit_count
            and 0 < layout.hash_count <= MAX_HASH_COUNT
            and len(raw.words) == layout.byte_count
        ):
            raise BloomFilterError(
                f"its {len(raw.words)} bytes do not hold {layout.bit_count} bits, "
                f"or {layout.hash_count} bits an id are too many"
            )
        return layout, raw.words


NIM_BLOOM: Final[BloomForm] = NimBloomForm()
