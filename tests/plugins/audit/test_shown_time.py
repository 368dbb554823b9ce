"""Times as text, also those of a journal in another unit."""

from reliable_channel_audit.shown_time import shown_moment, shown_time


def test_a_time_beyond_the_calendar_is_its_number() -> None:
    assert shown_moment(1_700_000_000_123) == "2023-11-14 22:13:20.123"
    assert shown_moment(1_700_000_000_000_000_000) == "1700000000000000000 ms"
    assert shown_time(-(10**18), "%H:%M") == "-1000000000000000000 ms"
