"""Messages as differences from the one before: the very same bytes come back."""

from __future__ import annotations

import struct
from random import Random

import pytest

from reliable_channel.sds import NIM, SPEC, WireProfile
from reliable_channel.sds.log.differences import Assembled, difference, restored
from reliable_channel.sds.message import HistoryEntry, Message


class Made:
    """Messages of one sender, made as a core makes them."""

    def __init__(self, seed: int, profile: WireProfile) -> None:
        self.random, self.codec = Random(seed), profile.codec
        self.history: list[bytes] = []

    def next(self) -> Assembled:
        random = self.random
        for _ in range(random.choice([0, 1, 2, 5])):
            hint = random.choice([None, random.randbytes(32)])
            entry = HistoryEntry(random.randbytes(33).hex(), hint, "alice")
            self.history.insert(
                random.choice([len(self.history)] * 5 + [0]), self.codec.encode_causal_entry(entry)
            )
        history = b"".join(self.history[-20:])
        content = random.randbytes(random.choice([1, 60, 3_000]))
        message_id, lamport = random.randbytes(33).hex(), random.randrange(10**9) * 1_000
        message = Message("alice", message_id, "general", lamport, content=content)
        return Assembled(self.codec.assemble(message, history), history)


@pytest.mark.parametrize("profile", [SPEC, NIM], ids=lambda profile: profile.name)
@pytest.mark.parametrize("seed", range(10))
def test_the_same_bytes_come_back(seed: int, profile: WireProfile) -> None:
    made, worth_it = Made(seed, profile), 0
    before = made.next()
    for _ in range(60):
        message = made.next()
        if (found := difference(before, message)) is not None:
            worth_it += 1
            assert restored(before.data, found) == message.data
            assert len(found) < len(message.data) // 2
        before = message
    assert worth_it > 20


def test_messages_with_nothing_in_common_make_no_difference() -> None:
    random = Random(3)
    one, other = (Assembled(data, data[50:800]) for data in map(random.randbytes, (900, 900)))
    assert difference(one, other) is None
    assert difference(one, one) is not None
    assert difference(one, Assembled(other.data, one.history)) is None
    assert difference(Assembled(b"no history", b""), Assembled(b"none either", b"")) is None


@pytest.mark.parametrize("shared", [2_500, 2_700, 2_999])
def test_a_difference_has_what_is_new_and_little_beside(shared: int) -> None:
    """What two histories begin with is not repeated, however much that is."""
    random = Random(shared)
    history = random.randbytes(3_000)
    other = history[:shared] + random.randbytes(3_000 - shared)
    one, two = (Assembled(b"id" + each + b"content", each) for each in (history, other))
    found = difference(one, two)
    assert found is not None and len(found) < 3_000 - shared + 100
    assert restored(one.data, found) == two.data


def test_a_difference_of_an_earlier_version_is_read() -> None:
    """Its last piece is a bloom filter with some bytes changed."""
    filter_piece = b"^" + struct.pack(">3I", 7, 6, 2) + struct.pack(">2I", 0, 5) + b"AZ"
    found = b"=" + struct.pack(">I", 3) + b"new" + b"@" + struct.pack(">2I", 0, 7) + filter_piece
    assert restored(b"historyfilter", found) == b"newhistoryAilteZ"
