"""The codecs of both dialects, and the bloom filters."""

from collections.abc import Callable, Iterator
from typing import Final

from reliable_channel.sds import NIM, SPEC, WireProfile
from reliable_channel.sds.bloom import (
    SPEC_BLOOM,
    BloomFilter,
    BloomFilterError,
    BloomForm,
    BloomParameters,
)
from reliable_channel.sds.dialects import CodecError
from reliable_channel.sds.dialects.codec import MAX_HISTORY_ENTRIES, MAX_ID_BYTES
from reliable_channel.sds.dialects.nim import MAX_HASH_COUNT, NIM_BLOOM

from ..target import Target
from ..vectors import nim_filters, nim_messages, spec_messages

PARAMETERS: Final = BloomParameters(capacity=20, error_rate=0.01)
_NIM_ALWAYS_WRITES: Final = 2
"""Bytes of a bloom filter that is empty, which may be absent in what is read."""


def _codec(profile: WireProfile, growth_bytes: int) -> Callable[[bytes], None]:
    codec, other = profile.codec, (NIM if profile is SPEC else SPEC).codec

    def check(data: bytes) -> None:
        assert codec.recognises(data) is not other.recognises(data)
        try:
            message = codec.decode(data)
        except CodecError:
            return
        assert len(message.causal_history) + len(message.repair_request) <= MAX_HISTORY_ENTRIES
        assert max(map(len, (message.sender_id, message.message_id))) <= MAX_ID_BYTES
        assert [entry.message_id for entry in message.causal_history] == list(message.causal_ids)

        encoded = codec.encode(message)
        assert len(encoded) <= len(data) + growth_bytes, "it grew"
        again = codec.decode(encoded)
        assert again == message, "it means something else when it is written again"
        assert codec.encode(again) == encoded
        pieces = b"".join(map(codec.encode_causal_entry, message.causal_history))
        assert codec.assemble(message, pieces) == encoded

    return check


def _filter(data: bytes) -> None:
    form: BloomForm = NIM_BLOOM if data[:1] < b"\x80" else SPEC_BLOOM
    try:
        layout, words = form.read(data[1:], PARAMETERS)
    except BloomFilterError:
        return
    assert layout.hash_count <= MAX_HASH_COUNT
    assert len(words) == layout.byte_count <= len(data)
    assert 0 <= layout.fill(words) <= 1
    pair = form.hash_pair("message")
    read = BloomFilter(layout)
    read.data[:] = words
    assert layout.holds(words, pair) is ("message" in read)
    read.insert("message")
    assert layout.holds(bytes(read), pair), "an id that was put in is not there"
    if layout == PARAMETERS.layout_in(form):
        assert form.read(form.write(PARAMETERS, words), PARAMETERS) == (layout, words)


def _filters() -> Iterator[bytes]:
    for filter_ in nim_filters():
        yield b"\0" + filter_
    for form, prefix in ((SPEC_BLOOM, b"\xff"), (NIM_BLOOM, b"\0")):
        ours = BloomFilter(PARAMETERS.layout_in(form))
        ours.insert("m1")
        yield prefix + form.write(PARAMETERS, bytes(ours))


TARGETS: Final = (
    Target("sds_spec", _codec(SPEC, 0), spec_messages),
    Target("sds_nim", _codec(NIM, _NIM_ALWAYS_WRITES), nim_messages),
    Target("bloom", _filter, _filters),
)
