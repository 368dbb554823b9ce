"""Logs that differ, and how long until they are equal: `python -m bench.differing newcomer 1000`
and `python -m bench.differing halves 10`, in virtual time, so that figures are equal anywhere.

A group of `preset="auto"` without Store, over a network that loses 20 %: one newcomer lacks that
many messages, or two halves have 500 different ones each beside that many common ones. What they
have is given to the cores before; the clock starts when they meet and one of them sends a message.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import Any, Final, NamedTuple

from reliable_channel.options import PRESETS, ChannelOptions
from reliable_channel.sds import SdsProtocol
from reliable_channel_lab.sim.scenario import PUBLISH_MS, Conditions

PARTICIPANTS: Final = 20
LOSS: Final = 0.2
APART: Final = 500
"""Messages of each half."""
PAUSE_MS: Final = 1_000
QUIET_MS: Final = 60_000
"""In which nothing is heard, before they meet."""
STEP_MS: Final = 2_000
LOOK_MS: Final = 100
PATIENCE_MS: Final = 600_000
PAYLOAD_BYTES: Final = 100
START_MS: Final = 1_700_000_000_000


class Reunion(NamedTuple):
    """What it took until all logs were equal."""

    seconds: float | None
    """None where they were not."""
    megabytes: float
    """Broadcast by all."""
    broadcasts: int
    messages: int
    """Of each log in the end."""


class Group:
    """The cores of a group, what they have, and the network between them."""

    def __init__(self, participants: int, seed: int, name: str) -> None:
        values: Mapping[str, Any] = {**PRESETS["auto"], "retrieval_strategy": "sds-r-only"}
        core = ChannelOptions(**values).sds_options()
        self._options = replace(core, repair=replace(core.repair, repair_on_demand=False))
        self._seed = seed
        self._random = Random(name)
        self._network = Random(f"net {seed}")
        self.now_ms = START_MS
        self.cores = [self._core(number) for number in range(participants)]
        self._planned: list[tuple[int, int, int, bytes | None, int]] = []
        """When, a number, for which core, and what came, stamped when; a deadline where None."""
        self._number = count()
        self._bytes = self._broadcasts = 0

    def restart(self, number: int) -> None:
        """Replace a core by one that has nothing."""
        self.cores[number] = self._core(number)

    def give(self, members: list[int], messages: int) -> None:
        """Have members write in turns, drawn at random, and hear each other at once."""
        for text in range(messages):
            self.now_ms += PAUSE_MS
            writer = self.cores[self._random.choice(members)]
            noise = bytes(self._random.getrandbits(8) for _ in range(PAYLOAD_BYTES - 5))
            message_id = writer.send(b"%d " % text + noise, self.now_ms)
            (data,) = (o.data for o in writer.outgoing() if o.message_id == message_id)
            writer.dispatched(message_id, self.now_ms)
            heard_ms = self.now_ms + PUBLISH_MS
            for core in (self.cores[number] for number in members):
                if core is not writer:
                    core.receive(data, heard_ms, sent_at_ns=self.now_ms * 1_000_000)
                self._live(core, heard_ms)

    def rest(self) -> None:
        """Let a while pass in which nothing is heard."""
        for _ in range(0, QUIET_MS, STEP_MS):
            self.now_ms += STEP_MS
            for core in self.cores:
                self._live(core, self.now_ms)

    def meet(self) -> Reunion:
        """One sends a message; run until all logs are equal."""
        began_ms = looked_ms = self.now_ms
        self.cores[0].send(bytes(PAYLOAD_BYTES), self.now_ms)
        for number in range(len(self.cores)):
            self._let_out(number)
        while self._planned and self.now_ms - began_ms < PATIENCE_MS:
            self.now_ms, _, number, data, stamp_ms = heappop(self._planned)
            core = self.cores[number]
            if data is not None:
                core.receive(data, self.now_ms, sent_at_ns=stamp_ms * 1_000_000)
            elif (due_ms := core.next_deadline_ms()) is not None and due_ms <= self.now_ms:
                core.on_deadline(self.now_ms)
            else:
                continue
            self._let_out(number)
            if self.now_ms - looked_ms >= LOOK_MS:
                looked_ms = self.now_ms
                if self._is_equal():
                    return self._reunion((self.now_ms - began_ms) / 1_000)
        return self._reunion(None)

    def _core(self, number: int) -> SdsProtocol:
        random = Random(f"{self._seed} {number}").random
        return SdsProtocol(
            "c", f"p{number}", now_ms=self.now_ms, random=random, options=self._options
        )

    def _live(self, core: SdsProtocol, now_ms: int) -> None:
        """Do what is due; what is said is not heard."""
        if (due_ms := core.next_deadline_ms()) is not None and due_ms <= now_ms:
            core.on_deadline(now_ms)
        for _ in (*core.outgoing(), *core.events()):
            pass

    def _let_out(self, number: int) -> None:
        core, latency = self.cores[number], Conditions().latency
        for outgoing in core.outgoing():
            self._bytes += len(outgoing.data)
            self._broadcasts += 1
            core.dispatched(outgoing.message_id, self.now_ms)
            for other in range(len(self.cores)):
                if other != number and self._network.random() >= LOSS:
                    delay_ms = int(self._network.uniform(latency.min_ms, latency.max_ms))
                    self._plan(PUBLISH_MS + delay_ms, other, outgoing.data)
        for _ in core.events():
            pass
        if (due_ms := core.next_deadline_ms()) is not None:
            self._plan(max(due_ms - self.now_ms, 1), number, None)

    def _plan(self, in_ms: int, number: int, data: bytes | None) -> None:
        at_ms = self.now_ms + in_ms
        heappush(self._planned, (at_ms, next(self._number), number, data, self.now_ms))

    def _is_equal(self) -> bool:
        lengths = {len(core.log) for core in self.cores}
        return len(lengths) == 1 and len({core.log.digest() for core in self.cores}) == 1

    def _reunion(self, seconds: float | None) -> Reunion:
        messages = max(len(core.log) for core in self.cores)
        return Reunion(seconds, self._bytes / 1e6, self._broadcasts, messages)


def newcomer(messages: int, seed: int, participants: int = PARTICIPANTS) -> Reunion:
    """One participant has nothing of that many messages."""
    group = Group(participants, seed, f"recon newcomer {messages} {seed}")
    group.give(list(range(participants - 1)), messages)
    group.rest()
    group.restart(participants - 1)
    return group.meet()


def halves(common: int, seed: int, participants: int = PARTICIPANTS, apart: int = APART) -> Reunion:
    """Two halves have different messages, beside that many common ones."""
    group = Group(participants, seed, f"recon halves {common} {seed}")
    group.give(list(range(participants)), common)
    parted_ms = group.now_ms
    for half in (range(participants // 2), range(participants // 2, participants)):
        group.now_ms = parted_ms
        group.give(list(half), apart)
    group.rest()
    return group.meet()


def main(kind: str, messages: str, *seeds: str) -> None:
    """Print a line for each seed."""
    run = newcomer if kind == "newcomer" else halves
    for seed in map(int, seeds or ("5101",)):
        print(kind, messages, "seed", seed, run(int(messages), seed), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
