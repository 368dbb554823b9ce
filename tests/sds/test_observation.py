"""What is measured, without clocks that agree."""

from random import Random

import pytest

from reliable_channel.sds.ids import js_waku_id, reliable_channel_id
from reliable_channel.sds.message import Message
from reliable_channel.sds.observation import CopyGuard, Crowd, Delays, Losses, Observations


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
