"""What lasts too long, by the clock on the wall."""

from itertools import count

from reliable_channel_audit.lines import CLOSED, LOGGED, OPENED, Line
from reliable_channel_audit.live_audit.alarms import MOST_OPEN, Alarm, Followed, alarms

WHOSE = ("general", "alice")


def own(message_id: str, at_ms: int) -> Line:
    return Line(LOGGED, at_ms, message_id, first_segment_id=message_id)


def raised(of: Followed, now_ms: int, ahead_ms: int = 0) -> list[Alarm]:
    return list(alarms({WHOSE: of}, now_ms, patience_ms=100, ahead_ms={WHOSE: ahead_ms}))


def test_no_line_need_come() -> None:
    of = Followed()
    of.add(Line(OPENED, 0))
    for number in range(3):
        of.add(own(str(number), 10 * number))
    assert raised(of, 100) == []
    late = Alarm("unacknowledged", *WHOSE, 2, "0", 0)
    silent = Alarm("silent", *WHOSE, 0, "", 20)
    assert raised(of, 115) == [late]
    assert raised(of, 121)[0].messages == 3
    assert silent in raised(of, 121)


def test_what_is_resolved_is_no_alarm() -> None:
    of = Followed()
    for line in (
        own("a", 0),
        own("f", 0),
        Line("message_missing", 0, message_ids=["m", "l"]),
        Line("message_acknowledged", 50, "a"),
        Line("delivery_failed", 50, "f"),
        Line(LOGGED, 150, "m"),
    ):
        of.add(line)
    assert raised(of, 150) == [Alarm("missing", *WHOSE, 1, "l", 0)]
    of.add(Line("message_lost", 160, "l"))
    assert raised(of, 160) == []


def test_of_a_participant_that_has_left_nothing_is_expected() -> None:
    of = Followed()
    of.add(own("a", 0))
    of.add(Line(CLOSED, 1))
    assert raised(of, 10_000) == []
    of.add(Line(OPENED, 10_000))
    assert [each.kind for each in raised(of, 10_001)] == ["unacknowledged"]


def test_a_clock_that_is_ahead_or_behind_raises_nothing_early_or_late() -> None:
    of = Followed()
    of.add(own("a", 1_000))
    assert raised(of, 50, ahead_ms=1_000) == []
    assert raised(of, 150, ahead_ms=1_000) != []


def test_watched_messages_are_bounded() -> None:
    of, numbers = Followed(), count()
    for number in range(MOST_OPEN + 5):
        of.add(own(str(next(numbers)), number))
    assert len(of.open) == MOST_OPEN
    assert next(iter(of.open)) == "5"
