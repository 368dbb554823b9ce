"""The audit on Spark gives the answer of `check`, whatever is wrong and however it is spread."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from reliable_channel_audit import audit, audits
from reliable_channel_audit.audit import read_facts, verdict
from reliable_channel_audit.check import check
from reliable_channel_audit.decode import decoded
from reliable_channel_audit.evidence import MAX_EVIDENCE, MAX_STEPS, evidence
from reliable_channel_audit.findings import Audit
from reliable_channel_audit.journals import group_of, journal_files
from reliable_channel_audit.schemas import FACTS
from reliable_channel_audit.verdict import Value, Verdict

from ..generated import write_group
from ..planted import FAULTS, plant
from ..plants import GROUP_FAULTS, Cell, Sources


def audited(spark: SparkSession, path: Path, partitions: int | None = None) -> Verdict:
    facts = read_facts(spark, [path], partitions=partitions)
    try:
        return verdict(facts, [path])
    finally:
        facts.unpersist()


def test_clean_journals_are_clean(spark: SparkSession, tmp_path: Path) -> None:
    write_group(tmp_path, loss=0.3)
    found = audited(spark, tmp_path)
    assert found.value is Value.KEPT
    assert found == check([tmp_path])


def test_what_is_unknown_is_unknown_for_check_as_well(spark: SparkSession, tmp_path: Path) -> None:
    """A participant without a journal, a channel with one journal, and an empty one."""
    one, two, *_ = write_group(tmp_path / "a", messages=30)
    one.unlink()
    two.write_text("")
    write_group(tmp_path / "b", participants=1, messages=5, channel_id="genral")
    found = audited(spark, tmp_path)
    assert found.value is Value.UNKNOWN
    assert found.without_journal == [("general", "p000"), ("general", "p001")]
    assert found == check([tmp_path])


@pytest.mark.parametrize(("partitions", "max_gathered"), [(1, audit.MAX_GATHERED), (3, 0)])
def test_every_planted_fault_is_found_as_check_finds_it(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    partitions: int,
    max_gathered: int,
) -> None:
    """Compared in this process, and in tasks of Spark that each have some of the messages."""
    monkeypatch.setattr(audit, "MAX_GATHERED", max_gathered)
    monkeypatch.setattr(audits, "BUCKET_ROWS", 3_000)
    paths = write_group(tmp_path / "one", participants=len(FAULTS), messages=200)
    for seed, (fault, path) in enumerate(zip(FAULTS, paths, strict=True)):
        plant(fault, path, seed)
    write_group(tmp_path / "two", messages=30, channel_id="another")
    (tmp_path / "poem.jsonl").write_text("of nobody\n")
    found = audited(spark, tmp_path, partitions)
    assert found == check([tmp_path])
    assert set(found.broken) == {each.value for each in Audit}
    shown = audit.evidence(spark, found, [tmp_path], partitions=partitions)
    group = group_of(journal_files([tmp_path])).participants
    assert shown == evidence(group, found, [tmp_path])
    assert len(shown) == MAX_EVIDENCE
    assert all(each.line for each in shown)


@pytest.mark.parametrize("max_gathered", [audit.MAX_GATHERED, 0])
def test_every_fault_of_a_group_is_judged_as_check_judges_it(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, max_gathered: int
) -> None:
    """Each in a channel of its own, as docs/verdict.md has them."""
    monkeypatch.setattr(audit, "MAX_GATHERED", max_gathered)
    sources = Sources(tmp_path / "sources")
    for fault in GROUP_FAULTS:
        cell = Cell(fault, "two", is_broken=True)
        sources.plant(cell, tmp_path / "journals" / fault, channel_id=fault)
    assert audited(spark, tmp_path / "journals") == check([tmp_path / "journals"])


def test_evidence_of_a_large_group_is_that_of_check(spark: SparkSession, tmp_path: Path) -> None:
    *_, path = write_group(tmp_path, participants=200, messages=10, loss=0, bloom=None)
    plant("received twice", path, seed=1)
    found = check([tmp_path])
    group = group_of(journal_files([tmp_path])).participants
    (shown,) = audit.evidence(spark, found, [tmp_path], partitions=3)
    assert [shown] == evidence(group, found, [tmp_path])
    assert len(shown.life) == MAX_STEPS


CAUSAL_ORDER_IN_SQL = """
    with logged as (
        select participant_id, life, number, message_id, message_hash from journal
        where event = 'message_logged'
    ), edges as (
        select participant_id, message_hash, explode(message.causal_history) as dependency
        from wire
    )
    select distinct late.participant_id, late.message_id, late_dependency.message_id as dependency
    from logged late
    join edges on edges.participant_id = late.participant_id
        and edges.message_hash = late.message_hash
    join logged late_dependency on late_dependency.participant_id = late.participant_id
        and late_dependency.life = late.life
        and late_dependency.message_id = edges.dependency
    where late_dependency.number > late.number
"""


def test_causal_order_is_what_sql_says(spark: SparkSession, tmp_path: Path) -> None:
    for number, path in enumerate(write_group(tmp_path, participants=3, messages=150)):
        for seed in range(number + 1):
            plant("swapped causal pair", path, seed)
    journal = spark.read.format("sds_journal").load(str(tmp_path))
    journal.createOrReplaceTempView("journal")
    wire = journal.where("event = 'wire_in'").select("participant_id", "message_hash", "payload")
    decoded(wire).createOrReplaceTempView("wire")
    expected = {tuple(row) for row in spark.sql(CAUSAL_ORDER_IN_SQL).collect()}

    found = {
        (each.participant_id, each.message_id, each.detail.split()[2].rstrip(","))
        for each in check([tmp_path]).findings
        if each.audit == "causal_order"
    }
    assert found == expected
    assert len({participant_id for participant_id, *_ in found}) == 3


def test_facts_have_the_columns_of_their_types() -> None:
    from reliable_channel_audit import facts, findings, replay
    from reliable_channel_audit import verdict as verdicts

    for name, table in FACTS.items():
        kinds = [getattr(module, name, None) for module in (facts, findings, replay, verdicts)]
        kind = next(kind for kind in kinds if kind is not None)
        assert table.names == list(kind._fields)
