"""How fast payloads become columns: `python -m bench.decode` (needs the extra [spark]).

One process, without a JVM: what an executor's Python worker does, apart from moving the bytes.
"""

from __future__ import annotations

import argparse
from random import Random
from time import process_time

import pyarrow as pa

from reliable_channel.sds.message import HistoryEntry, Message
from reliable_channel.sds.wire import SpecCodec
from reliable_channel_audit.decode import decode_batch

BATCH = 2_000


def payloads(count: int, history: int, bloom_bytes: int) -> list[bytes]:
    """Messages with so many references each."""
    random = Random(1)
    ids = [random.randbytes(32).hex() for _ in range(count)]
    return [
        SpecCodec().encode(
            Message(
                f"participant-{number % 50}",
                ids[number],
                "general",
                1_700_000_000_000 + number,
                tuple(HistoryEntry(i) for i in ids[max(0, number - history) : number]),
                random.randbytes(bloom_bytes) if bloom_bytes else None,
                (),
                random.randbytes(200),
            )
        )
        for number in range(count)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=40_000)
    arguments = parser.parse_args()
    for history, bloom_bytes in ((2, 0), (10, 0), (200, 0), (10, 18_752)):
        count = arguments.messages // (10 if history > 10 or bloom_bytes else 1)
        data = payloads(count, history, bloom_bytes)
        batches = [pa.array(data[at : at + BATCH], pa.binary()) for at in range(0, count, BATCH)]
        began = process_time()
        rows = sum(decode_batch(batch).num_rows for batch in batches)
        took = process_time() - began
        print(
            f"{history:3} references, {bloom_bytes:6} bytes of bloom filter, "
            f"{len(data[-1]):6} bytes a message: {rows / took:8,.0f} messages a CPU second"
        )


if __name__ == "__main__":
    main()
