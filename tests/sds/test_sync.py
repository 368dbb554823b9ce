"""The schedule of sync messages: alone, in groups of timers, and in the core."""

from collections import deque
from collections.abc import Callable
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reliable_channel.sds.events import MessageAcknowledged, MessageMissing, OutgoingKind
from reliable_channel.sds.message import HistoryEntry
from reliable_channel.sds.sync import (
    JsWakuSchedule,
    SuppressedSchedule,
    SyncSchedule,
    SyncTimer,
    SyncTrigger,
    make_schedule,
)
from tests.slow import slow

from .world import MINUTE, NOW_MS, SECOND, Weather, World, forge, give, participant, send, taken

INTERVAL_MS = 30_000
LATENCY_MS = 200
Rule = Callable[[int, Callable[[], float]], SyncSchedule]


def count_syncs(rule: Rule, participants: int, duration_ms: int, seed: int) -> int:
    """How many sync messages a quiet group sends. Only the timers are simulated.

    Whoever fires is heard by all others one latency later, and each of them draws anew.
    """
    delay_ms = rule(INTERVAL_MS, Random(seed).random).delay_ms
    due_ms = [delay_ms(SyncTrigger.START) for _ in range(participants)]
    on_the_way: deque[tuple[int, int]] = deque()
    sent = 0
    while True:
        now_ms = min(due_ms)
        if on_the_way and on_the_way[0][0] <= now_ms:
            now_ms, sender = on_the_way.popleft()
            own_ms = due_ms[sender]
            due_ms = [now_ms + delay_ms(SyncTrigger.SYNC) for _ in range(participants)]
            due_ms[sender] = own_ms
        elif now_ms > duration_ms:
            return sent
        else:
            sender = due_ms.index(now_ms)
            due_ms[sender] = now_ms + delay_ms(SyncTrigger.OWN_SYNC)
            on_the_way.append((now_ms + LATENCY_MS, sender))
            sent += 1


# -- one timer -------------------------------------------------------------------------------------


@pytest.mark.conformance("JS-SYNC-1", "JS-SYNC-3")
@pytest.mark.parametrize(
    ("heard", "min_ms", "max_ms"),
    [
        (SyncTrigger.START, 24_000, 36_000),
        (SyncTrigger.SYNC, 24_000, 36_000),
        (SyncTrigger.OWN_SYNC, 48_000, 72_000),
        (SyncTrigger.CONTENT, 12_000, 18_000),
        (SyncTrigger.OWN_CONTENT, 18_000, 27_000),
    ],
)
@settings(derandomize=True)
@given(draw=st.floats(0, 1, exclude_max=True))
def test_a_dead_time_then_a_draw(heard: SyncTrigger, min_ms: int, max_ms: int, draw: float) -> None:
    assert min_ms <= SuppressedSchedule(INTERVAL_MS, lambda: draw).delay_ms(heard) <= max_ms


def test_the_draw_is_skewed_towards_the_end() -> None:
    schedule = SuppressedSchedule(INTERVAL_MS, Random(1).random)
    delays = [schedule.delay_ms(SyncTrigger.SYNC) for _ in range(10_000)]
    assert sum(delay > 34_000 for delay in delays) > 8_000
    assert min(delays) < 28_000


@pytest.mark.parametrize(
    ("heard", "max_ms"),
    [
        (SyncTrigger.START, 30_000),
        (SyncTrigger.SYNC, 30_000),
        (SyncTrigger.CONTENT, 15_000),
        (SyncTrigger.OWN_SYNC, 60_000),
    ],
)
def test_js_wakus_draw_is_uniform_from_zero(heard: SyncTrigger, max_ms: int) -> None:
    assert JsWakuSchedule(INTERVAL_MS, lambda: 0.0).delay_ms(heard) == 0
    assert JsWakuSchedule(INTERVAL_MS, lambda: 0.5).delay_ms(heard) == max_ms // 2


# -- a group of timers -----------------------------------------------------------------------------


@pytest.mark.conformance("JS-SYNC-2")
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("participants", [2, 10, 100, 1_000, *slow(10_000)])
def test_at_most_two_syncs_an_interval_whatever_the_size(participants: int, seed: int) -> None:
    intervals = 60
    sent = count_syncs(SuppressedSchedule, participants, intervals * INTERVAL_MS, seed)
    assert intervals * 0.8 <= sent <= 2 * intervals


@pytest.mark.parametrize(
    ("participants", "duration_ms"), [(10, 30 * MINUTE), (100, 5 * MINUTE), (1_000, 20 * SECOND)]
)
def test_js_wakus_rule_sends_as_many_as_there_are_participants(
    participants: int, duration_ms: int
) -> None:
    sent = count_syncs(JsWakuSchedule, participants, duration_ms, seed=1)
    assert sent * INTERVAL_MS / duration_ms == pytest.approx(participants, rel=0.25)


# -- in the core -----------------------------------------------------------------------------------


@pytest.mark.conformance("JS-SYNC-1", "JS-SYNC-2")
@pytest.mark.parametrize(("size", "seed"), [(2, 1), (2, 2), (10, 1), (10, 2), (60, 3)])
def test_a_quiet_group_of_cores_shares_the_duty(size: int, seed: int) -> None:
    world = World([f"p{i}" for i in range(size)], seed=seed)
    world["p0"].send(b"the last word")
    world.run(30 * MINUTE)
    sent = sum(len(d.broadcasts(OutgoingKind.SYNC)) for d in world.drivers.values())
    assert 60 * 0.8 <= sent <= 2 * 60
    assert sum(bool(d.broadcasts(OutgoingKind.SYNC)) for d in world.drivers.values()) > 1


@pytest.mark.parametrize("seed", range(10))
def test_of_two_the_one_who_waits_for_an_answer_does_not_keep_the_other_from_it(seed: int) -> None:
    world = World(["alice", "bob"], seed=seed, retry_interval_ms=60 * MINUTE)
    for name in world.drivers:
        world[name].send(b"hello")  # at once: neither names the other's

    def acknowledged() -> bool:
        return all(driver.seen(MessageAcknowledged) for driver in world.drivers.values())

    assert world.run(2 * INTERVAL_MS, until=acknowledged)


@pytest.mark.parametrize("size", [2, 3, 10])
@pytest.mark.parametrize("seed", range(5))
def test_a_lost_last_message_is_noticed_within_two_intervals(size: int, seed: int) -> None:
    world = World([f"p{i}" for i in range(size)], seed=seed, retry_interval_ms=60 * MINUTE)
    world["p0"].send(b"hello")
    world.run(MINUTE)
    world.islands = [{"p1"}]
    last = world["p0"].send(b"lost for p1")
    world.run(SECOND)
    world.islands = []

    def noticed() -> bool:
        return any(
            entry.message_id == last
            for event in world["p1"].seen(MessageMissing)
            for entry in event.missing
        )

    assert world.run(2 * INTERVAL_MS, until=noticed)


def test_a_lost_sync_message_costs_one_more_interval() -> None:
    worst_ms = SuppressedSchedule(INTERVAL_MS, lambda: 1 - 1e-9).delay_ms
    assert (
        worst_ms(SyncTrigger.CONTENT) + worst_ms(SyncTrigger.SYNC) + 2 * LATENCY_MS
        <= 2 * INTERVAL_MS
    )


@pytest.mark.conformance("JS-SYNC-3")
def test_content_makes_the_wait_shorter_and_starts_it_anew() -> None:
    world = World(["alice", "bob"], weather=Weather(latency_ms=(1, 1)))
    for number in range(30):
        world["alice"].send(b"%d" % number)
        world.run(10 * SECOND)
    for driver in world.drivers.values():
        assert driver.broadcasts(OutgoingKind.SYNC) == []
    world.run(9 * SECOND)
    assert sum(len(d.broadcasts(OutgoingKind.SYNC)) for d in world.drivers.values()) >= 1


def test_no_sync_messages_where_the_interval_is_zero() -> None:
    core = participant(sync_min_interval_ms=0)
    assert core.agenda.next_ms is None
    core.on_deadline(10**15)
    assert taken(core.outgoing) == []


@pytest.mark.parametrize("schedule", ["suppressed", "js-waku"])
def test_a_newcomer_makes_itself_heard(schedule: str) -> None:
    core = participant(sync_schedule=schedule)
    due_ms = core.agenda.next_ms
    assert due_ms is not None
    core.on_deadline(due_ms)
    assert [o.kind for o in taken(core.outgoing)] == [OutgoingKind.SYNC]


def test_content_puts_a_sync_off_for_some_minutes_and_no_longer() -> None:
    """Sync messages alone carry what logs are compared by; a busy channel needs one now and
    then."""
    timer = SyncTimer(make_schedule("suppressed", 30_000, lambda: 0.5))
    timer.restart(SyncTrigger.SYNC, 0)
    now_ms = 0
    while (timer.due_ms or 0) > now_ms:
        now_ms += 1_000
        timer.restart(SyncTrigger.CONTENT, now_ms)
    assert 0.8 <= now_ms / 300_000 <= 1.2
    timer.restart(SyncTrigger.OWN_SYNC, now_ms)
    timer.restart(SyncTrigger.CONTENT, now_ms + 1_000)
    assert (timer.due_ms or 0) > now_ms + 10_000


@pytest.mark.parametrize("self_tuning", [False, True])
def test_who_asks_on_and_on_keeps_no_other_from_speaking(self_tuning: bool) -> None:
    """A participant with hundreds of references to nothing asks every few seconds, whatever others
    say. Its syncs would put off those of all others without end, and with them their roots."""
    asking = participant("alice", self_tuning=self_tuning)
    other = participant("bob", self_tuning=self_tuning)
    give(other, flood := send(asking, b"hello"))
    now_ms, spoken = NOW_MS, 0
    while now_ms < NOW_MS + 30 * MINUTE:
        now_ms += 5 * SECOND
        nothing = HistoryEntry(f"nothing at {now_ms}", None, "mallory")
        data = forge(
            *(f"sync {now_ms}",),
            sender="alice",
            lamport=now_ms,
            after=[flood.message_id],
            requests=[nothing],
            content=None,
        )
        other.receive(data, now_ms)
        if (due_ms := other.agenda.next_ms) is not None and due_ms <= now_ms:
            other.on_deadline(now_ms)
        spoken += sum(o.kind is OutgoingKind.SYNC for o in taken(other.outgoing))
    assert 3 <= spoken <= 30 * MINUTE // INTERVAL_MS


def test_a_request_spares_the_others_a_sync_as_any_sync_does() -> None:
    timer = SyncTimer(make_schedule("suppressed", 30_000, lambda: 0.5))
    timer.restart(SyncTrigger.SYNC, 0)
    due_ms = timer.due_ms or 0
    timer.restart(SyncTrigger.REQUEST, 20_000)
    assert timer.due_ms == due_ms + 20_000


def test_who_hears_nobody_speaks_ever_more_seldom_until_somebody_is_heard() -> None:
    core = participant()
    spoken_ms = [NOW_MS]
    while len(spoken_ms) < 7:
        now_ms = core.agenda.next_ms
        assert now_ms is not None
        core.on_deadline(now_ms)
        if any(each.kind is OutgoingKind.SYNC for each in taken(core.outgoing)):
            spoken_ms.append(now_ms)
    waits = [(b - a) / INTERVAL_MS for a, b in pairwise(spoken_ms)]
    for wait, intervals in zip(waits, (1, 4, 8, 8, 8, 8), strict=True):
        assert 0.8 * intervals <= wait <= 1.2 * intervals
    timer = SyncTimer(make_schedule("suppressed", INTERVAL_MS, lambda: 0.5))
    for heard in (SyncTimer.prompt, lambda timer, at: timer.restart(SyncTrigger.SYNC, at)):
        for now_ms in range(5):
            timer.restart(SyncTrigger.OWN_SYNC, now_ms)
        assert timer.due_ms is not None and timer.due_ms > 6 * INTERVAL_MS
        heard(timer, 100)
        assert timer.due_ms < 1.3 * INTERVAL_MS
        for now_ms, intervals in ((200, 2), (300, 4), (400, 8), (500, 8)):
            timer.restart(SyncTrigger.OWN_SYNC, now_ms)
            assert 0.8 * intervals <= (timer.due_ms - now_ms) / INTERVAL_MS <= 1.2 * intervals


def test_the_schedule_of_js_waku_stays_as_it_is() -> None:
    timer = SyncTimer(make_schedule("js-waku", 30_000, lambda: 0.5))
    timer.restart(SyncTrigger.SYNC, 0)
    for now_ms in range(0, 3_600_000, 5_000):
        timer.restart(SyncTrigger.CONTENT, now_ms)
        assert timer.due_ms == now_ms + 7_500
