"""Delivery rates, and how they read."""

from __future__ import annotations

from pathlib import Path

import pytest

from reliable_channel_audit.check import check
from reliable_channel_audit.facts import Delivery
from reliable_channel_audit.rates import duration, listed, percent, rates
from reliable_channel_audit.verdict import MAX_FINDINGS, Lost, Rate

from .generated import write_group
from .planted import plant
from .simulated import run

HOUR_MS = 3_600_000


def delivery(whose: str, at_ms: int, sender: str = "alice", message_id: str = "m") -> Delivery:
    first = message_id if whose == sender else None
    row = "general", whose, 0, message_id, sender, 1, b"", at_ms, first
    return Delivery(*row, None if first else b"hash", None, None, 0)


def test_rates_of_channel_hour_and_pair() -> None:
    deliveries = [
        delivery("alice", HOUR_MS + 1),
        delivery("alice", HOUR_MS + 9_000)._replace(life=1, first_segment_id=None),
        delivery("bob", HOUR_MS + 11),
        delivery("carol", HOUR_MS + 31 + 500),
        delivery("carol", 2 * HOUR_MS + 500, sender="carol", message_id="n"),
        delivery("bob", 2 * HOUR_MS + 7, sender="carol", message_id="n"),
    ]
    lost = [Lost("general", "carol", "alice", 2 * HOUR_MS, 1)]
    found = rates(deliveries, lost, {("general", "carol"): 500})
    assert [tuple(each) for each in found] == [
        ("general", None, None, None, 3, 1, 0.75, 10, 30, 30, 30),
        ("general", HOUR_MS, None, None, 2, 0, 1.0, 10, 30, 30, 30),
        ("general", 2 * HOUR_MS, None, None, 1, 1, 0.5, 7, 7, 7, 7),
        ("general", None, "carol", "alice", 0, 1, 0.0, None, None, None, None),
        ("general", None, "alice", "carol", 1, 0, 1.0, 30, 30, 30, 30),
        ("general", None, "alice", "bob", 1, 0, 1.0, 10, 10, 10, 10),
        ("general", None, "carol", "bob", 1, 0, 1.0, 7, 7, 7, 7),
    ]


@pytest.mark.parametrize("seed", range(3))
def test_rates_have_all_deliveries_and_losses_of_the_verdict(tmp_path: Path, seed: int) -> None:
    run(seed, tmp_path / "simulated")
    paths = write_group(tmp_path / "generated", seed=seed, channel_id="other")
    plant("missing", paths[1], seed)
    found = check([tmp_path])
    delivered, owed = found.delivered
    for hour, pair in ((False, False), (True, False), (False, True)):
        some = [
            each
            for each in found.rates
            if (each.hour_ms is not None, each.sender_id is not None) == (hour, pair)
        ]
        assert sum(each.delivered for each in some) == delivered
        assert sum(each.lost for each in some) == owed - delivered > 0


def test_of_many_pairs_the_worst_are_kept() -> None:
    every = [
        Rate("general", None, f"p{number}", "bob", number, 1, number / (number + 1), *[1] * 4)
        for number in range(MAX_FINDINGS + 5)
    ]
    kept = listed(every)
    assert len(kept) == MAX_FINDINGS
    assert kept[0].sender_id == "p0"


def test_only_what_is_whole_is_a_hundred_percent() -> None:
    assert [percent(share) for share in (1.0, 0.99999, 0.9581)] == ["100 %", "99.99 %", "95.81 %"]


def test_durations() -> None:
    times = [None, 7, 999, 1_284, 599_999, 600_000, 5_400_000]
    assert [*map(duration, times)] == ["", "7 ms", "999 ms", "1.28 s", "600 s", "10 min", "90 min"]
