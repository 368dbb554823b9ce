"""Messages from one peer to another, in a closed loop, and what they cost: time and CPU.

All clocks are one: containers have their host's. A message's time begins when it is given to the
sender, by the clock of this process, and ends when the receiver emits it, by
`at_ms` of that event; its way back to here does not count.
"""

import time
from base64 import b64decode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from statistics import median, quantiles
from typing import Final, Self

from .container import Container
from .peers import Peer

STALL_S: Final = 120
"""Longer than any retry: a message that is not there by then is lost."""


@dataclass(frozen=True, slots=True)
class Latency:
    """Milliseconds from `send` to the other side's event, by percentile."""

    p50: float
    p95: float
    p99: float

    @classmethod
    def of(cls, latencies_ms: Sequence[int]) -> Self:
        """Of two messages at least."""
        cuts = quantiles(latencies_ms, n=100, method="inclusive")
        return cls(cuts[49], cuts[94], cuts[98])


@dataclass(frozen=True, slots=True)
class Flow:
    """What became of messages that were sent one after another."""

    latencies_ms: Sequence[int]
    per_s: float
    """Messages a second, from the first one's `send` to the last one's event."""
    cpu_s: Mapping[str, float]
    """CPU seconds of each container in that time."""

    @property
    def messages(self) -> int:
        """How many were sent, and arrived."""
        return len(self.latencies_ms)

    @property
    def cpu_s_per_1000(self) -> dict[str, float]:
        """CPU seconds a 1,000 messages, by container."""
        return {name: 1000 * cpu_s / self.messages for name, cpu_s in self.cpu_s.items()}

    @classmethod
    def of_all(cls, flows: Sequence[Self]) -> Self:
        """Several as one: all their messages, and the median of their rates."""
        return cls(
            [latency_ms for flow in flows for latency_ms in flow.latencies_ms],
            median(flow.per_s for flow in flows),
            {name: sum(flow.cpu_s[name] for flow in flows) for name in flows[0].cpu_s},
        )


def flow(
    sender: Peer,
    receiver: Peer,
    payloads: Sequence[bytes],
    *,
    window: int,
    containers: Mapping[str, Container],
    pauses_s: Iterable[float] = repeat(0.0),
) -> Flow:
    """Send these, at most `window` of them under way at a time, and wait until all have arrived.

    Args:
        payloads: Each unlike all others.
        pauses_s: Before each.
        containers: Whose CPU time is taken, by the names in the result.

    Raises:
        TimeoutError: nothing arrived for `STALL_S`.
    """
    arrivals = _Arrivals(receiver, payloads)
    sent_at_ms: dict[bytes, int] = {}

    def wait_until_under_way(at_most: int) -> None:
        receiver.wait_until(
            lambda: len(sent_at_ms) - arrivals.count() <= at_most,
            STALL_S,
            f"arrival of {len(sent_at_ms)} messages of {sender.name}, {at_most} excepted",
        )

    used_before_s = _cpu_s(containers)
    for payload, pause_s in zip(payloads, pauses_s, strict=False):
        wait_until_under_way(window - 1)
        time.sleep(pause_s)
        sent_at_ms[payload] = time.time_ns() // 1_000_000
        sender.send(payload)
    wait_until_under_way(0)
    used_s = _cpu_s(containers)

    emitted_at_ms = arrivals.at_ms
    took_ms = max(emitted_at_ms.values()) - min(sent_at_ms.values())
    return Flow(
        [emitted_at_ms[payload] - at_ms for payload, at_ms in sent_at_ms.items()],
        1000 * len(payloads) / took_ms,
        {name: used_s[name] - used_before_s[name] for name in containers},
    )


class _Arrivals:
    """When a peer first emitted each payload; each event is looked at once.

    Others do not count: js-waku may emit earlier payloads again.
    """

    def __init__(self, receiver: Peer, payloads: Iterable[bytes]) -> None:
        self._receiver = receiver
        self._wanted = frozenset(payloads)
        self._seen = len(receiver.events)
        self.at_ms: dict[bytes, int] = {}

    def count(self) -> int:
        """How many payloads by now."""
        new = self._receiver.events[self._seen :]
        self._seen += len(new)
        for event in new:
            if event["event"] != "message_received":
                continue
            if (payload := b64decode(event["payload"])) in self._wanted:
                self.at_ms.setdefault(payload, event["at_ms"])
        return len(self.at_ms)


def _cpu_s(containers: Mapping[str, Container]) -> dict[str, float]:
    return {name: container.cpu_s() for name, container in containers.items()}
