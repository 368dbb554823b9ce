"""What is remembered from one look into Store to the next."""

from reliable_channel.engine.confirmation import AWAITED_LIMIT, LOOKS, SKEW_MS, Confirmation
from reliable_channel.engine.sync_core import Arrival, Outcome
from reliable_channel.sds.events import Outgoing, OutgoingKind

NOW_MS = 1_700_000_000_000


def confirmation() -> Confirmation:
    return Confirmation(interval_ms=30_000, now_ms=NOW_MS)


def sent(it: Confirmation, name: str, kind: OutgoingKind = OutgoingKind.CONTENT) -> bytes:
    it.dispatched(Outgoing(kind, name, b"data"), name.encode(), 1)
    return name.encode()


def test_an_own_message_is_confirmed_once() -> None:
    it = confirmation()
    message_hash = sent(it, "a")
    assert [it.stored(message_hash), it.stored(message_hash)] == ["a", None]
    assert list(it.absent(2)) == []


def test_a_message_is_absent_after_enough_looks_that_reached_it() -> None:
    it = confirmation()
    sent(it, "a")
    assert [list(it.absent(reached_ns)) for reached_ns in (0, 1, 1, 1, 1)] == [
        [], [], ["a"], [], ["a"],
    ]  # fmt: skip
    it.forget("a")
    assert list(it.absent(1)) == []


def test_each_copy_of_a_message_confirms_it() -> None:
    it = confirmation()
    sent(it, "a")
    it.dispatched(Outgoing(OutgoingKind.RETRY, "a", b"data"), b"again", 2)
    assert it.stored(b"again") == "a"
    assert it.stored(b"a") is None


def test_a_repetition_in_the_same_envelope_is_one_copy() -> None:
    """As by a clock that was set back to the very millisecond (seed 37009748)."""
    it = confirmation()
    message_hash = sent(it, "a")
    it.dispatched(Outgoing(OutgoingKind.RETRY, "a", b"data"), message_hash, 1)
    assert [it.stored(message_hash), it.stored(message_hash)] == ["a", None]


def test_syncs_are_known_and_not_looked_for() -> None:
    it = confirmation()
    message_hash = sent(it, "s", OutgoingKind.SYNC)
    assert it.knows(message_hash)
    assert it.stored(message_hash) is None


def test_echoes_of_own_messages_do_not_show_that_others_are_heard() -> None:
    it = confirmation()
    assert not it.came_live(sent(it, "a"), Arrival(Outcome.DUPLICATE))
    assert not it.came_live(b"b", Arrival(Outcome.OWN))
    assert not it.heard_anything()
    assert it.came_live(b"c", Arrival(Outcome.DELIVERED))
    assert [it.heard_anything(), it.heard_anything()] == [True, False]
    assert [it.knows(each) for each in (b"a", b"b", b"c", b"d")] == [True, True, True, False]


def test_a_look_goes_back_two_intervals_but_not_before_the_opening() -> None:
    it = confirmation()
    assert it.look_from_ms(NOW_MS + 1) == NOW_MS
    later_ms = NOW_MS + 3_600_000
    assert it.look_from_ms(later_ms) == later_ms - LOOKS * 30_000 - SKEW_MS


def test_the_oldest_are_dropped() -> None:
    it = confirmation()
    for number in range(AWAITED_LIMIT + 1):
        sent(it, str(number))
    assert [it.stored(b"0"), it.stored(b"1")] == [None, "1"]


def test_a_message_that_was_sent_again_is_not_absent_before_a_look_reached_the_copy() -> None:
    it = confirmation()
    sent(it, "a")
    it.dispatched(Outgoing(OutgoingKind.RETRY, "a", b"data"), b"again", 5)
    assert [list(it.absent(reached_ns)) for reached_ns in (4, 4, 5, 5)] == [[], [], [], ["a"]]
