"""References that a newcomer takes for messages from before it joined."""

from reliable_channel.sds.changes import Recorder
from reliable_channel.sds.message import HistoryEntry
from reliable_channel.sds.references.incoming import MissingEntry
from reliable_channel.sds.references.joining import PRESUMED, Joining
from reliable_channel.sds.states import Trigger


def joining(limit: int = 10, recorder: Recorder | None = None) -> Joining:
    made = Joining(limit, recorder or Recorder())
    made.start(wanted_from=50, presume_until_ms=1_000)
    return made


def test_a_join_outlives_a_restart() -> None:
    joining(recorder=(recorder := Recorder()))
    rows = recorder.take().rows
    assert set(rows.values()) == {("wanted_from", 50), ("presume_until_ms", 1_000)}


def test_what_is_older_than_the_join_is_not_wanted() -> None:
    made = joining()
    assert made.wanted_from == 50


def test_references_are_presumed_earlier_for_a_while() -> None:
    made = joining()
    assert made.is_earlier(HistoryEntry("a"), 999)
    assert not made.is_earlier(HistoryEntry("b"), 1_000)
    assert made.is_earlier(HistoryEntry("a"), 1_000)
    assert "a" in made and "b" not in made


def test_the_oldest_make_room_and_stay_known() -> None:
    made = joining(limit=2)
    for name in "abc":
        made.is_earlier(HistoryEntry(name), 0)
    assert list(made.presumed) == ["b", "c"]
    assert made.known({"a": 1, "b": 1, "d": 1}.keys()) == {"a", "b"}


def test_what_is_not_found_in_time_is_not_looked_for_any_more() -> None:
    made = joining()
    made.is_earlier(HistoryEntry("a"), 0)
    made.is_earlier(HistoryEntry("b"), 1)
    made.expire(100, 99)
    assert list(made.presumed) == ["b"]
    assert "a" in made.historic


def test_each_change_of_what_a_message_is_is_noted() -> None:
    moves: list[tuple[str, Trigger]] = []
    made = Joining(2, on_transition=lambda message_id, event: moves.append((message_id, event)))
    made.start(wanted_from=50, presume_until_ms=1_000)
    for name in "abca":
        made.is_earlier(HistoryEntry(name), 0)
    made.expire(100, 99)
    assert moves == [
        ("a", Trigger.REFERENCED_JOINING),
        ("b", Trigger.REFERENCED_JOINING),
        ("c", Trigger.REFERENCED_JOINING),
        ("a", Trigger.LIMIT),
        ("b", Trigger.TIMEOUT),
        ("c", Trigger.TIMEOUT),
    ]


def test_what_arrived_is_presumed_no_more() -> None:
    recorder = Recorder()
    made = joining(recorder=recorder)
    made.is_earlier(HistoryEntry("a"), 0)
    recorder.take()
    made.arrived("a")
    assert "a" not in made
    assert recorder.take().rows == {(PRESUMED, "a"): None}
    made.arrived("a")
    assert not recorder.take()


def test_it_goes_on_after_a_restart() -> None:
    rows = [MissingEntry(HistoryEntry(name), since).row for name, since in (("b", 7), ("a", 3))]
    made = Joining(10)
    made.restore(50, 1_000, {PRESUMED.name: rows})
    assert made.wanted_from == 50
    assert made.presumes(999) and not made.presumes(1_000)
    assert list(made.presumed) == ["a", "b"]
