"""Each message is delivered once, whatever buffers let go of in between."""

from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reliable_channel.sds import JS_WAKU, CoreLimits, HistoryEntry, Outcome
from reliable_channel.sds.events import (
    MessageLost,
    MessageMissing,
    MessageReceived,
    MessageRejected,
    OutgoingKind,
    RejectionReason,
)

from .world import MINUTE, NOW_MS, delivered, events, forge, give, only, participant, send, taken

LATER_MS = NOW_MS + 10 * MINUTE


def chain(length: int) -> list[bytes]:
    """Messages `m0`, `m1` and so on, each after all before it."""
    return [
        forge(
            f"m{i}", lamport=NOW_MS + i, content=f"m{i}".encode(), after=[f"m{j}" for j in range(i)]
        )
        for i in range(length)
    ]


@pytest.mark.conformance("LD-SDS-1", "LD-SDS-2", "SDS-IN-2")
@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_every_order_of_arrival_gives_one_order_of_delivery(order: tuple[int, ...]) -> None:
    bob, messages = participant("bob"), chain(4)
    for i in order:
        bob.receive(messages[i], NOW_MS)
        bob.receive(messages[i], NOW_MS)
    assert delivered(bob) == [b"m0", b"m1", b"m2", b"m3"]
    assert bob.statistics().counters.duplicates == 4


def test_what_a_newcomer_does_not_want_is_missing_no_more_and_released_for() -> None:
    bob = participant("bob")
    bob.join(NOW_MS, wanted_from=NOW_MS, presume_ms=0)
    bob.receive(forge("m", after=["u"]), NOW_MS)
    bob.events.clear()
    assert bob.receive(forge("u", lamport=NOW_MS - 1), NOW_MS).outcome is Outcome.UNWANTED
    assert [entry.message_id for entry in bob.log] == ["m"]
    assert not bob.missing() and not bob.repair_requests.planned()


# -- loss timeout ----------------------------------------------------------------------------------


@pytest.mark.conformance("SDS-IN-3", "SDS-IN-4", "SDS-IN-5")
def test_what_waits_for_a_lost_message_is_delivered_and_says_so() -> None:
    bob = participant("bob")
    hint = HistoryEntry("lost", b"hash", "alice")
    bob.receive(forge("m", after=[hint]), NOW_MS)
    assert delivered(bob) == []
    bob.on_deadline(LATER_MS)
    lost, received = [e for e in taken(bob.events) if isinstance(e, MessageLost | MessageReceived)]
    assert lost == MessageLost("lost", "alice", b"hash", "not found within 300000 ms")
    assert isinstance(received, MessageReceived)
    assert received.missing == (hint,)


def test_a_lost_message_that_comes_late_is_delivered_in_its_place() -> None:
    bob = participant("bob")
    old, new = chain(2)
    bob.receive(new, NOW_MS)
    bob.on_deadline(LATER_MS)
    bob.receive(old, LATER_MS)
    bob.receive(new, LATER_MS)
    assert [(e.content, e.position) for e in events(bob, MessageReceived)] == [
        (b"m1", 0),
        (b"m0", 0),
    ]
    assert [entry.message_id for entry in bob.log] == ["m0", "m1"]


def test_messages_after_a_lost_one_do_not_wait_for_it_again() -> None:
    bob = participant("bob")
    messages = chain(4)
    bob.receive(messages[1], NOW_MS)
    bob.on_deadline(LATER_MS)
    events(bob, MessageLost)
    assert bob.receive(messages[2], LATER_MS).outcome is Outcome.DELIVERED
    assert bob.receive(messages[3], LATER_MS).outcome is Outcome.DELIVERED
    received = events(bob, MessageReceived)
    assert [[entry.message_id for entry in e.missing] for e in received] == [["m0"], ["m0"]]


def test_without_a_timeout_a_message_waits_for_ever() -> None:
    bob = participant("bob", timeout_for_lost_messages_ms=0)
    bob.receive(chain(2)[1], NOW_MS)
    bob.on_deadline(NOW_MS + 10_000 * MINUTE)
    assert delivered(bob) == []
    assert len(bob.missing()) == 1


# -- cycles ----------------------------------------------------------------------------------------


def test_a_message_that_refers_to_itself_is_delivered() -> None:
    bob = participant("bob")
    assert bob.receive(forge("m", after=["m"]), NOW_MS).outcome is Outcome.DELIVERED
    assert delivered(bob) == [b"content"]


@pytest.mark.parametrize("length", [2, 3, 50])
def test_a_cycle_is_cut_after_the_loss_timeout(length: int) -> None:
    # SDS-R guide, edge case 5: nothing here recurses, whatever the length.
    bob = participant("bob")
    for i in range(length):
        message = forge(
            f"m{i:02}", lamport=NOW_MS + i, content=b"%d" % i, after=[f"m{(i + 1) % length:02}"]
        )
        assert bob.receive(message, NOW_MS).outcome is Outcome.PARKED
    bob.on_deadline(NOW_MS + MINUTE)
    assert delivered(bob) == []
    bob.on_deadline(LATER_MS)
    assert sorted(delivered(bob), key=int) == [b"%d" % i for i in range(length)]
    assert bob.incoming_buffer.parked == {}
    assert bob.agenda.next_ms is not None


def test_what_a_cut_cycle_delivers_does_not_count_as_lost() -> None:
    # Found by `reliable-channel simulate --first-seed 10464 --seeds 1`.
    bob = participant("bob")
    for name, after in (("a", "b"), ("b", "c"), ("c", "a")):
        bob.receive(forge(name, after=[after]), NOW_MS)
    bob.on_deadline(LATER_MS)
    told = [
        event for event in taken(bob.events) if isinstance(event, MessageLost | MessageReceived)
    ]
    assert [(type(e), e.message_id) for e in told] == [
        (MessageLost, "b"),
        (MessageReceived, "a"),
        (MessageReceived, "c"),
        (MessageReceived, "b"),
    ]


def test_a_cycle_is_cut_where_delivery_waits_for_the_sweep() -> None:
    bob = participant("bob", behaviour=JS_WAKU)
    bob.receive(forge("a", after=["b"]), NOW_MS)
    bob.receive(forge("b", after=["a"]), NOW_MS)
    bob.on_deadline(LATER_MS)
    bob.on_deadline(LATER_MS + bob.options.sweep_in_buf_interval_ms)
    assert len(delivered(bob)) == 2


@pytest.mark.conformance("LD-SEMANTICS-3")
def test_a_long_chain_of_waiting_messages_is_released_without_recursion() -> None:
    bob = participant("bob")
    messages = [
        forge(f"m{i}", lamport=NOW_MS + i, content=b"%d" % i, after=[f"m{i - 1}"] if i else [])
        for i in range(3_000)
    ]
    for message in reversed(messages):
        bob.receive(message, NOW_MS)
    assert delivered(bob) == [b"%d" % i for i in range(3_000)]


def test_the_timeout_counts_from_when_the_end_of_a_chain_became_known() -> None:
    """Each link comes within the timeout, all together take far longer: nothing is given up but the
    last, and once, and everything that waits is then delivered at once."""
    bob = participant("bob", timeout_for_lost_messages_ms=5 * MINUTE, sweep_in_buf_interval_ms=1)
    links = [forge(f"m{i}", lamport=NOW_MS + i, after=[f"m{i - 1}"]) for i in range(20)]
    for number, link in enumerate(reversed(links)):
        bob.receive(link, NOW_MS + number * 4 * MINUTE)
        bob.on_deadline(NOW_MS + number * 4 * MINUTE)
    known_ms = NOW_MS + 19 * 4 * MINUTE
    bob.on_deadline(known_ms + 5 * MINUTE)
    assert not events(bob, MessageLost) and not bob.log.last(1)
    bob.on_deadline(known_ms + 5 * MINUTE + 1)
    told = [e for e in taken(bob.events) if isinstance(e, MessageLost | MessageReceived)]
    assert [e.message_id for e in told] == ["m-1", *(f"m{i}" for i in range(20))]


# -- the incoming buffer is full ------------------------------------------------------------------


def test_a_message_that_made_room_comes_again_and_is_delivered_once() -> None:
    bob = participant("bob", limits=CoreLimits(incoming_messages=2))
    messages = chain(5)
    for message in messages[1:]:
        bob.receive(message, NOW_MS)
    reasons = [(e.reason, e.message_id) for e in events(bob, MessageRejected)]
    assert reasons == [
        (RejectionReason.INCOMING_BUFFER_FULL, "m1"),
        (RejectionReason.INCOMING_BUFFER_FULL, "m2"),
    ]
    for message in messages:
        bob.receive(message, NOW_MS)
    assert delivered(bob) == [b"m0", b"m1", b"m2", b"m3", b"m4"]


def test_a_message_that_made_room_is_asked_for() -> None:
    bob = participant("bob", limits=CoreLimits(incoming_messages=1))
    bob.receive(forge("m1", after=["m0"]), NOW_MS)
    bob.receive(forge("other", after=["unknown"]), NOW_MS)
    assert {"m0", "m1", "unknown"} == set(bob.repair_requests.planned())
    assert {"m0", "m1", "unknown"} == {m.entry.message_id for m in bob.missing()}


def test_the_incoming_buffer_is_bounded_in_bytes_too() -> None:
    bob = participant("bob", limits=CoreLimits(incoming_bytes=5_000))
    for i in range(10):
        bob.receive(forge(f"m{i}", after=["missing"], content=bytes(900)), NOW_MS)
    assert bob.incoming_buffer.size_bytes <= 5_000
    assert 0 < len(bob.incoming_buffer.parked) < 10
    bob.receive(forge("missing"), NOW_MS)
    assert bob.incoming_buffer.size_bytes == 0


# -- references beyond their limit ----------------------------------------------------------------


def test_a_message_that_waits_for_one_released_by_the_limit_is_delivered() -> None:
    # The newcomer's third reference makes room by giving up "old", which delivers "parked", for
    # which the newcomer itself waits: it must not wait for what is already there.
    bob = participant("bob", limits=CoreLimits(missing_entries=1))
    bob.receive(forge("parked", after=["old"], lamport=NOW_MS + 1), NOW_MS)
    bob.receive(forge("new", after=["old", "parked", "unknown"], lamport=NOW_MS + 2), NOW_MS)
    bob.receive(forge("unknown"), NOW_MS)
    assert {e.message_id for e in events(bob, MessageReceived)} == {"parked", "new", "unknown"}
    assert bob.incoming_buffer.parked == {}


def test_one_message_may_refer_to_more_than_is_remembered() -> None:
    bob = participant("bob", limits=CoreLimits(missing_entries=3))
    arrival = bob.receive(forge("m", after=[f"u{i}" for i in range(5)]), NOW_MS)
    assert arrival.outcome is Outcome.PARKED
    assert [m.entry.message_id for m in bob.missing()] == ["u2", "u3", "u4"]
    for i in (2, 3, 4):
        bob.receive(forge(f"u{i}"), NOW_MS)
    received = {e.message_id: e for e in events(bob, MessageReceived)}
    assert [entry.message_id for entry in received["m"].missing] == ["u0", "u1"]


# -- the log is full -------------------------------------------------------------------------------


def test_a_message_older_than_the_log_is_refused_not_delivered_again() -> None:
    bob = participant("bob", limits=CoreLimits(log_entries=3))
    messages = [forge(f"m{i}", lamport=NOW_MS + i, content=b"%d" % i) for i in range(6)]
    for message in messages + messages:
        bob.receive(message, NOW_MS)
    assert [entry.message_id for entry in bob.log] == ["m3", "m4", "m5"]
    assert bob.statistics().log_evicted == 3
    seen = taken(bob.events)
    assert len([e for e in seen if isinstance(e, MessageReceived)]) == 6
    rejected = [e for e in seen if isinstance(e, MessageRejected)]
    assert {e.reason for e in rejected} == {RejectionReason.OLDER_THAN_LOG}
    assert len(rejected) == 3


def test_a_message_that_waited_past_the_horizon_does_not_move_it_back() -> None:
    bob = participant("bob", limits=CoreLimits(log_entries=2))
    bob.receive(forge("a", lamport=NOW_MS + 1, content=b"a", after=["z"]), NOW_MS)
    newer = [
        forge(f"m{i}", lamport=NOW_MS + 10 + i, content=b"%d" % i, sender="bea") for i in range(5)
    ]
    for message in newer:
        bob.receive(message, NOW_MS)
    bob.on_deadline(LATER_MS)
    for message in newer:
        bob.receive(message, LATER_MS)
    assert delivered(bob) == [b"0", b"1", b"2", b"3", b"4", b"a"]


def test_nobody_waits_for_a_message_that_left_the_log() -> None:
    bob = participant("bob", limits=CoreLimits(log_entries=2))
    for message in (forge(f"m{i}", lamport=NOW_MS + i) for i in range(5)):
        bob.receive(message, NOW_MS)
    last = forge("last", lamport=NOW_MS + 9, after=[f"m{i}" for i in range(5)])
    assert bob.receive(last, NOW_MS).outcome is Outcome.DELIVERED
    assert events(bob, MessageMissing) == []


def test_what_waits_for_a_message_older_than_the_log_is_delivered_when_that_arrives() -> None:
    bob = participant("bob", limits=CoreLimits(log_entries=2))
    bob.receive(forge("waits", lamport=NOW_MS + 90, content=b"waits", after=["old"]), NOW_MS)
    for i in range(3):
        bob.receive(forge(f"m{i}", lamport=NOW_MS + 10 + i), NOW_MS)
    assert bob.receive(forge("old", lamport=NOW_MS), NOW_MS).outcome is Outcome.REJECTED
    assert only(events(bob, MessageReceived)[3:]).content == b"waits"
    assert bob.missing() == []


# -- nothing forged takes a message's place --------------------------------------------------------


def test_a_sync_message_with_the_id_of_a_missing_one_changes_nothing() -> None:
    bob = participant("bob")
    bob.receive(forge("m", after=["wanted"]), NOW_MS)
    planned = bob.repair_requests.planned()
    assert set(planned) == {"wanted"}
    bob.receive(forge("wanted", content=None), NOW_MS)
    assert bob.repair_requests.planned() == planned
    assert [m.entry.message_id for m in bob.missing()] == ["wanted"]


def test_a_forged_copy_does_not_cancel_an_answer() -> None:
    alice, bob = participant("alice"), participant("bob")
    message = send(alice, b"true")
    give(bob, message)
    request = HistoryEntry(message.message_id, None, "alice")
    bob.receive(forge("r", sender="carol", requests=[request]), NOW_MS)
    bob.receive(forge(message.message_id, content=b"false"), NOW_MS)
    assert set(bob.repair_responses.planned()) == {message.message_id}
    bob.on_deadline(NOW_MS + 2 * MINUTE)
    assert [o.data for o in taken(bob.outgoing) if o.kind is OutgoingKind.REPAIR] == [message.data]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.data())
def test_small_buffers_never_deliver_twice(data: st.DataObject) -> None:
    """Any arrivals, in any order and number, with every buffer too small: once each, in order."""
    limits = CoreLimits(incoming_messages=3, missing_entries=4, log_entries=5)
    bob = participant("bob", limits=limits, timeout_for_lost_messages_ms=5 * MINUTE)
    size = 10
    messages = [
        forge(
            f"m{i}",
            lamport=NOW_MS + i,
            content=b"%d" % i,
            after=[f"m{j}" for j in data.draw(st.sets(st.integers(0, size), max_size=3))],
        )
        for i in range(size)
    ]
    now_ms = NOW_MS
    for i in data.draw(st.lists(st.integers(0, size - 1), max_size=60)):
        now_ms += data.draw(st.sampled_from([0, 0, MINUTE, 6 * MINUTE]))
        bob.receive(messages[i], now_ms)
        bob.on_deadline(now_ms)
        assert len(bob.incoming_buffer.parked) <= 3
        assert len(bob.missing()) <= 4
        assert len(bob.log) <= 5
    contents = delivered(bob)
    assert len(contents) == len(set(contents))
    bob.on_deadline(now_ms + 20 * MINUTE)
    assert bob.incoming_buffer.parked == {}
