"""A small table by channel, which goes to all tasks as bytes."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

_PACKED = pa.ipc.IpcWriteOptions(compression="zstd")


def packed(rows: pa.Table) -> bytes:
    """A table that has a column `channel_id`."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=_PACKED) as stream:
        stream.write_table(rows)
    found: bytes = sink.getvalue().to_pybytes()
    return found


def by_channel(given: bytes) -> dict[str, pa.Table]:
    """The rows of each channel, from what `packed` gave."""
    with pa.ipc.open_stream(given) as stream:
        rows = stream.read_all().sort_by("channel_id").combine_chunks()
    found, begin = {}, 0
    for each in pc.value_counts(rows["channel_id"]).to_pylist():
        found[each["values"]] = rows.slice(begin, each["counts"])
        begin += each["counts"]
    return found
