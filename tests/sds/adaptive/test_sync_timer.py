"""When a participant that tunes itself sends syncs."""

from random import Random

import pytest

from reliable_channel.sds.adaptive.estimates import Observations
from reliable_channel.sds.adaptive.sync_timer import PATIENCE, PROMPTS, AdaptiveSyncTimer
from reliable_channel.sds.sync import SyncTrigger


def timer(others: int = 19, interval_ms: int = 30_000) -> AdaptiveSyncTimer:
    observations = Observations()
    observations.heard, observations.delays.scale_ms = others, 300
    return AdaptiveSyncTimer(interval_ms, observations, Random(3).random)


def wait(soon: AdaptiveSyncTimer, heard: SyncTrigger, now_ms: int) -> int:
    soon.restart(heard, now_ms)
    assert soon.due_ms is not None
    return soon.due_ms - now_ms


def test_soon_after_news_then_ever_less_often() -> None:
    soon = timer()
    assert wait(soon, SyncTrigger.CONTENT, 0) < 1_300
    waits = [wait(soon, SyncTrigger.SYNC, 1_000 * number) for number in range(1, 9)]
    assert 1_800 <= waits[0] <= 3_200
    assert all(27_000 <= later <= 31_000 for later in waits[4:])
    assert wait(soon, SyncTrigger.CONTENT, 60_000) < 1_300


def test_between_two_acknowledgements_come_at_once() -> None:
    assert wait(timer(others=1), SyncTrigger.CONTENT, 0) == 60


def test_whoever_spoke_waits_longer_and_one_own_sync_is_one_stage() -> None:
    soon = timer()
    soon.restart(SyncTrigger.CONTENT, 0)
    assert wait(soon, SyncTrigger.OWN_SYNC, 500) >= 3_600
    soon.restart(SyncTrigger.OWN_SYNC, 500)
    assert soon.stage == 1


def test_who_heard_nobody_yet_waits_as_documented() -> None:
    soon, now_ms = timer(others=0), 0
    assert wait(soon, SyncTrigger.START, now_ms) < 9_000
    for spoke, intervals in (
        *((SyncTrigger.OWN_SYNC, 4), (SyncTrigger.OWN_SYNC, 8), (SyncTrigger.OWN_SYNC, 8)),
        *((SyncTrigger.OWN_CONTENT, 0.75), (SyncTrigger.OWN_SYNC, 4)),
    ):
        now_ms = soon.due_ms or 0
        for _ in range(2 if spoke is SyncTrigger.OWN_SYNC else 1):  # one own sync counts once
            assert 0.8 * intervals <= wait(soon, spoke, now_ms) / 30_000 <= 1.2 * intervals


def test_requests_put_a_sync_off_some_times_and_no_more() -> None:
    soon = timer()
    soon.restart(SyncTrigger.SYNC, 0)
    waits = [wait(soon, SyncTrigger.REQUEST, 1_000 * number) for number in range(1, PATIENCE + 1)]
    assert waits[0] >= 3_600 and waits[-1] >= 27_000
    due_ms = soon.due_ms
    for number in range(20):
        soon.restart(SyncTrigger.REQUEST, 1_000 * (PATIENCE + number))
    assert soon.due_ms == due_ms


@pytest.mark.parametrize("heard", [SyncTrigger.SYNC, SyncTrigger.OWN_SYNC, SyncTrigger.CONTENT])
def test_a_turn_or_news_lets_requests_put_syncs_off_again(heard: SyncTrigger) -> None:
    soon = timer()
    for number in range(PATIENCE + 5):
        soon.restart(SyncTrigger.REQUEST, number)
    soon.restart(heard, 1_000)
    due_ms = soon.due_ms
    soon.restart(SyncTrigger.REQUEST, 40_000)
    assert soon.due_ms is not None and due_ms is not None and soon.due_ms > due_ms


def test_a_stream_does_not_put_its_acknowledgement_off() -> None:
    soon = timer()
    soon.restart(SyncTrigger.CONTENT, 0)
    due_ms = soon.due_ms
    assert due_ms is not None
    for now_ms in range(10, due_ms, 10):
        soon.restart(SyncTrigger.MORE_CONTENT, now_ms)
        assert soon.due_ms == due_ms
    soon.restart(SyncTrigger.OWN_SYNC, due_ms)
    assert wait(soon, SyncTrigger.MORE_CONTENT, due_ms + 10) < 1_300
    assert soon.stage == 0


def test_what_was_missed_is_no_news() -> None:
    soon = timer()
    soon.restart(SyncTrigger.SYNC, 0)
    due_ms = soon.due_ms
    soon.restart(SyncTrigger.MISSED_CONTENT, 100)
    assert soon.due_ms == due_ms


def test_who_lacks_something_is_answered_soon_but_not_without_end() -> None:
    soon, moved = timer(), 0
    for _ in range(20):
        for _ in range(6):
            soon.restart(SyncTrigger.SYNC, 1_000)
        before_ms = soon.due_ms
        soon.prompt(1_000)
        moved += soon.due_ms != before_ms
    assert moved == PROMPTS


def test_no_interval_no_syncs() -> None:
    soon = timer(interval_ms=0)
    for heard in SyncTrigger:
        soon.restart(heard, 0)
    soon.prompt(0)
    assert soon.due_ms is None


def test_a_newcomer_waits_as_if_in_a_large_group_before_it_speaks() -> None:
    """For one D, and then for a draw that most of a thousand would have beyond that."""
    waits = []
    for seed in range(20):
        observations = Observations()
        observations.heard, observations.delays.scale_ms = 1, 300
        waits.append(
            wait(AdaptiveSyncTimer(30_000, observations, Random(seed).random), SyncTrigger.START, 0)
        )
    assert min(waits) >= 300
    assert 300 * 7 < sorted(waits)[10] <= max(waits) <= 300 * 9


def test_logs_are_compared_from_the_second_sync_after_news_on() -> None:
    soon = timer()
    assert not soon.is_long
    for heard, is_long in (
        *((SyncTrigger.SYNC, False), (SyncTrigger.SYNC, True), (SyncTrigger.CONTENT, False)),
        *(
            (SyncTrigger.SYNC, False),
            (SyncTrigger.OWN_SYNC, True),
            (SyncTrigger.OWN_CONTENT, False),
        ),
        *((SyncTrigger.SYNC, True), (SyncTrigger.MISSED_CONTENT, True)),
    ):
        soon.restart(heard, 100)
        assert soon.is_long is is_long, heard


def test_after_an_own_message_the_wait_is_of_the_first_stage() -> None:
    soon = timer()
    for _ in range(6):
        soon.restart(SyncTrigger.SYNC, 0)
    assert 1_800 <= wait(soon, SyncTrigger.OWN_CONTENT, 1_000) <= 3_200


def test_who_is_asked_to_speak_does_so_soon_and_not_at_once() -> None:
    soon = timer()
    for _ in range(6):
        soon.restart(SyncTrigger.SYNC, 1_000)
    soon.prompt(1_000)
    assert soon.due_ms is not None and 60 <= soon.due_ms - 1_000 < 1_300


def test_who_gives_way_to_other_implementations_waits_longer_than_they_do() -> None:
    soon = timer()
    soon.gives_way = True
    for _ in range(6):
        soon.restart(SyncTrigger.SYNC, 0)
    assert wait(soon, SyncTrigger.SYNC, 0) >= 36_000


@pytest.mark.parametrize("spoke", [SyncTrigger.OWN_SYNC, SyncTrigger.OWN_CONTENT])
def test_who_gives_way_takes_its_turn_after_as_many_syncs_as_there_are_others(
    spoke: SyncTrigger,
) -> None:
    soon = timer(others=8)
    soon.gives_way = True
    for turn in range(2):
        waits = [wait(soon, SyncTrigger.SYNC, 100_000 * turn) for _ in range(8)]
        assert waits[6] >= 0.9 * waits[7] * 36 / 30 and waits[7] <= 31_000
        assert wait(soon, spoke, 100_000 * turn) > 1_000
