"""Figures: a few facts in, small tables out."""

from __future__ import annotations

from typing import Any

from reliable_channel_audit import figures
from reliable_channel_audit.clocks import clock_offsets
from reliable_channel_audit.facts import Repair
from reliable_channel_audit.journals import Participant
from reliable_channel_audit.misbehaviour import Deed
from reliable_channel_audit.tables.participants import NEVER, acknowledged

from ..test_clocks import OFFSETS, lags
from .tables import fact, judged_facts


def rows(found: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in found]


def test_acknowledgement_latency() -> None:
    participant = Participant("general", "alice", (), 0)
    waits = {"causal_history": [300, 100], "bloom_filter": [40], NEVER: [0]}
    told = judged_facts()._replace(acknowledged=acknowledged(participant, waits))
    assert rows(figures.acknowledgement_latency(told)) == [
        ("general", "alice", "bloom_filter", 1, 40, 40, 40, 40),
        ("general", "alice", "causal_history", 2, 100, 300, 300, 300),
        ("general", "alice", "never", 1, None, None, None, None),
    ]


def test_repair_efficiency() -> None:
    given = judged_facts(
        fact(Repair, "alice", message_id="a", requests=3, responses=0),
        fact(Repair, "alice", message_id="b", requests=1, responses=2),
        fact(Repair, "bob", message_id="a", requests=0, responses=1),
    )
    assert rows(figures.repair_efficiency(given)) == [
        ("general", "alice", 2, 4, 2, 2.0),
        ("general", "bob", 0, 0, 1, None),
    ]


def test_clocks() -> None:
    found = figures.clocks(judged_facts(offsets=clock_offsets(lags(*OFFSETS))))
    expected = [("general", name, offset_ms) for name, offset_ms in OFFSETS.items()]
    assert [row[:3] for row in rows(found)] == expected


def test_members() -> None:
    deeds = [
        fact(
            Deed,
            whose,
            sender="'mallory'",
            what="refused as forged_id",
            message_id="m",
            at_ms=at_ms,
            times=times,
        )
        for whose, at_ms, times in (("alice", 10, 2), ("bob", 5, 40))
    ]
    expected = [("general", "'mallory': refused as forged_id", 42, 2, 5)]
    assert rows(figures.members(judged_facts(*deeds))) == expected
