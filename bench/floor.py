"""The floor: the least that a receiver in Python can do with a message.

Decoding the protobuf message, and one set lookup for each entry of its causal history. Any further
cost is the core's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bench.timing import cpu_us
from bench.workload import WireMessage
from reliable_channel.sds.dialects import sds_pb2


class Floor:
    """Decodes and looks up, and does nothing else."""

    def __init__(self, history_ids: Iterable[str], traffic: Sequence[WireMessage]) -> None:
        self._known = set(history_ids)
        self._traffic = traffic

    def receive(self, start: int, count: int) -> float:
        """CPU microseconds a message for `count` messages, after one that is not timed."""
        first, *timed = self._traffic[start : start + 1 + count]
        self._look_up([first])
        return cpu_us(count, lambda: self._look_up(timed))

    def _look_up(self, messages: Iterable[WireMessage]) -> None:
        decode, known = sds_pb2.Message.FromString, self._known
        for wire, _ in messages:
            for entry in decode(wire).causal_history:
                entry.message_id in known  # noqa: B015 - the lookup is what is measured
