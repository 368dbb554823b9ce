"""The outbox: what goes first, and what is dropped."""

from itertools import permutations

import pytest

from reliable_channel.engine.outbox import CONTROL_LIMIT, EPHEMERAL_LIMIT, FRESH_NS, Growth, Outbox
from reliable_channel.sds.events import Outgoing, OutgoingKind
from tests.sds.test_restoring import Kept
from tests.sds.world import NOW_MS


def outgoing(kind: OutgoingKind, message_id: str) -> Outgoing:
    return Outgoing(kind, message_id, b"data")


def take_all(outbox: Outbox) -> list[str]:
    taken = []
    while len(outbox):
        item = outbox.take()
        taken.append(item.outgoing.message_id)
        outbox.done(item)
    return taken


def test_content_goes_first_in_the_order_it_was_sent() -> None:
    outbox = Outbox()
    for kind in reversed(OutgoingKind):
        for number in (1, 2):
            outbox.put(outgoing(kind, f"{kind.value}-{number}"))
    assert take_all(outbox) == [
        "content-1", "content-2", "sync-2", "control-1", "retry-1", "repair-1", "ephemeral-1",
        "control-2", "retry-2", "repair-2", "ephemeral-2",
    ]  # fmt: skip


def test_a_transport_that_is_slower_than_syncs_come_still_takes_what_is_repeated() -> None:
    outbox = Outbox()
    for message_id in ("a", "b"):
        outbox.put(outgoing(OutgoingKind.RETRY, message_id))
        outbox.put(outgoing(OutgoingKind.REPAIR, f"of another {message_id}"))
    taken = []
    for number in range(7):
        outbox.put(outgoing(OutgoingKind.SYNC, f"s{number}"))
        item = outbox.take()
        taken.append(item.outgoing.message_id)
        outbox.done(item)
    assert taken == ["s0", "a", "of another a", "s3", "b", "of another b", "s6"]


def test_content_keeps_everything_else_waiting() -> None:
    outbox = Outbox()
    outbox.put(outgoing(OutgoingKind.SYNC, "s"))
    outbox.put(outgoing(OutgoingKind.RETRY, "a"))
    outbox.done(outbox.take())
    outbox.put(outgoing(OutgoingKind.CONTENT, "new"))
    assert take_all(outbox) == ["new", "a"]


def test_the_same_message_waits_once() -> None:
    outbox = Outbox()
    for _ in range(2):
        outbox.put(outgoing(OutgoingKind.RETRY, "a"))
        outbox.put(outgoing(OutgoingKind.SYNC, "s"))
    assert take_all(outbox) == ["s", "a"]


def test_a_sync_in_hand_does_not_keep_the_next_one_out() -> None:
    outbox = Outbox()
    outbox.put(outgoing(OutgoingKind.SYNC, "s1"))
    item = outbox.take()
    outbox.put(outgoing(OutgoingKind.SYNC, "s2"))
    outbox.put(outgoing(OutgoingKind.SYNC, "s3"))
    outbox.done(item)
    assert take_all(outbox) == ["s3"]


def test_what_is_put_back_takes_its_old_place() -> None:
    outbox = Outbox()
    for message_id in "abc":
        outbox.put(outgoing(OutgoingKind.CONTENT, message_id))
    outbox.put_back(outbox.take())
    assert take_all(outbox) == ["a", "b", "c"]


def test_messages_that_are_put_back_in_any_order_take_their_old_places() -> None:
    for order in permutations(range(4)):
        outbox = Outbox()
        for message_id in "abcdefg":
            outbox.put(outgoing(OutgoingKind.CONTENT, message_id))
        items = [outbox.take() for _ in range(5)]
        for place in order:
            outbox.put_back(items[place])
        outbox.done(items[4])
        assert take_all(outbox) == ["a", "b", "c", "d", "f", "g"]


def test_a_newer_retry_takes_the_place_of_one_that_is_put_back() -> None:
    outbox = Outbox()
    outbox.put(outgoing(OutgoingKind.RETRY, "a"))
    item = outbox.take()
    outbox.put(outgoing(OutgoingKind.RETRY, "a"))
    assert not outbox.put_back(item)
    assert take_all(outbox) == ["a"]


def test_a_cancelled_message_waits_no_more() -> None:
    outbox = Outbox()
    for kind in OutgoingKind:
        outbox.put(outgoing(kind, "a"))
    outbox.put(outgoing(OutgoingKind.CONTENT, "b"))
    outbox.cancel("a")
    assert (outbox.queued, len(outbox)) == (5, 5)
    in_hand = outbox.take()
    assert in_hand.outgoing.message_id == "b"
    outbox.cancel("b")
    assert outbox.oldest_ms(1_000) == 0
    assert not outbox.put_back(in_hand)
    assert outbox.waiting() == dict.fromkeys(("sync", "control", "repair", "ephemeral"), 1)


@pytest.mark.parametrize("kind", OutgoingKind)
def test_every_kind_can_be_put_back(kind: OutgoingKind) -> None:
    outbox = Outbox()
    outbox.put(outgoing(kind, "a"))
    outbox.put_back(outbox.take())
    assert take_all(outbox) == ["a"]


def test_what_is_in_hand_counts_until_it_is_done() -> None:
    outbox = Outbox()
    outbox.put(outgoing(OutgoingKind.CONTENT, "a"), 100)
    item = outbox.take()
    outbox.put(outgoing(OutgoingKind.CONTENT, "b"), 130)
    assert (len(outbox), outbox.in_hand, outbox.oldest_ms(150)) == (2, 1, 50)
    outbox.done(item)
    assert (len(outbox), outbox.in_hand, outbox.oldest_ms(150)) == (1, 0, 20)


def test_what_never_went_out_is_listed_in_order() -> None:
    outbox = Outbox()
    outbox.put(outgoing(OutgoingKind.SYNC, "s"))
    for message_id in "cab":
        outbox.put(outgoing(OutgoingKind.CONTENT, message_id))
    assert [message.message_id for message in outbox.undispatched()] == ["c", "a", "b"]


@pytest.mark.parametrize(
    ("kind", "limit"),
    [(OutgoingKind.EPHEMERAL, EPHEMERAL_LIMIT), (OutgoingKind.CONTROL, CONTROL_LIMIT)],
)
def test_what_is_of_use_for_a_moment_does_not_pile_up(kind: OutgoingKind, limit: int) -> None:
    outbox = Outbox()
    for number in range(limit + 3):
        outbox.put(outgoing(kind, str(number)))
    taken = take_all(outbox)
    assert (taken[0], len(taken)) == ("3", limit)


@pytest.mark.parametrize(("newer", "goes"), [(["s2"], "s2"), (["s2", "s3"], "s3")])
def test_a_sync_that_is_put_back_makes_room_for_a_newer_one(newer: list[str], goes: str) -> None:
    outbox = Outbox()
    outbox.put(outgoing(OutgoingKind.SYNC, "s1"))
    item = outbox.take()
    outbox.put(outgoing(OutgoingKind.SYNC, newer[0]))
    outbox.put_back(item)
    for message_id in newer[1:]:
        outbox.put(outgoing(OutgoingKind.SYNC, message_id))
    assert len(outbox) == 1
    assert take_all(outbox) == [goes]


def test_a_message_of_the_application_is_found_while_it_waits() -> None:
    outbox = Outbox()
    outbox.put(Outgoing(OutgoingKind.CONTENT, "first", b""))
    outbox.put(Outgoing(OutgoingKind.RETRY, "again", b""))
    outbox.put(Outgoing(OutgoingKind.REPAIR, "of another", b""))
    assert "first" in outbox and "again" in outbox
    assert "of another" not in outbox
    outbox.take()
    assert "first" not in outbox


def test_a_message_bears_the_time_of_its_id_while_that_is_fresh() -> None:
    outbox = Outbox()
    outbox.put(Outgoing(OutgoingKind.CONTENT, "first", b"", timestamp_ns=1_000))
    item = outbox.take()
    assert item.stamp_ns(FRESH_NS + 999) == 1_000
    assert item.stamp_ns(FRESH_NS + 1_000) == FRESH_NS + 1_000
    outbox.put(Outgoing(OutgoingKind.SYNC, "sync", b""))
    assert outbox.take().stamp_ns(7) == 7


def test_what_is_put_back_waits_once_and_is_found() -> None:
    outbox = Outbox()
    outbox.put(outgoing(OutgoingKind.CONTENT, "a"))
    outbox.put_back(outbox.take())
    assert "a" in outbox
    outbox.put(outgoing(OutgoingKind.CONTENT, "a"))
    assert outbox.waiting() == {"content": 1}
    assert take_all(outbox) == ["a"]


def test_who_closes_waits_for_what_the_application_sent_and_for_nothing_else() -> None:
    outbox = Outbox()
    outbox.put(outgoing(OutgoingKind.RETRY, "in hand"))
    in_hand = outbox.take()
    for kind in OutgoingKind:
        outbox.put(outgoing(kind, kind.value))
    outbox.close()
    outbox.put(outgoing(OutgoingKind.SYNC, "later"))
    outbox.put_back(in_hand)
    assert take_all(outbox) == ["content", "control", "ephemeral"]
    assert not outbox.queued


def test_a_message_of_before_a_restart_has_waited_since_it_was_sent() -> None:
    kept, outbox = Kept("alice", assembles_late=True), Outbox()
    alice = kept.begin()
    alice.send(b"hello", NOW_MS + 1_000)
    kept.write(alice)
    for each in kept.begin(NOW_MS + 30_000).outgoing:
        outbox.put(each, NOW_MS + 30_000)
    assert outbox.oldest_ms(NOW_MS + 40_000) == 39_000


def test_a_backlog_that_shrinks_does_not_grow() -> None:
    growth = Growth()
    sizes = [1, *range(1_000, 100, -5)]
    assert not any(growth.is_lasting(size, 1_000 * s) for s, size in enumerate(sizes))


def test_a_backlog_that_grows_again_after_a_burst_is_told() -> None:
    growth = Growth()
    sizes = [1, *range(1_000, 10, -10), *range(11, 30)]
    grown = [size for s, size in enumerate(sizes) if growth.is_lasting(size, 10_000 * s)]
    assert grown == [17, 23, 29]
