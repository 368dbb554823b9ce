"""What encoding, decoding and the bloom filter cost a call, both sides on the same bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from bench.js_waku import JsWaku
from bench.report import Comparison
from bench.session import CAUSAL_HISTORIES
from bench.timing import cpu_us, middle
from bench.workload import WireMessage, message_id, traffic
from reliable_channel.sds.bloom import BloomParameters, RollingBloomFilter
from reliable_channel.sds.dialects import SpecCodec

HISTORY: Final = 10_000
MESSAGES: Final = 100
IDS: Final = 400
ROUNDS: Final = 15
CODEC: Final = ("encode", "decode")


def compare_primitives(js_waku: JsWaku | None) -> list[Comparison]:
    """Measure encode and decode with small and large causal histories, and the bloom filter."""
    ids = [message_id(number) for number in range(IDS)]
    found = []
    for causal_history in CAUSAL_HISTORIES:
        messages = list(traffic(HISTORY, causal_history, MESSAGES))
        ours = our_primitives(messages, ids)
        theirs = {} if js_waku is None else js_waku.primitives(messages, ids, ROUNDS)
        last = causal_history == CAUSAL_HISTORIES[-1]
        for name, us in ours.items():
            if name in CODEC:
                label = f"{name}, {causal_history} causal entries"
            elif last:
                label = name.replace("_", " ")
            else:
                continue  # the bloom filter does not know of causal histories
            found.append(Comparison(label, "µs", us, theirs.get(name)))
    return found


def our_primitives(messages: Sequence[WireMessage], ids: Sequence[str]) -> dict[str, float]:
    """CPU microseconds a call, by the names that `bench/js/peer.mjs` uses."""
    codec, bloom = SpecCodec(), RollingBloomFilter(BloomParameters())
    wires = [message.wire for message in messages]
    decoded = [codec.decode(wire) for wire in wires]
    # A history that is read already: encoding must not pay for decoding.
    written = [replace(message, causal_history=list(message.causal_history)) for message in decoded]

    def each(work: Callable[[Any], object], items: Sequence[Any]) -> float:
        def one_pass() -> None:
            for item in items:
                work(item)

        return middle(cpu_us(len(items), one_pass) for _ in range(ROUNDS))

    return {
        "encode": each(codec.encode, written),
        "decode": each(codec.decode, wires),
        "bloom_insert": each(bloom.insert, ids),
        "bloom_lookup": each(bloom.__contains__, ids),
        "bloom_to_bytes": each(lambda _: bytes(bloom), wires),
    }
