"""Facts are collected into batches, and few of them wait for others."""

import pyarrow as pa
import pytest

from reliable_channel_audit.sources import fact_batches
from reliable_channel_audit.sources.batches import BATCH_ROWS
from reliable_channel_audit.sources.fact_batches import FactBatches

from .tables import delivery, rows_of


def test_facts_of_a_channel_are_rows_of_one_batch() -> None:
    collected, (kind, values) = FactBatches(), delivery("bob", 1)
    full = [batch for _ in range(BATCH_ROWS + 2) for batch in collected.add(kind, values)]
    (rest,) = collected.rest()
    assert [batch["rows"].to_pylist() for batch in (*full, rest)] == [[BATCH_ROWS], [2]]
    assert not [*collected.rest()]


def test_facts_of_many_small_channels_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fact_batches, "MAX_WAITING", 50)
    collected, given = FactBatches(), list[pa.RecordBatch]()
    for number in range(50):
        kind, values = delivery("bob", number, channel_id=str(number))
        assert not given
        given += collected.add(kind, values)
    assert not [*collected.rest()]
    assert [row["at_ms"] for row in rows_of(given)["Delivery"]] == [*range(50)]
