"""Participants that tune themselves beside others that do not: `python -m bench.mixed 6301 6302`
(seeds), in virtual time, so that figures are equal anywhere.

A group of 20 without Store that loses 20 %, and the same talk each time; the first 0, 1, 10, 19 and
20 of them have `preset="auto"`, the others the documented options.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from statistics import fmean
from typing import Any, Final, NamedTuple

from reliable_channel.options import PRESETS, ChannelOptions
from reliable_channel.sds import SdsProtocol
from reliable_channel.sds.events import MessageReceived, Outgoing, SdsEvent
from reliable_channel.sds.receiving import Arrival
from reliable_channel_lab.sim.comparison import Cell, workload
from reliable_channel_lab.sim.measures import percentile
from reliable_channel_lab.sim.sharing import sharing
from reliable_channel_lab.sim.trial import Terms, run_trial
from reliable_channel_lab.sim.world import CHANNEL

PARTICIPANTS: Final = 20
TUNED: Final = (0, 1, 10, 19, 20)
LOSS: Final = 0.2


class Kind(NamedTuple):
    """The participants that tune themselves, or the others."""

    latency_p95_s: float
    """From `send` of a message until its delivery at these."""
    kilobytes: float
    """Broadcast by one of these, divided by the messages of all."""


class Mixed(NamedTuple):
    """What came of a group; None where it has no participant of that kind."""

    tuned: Kind | None
    others: Kind | None


class _Seen:
    """What participants of one kind did."""

    def __init__(self) -> None:
        self.latencies_ms: list[int] = []
        self.bytes = 0

    def kind(self, participants: int, messages: int) -> Kind | None:
        latency_ms = percentile(sorted(self.latencies_ms), 95)
        if latency_ms is None:
            return None
        return Kind(latency_ms / 1_000, self.bytes / participants / messages / 1_000)


class _Watched(SdsProtocol):
    """A core that notes what it broadcasts and when messages are delivered."""

    def watch(self, seen: _Seen, sent_ms: dict[str, int]) -> None:
        self._seen, self._sent_ms, self._now_ms = seen, sent_ms, 0

    def send(self, content: bytes, now_ms: int, **rest: Any) -> str:
        message_id = super().send(content, now_ms, **rest)
        self._sent_ms[message_id] = now_ms
        return message_id

    def receive(self, data: bytes, now_ms: int, **rest: Any) -> Arrival:
        self._now_ms = now_ms
        return super().receive(data, now_ms, **rest)

    def on_deadline(self, now_ms: int) -> None:
        self._now_ms = now_ms  # what waited for a message that is given up is delivered then
        super().on_deadline(now_ms)

    def outgoing(self) -> Iterator[Outgoing]:
        for each in super().outgoing():
            if self._sent_ms:
                self._seen.bytes += len(each.data)
            yield each

    def events(self) -> Iterator[SdsEvent]:
        for each in super().events():
            if isinstance(each, MessageReceived):
                self._seen.latencies_ms.append(self._now_ms - self._sent_ms[each.message_id])
            yield each


def mixed(tuned: int, seed: int, participants: int = PARTICIPANTS) -> Mixed:
    """Run one group until all have all messages."""
    cell = Cell("group", participants, LOSS, "SDS-R", seed)
    documented = ChannelOptions(retrieval_strategy="sds-r-only")
    options = (replace(documented, **PRESETS["auto"]), documented)
    profile, seen = sharing(), (_Seen(), _Seen())
    sent_ms: dict[str, int] = {}

    def make_core(sender_id: str, **given: Any) -> SdsProtocol:
        kind = 0 if int(sender_id.removeprefix("p")) < tuned else 1
        core = _Watched(
            CHANNEL,
            sender_id,
            options=options[kind].sds_options(),
            profile=profile,
            listen_to=(profile,),
            **given,
        )
        core.watch(seen[kind], sent_ms)
        return core

    run_trial(workload(cell), make_core, Terms(options=documented, idle_ms=0))
    counts = (tuned, participants - tuned)
    return Mixed(*(each.kind(n, len(sent_ms)) for each, n in zip(seen, counts, strict=True)))


def main(*seeds: str) -> None:
    """Print a line for each group: means, and of latencies the worst."""
    for tuned in TUNED:
        found = [mixed(tuned, int(seed)) for seed in seeds]
        print(f"{tuned} of {PARTICIPANTS} tune themselves", flush=True)
        for name, kinds in zip(Mixed._fields, zip(*found, strict=True), strict=True):
            here = [kind for kind in kinds if kind is not None]
            if here:
                latencies = [kind.latency_p95_s for kind in here]
                print(
                    f"  {name}: 95 % after {fmean(latencies):.2f} ({max(latencies):.2f}) s; "
                    f"{fmean(kind.kilobytes for kind in here):.1f} kB a message from each",
                    flush=True,
                )


if __name__ == "__main__":
    main(*sys.argv[1:] or ["6301"])
