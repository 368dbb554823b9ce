"""Messages as differences from the one before: the very same bytes come back."""

from __future__ import annotations

from random import Random

import pytest

from reliable_channel.sds import NIM, SPEC, WireProfile
from reliable_channel.sds.log.differences import Assembled, Base, base_of, difference, restored
from reliable_channel.sds.message import HistoryEntry, Message


class Made:
    """Messages of one sender, made as a core makes them."""

    def __init__(self, seed: int, profile: WireProfile) -> None:
        self.random, self.codec = Random(seed), profile.codec
        self.history: list[bytes] = []
        self.words = bytearray(self.random.choice([64, 1_000, 18_752]))

    def next(self, *, has_filter: bool = True) -> Assembled:
        random, before = self.random, bytes(self.words)
        for _ in range(random.choice([0, 1, 2, 5])):
            hint = random.choice([None, random.randbytes(32)])
            entry = HistoryEntry(random.randbytes(33).hex(), hint, "alice")
            self.history.insert(
                random.choice([len(self.history)] * 5 + [0]), self.codec.encode_causal_entry(entry)
            )
            for _ in range(10):
                self.words[random.randrange(len(self.words))] |= 1 << random.randrange(8)
        if random.random() < 0.05:
            self.words[:] = bytes(len(self.words))  # it rolled over
        history = b"".join(self.history[-20:])
        message = Message(
            "alice",
            random.randbytes(33).hex(),
            "general",
            random.randrange(10**9) * 1_000,
            bloom_filter=bytes(self.words) if has_filter else None,
            content=random.randbytes(random.choice([1, 60, 3_000])),
        )
        data, words = self.codec.assemble(message, history), bytes(self.words)
        if not has_filter:
            return Assembled(data, history, b"", ())
        places = [place for place, value in enumerate(words) if value != before[place]]
        return Assembled(data, history, words, places)


@pytest.mark.parametrize("profile", [SPEC, NIM], ids=lambda profile: profile.name)
@pytest.mark.parametrize("seed", range(10))
def test_the_same_bytes_come_back(seed: int, profile: WireProfile) -> None:
    made, before, worth_it = Made(seed, profile), None, 0
    for _ in range(60):
        message = made.next()
        base = base_of(message)
        if before is not None and base is not None:
            found = difference(before, base, message.changed or ())
            if found is not None:
                worth_it += 1
                assert restored(before.data, found) == message.data
                assert len(found) < len(message.data) // 4
        before = base
    assert worth_it > (20 if len(made.words) > 1_000 else 0)


@pytest.mark.parametrize("seed", range(10))
def test_messages_with_and_without_a_filter_follow_each_other(seed: int) -> None:
    made, before = Made(seed, SPEC), None
    random, found = Random(seed), 0
    for _ in range(60):
        message = made.next(has_filter=random.random() < 0.5)
        base = base_of(message)
        assert base is not None
        if before and (kept := difference(before, base, message.changed or ())) is not None:
            found += 1
            assert restored(before.data, kept) == message.data
        before = base
    assert found > (5 if len(made.words) > 1_000 else 0)


def test_a_change_that_is_not_named_makes_no_difference() -> None:
    made = Made(7, SPEC)
    one, other = made.next(), made.next()
    while not other.changed:
        one, other = other, made.next()
    before, after = base_of(one), base_of(other)
    assert before is not None and after is not None
    assert difference(before, after, ()) is None


def test_a_message_whose_parts_are_not_found_is_no_base() -> None:
    assert base_of(Assembled(b"head, history, filter", b"history", b"filter")) is not None
    assert base_of(Assembled(b"head, history, filter", b"other", b"filter")) is None
    assert base_of(Assembled(b"head, history, filter", b"history", b"other")) is None
    assert base_of(Assembled(b"filter, history", b"history", b"filter")) is None


def test_messages_with_nothing_in_common_make_no_difference() -> None:
    random = Random(3)
    one, other = (Base(random.randbytes(900), (50, 500), (500, 850)) for _ in range(2))
    assert difference(one, other, range(350)) is None
    assert difference(one, one, ()) is not None
    assert difference(one, one, [0, 349]) is not None


@pytest.mark.parametrize("shared", [2_500, 2_700, 2_999])
def test_a_difference_has_what_is_new_and_little_beside(shared: int) -> None:
    """What two histories begin with is not repeated, however much that is."""
    random = Random(shared)
    history, words = random.randbytes(3_000), random.randbytes(500)
    other = history[:shared] + random.randbytes(3_000 - shared)
    before, after = (Assembled(b"id" + each + words, each, words, ()) for each in (history, other))
    one, two = base_of(before), base_of(after)
    assert one is not None and two is not None
    found = difference(one, two, ())
    assert found is not None and len(found) < 3_000 - shared + 100
    assert restored(one.data, found) == after.data
