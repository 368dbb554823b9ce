"""How often something may happen."""

from reliable_channel.sds.pacing import Bucket


def test_a_bucket_gives_what_it_has_and_then_one_at_a_time() -> None:
    bucket = Bucket(3, 1_000)
    assert [bucket.take(0) for _ in range(4)] == [True, True, True, False]
    assert bucket.wait_ms(0) == 1_000
    assert bucket.wait_ms(400) == 600
    assert not bucket.take(999)
    assert bucket.take(1_000)
    assert not bucket.take(1_000)


def test_after_the_wait_there_is_a_token() -> None:
    bucket, now_ms = Bucket(1, 7), 0
    for _ in range(1_000):
        assert bucket.take(now_ms)
        now_ms += bucket.wait_ms(now_ms)


def test_a_clock_that_is_set_back_refills_nothing() -> None:
    bucket = Bucket(1, 1_000)
    assert bucket.take(1_000_000)
    assert not bucket.take(0)
    assert bucket.take(1_000)


def test_what_is_given_back_can_be_taken_and_no_more_than_there_was() -> None:
    bucket = Bucket(2, 1_000)
    bucket.give_back(0)
    assert [bucket.take(0) for _ in range(3)] == [True, True, False]
    bucket.give_back(0)
    assert [bucket.take(0) for _ in range(2)] == [True, False]
