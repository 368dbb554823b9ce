"""A view of a channel: what stands at which time, and what is forgotten."""

from collections.abc import Sequence

from reliable_channel_watch.model import View
from reliable_channel_watch.values import Lamp, Limits

HASH = bytes(32)


def passes(
    view: View, name: str, sender: str, at_ms: int, after: Sequence[str] = (), **values: int
) -> None:
    view.passed(
        name,
        sender,
        at_ms,
        references=after,
        has_content=True,
        lamport_timestamp=at_ms,
        size_bytes=100,
        hint=HASH,
        sent_ms=values.get("sent_ms", at_ms),
    )


def test_a_message_keeps_when_it_was_sent_reached_each_participant_and_failed() -> None:
    view = View()
    for at_ms, name in enumerate(("alice", "bob", "carol")):
        view.opened(name, at_ms)
    view.entered_log("alice", "m", "alice", 10)
    passes(view, "m", "alice", 20)
    view.went_out("alice", "m", "content", 20)
    view.entered_log("bob", "m", "alice", 30)
    passes(view, "reply", "carol", 40, after=["m"])
    view.has_failed("alice", "m", 50, "no peer answers")
    message = view.message("m")
    assert message is not None
    assert (message.at_ms, message.sent_ms, message.failed_ms) == (10, 20, 50)
    assert list(message.reached) == [30, 1, 40, 2]


def test_a_participant_has_what_it_refers_to_and_what_that_follows() -> None:
    view = View()
    view.opened("carol", 0)
    passes(view, "1", "alice", 1)
    passes(view, "2", "bob", 2, after=["1"])
    passes(view, "3", "alice", 3, after=["1", "2"])
    passes(view, "4", "carol", 4, after=["3"])
    first, third = view.message("1"), view.message("3")
    assert first is not None and third is not None
    assert view.holders(first) == (["carol", "bob"], [])
    assert [view.messages[number].message_id for number in third.parents] == ["2"]
    assert [view.messages[number].message_id for number in first.children] == ["2"]


def test_the_times_of_many_holders_are_thinned_and_their_number_stays_right() -> None:
    view = View()
    view.opened("alice", 0)
    view.entered_log("alice", "m", "alice", 0)
    for number in range(300):
        view.opened(f"peer {number}", 0)
    for number in range(300):
        view.entered_log(f"peer {number}", "m", "alice", 1_000 + number)
    message = view.message("m")
    assert message is not None and len(message.reached) < 2 * 24
    counts = dict(zip(message.reached[::2], message.reached[1::2], strict=True))
    assert counts[1_004] == 5
    assert 100 < max(count for at_ms, count in counts.items() if at_ms <= 1_149) <= 150
    assert counts[1_299] == message.count == 300


def test_a_clock_that_is_wrong_moves_no_message_far() -> None:
    view = View()
    passes(view, "late", "alice", 1_000_000, sent_ms=999_000)
    passes(view, "ancient", "mallory", 1_000_000, sent_ms=0)
    passes(view, "future", "mallory", 1_000_000, sent_ms=2**60)
    assert [message.at_ms for message in view.messages.values()] == [999_000, 1_000_000, 1_000_000]


def test_a_gap_lasts_until_the_message_comes_or_is_lost_and_says_who_is_asked() -> None:
    view = View()
    view.is_missing("bob", "m", 10, sender="alice", hint=HASH)
    view.is_missing("bob", "n", 10, sender=None, hint=None)
    first, second = view.gaps.values()
    view.asked_others("bob", ["m", "unknown"], 20)
    view.asked_others("bob", ["m"], 30)
    assert first.asked(15) == "Store, by its hint; the others are not asked yet"
    assert first.asked(25) == "Store, by its hint; all others, once; alice answers first"
    assert "2 times" in first.asked(30)
    assert second.asked(30).startswith("Store, by time")
    view.entered_log("bob", "m", "alice", 40)
    view.was_lost("bob", "n", 50)
    assert (first.until_ms, first.is_lost) == (40, False)
    assert (second.until_ms, second.is_lost) == (50, True)


def test_lamps_are_asked_about_any_time() -> None:
    view = View()
    view.lamp("alice", "", Lamp.SEND, 10, is_on=True)
    view.lamp("alice", "", Lamp.SEND, 20, is_on=False, why="refused")
    view.lamp("alice", "", Lamp.SEND, 25, is_on=False, why="refused")
    service = view.lamps[0, ""][Lamp.SEND]
    assert len(service.changes) == 2
    assert [service.at(at_ms) for at_ms in (9, 10, 20)] == [None, (True, ""), (False, "refused")]


def test_bytes_that_are_seen_twice_count_once() -> None:
    view = View()
    view.traffic(b"1", 900, 300, 1_000)
    view.traffic(b"1", 900, 300, 1_100)
    view.traffic(b"2", 100, 0, 2_000)
    assert list(view.seconds()) == [(2, 100, 0), (1, 900, 300)]


def test_a_flood_makes_the_view_forget_and_never_grow() -> None:
    limits = Limits(messages=10, participants=3, gaps=4, receptions=5, nodes=2, seconds=3)
    view = View(limits)
    for number in range(50):
        passes(view, f"m{number}", f"sender {number % 2}", number, after=[f"m{number - 1}"])
        passes(view, f"x{number}", f"flood {number}" * 1_000, number)
        view.entered_log("reader", f"m{number}", "sender 0", number)
        view.is_missing("reader", f"lost {number}", number, sender=None, hint=None)
        view.lamp("reader", f"node {number}", Lamp.SEND, number, is_on=True)
        view.traffic(b"%d" % number, 1, 0, number * 1_000)
    assert len(view.messages) == 10 and len(view.lanes) == 3 and len(view.gaps) == 4
    assert len(view.lamps) == 2 and len(list(view.seconds())) == 3
    assert max(len(lane.name) for lane in view.lanes) <= limits.name_characters
    newest = view.message("m49")
    assert newest is not None and len(list(view.receptions(newest))) == 1
    assert view.forgotten > 40
