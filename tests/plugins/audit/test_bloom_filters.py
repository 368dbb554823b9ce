"""What is told of the bloom filters that a participant sent."""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from reliable_channel.sds.bloom import BloomParameters, RollingBloomFilter
from reliable_channel.sds.dialects.nim_bloom import NIM_BLOOM
from reliable_channel.sds.message import HistoryEntry, Message
from reliable_channel_audit.bloom_filters import (
    DRAWN,
    EVERY_MS,
    MAX_LATER,
    Bloom,
    BloomReview,
    LookedAt,
)
from reliable_channel_audit.findings import Finding
from reliable_channel_audit.lines import Line, set_aside

WHOSE = ("general", "alice", 0)


class Journal:
    """What alice notes, with a filter that she keeps as the core does."""

    def __init__(self, capacity: int = 100, **options: Any) -> None:
        self.review = BloomReview(WHOSE)
        self.blooms: list[Bloom] = []
        self.filter = RollingBloomFilter(BloomParameters(capacity))
        self.at_ms = self.lamport = 0
        self.open(bloom_capacity=capacity, **options)

    def open(self, **options: Any) -> None:
        self.note(Line("journal_opened", record=json.dumps({"options": options})))

    def note(self, line: Line, message: Message | None = None) -> None:
        self.blooms += self.review.add(line._replace(at_ms=self.at_ms), message)

    def came(self, *message_ids: str, outcome: str = "delivered") -> None:
        for message_id in message_ids:
            self.filter.insert(message_id)
            self.note(Line("wire_in", outcome=outcome), Message("bob", message_id, "general"))

    def made(self, message_id: str, history: Sequence[str], bloom: bytes | None = None) -> Message:
        """An own message, not noted yet."""
        self.lamport += 1
        filled = bytes(self.filter) if bloom is None else bloom
        entries = [HistoryEntry(each) for each in history]
        self.filter.insert(message_id)
        return Message("alice", message_id, "general", self.lamport, entries, filled, (), b"c")

    def went(self, message: Message, after_ms: int = EVERY_MS) -> None:
        self.at_ms += after_ms
        message_id = message.message_id
        self.note(Line("message_logged", message_id=message_id, first_segment_id=message_id))
        self.out(message)

    def out(self, message: Message) -> None:
        self.note(Line("wire_out", source="content"), message)

    def findings(self) -> list[Finding]:
        told = list(self.review.end())
        self.blooms += [each for each in told if isinstance(each, Bloom)]
        return [each for each in told if isinstance(each, Finding)]


def ids(name: str, count: int) -> list[str]:
    return [f"{name}{number}" for number in range(count)]


def test_a_filter_that_has_what_it_must() -> None:
    journal = Journal(10_000)
    journal.came(*ids("before", 1_000))
    journal.went(journal.made("own", ids("before", 1_000)[-20:]))
    journal.came(*ids("after", MAX_LATER + 50))
    assert journal.findings() == []
    (bloom,) = journal.blooms
    layout = BloomParameters(10_000).layout
    assert (bloom.message_id, bloom.at_ms, bloom.error_rate) == ("own", EVERY_MS, 0.001)
    assert (bloom.bit_count, bloom.hash_count) == (layout.bit_count, layout.hash_count)
    assert 9_000 < bloom.set_bits < 10_000
    assert (bloom.lacking, bloom.absent) == (0, DRAWN + MAX_LATER)
    assert bloom.had == 100
    assert (bloom.false_positives, bloom.is_new) == (0, False)


def test_too_full_a_filter_is_wrong_as_often_as_its_fill_says() -> None:
    """Both, ids that came later and drawn ones: three times the ids that there is room for."""
    journal = Journal(5_000)
    full = RollingBloomFilter(BloomParameters(5_000))
    for each in ids("more", 15_000):
        full._current.insert(each)  # a filter that does not roll over, as js-waku's
    journal.filter = full
    for number in range(20):
        journal.went(journal.made(f"own{number}", []))
        journal.came(*ids(f"after{number}-", MAX_LATER))
    journal.findings()
    expected = sum(
        each.absent * (each.set_bits / each.bit_count) ** each.hash_count for each in journal.blooms
    )
    assert expected > 1_000
    wrong = sum(each.false_positives for each in journal.blooms)
    assert wrong == pytest.approx(expected, rel=0.1)


def test_small_filters_are_wrong_more_often_than_their_fill_says() -> None:
    """The steps of an id come back to where they were, in few bits more often than in many."""
    ratios = []
    for capacity in (100, 1_000):
        expected = wrong = 0.0
        for seed in range(10):
            random = Random(seed)
            full = RollingBloomFilter(BloomParameters(capacity))
            for _ in range(capacity):
                full.insert(f"{random.getrandbits(256):064x}")
            looked_at = LookedAt(full.layout, bytes(full))
            for _ in range(10_000):
                looked_at.must_not_have(f"{random.getrandbits(256):064x}")
            expected += 10_000 * (looked_at.set_bits / full.layout.bit_count) ** 10
            wrong += looked_at.false_positives
        ratios.append(wrong / expected)
    assert ratios[0] > 2
    assert 0.8 < ratios[1] < 1.5


def test_one_in_ten_seconds_is_looked_at() -> None:
    journal = Journal()
    for number in range(40):
        journal.went(journal.made(f"own{number}", []), EVERY_MS // 10)
    journal.findings()
    assert [each.at_ms for each in journal.blooms] == [1_000, 10_000, 20_000, 30_000, 40_000]


def test_rollovers() -> None:
    journal = Journal(100)
    for number in range(10):
        came = ids(f"m{number}-", 30)
        journal.came(*came)
        journal.went(journal.made(f"own{number}", came[-10:]))
    assert journal.findings() == []
    assert journal.filter.rollovers == sum(each.is_new for each in journal.blooms) == 5
    assert all(each.had > 30 for each in journal.blooms[2:])


def test_a_filter_that_lost_an_id() -> None:
    journal = Journal()
    journal.came("a", "b")
    journal.filter = RollingBloomFilter(BloomParameters(100), ["a"])
    journal.went(journal.made("own", ["a", "b"]))
    journal.went(journal.made("another", ["a", "b", "own"]))
    (finding,) = journal.findings()
    assert finding[:6] == ("bloom_filters", *WHOSE, "own", EVERY_MS)
    assert finding.detail == (
        "its bloom filter lacks 1 of 2 ids of its sender's log, 'b' for one; 2 of 2 that were "
        "looked at are wrong"
    )


def test_an_own_id_that_the_filter_lost() -> None:
    journal = Journal()
    journal.went(journal.made("own", []))
    journal.filter = RollingBloomFilter(BloomParameters(100))
    journal.went(journal.made("next", ["own"]))
    assert [each.message_id for each in journal.findings()] == ["next"]


def test_what_came_while_a_message_waited_is_not_in_its_filter() -> None:
    journal = Journal()
    journal.came("a")
    waits = journal.made("waits", ["a"])
    journal.came("b")
    journal.went(waits)
    assert journal.findings() == []
    assert journal.blooms[0].had == 1


def test_an_own_message_is_older_than_when_it_was_noted() -> None:
    """It left the filter before what came between, though it was noted after it."""
    journal = Journal(10)
    own = journal.made("own", [])
    between = ids("between", 8)
    journal.came(*between)
    journal.went(own)
    journal.came("more", "last")
    assert "own" not in journal.filter
    journal.went(journal.made("next", ["own", *between, "more", "last"]))
    assert journal.findings() == []


def test_a_restart_makes_the_filter_anew() -> None:
    """In the order of the log; what was made before waits to go out with the filter of then."""
    journal = Journal(100)
    journal.came(*ids("before", 90))
    waits = journal.made("waits", ids("before", 90)[:10])
    journal.open(bloom_capacity=100)
    log = [*ids("late", 30), "waits", *ids("before", 60)]
    journal.filter = RollingBloomFilter(BloomParameters(100), log)
    for message_id in log:
        lamport = waits.lamport_timestamp if message_id == "waits" else 0
        restored = Line("message_logged", message_id=message_id, outcome="restored")
        journal.note(restored._replace(lamport_timestamp=lamport))
    journal.out(waits)
    journal.went(journal.made("next", log[-5:]))
    assert journal.findings() == []
    (bloom,) = journal.blooms
    assert (bloom.message_id, bloom.had, bloom.is_new) == ("next", 49, False)


def test_lines_that_cannot_be_read_may_have_brought_ids() -> None:
    journal = Journal(10)
    journal.came("a")
    for each in ids("unread", 10):
        journal.filter.insert(each)
        journal.note(set_aside("torn"))
    assert "a" not in journal.filter
    journal.went(journal.made("own", ["a"]))
    assert journal.findings() == []


def test_a_filter_of_another_size() -> None:
    journal = Journal()
    journal.went(journal.made("own", [], b"\xff" * 3))
    (finding,) = journal.findings()
    assert finding.detail.startswith("its own bloom filter cannot be read: it has 3 bytes")
    assert journal.blooms == []


def test_filters_of_the_nim_dialect() -> None:
    journal = Journal(wire_profile="nim")
    journal.filter = RollingBloomFilter(BloomParameters(100), form=NIM_BLOOM)
    journal.came("a")
    journal.went(journal.made("own", ["a"]))
    assert journal.findings() == []
    assert journal.blooms[0].had == 1


@pytest.mark.parametrize(
    "options",
    [
        {"wire_profile": "a plugin's"},
        {"wire_profile": {"name": "given as it is"}},
        {"bloom_capacity": "many"},
        {"bloom_capacity": 0},
    ],
)
def test_of_filters_of_unknown_form_nothing_is_said(options: dict[str, Any]) -> None:
    journal = Journal()
    journal.open(**options)
    journal.went(journal.made("own", [], b"\xff" * 3))
    assert not journal.findings()
    assert not journal.blooms
