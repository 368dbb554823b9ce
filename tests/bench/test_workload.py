from __future__ import annotations

from pathlib import Path

from bench.workload import (
    CHANNEL_ID,
    CONTENT_BYTES,
    NEWEST,
    channel_time_ms,
    history_messages,
    message_id,
    retrieval_hint,
    traffic,
    write,
)
from reliable_channel.sds.bloom import BloomParameters, RollingBloomFilter, contains
from reliable_channel.sds.dialects import SpecCodec

CODEC = SpecCodec()


def test_history_is_in_order_and_only_its_newest_messages_are_whole() -> None:
    history = NEWEST + 20
    messages = [CODEC.decode(message.wire) for message in history_messages(history, 2)]
    assert [message.message_id for message in messages] == [message_id(n) for n in range(history)]
    assert [message.lamport_timestamp for message in messages] == [
        channel_time_ms(n) for n in range(history)
    ]
    assert {message.channel_id for message in messages} == {CHANNEL_ID}
    assert {len(message.content or b"") for message in messages} == {CONTENT_BYTES}
    assert not any(message.causal_history or message.bloom_filter for message in messages[:20])
    assert all(len(message.causal_ids) == 2 and message.bloom_filter for message in messages[20:])


def test_traffic_refers_to_the_newest_messages_with_hint_and_sender() -> None:
    first, second = (CODEC.decode(message.wire) for message in traffic(50, 3, 2))
    assert first.causal_ids == [message_id(n) for n in (47, 48, 49)]
    assert second.causal_ids == [message_id(n) for n in (48, 49, 50)]
    assert [entry.retrieval_hint for entry in second.causal_history] == [
        retrieval_hint(n) for n in (48, 49, 50)
    ]
    assert all(entry.sender_id for entry in second.causal_history)


def test_traffic_carries_a_filter_of_default_size_that_holds_the_history() -> None:
    (message,) = (CODEC.decode(message.wire) for message in traffic(50, 2, 1))
    layout = BloomParameters().layout
    assert message.bloom_filter is not None
    assert len(message.bloom_filter) == layout.byte_count == 18_752
    assert all(contains(message.bloom_filter, layout.probes(message_id(n))) for n in range(50))
    assert message.bloom_filter == bytes(
        RollingBloomFilter(BloomParameters(), map(message_id, range(50)))
    )


def test_assembled_bytes_are_those_of_encoding_the_message_whole() -> None:
    for message in traffic(10, 5, 3):
        assert CODEC.encode(CODEC.decode(message.wire)) == message.wire


def test_file_holds_wire_and_hint_by_turns(tmp_path: Path) -> None:
    messages = list(history_messages(3, 2))
    write(tmp_path / "messages", messages)
    rest, fields = (tmp_path / "messages").read_bytes(), []
    while rest:
        length = int.from_bytes(rest[:4])
        fields.append(rest[4 : 4 + length])
        rest = rest[4 + length :]
    assert fields == [field for message in messages for field in message]
