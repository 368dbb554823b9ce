"""This core's side: `SdsProtocol` driven as its runtime drives it, with the default options."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final

from bench.timing import cpu_us
from bench.workload import (
    CHANNEL_ID,
    LAMPORT_STEP_MS,
    WireMessage,
    channel_time_ms,
    history_messages,
    retrieval_hint,
)
from reliable_channel.sds import SdsOptions, SdsProtocol
from reliable_channel.sds.dialects import sds_pb2

SEED: Final = 7


class OursFailed(RuntimeError):
    """The core did not do what is being timed, so that its time means nothing."""


class Ours:
    """One channel of the core; `setup` begins another."""

    def __init__(self) -> None:
        self._core: SdsProtocol | None = None
        self._now_ms = 0
        self._traffic: Sequence[WireMessage] = ()

    @property
    def core(self) -> SdsProtocol:
        """The core under measurement; there is none before `setup`."""
        if self._core is None:
            raise OursFailed("setup comes first")
        return self._core

    def setup(self, history: int, causal_history: int, traffic: Sequence[WireMessage]) -> None:
        """Begin with a channel that has received `history` messages and will receive `traffic`."""
        self.close()
        self._traffic = traffic
        self._now_ms = channel_time_ms(0)
        self._core = SdsProtocol(
            CHANNEL_ID,
            "ours",
            now_ms=self._now_ms,
            random=random.Random(SEED).random,
            options=SdsOptions(causal_history_size=causal_history),
        )
        for message in history_messages(history, causal_history):
            self.take(message)
        if len(self._core.log) != history:
            raise OursFailed(f"the log has {len(self._core.log)} messages, not {history}")

    def close(self) -> None:
        """Let go of the channel and its memory."""
        self._core = None

    def take(self, message: WireMessage) -> None:
        """Receive one message, a second after the last one, and take the events of the core."""
        self._now_ms += LAMPORT_STEP_MS
        self.core.receive(message.wire, self._now_ms, retrieval_hint=message.retrieval_hint)
        self.core.events.clear()

    def receive(self, start: int, count: int) -> float:
        """CPU microseconds a message for `count` messages, after one that is not timed."""
        first, *timed = self._traffic[start : start + 1 + count]
        before = self.core.counters.delivered
        self.take(first)
        us = cpu_us(count, lambda: self._take_all(timed))
        delivered = self.core.counters.delivered - before
        if delivered != count + 1:
            raise OursFailed(f"{delivered} of {count + 1} messages were delivered")
        return us

    def send(self, payloads: Sequence[bytes]) -> float:
        """CPU microseconds for each payload but the first; a peer acknowledges them afterwards."""
        first, *timed = payloads
        before = len(self.core.outgoing_buffer)
        self._send_all([first])
        us = cpu_us(len(timed), lambda: self._send_all(timed))
        self._acknowledge(len(payloads))
        if len(self.core.outgoing_buffer) != before:
            raise OursFailed("the messages sent were not acknowledged")
        return us

    def leave_unacknowledged(self, payloads: Sequence[bytes]) -> None:
        """Send own messages that are never acknowledged."""
        self._send_all(payloads)

    def _take_all(self, messages: Iterable[WireMessage]) -> None:
        for message in messages:
            self.take(message)

    def _send_all(self, payloads: Iterable[bytes]) -> None:
        core, now_ms = self.core, self._now_ms
        for number, payload in enumerate(payloads):
            core.send(payload, now_ms)
            for outgoing in core.outgoing:
                core.dispatched(outgoing.message_id, now_ms, retrieval_hint(number))
            core.outgoing.clear()
            core.events.clear()

    def _acknowledge(self, count: int) -> None:
        """Receive a peer's message whose causal history lists the newest `count` own messages."""
        newest = list(islice(reversed(self.core.outgoing_buffer.entries), count))
        acknowledgement = sds_pb2.Message(
            sender_id="acknowledger",
            message_id=f"ack of {newest[0]}",
            channel_id=CHANNEL_ID,
            lamport_timestamp=self.core.clock.value + 1,
            causal_history=[
                sds_pb2.HistoryEntry(message_id=message_id, sender_id="ours")
                for message_id in newest
            ],
            content=b"I have them",
        )
        self.core.receive(acknowledgement.SerializeToString(), self._now_ms)
        self.core.events.clear()
