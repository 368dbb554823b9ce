"""Attack: bytes that are small on the wire and large, or slow, once they are read."""

import pytest

from reliable_channel.sds import Outcome
from reliable_channel.sds.dialects import CodecError, NimCodec, SpecCodec
from reliable_channel.sds.dialects.codec import MAX_HISTORY_ENTRIES, MAX_ID_BYTES
from reliable_channel.sds.events import MessageRejected, RejectionReason
from tests.sds.world import NOW_MS, delivered, events, forge, give, only, participant, send

from .cost import calls, peak_bytes

MIB = 1024 * 1024
SPEC_HEAD = forge("m", content=b"c")
ENTRY = b"\x5a\x00"  # field 11, a history entry of no bytes at all
LONG_ENTRY = b"\x5a\x03\x0a\x01x"
REQUEST = b"\x6a\x03\x0a\x01x"


def varint(value: int, padding: int = 0) -> bytes:
    """A number, with so many bytes more than it needs."""
    out = bytearray()
    while value > 0x7F or (padding > 0 and len(out) < 9):
        out.append(value & 0x7F | 0x80)
        value >>= 7
        if value == 0:
            padding -= 1
    return bytes(out) + bytes([value])


def nested(depth: int) -> bytes:
    """Messages in messages, in a field that nobody knows."""
    data = b""
    for _ in range(depth):
        data = b"\xfa\x01" + varint(len(data)) + data
    return data


TRICKS = {
    "half a million empty entries": SPEC_HEAD + ENTRY * 500_000,
    "200,000 short entries": SPEC_HEAD + LONG_ENTRY * 200_000,
    "200,000 requests": SPEC_HEAD + REQUEST * 200_000,
    "groups in groups": SPEC_HEAD + b"\xfb\x01" * 300_000,
    "groups in groups, closed": SPEC_HEAD + b"\xfb\x01" * 150_000 + b"\xfc\x01" * 150_000,
    "a length beyond the end": SPEC_HEAD + b"\x5a\xff\xff\xff\xff\x07",
    "a length below zero": SPEC_HEAD + b"\x5a" + b"\xff" * 9 + b"\x01",
    "a number of eleven bytes": SPEC_HEAD + b"\x50" + b"\xff" * 10 + b"\x01",
    "field number 0": SPEC_HEAD + b"\x02\x00",
    "too long": SPEC_HEAD + bytes(3 * MIB),
    "an id of 100 kB": forge("i" * 100_000),
    "text that is not UTF-8": SPEC_HEAD + b"\x0a\x01\xff",
}
HARMLESS = {
    "fields repeated 100,000 times": (b"\x0a\x01x" * 100_000) + SPEC_HEAD,
    "overlong numbers": b"\x0a" + varint(7, 8) + b"mallory" + SPEC_HEAD,
    "messages in messages": SPEC_HEAD + nested(5_000),
    "unknown fields": SPEC_HEAD + b"\xf8\x01\x00" * 100_000,
    "a number where text stands": SPEC_HEAD + b"\x08\x01" * 100_000,
}


@pytest.mark.parametrize("trick", TRICKS)
def test_a_trick_is_refused_at_little_cost_and_an_honest_message_arrives(trick: str) -> None:
    bob, data = participant("bob"), TRICKS[trick]
    arrival = bob.receive(data, NOW_MS)
    assert arrival.outcome is Outcome.REJECTED
    assert only(events(bob, MessageRejected)).reason is RejectionReason.MALFORMED
    assert peak_bytes(lambda: bob.receive(data, NOW_MS)) < 200_000
    assert calls(lambda: bob.receive(data, NOW_MS)) < 2_000
    bob.events.clear()
    give(bob, send(participant("alice"), b"honest"))
    assert delivered(bob) == [b"honest"]


@pytest.mark.parametrize("trick", HARMLESS)
def test_odd_bytes_are_read_at_little_cost(trick: str) -> None:
    bob, data = participant("bob"), HARMLESS[trick]
    assert calls(lambda: bob.receive(data, NOW_MS)) < 2_000
    assert peak_bytes(lambda: bob.receive(data, NOW_MS)) < 2 * len(data) + 100_000
    assert delivered(bob) in ([b"c"], [])
    give(bob, send(participant("alice"), b"honest"))
    assert delivered(bob) == [b"honest"]


@pytest.mark.parametrize("entry", [b"\x1a\x00", b"\x6a\x00", b"\x1a\x03\x0a\x01x"])
def test_the_other_dialect_makes_nothing_of_too_many_entries_either(entry: bytes) -> None:
    head = b"\x0a\x01m\x10\x01\x22\x07channel\x2a\x01c"
    data = head + entry * 200_000

    def decode() -> None:
        with pytest.raises(CodecError, match="history entries"):
            NimCodec().decode(data)

    assert peak_bytes(decode) < 200_000


def test_the_number_of_entries_is_bounded_before_anything_is_made_of_them() -> None:
    SpecCodec().decode(SPEC_HEAD + LONG_ENTRY * MAX_HISTORY_ENTRIES)
    with pytest.raises(CodecError, match="history entries"):
        SpecCodec().decode(SPEC_HEAD + LONG_ENTRY * (MAX_HISTORY_ENTRIES + 1))


@pytest.mark.parametrize(
    "data",
    [
        forge("m", after=[f"u{n}" for n in range(1_001)]),
        forge("m", content=None, after=[f"u{n}" for n in range(1_001)]),
        forge("m", after=["u" * (MAX_ID_BYTES + 1)]),
    ],
    ids=["content", "sync", "long id"],
)
def test_excessive_references_are_refused_and_leave_nothing_behind(data: bytes) -> None:
    bob = participant("bob")
    assert bob.receive(data, NOW_MS).reason is RejectionReason.EXCESSIVE_REFERENCES
    assert only(events(bob, MessageRejected)).sender_id == "mallory"
    assert (bob.missing(), len(bob.repair_requests), len(bob.participants)) == ([], 0, 0)


def test_many_references_to_what_is_known_are_no_reason_to_refuse() -> None:
    bob = participant("bob")
    ids = [f"h{n}" for n in range(1_500)]
    for message_id in ids:
        bob.receive(forge(message_id, sender="alice"), NOW_MS)
    assert bob.receive(forge("m", after=ids), NOW_MS).outcome is Outcome.DELIVERED
