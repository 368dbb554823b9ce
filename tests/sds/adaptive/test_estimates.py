"""What is measured, without clocks that agree."""

from random import Random

import pytest

from reliable_channel.sds.adaptive.estimates import (
    REMEMBERED,
    UNPROVEN,
    CopyGuard,
    Crowd,
    Delays,
    Losses,
    Observations,
)
from reliable_channel.sds.adaptive.law import MAX_COPIES, Measured, copies
from reliable_channel.sds.ids import js_waku_id, reliable_channel_id
from reliable_channel.sds.message import Message


def scale(offset_ms: int = 0, *, trips: bool = False, samples: int = 200) -> float:
    random, delays = Random(7), Delays()
    for _ in range(samples):
        delays.add(random.randint(20, 300) + offset_ms)
        if trips:
            delays.add_round_trip(random.randint(20, 300) + random.randint(20, 300) + 60)
    return delays.scale_ms


def test_the_scale_is_a_typical_delay_and_twice_its_deviation() -> None:
    assert scale() == pytest.approx(300, rel=0.2)
    assert scale(trips=True) == pytest.approx(300, rel=0.2)


@pytest.mark.parametrize("offset_ms", [-600_000, -5_000, 5_000, 600_000])
@pytest.mark.parametrize("trips", [False, True])
def test_a_wrong_clock_changes_the_scale_by_half_at_most(offset_ms: int, *, trips: bool) -> None:
    assert scale() / 1.5 <= scale(offset_ms, trips=trips) <= 1.5 * scale()


def test_round_trips_show_that_a_clock_is_a_little_wrong() -> None:
    assert scale(1_000, trips=True) <= 1.5 * scale()


def test_one_peer_with_a_wrong_clock_changes_little() -> None:
    random, delays = Random(7), Delays()
    for number in range(300):
        delays.add(random.randint(20, 300) + (600_000 if number % 10 == 0 else 0))
    assert delays.scale_ms == pytest.approx(300, rel=0.25)


def test_a_clock_that_is_set_is_followed() -> None:
    random, delays = Random(7), Delays()
    for number in range(300):
        delays.add(random.randint(20, 300) + (0 if number < 100 else 3_600_000))
    assert delays.scale_ms == pytest.approx(300, rel=0.4)


def test_of_clocks_that_disagree_those_that_agree_with_the_own_one_count() -> None:
    for own_ms in (-600_000, 0, 600_000):
        random, delays = Random(7), Delays()
        for _ in range(300):
            offset_ms = random.choice((-600_000, 0, 600_000)) - own_ms
            delays.add(random.randint(20, 300) + offset_ms)
            delays.add_round_trip(random.randint(400, 1_000))
        assert delays.scale_ms == pytest.approx(300, rel=0.25)


def test_clocks_that_are_off_by_some_seconds_change_little() -> None:
    random, delays = Random(7), Delays()
    for _ in range(300):
        delays.add(random.randint(20, 300) + random.choice((-4_000, 0, 4_000)))
    assert delays.scale_ms == pytest.approx(300, rel=0.25)


def message(number: int, sender_id: str = "ada") -> tuple[Message, int]:
    at_ns, content = 1_000_000_000 + number, f"{number}".encode()
    message_id = reliable_channel_id(sender_id, at_ns, content)
    return Message(sender_id, message_id, "c", 1, content=content), at_ns


def test_loss_is_that_of_first_copies_whatever_the_lamport_clock_says() -> None:
    random, losses = Random(7), Losses()
    for number in range(2_000):
        said, at_ns = message(number)
        is_first = random.random() >= 0.2
        losses.arrived(said, at_ns if is_first else at_ns + 300_000_000, is_late=False)
    assert losses.share == pytest.approx(0.2, abs=0.1)
    assert losses.share < losses.cautious < losses.share + 0.05


def test_a_sender_is_counted_from_its_first_message() -> None:
    losses = Losses()
    for number in range(200):
        said, at_ns = message(number, f"p{number}")
        losses.arrived(said, at_ns + (number % 2), is_late=False)
    assert losses.share == pytest.approx(0.5, abs=0.15)


def test_what_was_missed_is_lost_however_it_comes() -> None:
    losses = Losses()
    for number in range(100):
        losses.arrived(*message(number), is_late=True)
    assert losses.share > 0.9


def test_ids_that_prove_nothing_are_not_counted() -> None:
    losses = Losses()
    for number in range(100):
        content = f"{number}".encode()
        losses.arrived(
            Message("js", js_waku_id("js", 0, content), "c", 1, content=content), 5, is_late=False
        )
        losses.arrived(Message("nim", f"id {number}", "c", 1, content=content), 5, is_late=False)
    assert losses.samples == 4


def test_a_crowd_is_noticed_by_who_speaks_in_one_round_and_forgotten_again() -> None:
    crowd = Crowd()
    for number in range(40):
        crowd.sync_heard(f"p{number}", 1_000, 600)
    assert crowd.factor == 16
    for second in range(2, 400):
        crowd.sync_heard("p1", 1_000 * second, 600)
    assert crowd.factor == 1


def test_one_participant_that_repeats_itself_is_no_crowd() -> None:
    crowd = Crowd()
    for _ in range(100):
        crowd.sync_heard("p1", 1_000, 600)
    assert crowd.factor == 1


def test_copies_are_tried_without_where_loss_rose_after_them() -> None:
    observations, guard = Observations(), CopyGuard()
    observations.heard = 19
    observations.losses.share = 0.1
    low = observations.measured()
    observations.losses.share = 0.4
    high = observations.measured()
    assert guard.copies(low, 32) > 1
    assert guard.copies(high, 64) == 1  # a trial
    assert guard.copies(low, 96) == 2  # loss fell: congestion
    again = CopyGuard()
    assert again.copies(low, 32) > 1
    assert again.copies(high, 64) == 1
    assert again.copies(high, 96) > 2  # it did not: chance
    assert again.copies(high, 128) > 2


def test_the_scale_is_measured_at_first_with_each_sample_and_then_with_each_eighth() -> None:
    delays, scales = Delays(), []
    for _ in range(40):
        delays.add(100)
        scales.append(round(delays.scale_ms))
    # The prior of 500 ms counts as four samples, until there are 32.
    expected = [(100 * n + 500 * 4) / (n + 4) for n in range(1, 9)]
    assert scales[:7] == [round(each) for each in expected[:7]]
    changed = [n for n in range(7, 40) if scales[n] != scales[n - 1]]
    assert changed == [14, 22, 30, 38]
    assert scales[38] == 100


def test_a_scale_has_bounds() -> None:
    for delay_ms, scale_ms in ((0, 50), (1, 50), (2_999, 2_999)):
        delays = Delays()
        for _ in range(64):
            delays.add(delay_ms)
        assert delays.scale_ms == scale_ms
    random, delays = Random(7), Delays()
    for _ in range(64):
        delays.add(random.randint(0, 3_000))
    assert delays.scale_ms == 3_000


def test_an_answer_at_once_is_no_round_trip() -> None:
    delays = Delays()
    for _ in range(16):
        delays.add_round_trip(0)
    for _ in range(64):
        delays.add(100)
    assert delays.scale_ms == 100


def test_where_clocks_disagree_half_a_round_trip_is_the_delay() -> None:
    delays = Delays()
    for took_ms in (900, 300, 400, 900):
        delays.add_round_trip(took_ms)
    for _ in range(64):
        delays.add(-600_000)
    assert delays.scale_ms == 200  # of the shorter ones of them


def test_what_says_nothing_of_when_it_was_sent_is_not_counted() -> None:
    losses, (said, at_ns) = Losses(), message(1)
    losses.arrived(said, None, is_late=True)
    losses.arrived(Message("ada", "sync", "c", 1), at_ns, is_late=True)
    assert losses.samples == 0


def test_the_prior_of_loss_counts_as_four_samples() -> None:
    losses = Losses()
    losses.arrived(*message(1), is_late=False)
    assert losses.share == pytest.approx(0.15 * 4 / 5)
    losses.arrived(*message(2), is_late=True)
    assert losses.share == pytest.approx((0.15 * 4 + 1) / 6)
    assert losses.cautious == pytest.approx(
        losses.share + 0.5 * (losses.share * (1 - losses.share) / 32) ** 0.5
    )


def test_a_sender_that_once_proved_something_is_counted_for_ever() -> None:
    losses, (said, at_ns) = Losses(), message(0)
    losses.arrived(said, at_ns, is_late=False)
    for number in range(1, 20):
        said, at_ns = message(number)
        losses.arrived(said, at_ns + 1, is_late=False)
    assert losses.samples == 20


def test_of_a_crowd_as_many_count_as_speak_in_one_round() -> None:
    for speakers, factor in ((8, 1.0), (9, 2.0)):
        crowd = Crowd()
        for number in range(speakers):
            crowd.sync_heard(f"p{number}", 1_000, 600)
        assert crowd.factor == factor
    for number in range(6):  # three in the round before, and three now
        crowd.sync_heard(f"p{number}", 1_300 if number < 3 else 1_600, 600)
    assert crowd.factor == 2.0 * 0.98


def test_a_busy_round_does_not_shrink_a_crowd() -> None:
    crowd = Crowd()
    for number in range(9):
        crowd.sync_heard(f"p{number}", 1_000, 600)
    for second in range(2, 10):
        for number in range(6):
            crowd.sync_heard(f"p{number}", 1_000 * second, 600)
    assert crowd.factor == 2.0 * 0.98  # the first round, in which nobody spoke after the nine


def test_a_group_is_what_was_heard_times_the_crowd_and_a_pair_is_never_one() -> None:
    observations = Observations()
    observations.crowd.factor = 4.0
    for heard, others in ((0, 1), (1, 1), (2, 8), (5, 20)):
        observations.heard = heard
        assert observations.measured().others == others
    losses = observations.losses
    assert observations.measured().loss == losses.cautious
    observations.heard = 1
    assert observations.measured().loss == losses.share


def test_who_has_heard_nobody_sends_copies_as_to_one() -> None:
    nobody, one = Observations(), Observations()
    one.heard = 1
    assert nobody.measured() == one.measured()
    assert nobody.copies() == one.copies() == CopyGuard().copies(one.measured(), 0)


def lossy(share: float) -> Measured:
    return Measured(300, share, 19)


def test_copies_are_looked_at_every_thirty_two_samples() -> None:
    guard = CopyGuard()
    assert guard.copies(lossy(0.1), 31) > 1
    assert guard.copies(lossy(0.4), 32) > 1  # the first look: nothing to compare with
    for samples in (33, 63):
        assert guard.copies(lossy(0.9), samples) > 1
    assert guard.copies(lossy(0.9), 64) == 1
    assert guard.copies(lossy(0.1), 95) == 1
    assert guard.copies(lossy(0.1), 96) == 2


@pytest.mark.parametrize(("after", "most"), [(0.40, MAX_COPIES), (0.33, MAX_COPIES), (0.31, 2)])
def test_congestion_is_what_halves_the_rise(after: float, most: int) -> None:
    guard = CopyGuard()
    guard.copies(lossy(0.1), 32)
    assert guard.copies(lossy(0.25), 64) > 1  # a rise as large as it may be
    assert guard.copies(lossy(0.40), 96) == 1
    assert guard.copies(lossy(after), 128) == copies(lossy(after), most)


def test_after_congestion_copies_come_back() -> None:
    guard = CopyGuard()
    for samples, loss in ((32, 0.1), (64, 0.4)):
        guard.copies(lossy(loss), samples)
    assert guard.copies(lossy(0.2), 96) == 2
    assert guard.copies(lossy(0.2), 128) == copies(lossy(0.2)) > 2


def test_of_too_many_senders_the_one_that_was_first_is_forgotten() -> None:
    losses = Losses()
    for number in range(REMEMBERED + 1):
        losses.arrived(*message(number, f"p{number}"), is_late=False)
    for sender_id, counted in ((f"p{REMEMBERED}", 2 * UNPROVEN), ("p0", UNPROVEN)):
        before = losses.samples
        for number in range(2 * UNPROVEN):
            said, at_ns = message(10_000 + number, sender_id)
            losses.arrived(said, at_ns + 1, is_late=False)
        assert losses.samples - before == counted
