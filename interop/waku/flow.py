"""Messages from one peer to another, in a closed loop, and how long they take.

All clocks are one: containers have their host's. A message's time begins when it is given to the
sender, by the clock of this process, and ends when the receiver emits it, by
`at_ms` of that event; its way back to here does not count.
"""

import time
from base64 import b64decode
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import repeat
from random import Random
from statistics import median
from typing import Final, Literal

from .bench import BenchNetwork, Service
from .peers import Peer

Kind = Service | Literal["js"]
STALL_S: Final = 120
"""Longer than any retry: a message that is not there by then is lost."""
LONGEST_PAUSE_S: Final = 0.2
"""Before a message alone, at random: sent upon an arrival, each would wait for a whole interval of
the receiver's polling."""
WARM_UP: Final = 20
WINDOW: Final = 20
SIZE: Final = 256


@dataclass(frozen=True, slots=True)
class Flow:
    """What became of messages that were sent one after another."""

    latencies_ms: Sequence[int]
    per_s: float
    """Messages a second, from the first one's `send` to the last one's event."""

    @property
    def p50_ms(self) -> float:
        return median(self.latencies_ms)


def play(
    network: BenchNetwork, kind: Kind, number: int, *, alone: int, together: int
) -> tuple[Flow, Flow]:
    """Open two peers of a kind and send messages: one at a time, then 20 in flight.

    Args:
        number: Unlike that of any other pair of the network.

    Raises:
        TimeoutError: a message did not arrive.
    """
    topic, random = f"/reliable-channel/1/flow-{number}/proto", Random(number)
    every = range(WARM_UP + alone + together)
    payloads = [n.to_bytes(4) + random.randbytes(SIZE - 4) for n in every]
    with ExitStack() as open_peers:

        def opened(role: str) -> Peer:
            name = f"{role}-{number}"
            peer: Peer = (
                network.js(name, topic=topic)
                if kind == "js"
                else network.ours(name, service=kind, topic=topic)
            )
            for container in {peer, peer.link}:
                open_peers.callback(container.remove)
            return peer

        receiver, sender = opened("receiver"), opened("sender")
        _flow(sender, receiver, payloads[:WARM_UP])
        pauses_s = [random.uniform(0, LONGEST_PAUSE_S) for _ in range(alone)]
        return (
            _flow(sender, receiver, payloads[WARM_UP:][:alone], pauses_s=pauses_s),
            _flow(sender, receiver, payloads[WARM_UP + alone :], window=WINDOW),
        )


def _flow(
    sender: Peer,
    receiver: Peer,
    payloads: Sequence[bytes],
    *,
    window: int = 1,
    pauses_s: Iterable[float] = repeat(0.0),
) -> Flow:
    """Send these, at most `window` of them under way at a time, and wait until all have arrived."""
    arrivals = _Arrivals(receiver, payloads)
    sent_at_ms: dict[bytes, int] = {}

    def wait_until_under_way(at_most: int) -> None:
        receiver.wait_until(
            lambda: len(sent_at_ms) - arrivals.count() <= at_most,
            STALL_S,
            f"arrival of {len(sent_at_ms)} messages of {sender.name}, {at_most} excepted",
        )

    for payload, pause_s in zip(payloads, pauses_s, strict=False):
        wait_until_under_way(window - 1)
        time.sleep(pause_s)
        sent_at_ms[payload] = time.time_ns() // 1_000_000
        sender.send(payload)
    wait_until_under_way(0)
    emitted_at_ms = arrivals.at_ms
    took_ms = max(emitted_at_ms.values()) - min(sent_at_ms.values())
    return Flow(
        [emitted_at_ms[payload] - at_ms for payload, at_ms in sent_at_ms.items()],
        1000 * len(payloads) / took_ms,
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
