"""Attack: bloom filters and causal histories that claim to hold what their sender does not."""

import pytest

from reliable_channel.sds import NIM, SPEC
from reliable_channel.sds.dialects import nim_sds_pb2
from reliable_channel.sds.events import (
    AcknowledgementSource,
    BloomFilterIgnored,
    MessageAcknowledged,
    MessagePossiblyAcknowledged,
)
from tests.sds.world import (
    MINUTE,
    SMALL_BLOOM,
    World,
    events,
    forge,
    give,
    participant,
    send,
    sync,
    taken,
)

WORDS = SMALL_BLOOM.layout.byte_count


def nim_filter(bits: int, hashes: int, words: bytes) -> bytes:
    return nim_sds_pb2.BloomFilter(
        words=words, capacity=1, error_rate_ppm=1, hash_count=hashes, bit_count=bits
    ).SerializeToString()


LIES = {
    "all ones": (SPEC, b"\xff" * WORDS),
    "overfull": (SPEC, b"\x7f\xdf" * (WORDS // 2)),
    "odd size": (SPEC, b"\xff" * (WORDS + 1)),
    "one byte": (SPEC, b"\xff"),
    "huge": (SPEC, b"\xff" * 900_000),
    "nim, all ones": (NIM, nim_filter(64, 1, b"\xff" * 16)),
    "nim, one bit": (NIM, nim_filter(1, 1, b"\xff" * 8)),
    "nim, huge": (NIM, nim_filter(8 * 800_000 - 1, 1, b"\xff" * 800_000)),
    "nim, endless hashes": (NIM, nim_filter(64, 2**63, b"\xff" * 16)),
    "nim, endless bits": (NIM, nim_filter(2**64 - 1, 10, b"\xff" * 16)),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_filter_that_cannot_be_evidence_is_ignored_and_told_once(lie: str) -> None:
    profile, words = LIES[lie]
    alice, bob = participant("alice"), participant("bob")
    message = send(alice, b"mine")
    for n in range(20):
        lamport = 1_700_000_000_000
        alice.receive(
            forge(f"m{n}", bloom=words, profile=profile, content=b"c", lamport=lamport), lamport
        )
    told = taken(alice.events)
    assert len([e for e in told if isinstance(e, BloomFilterIgnored)]) == 1
    assert not [e for e in told if isinstance(e, MessageAcknowledged | MessagePossiblyAcknowledged)]
    give(bob, message)
    give(alice, sync(bob))
    (acknowledged,) = events(alice, MessageAcknowledged)
    assert (acknowledged.message_id, acknowledged.acknowledged_by) == (message.message_id, "bob")


def test_a_liar_counts_once_however_often_it_lies() -> None:
    alice = participant("alice")
    give(alice, send(participant("bob"), b"a third participant"))
    message = send(alice, b"mine")
    holds = participant("mallory")
    holds.bloom_filter.insert(message.message_id)
    for n in range(50):
        alice.receive(forge(f"m{n}", bloom=bytes(holds.bloom_filter)), 1_700_000_000_000)
    assert len(events(alice, MessagePossiblyAcknowledged)) == 1
    assert message.message_id in alice.outgoing_buffer.entries


def test_a_false_acknowledgement_does_not_make_a_message_lost() -> None:
    """Mallory claims to have what nobody has, so that alice does not send it again; bob hears of it
    from alice's next words, and asks."""
    world = World(["alice", "bob"], seed=1)
    world.islands = [{"alice"}]
    message_id = world["alice"].send(b"honest")
    world["alice"].receive(forge("lie", after=[message_id]))
    (acknowledged,) = world["alice"].seen(MessageAcknowledged)
    assert acknowledged.source is AcknowledgementSource.CAUSAL_HISTORY
    world.calm()
    world.run(10 * MINUTE)
    assert message_id in world["bob"].delivered()
