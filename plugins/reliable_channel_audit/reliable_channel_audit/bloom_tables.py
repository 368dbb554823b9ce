"""Bloom filters as a separate table: they are most of a message's bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from reliable_channel.sds.bloom import BloomFilterError, BloomParameters, set_bits
from reliable_channel.sds.profile import PROFILES

from .decode import decoded
from .schemas import FILTER
from .sources.batches import arrow_schema, batches, rows_of

_OF_MESSAGE: Final = (*FILTER.names[:5], "bloom_filter")


def blooms(
    frame: DataFrame, column: str = "payload", *, parameters: BloomParameters | None = None
) -> DataFrame:
    """The bloom filters of the messages in a binary column, a row each; of messages without one
    there is none.

    Filters of the `spec` dialect do not contain their size: `parameters` are the channel's,
    the defaults where None. Those of `nim` contain it.
    """
    expected = parameters or BloomParameters()

    def rows(given: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        read = (_row(*values, expected) for values in rows_of(given))
        return batches(read, arrow_schema(FILTER), weighed=[FILTER.names.index("words")])

    return (
        decoded(frame.select(column), column, blooms=True)
        .where("message.bloom_filter is not null")
        .select([F.col("message")[name].alias(name) for name in _OF_MESSAGE])
        .mapInArrow(rows, FILTER)
    )


def _row(*values: Any) -> tuple[Any, ...]:
    *message, field, expected = values
    try:
        layout, words = PROFILES[message[-1]].bloom.read(field, expected)
    except BloomFilterError as error:
        return (*message, None, None, None, field, str(error))
    return (*message, layout.bit_count, layout.hash_count, set_bits(words), words, None)
