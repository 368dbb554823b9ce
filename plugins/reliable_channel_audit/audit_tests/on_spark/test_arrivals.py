"""Deliveries counted by way and delay."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from reliable_channel.runtime.journal import PART_BYTES
from reliable_channel_audit.clocks import Offset
from reliable_channel_audit.facts import Delivery, Dispatch, facts_of, way_of
from reliable_channel_audit.journals import group_of, journal_files
from reliable_channel_audit.promises import Context
from reliable_channel_audit.report import by_way
from reliable_channel_audit.tables import arrivals as counting
from reliable_channel_audit.tables import layout
from reliable_channel_audit.tables.arrivals import Arrivals, arrivals
from reliable_channel_audit.tables.ingest import ingest, parts
from reliable_channel_audit.tables.judging import judge
from reliable_channel_audit.tables.participants import Facts
from reliable_channel_audit.tables.tally import Counts
from reliable_channel_audit.tables.views import create_views
from reliable_channel_audit.timeline import time_buckets
from tests.journal_lines import journal_text, json_lines

from .. import simulated
from ..generated import write_group
from ..planted import FAULTS, plant
from ..plants import read, write_parts
from .tables import delivery, judged, judged_facts, known

ALICE = known(
    "alice",
    delivery("alice", 1_000, first_segment_id="m"),
    delivery("alice", 9_000, life=1, source="store", message_hash=b"1" * 32),
    sent={b"1" * 32: "content", b"2" * 32: "retry"},
)
HERE = [
    ALICE,
    known(
        "bob",
        delivery("bob", 1_010, source="live", message_hash=b"1" * 32),
        sent={b"3" * 32: "repair"},
    ),
    known(
        "carol",
        delivery("carol", 1_030, source="live", message_hash=b"1" * 32, missing_since_ms=1_020),
    ),
    known("dave", delivery("dave", 1_400, source="store", message_hash=b"1" * 32)),
    known("erin", delivery("erin", 1_200, source="live", message_hash=b"2" * 32)),
    known(
        "frank",
        delivery("frank", 1_300, source="live", message_hash=b"3" * 32, missing_since_ms=1_100),
    ),
    known("gina", delivery("gina", 1_500, source="live", message_hash=b"4" * 32)),
]
"""One message of alice, which came to others by every way, and back to her after a restart."""


def counted(known: list[Facts], offsets: dict[tuple[str, str], Offset] | None = None) -> Arrivals:
    context = Context([], offsets or {}, [], [], 0)
    return arrivals("general", context, known, Path("nowhere"))


def values(every: dict[str, Counts]) -> dict[str, list[int]]:
    return {name: list(each) for name, each in every.items()}


def test_by_way() -> None:
    found = by_way(judged_facts(arrivals={"general": counted(HERE)}))
    assert [tuple(row.values()) for row in found] == [
        ("general", "live", 2, 10, 30, 30, 30, 1, 10),
        ("general", "repair", 1, 300, 300, 300, 300, 1, 200),
        ("general", "retransmission", 1, 200, 200, 200, 200, 0, None),
        ("general", "store", 1, 400, 400, 400, 400, 0, None),
        ("general", "unknown", 1, 500, 500, 500, 500, 0, None),
    ]


def test_clocks_that_are_ahead_are_no_delay() -> None:
    """Dave's clock is three hours fast, and frank's ten seconds slow."""
    offsets = {
        ("general", name): Offset(ms, ms, ms)
        for name, ms in (("dave", 3 * 3_600_000), ("frank", -10_000))
    }
    others = [each for each in HERE if each.participant.participant_id not in ("dave", "frank")]
    dave = delivery("dave", 1_400 + 3 * 3_600_000, source="store", message_hash=b"1" * 32)
    frank = delivery(
        "frank", -8_700, source="live", message_hash=b"3" * 32, missing_since_ms=-8_900
    )
    found = counted([*others, known("dave", dave), known("frank", frank)], offsets)
    right = counted(HERE)
    assert values(found.by_way) == values(right.by_way)
    assert values(found.missing) == values(right.missing)


def test_of_a_sender_without_journal_the_first_delivery_counts() -> None:
    said = {"sender_id": "zoe", "source": "live", "message_hash": b"1" * 32}
    rows = [
        known("bob", delivery("bob", 900, **said)),
        known("carol", delivery("carol", 950, **said)),
    ]
    assert values(counted(rows).by_way) == {"unknown": [0, 50]}


def test_a_message_in_time() -> None:
    (bucket,) = time_buckets({"general": counted(HERE)}, [], {})
    assert bucket.begin_ms <= 1_000 < bucket.end_ms
    assert bucket[2:] == (6, 200, 496, 3, 0)


def test_of_no_messages_there_is_nothing() -> None:
    found = counted([known("alice"), known("bob")])
    assert not found.delays and not found.by_way
    assert time_buckets({"general": found}, [], {}) == []


@pytest.mark.parametrize("batch", [1, 500])
def test_figures_are_those_of_the_lines(
    batch: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted in plain Python from the facts that lines give."""
    monkeypatch.setattr(counting, "BATCH", batch)
    write_group(tmp_path / "journals", loss=0.3, messages=300)
    group = group_of(journal_files([tmp_path / "journals"])).participants
    facts = [each for participant in group for each in facts_of(participant)]
    kinds = {each.message_hash: each.kind for each in facts if isinstance(each, Dispatch)}
    came = [each for each in facts if isinstance(each, Delivery)]
    accepted = {each.message_id: each.at_ms for each in came if each.first_segment_id}
    expected = Counter(
        (
            way_of(each.source, kinds.get(each.message_hash or b"")),
            each.at_ms - accepted[each.message_id],
        )
        for each in came
        if not each.first_segment_id
    )
    (found,) = judged(tmp_path / "journals", tmp_path / "facts").arrivals.values()
    assert Counter((way, ms) for way, each in found.by_way.items() for ms in each) == expected
    assert len(found.by_way) > 1
    assert int(found.bins.deliveries.sum()) == sum(expected.values())


def test_a_message_has_the_way_of_the_copy_that_waited_for_others(tmp_path: Path) -> None:
    """Also if that copy is in an earlier part, or if another copy came by Store later."""
    ways = list[object]()
    for name, part_bytes in (("parts", 4_000), ("whole", PART_BYTES)):
        path, *_ = write_group(tmp_path / name, seed=2, loss=0.5, part_bytes=part_bytes)
        if name == "whole":
            came = [line for line in json_lines(path) if line.get("source") == "live"]
            again = came[-1] | {"source": "store", "outcome": "duplicate"}
            path.write_bytes(path.read_bytes() + journal_text([again]))
        facts = tmp_path / f"{name} facts"
        by_tables = judge(facts, ingest([tmp_path / name], facts, with_open=True).group).arrivals
        ways.append({way: list(each) for way, each in by_tables["general"].by_way.items()})
        with duckdb.connect() as connection:
            create_views(connection, facts)
            query = "select way, list(latency_ms order by latency_ms) from latency group by way"
            ways.append(dict(connection.execute(query).fetchall()))
    assert all(each == ways[0] for each in ways)
    assert set(by_tables["general"].by_way) == {"live", "store"}


@pytest.mark.parametrize("seed", range(8))
def test_a_directory_that_grew_has_the_verdict_of_a_new_one(tmp_path: Path, seed: int) -> None:
    """Whatever parts come when: of restarted participants, copies, and open journals that grow."""
    random = Random(seed)
    whole, journals = tmp_path / "whole", tmp_path / "journals"
    if seed % 4 == 3:
        simulated.run(seed, whole)
    else:
        paths = write_group(whole, participants=3, messages=90, seed=seed, loss=0.3)
        if seed % 2:
            plant(random.choice([*FAULTS]), paths[1], seed)
    write_parts(tmp_path / "parts", read(whole), parts=random.randint(2, 5))
    waiting = sorted((tmp_path / "parts").iterdir())
    if seed % 3:
        random.shuffle(waiting)
    while waiting:
        for path in waiting[: (count := random.randint(1, 4))]:
            folder = journals / "copies" if random.random() < 0.1 else journals
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, folder)
            shutil.copy2(path, journals)
        waiting = waiting[count:]
        with_open = random.random() < 0.5
        every = [
            judge(facts, ingest([journals], facts, with_open=with_open).group)
            for facts in (tmp_path / "grown", tmp_path / f"new{len(waiting)}")
        ]
        grown, new = (each.verdict.to_json() for each in every)
        assert json.loads(grown) == json.loads(new)
        one, other = (each.arrivals for each in every)
        assert {name: plain(each) for name, each in one.items()} == {
            name: plain(each) for name, each in other.items()
        }


def plain(found: Arrivals) -> list[object]:
    counts = found.delays, found.by_way, found.missing
    bins = [np.asarray(each).tolist() for each in found.bins]
    return [*({group: list(each) for group, each in of.items()} for of in counts), *bins]


def test_deliveries_in_parts_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those of a sender whose journal comes later."""
    journals, facts, opened = tmp_path / "journals", tmp_path / "facts", list[str]()
    write_group(tmp_path / "whole", participants=3, seed=3)
    write_parts(tmp_path / "parts", read(tmp_path / "whole"))
    late = sorted((tmp_path / "parts").glob("p002.*"))
    shutil.copytree(tmp_path / "parts", journals, ignore=lambda *_: [path.name for path in late])
    judge(facts, ingest([journals], facts).group)
    reading = layout.read

    def noted(paths: list[Path], kind: str, *others: Any) -> pa.Table:
        opened.extend(path.stem for path in paths if kind == "delivery")
        return reading(paths, kind, *others)

    monkeypatch.setattr(layout, "read", noted)
    judge(facts, ingest([journals], facts).group)
    assert opened == []
    for path in late:
        shutil.copy2(path, journals)
    found = judge(facts, ingest([journals], facts).group)
    own = {row["sha256"] for row in parts(facts) if row["participant_id"] == "p002"}
    assert {*opened} == own
    assert found.verdict.holds
    assert sum(map(len, found.arrivals["general"].by_way.values())) == 240
