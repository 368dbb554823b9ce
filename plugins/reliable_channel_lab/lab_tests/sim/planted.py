"""Plausible defects, planted on purpose, to show that the simulation finds them.

Run as a program, it runs seeds with each and prints how many broke a promise, and which.
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from reliable_channel.engine.engine import Engine
from reliable_channel.engine.pending_events import PendingEvents
from reliable_channel.engine.rate_limit import RateLimit
from reliable_channel.engine.recovery import RepairPlan, Repairs
from reliable_channel.engine.requests import Idempotency, Requests
from reliable_channel.engine.segments import Segments
from reliable_channel.engine.steps import Step
from reliable_channel.events import MessageAcknowledged
from reliable_channel.sds import comparison
from reliable_channel.sds.adaptive.causal_frontier import CausalFrontier
from reliable_channel.sds.bloom import RollingBloomFilter
from reliable_channel.sds.comparison import LogComparison
from reliable_channel.sds.message import Message, MessageKind
from reliable_channel.sds.outgoing import OutgoingBuffer, OutgoingEntry
from reliable_channel.sds.receiving import Receiver
from reliable_channel.sds.repair.buffers import SPEC_TIMERS, repair_hash
from reliable_channel_lab.sim import Scenario, Simulation, draw_scenario
from reliable_channel_lab.sim.liveness import draw_liveness
from reliable_channel_lab.sim.self_tuning import draw_self_tuning


def lost_ack() -> AbstractContextManager[Any]:
    """Sync messages are not looked through for acknowledgements."""
    review = Receiver._review  # noqa: SLF001

    def forgetful(self: Receiver, message: Message, *rest: Any) -> None:
        if message.kind is not MessageKind.SYNC:
            review(self, message, *rest)

    return patch.object(Receiver, "_review", forgetful)


def filter_not_rolled() -> AbstractContextManager[Any]:
    """The bloom filter takes any id, as js-waku's does."""

    def insert(self: RollingBloomFilter, message_id: str) -> None:
        self.sent.insert(message_id)
        self._count = min(self._count + 1, self.parameters.capacity)

    return patch.object(RollingBloomFilter, "insert", insert)


def buffered_counts_as_met() -> AbstractContextManager[Any]:
    """A dependency that has arrived and waits itself is waited for no more, as in js-waku."""
    note_unmet = Receiver._note_unmet  # noqa: SLF001

    def careless(self: Receiver, *arguments: Any) -> set[str]:
        return note_unmet(self, *arguments) - self._state.incoming_buffer.parked.keys()

    return patch.object(Receiver, "_note_unmet", careless)


def retry_forgotten() -> AbstractContextManager[Any]:
    """After a restart the unacknowledged messages are there, and no retry is planned."""

    def restore(
        self: OutgoingBuffer, messages: Iterable[Any], progress: Iterable[Any], now_ms: int
    ) -> None:
        attempts = {row[0]: row[1] for row in progress}
        for message_id, data in messages:
            self.entries[message_id] = OutgoingEntry(message_id, data, attempts.get(message_id, 0))

    return patch.object(OutgoingBuffer, "restore", restore)


@contextmanager
def t_req_off_by_one() -> Iterator[None]:
    """The span of T_req counts both of its ends."""

    def t_req(participant_id: str, message_id: str, now_ms: int, options: Any) -> int:
        span = options.t_max_ms - options.t_min_ms + 1
        return int(now_ms + options.t_min_ms + repair_hash(participant_id + message_id) % span)

    right = SPEC_TIMERS.t_req
    object.__setattr__(SPEC_TIMERS, "t_req", t_req)
    try:
        yield
    finally:
        object.__setattr__(SPEC_TIMERS, "t_req", right)


def differs_in_silence() -> AbstractContextManager[Any]:
    """The roots of others' logs are not looked at."""
    return patch.object(LogComparison, "review", lambda *_: None)


def difference_forgotten() -> AbstractContextManager[Any]:
    """Peers that differ are forgotten before they had another turn to speak."""
    return patch.object(comparison, "FORGET_MS", 40_000)


def difference_of_another() -> AbstractContextManager[Any]:
    """Participants are named as different that are not there."""
    right = LogComparison.different_from

    def wrong(self: LogComparison) -> tuple[str, ...]:
        return tuple(f"not {name}" for name in right.__get__(self))

    return patch.object(LogComparison, "different_from", property(wrong))


# -- of the engine ---------------------------------------------------------------------------------


def confirmed_in_memory_alone() -> AbstractContextManager[Any]:
    """A confirmation is not written: a restart emits again what was confirmed."""

    def forget(self: PendingEvents, numbers: tuple[int, ...]) -> None:
        self._rows -= len(numbers)

    return patch.object(PendingEvents, "_forget", forget)


def reports_not_written() -> AbstractContextManager[Any]:
    """Reports are emitted and not numbered: a crash before they are confirmed loses them."""
    return patch.object(PendingEvents, "reported", lambda _, events: events)


def keys_forgotten() -> AbstractContextManager[Any]:
    """After a restart a key is new again, and its message is sent a second time."""
    return patch.object(Idempotency, "restore", lambda *_: None)


def last_segment_confirmed() -> AbstractContextManager[Any]:
    """To confirm a long payload confirms its last segment: the others come again, and wait."""
    account = PendingEvents.account

    def careless(self: PendingEvents, event: Any, numbers: tuple[int, ...]) -> None:
        account(self, event, numbers[-1:])

    return patch.object(PendingEvents, "account", careless)


def given_up_in_silence() -> AbstractContextManager[Any]:
    """A payload whose rest does not come is dropped without an event."""
    on_deadline = Segments.on_deadline

    def silent(self: Segments, now_ms: int) -> tuple[()]:
        on_deadline(self, now_ms)
        list(on_deadline(self, now_ms))
        return ()

    return patch.object(Segments, "on_deadline", silent)


def acknowledged_by_its_first_segment() -> AbstractContextManager[Any]:
    """One acknowledged segment acknowledges the whole request."""
    resolved = Requests.resolved

    def early(self: Requests, event: Any) -> Any:
        request = self._by_message.get(event.message_id)
        yield from resolved(self, event)
        is_first = request is not None and request.acknowledged == 1 < len(request.message_ids)
        if isinstance(event, MessageAcknowledged) and request is not None and is_first:
            yield replace(event, message_id=request.message_ids[0])

    return patch.object(Requests, "resolved", early)


def budget_forgotten() -> AbstractContextManager[Any]:
    """What is spent is not written: a restart begins with the whole budget of an epoch."""
    return patch.object(Engine, "_spend", lambda *_: None)


def retries_do_not_yield() -> AbstractContextManager[Any]:
    """All kinds of messages use up the budget alike."""
    return patch.object(RateLimit, "is_approached", lambda *_: False)


def stored_once_looked() -> AbstractContextManager[Any]:
    """A message in Store shows that all own messages are there."""

    in_store = Engine.in_store

    def trusting(self: Engine, message_hashes: Iterable[bytes], now_ms: int) -> Step:
        if hashes := list(message_hashes):
            hashes += self.confirmation._message_ids  # noqa: SLF001
        return in_store(self, hashes, now_ms)

    return patch.object(Engine, "in_store", trusting)


def heads_forgotten() -> AbstractContextManager[Any]:
    """After a restart only the newest messages are referred to."""
    return patch.object(CausalFrontier, "restore", lambda self, rows: None)


def others_wait_for_store() -> AbstractContextManager[Any]:
    """While Store does not answer, other participants are not asked either."""
    decide = Repairs._decide  # noqa: SLF001

    def waiting(self: Repairs, plan: RepairPlan, now_ms: int) -> None:
        decide(self, plan, now_ms)
        if self._store.failures:
            plan.step = replace(plan.step, ask_at_ms=None)
            if plan.is_held:
                self._hold(plan)

    return patch.object(Repairs, "_decide", waiting)


PLANTS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    plant.__name__: plant
    for plant in (
        lost_ack,
        filter_not_rolled,
        buffered_counts_as_met,
        retry_forgotten,
        t_req_off_by_one,
        differs_in_silence,
        difference_forgotten,
        difference_of_another,
        confirmed_in_memory_alone,
        reports_not_written,
        keys_forgotten,
        last_segment_confirmed,
        given_up_in_silence,
        acknowledged_by_its_first_segment,
        budget_forgotten,
        retries_do_not_yield,
        stored_once_looked,
        heads_forgotten,
        others_wait_for_store,
    )
}


OF_SELF_TUNING = {heads_forgotten.__name__}
OF_LIVENESS = {others_wait_for_store.__name__}
"""Defects that a group in which all heals does not show."""
TIGHT_BUDGET = 30
"""Messages an epoch: few enough that a restart in an epoch that is nearly spent is no rarity."""


def drawn(name: str, seed: int) -> Scenario:
    """The scenario that a defect is looked for with."""
    if name in OF_SELF_TUNING:
        return draw_self_tuning(seed)
    if name in OF_LIVENESS:
        return draw_liveness(seed)
    scenario = draw_scenario(seed)
    if name == budget_forgotten.__name__:
        return replace(scenario, habits=replace(scenario.habits, budget=TIGHT_BUDGET))
    return scenario


def has_segments(scenario: Scenario) -> bool:
    return scenario.habits.segmentation != "none"


def seeds_for(name: str) -> Iterator[int]:
    """The seeds that should be enough: the first 60; for participants that tune themselves those
    from 92 on, the first to find it; for the rate limit's order those of the first 150 that have
    one, and for segments those of the first 60 that have some: without any a run is the same with
    the defect."""
    if name == retries_do_not_yield.__name__:
        yield from (seed for seed in range(1, 151) if draw_scenario(seed).habits.budget)
    elif name == last_segment_confirmed.__name__:
        yield from (seed for seed in range(1, 61) if has_segments(draw_scenario(seed)))
    else:
        yield from range(92, 101) if name in OF_SELF_TUNING else range(1, 61)


def caught_by(name: str, seed: int) -> str | None:
    """Which invariant a planted defect breaks under a seed, if any."""
    with PLANTS[name]():
        violation = Simulation(drawn(name, seed)).run().violation
    return None if violation is None else violation.invariant


def main(seeds: int) -> None:
    for name, plant in PLANTS.items():
        caught = {seed: by for seed in range(1, seeds + 1) if (by := caught_by(name, seed))}
        print(f"{name}: {plant.__doc__}")
        first = min(caught, default=None)
        print(f"  caught by {len(caught)} of {seeds} seeds, first by seed {first}")
        for invariant, count in Counter(caught.values()).most_common():
            print(f"  {count:4} {invariant}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
