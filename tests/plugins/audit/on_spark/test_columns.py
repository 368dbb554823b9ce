"""Journals read by columns say what they say row by row, or are left to the rows."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from reliable_channel_audit.audit import read_facts, verdict
from reliable_channel_audit.check import check
from reliable_channel_audit.columns.ordinary import ordinary
from reliable_channel_audit.columns.wire import Odd
from reliable_channel_audit.facts import facts_of
from reliable_channel_audit.findings import SETTLE_MS
from reliable_channel_audit.journals import DAMAGE, Participant, journal_files, participants
from reliable_channel_audit.sources import journals
from reliable_channel_audit.sources.fact_batches import batches_of, fact_batch
from reliable_channel_audit.verdict import Value
from tests.journal_lines import json_lines

from .. import simulated
from ..generated import SMALL_BLOOM, write_group
from ..mutations import mutate
from ..planted import FAULTS, plant

Table = dict[str, list[dict[str, Any]]]
SEEDS = range(2)


def by_rows(participant: Participant) -> Table:
    facts: defaultdict[str, list[Sequence[Any]]] = defaultdict(list)
    for fact in facts_of(participant):
        facts[type(fact).__name__].append(fact)
    return {kind: fact_batch(kind, rows).to_pylist() for kind, rows in facts.items()}


def by_columns(participant: Participant) -> Table | None:
    """None where they are left to the rows."""
    try:
        found = ordinary(participant, settle_ms=SETTLE_MS)
    except (Odd, *DAMAGE):
        return None
    facts: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for each in found.few:
        facts[type(each).__name__] += fact_batch(type(each).__name__, [each]).to_pylist()
    for batch in batches_of(found):
        for row in batch.to_pylist():
            facts[row["fact"]].append(row)
    return dict(facts)


def compared(*paths: Path) -> list[bool]:
    """Whether each participant's journals were read by columns; then as they are by rows."""
    group, _ = participants(journal_files(paths))
    taken = []
    for participant in group:
        found = by_columns(participant)
        taken.append(found is not None)
        if found is not None:
            expected = by_rows(participant)
            for table in (found, expected):
                table.get("Repair", []).sort(key=lambda row: str(row["message_id"]))
            assert found == expected, participant.participant_id
    return taken


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("bloom", [None, SMALL_BLOOM], ids=["without filters", "with filters"])
def test_clean_journals_are_read_by_columns(tmp_path: Path, seed: int, bloom: Any) -> None:
    write_group(tmp_path, seed=seed, loss=0.3, bloom=bloom)
    assert compared(tmp_path) == [True] * 4


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_seen_or_left_to_the_rows(tmp_path: Path, fault: str, seed: int) -> None:
    paths = write_group(tmp_path, seed=seed)
    plant(fault, paths[seed % len(paths)], seed)
    compared(tmp_path)


@pytest.mark.parametrize("seed", range(4))
def test_changed_journals_are_seen_or_left_to_the_rows(tmp_path: Path, seed: int) -> None:
    (path, *_) = write_group(tmp_path, participants=3, messages=40, seed=seed)
    whole, random, seen = json_lines(path), Random(seed), list[bool]()
    for _ in range(30):
        lines = [dict(line) for line in whole]
        mutate(lines, random)
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        seen += compared(path)
    assert {True, False} == set(seen)


@pytest.mark.parametrize("seed", range(4))
def test_changed_bytes_are_seen_or_left_to_the_rows(tmp_path: Path, seed: int) -> None:
    """Packed lines: bytes are changed, left out and doubled, and lines cut, doubled and moved."""
    (path, *_) = write_group(tmp_path, participants=2, messages=20, seed=seed)
    whole, random, seen = path.read_bytes(), Random(seed), list[bool]()
    for _ in range(40):
        path.write_bytes(_spoilt(whole, random))
        seen += compared(path)
    assert {True, False} == set(seen)


def _spoilt(whole: bytes, random: Random) -> bytes:
    at = random.randrange(len(whole))
    lines = whole.splitlines(keepends=True)
    one, other = random.randrange(1, len(lines)), random.randrange(1, len(lines))
    match random.randrange(7):
        case 0:
            return whole[:at] + random.randbytes(1) + whole[at + 1 :]
        case 1:
            return whole[:at] + whole[at + random.randrange(1, 30) :]
        case 2:
            return whole[:at] + whole[max(0, at - random.randrange(1, 30)) :]
        case 3:
            digit = random.choice(b"0123456789abcdef=~^- ")
            return whole[:at] + bytes([digit]) + whole[at + 1 :]
        case 4:
            lines[one], lines[other] = lines[other], lines[one]
        case 5:
            lines.insert(one, lines[other])
        case 6:
            del lines[one]
    return b"".join(lines)


@pytest.mark.parametrize("seed", [7, 11, 158, 303])
def test_journals_of_simulated_channels(tmp_path: Path, seed: int) -> None:
    """With kills, a partition and a Store that is away."""
    simulated.run(seed, tmp_path)
    compared(tmp_path)


def test_packed_parts_are_read_on(tmp_path: Path) -> None:
    (path, *_) = write_group(tmp_path, messages=60, part_bytes=8_000)
    assert len(journal_files([path])) > 3
    assert compared(tmp_path) == [True] * 4
    part = next(each for each in journal_files([tmp_path]) if each.suffix == ".gz")
    part.write_bytes(part.read_bytes()[:-20])
    assert False in compared(tmp_path)
    part.write_bytes(gzip.compress(b"\n"))
    compared(tmp_path)


@pytest.mark.parametrize("least", [0, journals.COLUMNS_FROM_BYTES])
def test_a_share_has_facts_of_both_ways(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, least: int
) -> None:
    """Journals of which one has a fault, read by columns where they are not too small."""
    paths = write_group(tmp_path)
    plant("duplicate", paths[1], 1)
    monkeypatch.setattr(journals, "COLUMNS_FROM_BYTES", least)
    reader = journals.FactReader([str(tmp_path)], 1, SETTLE_MS)
    (share,) = reader.partitions()
    found: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for batch in reader.read(share):
        for row in batch.to_pylist():
            found[row["fact"]].append(row)
    expected: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for participant in share.group:
        for kind, rows in by_rows(participant).items():
            expected[kind] += rows
    assert found.keys() == expected.keys()
    for kind, rows in expected.items():
        assert sorted(map(str, found[kind])) == sorted(map(str, rows)), kind


def test_large_journals_are_judged_as_check_does(spark: SparkSession, tmp_path: Path) -> None:
    paths = write_group(tmp_path, messages=300)
    assert min(path.stat().st_size for path in paths) > journals.COLUMNS_FROM_BYTES
    plant("forged id", paths[2], 1)
    facts = read_facts(spark, [tmp_path])
    found = verdict(facts, [tmp_path])
    facts.unpersist()
    assert found.value is Value.BROKEN
    assert found == check([tmp_path])
