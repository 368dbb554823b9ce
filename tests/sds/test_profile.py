"""Dialects, one participant at a time; `test_mixed.py` has whole channels."""

import dataclasses
from typing import Any

import pytest

from reliable_channel.sds import (
    NIM,
    SPEC,
    HistoryEntry,
    MessageKind,
    Outcome,
    SdsOptions,
    SdsProtocol,
    wire_profile,
)
from reliable_channel.sds.errors import ContentTooLong, NotInDialect
from reliable_channel.sds.events import (
    BloomFilterIgnored,
    DeliveryFailed,
    MessageAcknowledged,
    MessageMissing,
    MessagePossiblyAcknowledged,
    MessageReceived,
    MessageRejected,
    Outgoing,
    OutgoingKind,
    RejectionReason,
    RepairSent,
    SyncReceived,
)
from reliable_channel.sds.options import DAY_MS
from reliable_channel.sds.profile import understood

from .world import (
    MINUTE,
    NOW_MS,
    SECOND,
    decode,
    delivered,
    events,
    forge,
    give,
    only,
    participant,
    send,
    sync,
    taken,
)


def nim(name: str = "alice", **changes: Any) -> SdsProtocol:
    return participant(name, profile=NIM, **changes)


def forged(message_id: str, **fields: Any) -> bytes:
    return forge(message_id, profile=NIM, **fields)


# -- the value -------------------------------------------------------------------------------------


def test_a_profile_by_name() -> None:
    assert wire_profile("spec") is SPEC
    assert wire_profile("nim") is NIM
    with pytest.raises(ValueError, match="wire_profile is 'go'; known profiles are 'spec', 'nim'"):
        wire_profile("go")


def test_what_nim_sds_has_otherwise() -> None:
    core = SdsProtocol("c", "a", now_ms=NOW_MS, random=lambda: 0.5, profile=NIM)
    assert core.options.causal_history_size == 10
    assert core.options.repair.t_max_ms == 300_000
    assert (NIM.segmentation, NIM.marker) == ("nim-segmentation", b"RELIABLE-CHANNEL-API/1")
    assert (SPEC.segmentation, SPEC.marker) == (None, None)
    assert NIM.encryption_order == SPEC.encryption_order == "sds-then-encrypt"
    assert SPEC.options == SdsOptions()


def test_a_dialect_of_ones_own() -> None:
    loud = dataclasses.replace(SPEC, name="loud", id_function=lambda *_: "ID")
    core = participant(profile=loud, listen_to=[loud])
    assert core.send(b"hi", NOW_MS) == "ID"


# -- sending ---------------------------------------------------------------------------------------


def test_it_sends_one_dialect() -> None:
    assert NIM.codec.recognises(send(nim(), b"hi").data)
    assert SPEC.codec.recognises(send(participant(), b"hi").data)


def test_lamport_timestamps_are_seconds() -> None:
    alice = nim()
    one, two = (decode(send(alice, content, NOW_MS + 999)) for content in (b"1", b"2"))
    assert one.lamport_timestamp == NOW_MS + SECOND
    assert two.lamport_timestamp == NOW_MS + 2 * SECOND


def test_the_bloom_filter_is_of_what_came_before() -> None:
    alice = nim()
    first, second = decode(send(alice, b"1")), decode(send(alice, b"2"))
    layout, words = NIM.bloom.read(second.bloom_filter or b"", alice.options.bloom)
    assert layout == alice.bloom_filter.layout
    assert layout.holds(words, NIM.bloom.hash_pair(first.message_id))
    assert not layout.holds(words, NIM.bloom.hash_pair(second.message_id))


def test_there_are_no_ephemeral_messages() -> None:
    with pytest.raises(NotInDialect, match="the nim dialect has no ephemeral messages"):
        nim().send_ephemeral(b"hi", NOW_MS)


def test_content_beyond_a_mebibyte_is_refused() -> None:
    alice = nim(max_message_bytes=4 * 1024 * 1024)
    send(alice, bytes(1024 * 1024))
    with pytest.raises(ContentTooLong, match="the nim dialect takes 1048576"):
        alice.send(bytes(1024 * 1024 + 1), NOW_MS)
    assert len(alice.log) == 1


# -- listening -------------------------------------------------------------------------------------


def test_it_listens_to_all_dialects_by_default() -> None:
    alice = participant()
    give(alice, send(participant("bob"), b"spec"), send(nim("carol"), b"nim"))
    assert delivered(alice) == [b"spec", b"nim"]


@pytest.mark.parametrize(("mine", "other"), [(SPEC, NIM), (NIM, SPEC)])
def test_a_dialect_not_listened_to_is_refused_and_leaves_no_trace(mine: Any, other: Any) -> None:
    alice = participant(profile=mine, listen_to=[mine])
    clock = alice.clock.value
    message = send(participant("bob", profile=other), b"hi")
    assert alice.receive(message.data, NOW_MS).outcome is Outcome.REJECTED
    rejected = only(events(alice, MessageRejected))
    assert rejected.reason is RejectionReason.OTHER_DIALECT
    assert rejected.detail == f"this participant takes {mine.name}"
    assert (len(alice.log), len(alice.participants), alice.clock.value) == (0, 0, clock)
    give(alice, send(participant("carol", profile=mine), b"hi"))
    assert delivered(alice) == [b"hi"]


def test_bytes_of_a_dialect_that_its_codec_refuses_are_malformed() -> None:
    alice = participant()
    alice.receive(bytes.fromhex("0a0161100522026368"), NOW_MS)  # nim-sds' "no-content"
    rejected = only(events(alice, MessageRejected))
    assert rejected.reason is RejectionReason.MALFORMED
    assert rejected.detail == "the field content is absent; nim-sds requires it"


def test_nim_peers_may_be_anonymous_and_the_specifications_may_not() -> None:
    alice = participant()
    alice.receive(forged("m", sender=""), NOW_MS)
    alice.receive(forge("n", sender=""), NOW_MS)
    assert only(events(alice, MessageRejected)).message_id == "n"
    assert "m" in alice.log


def test_what_an_anonymous_peer_sent_may_be_referred_to() -> None:
    alice, bob = participant("alice"), nim("bob")
    for core in (alice, bob):
        core.receive(forged("m", sender="", content=b"first"), NOW_MS)
    carol, dave = participant("carol"), nim("dave")
    from_alice, from_bob = send(alice, b"a"), send(bob, b"b", NOW_MS + 5 * SECOND)
    for core in (carol, dave):
        give(core, from_bob, from_alice)
        core.receive(forged("m", sender="", content=b"first"), NOW_MS)
        assert delivered(core)[0] == b"first"
        assert len(core.log) == 3


@pytest.mark.parametrize("profile", [SPEC, NIM])
def test_ids_that_are_no_text_do_no_harm(profile: Any) -> None:
    hostile = NIM.codec.encode(decode_of(forged("m", sender="mallory"), b"\xff\x80"))
    alice, bob = participant("alice", profile=profile), participant("bob")
    for core in (alice, bob):
        core.receive(hostile, NOW_MS)
    give(bob, send(alice, b"refers to it"))
    assert delivered(bob)[-1] == b"refers to it"
    assert alice.log.digest() == bob.log.digest()


def decode_of(data: bytes, message_id: bytes) -> Any:
    swapped = data.replace(b"\x0a\x01m", b"\x0a\x02" + message_id, 1)
    return NIM.codec.decode(swapped)


@pytest.mark.parametrize(("seconds", "outcome"), [(366, "rejected"), (364, "delivered")])
def test_the_guard_against_clocks_works_in_seconds(seconds: int, outcome: str) -> None:
    core = SdsProtocol("channel", "a", now_ms=NOW_MS, random=lambda: 0.5, profile=NIM)
    data = forged("m", lamport=NOW_MS + seconds * DAY_MS)
    assert core.receive(data, NOW_MS).outcome.value == outcome


@pytest.mark.parametrize("profile", [SPEC, NIM])
def test_the_largest_timestamp_of_nim_is_refused(profile: Any) -> None:
    core = participant(profile=profile)
    data = forged("m", lamport=(2**63 - 1) * 1000)
    assert core.receive(data, NOW_MS).outcome is Outcome.REJECTED
    assert only(events(core, MessageRejected)).reason is RejectionReason.LAMPORT_TOO_FAR_AHEAD
    send(core, b"still sends")


# -- acknowledgements ------------------------------------------------------------------------------


@pytest.mark.parametrize("mine", [SPEC, NIM])
@pytest.mark.parametrize("theirs", [SPEC, NIM])
def test_a_filter_is_read_in_the_form_of_its_senders_dialect(mine: Any, theirs: Any) -> None:
    alice = participant("alice", profile=mine)
    bob = participant("bob", profile=theirs, causal_history_size=0)
    message = send(alice, b"hi")
    give(alice, sync(participant("bob", profile=theirs)))
    assert events(alice, MessageAcknowledged) == []
    give(bob, message)
    give(alice, sync(bob))
    assert only(events(alice, MessageAcknowledged)).message_id == message.message_id
    assert events(alice, BloomFilterIgnored) == []


def test_a_filter_of_another_size_is_read_by_its_own_parameters() -> None:
    alice = nim()
    alice.receive(forged("hello", sender="carol"), NOW_MS)
    message = send(alice, b"hi")
    bob = nim("bob", bloom=dataclasses.replace(alice.options.bloom, capacity=37))
    give(bob, message)
    data = forged("s", sender="bob", content=None, bloom=bytes(bob.bloom_filter))
    alice.receive(data, NOW_MS)
    assert only(events(alice, MessagePossiblyAcknowledged)).message_id == message.message_id


@pytest.mark.parametrize(
    "unreadable", [b"\xff", bytes(8), NIM.bloom.write(SPEC.options.bloom, b"\xff" * 18_752)]
)
def test_a_filter_that_says_nothing_is_told_once(unreadable: bytes) -> None:
    alice = nim()
    send(alice, b"hi")
    for i in range(3):
        alice.receive(forged(f"m{i}", sender="bob", bloom=unreadable), NOW_MS)
    assert only(events(alice, BloomFilterIgnored)).sender_id == "bob"
    assert len(alice.outgoing_buffer) == 1
    assert len(alice.log) == 4


# -- sync messages, which peers of nim-sds refer to ------------------------------------------------


def test_a_sync_message_of_nim_is_one_and_enters_no_log() -> None:
    alice, bob = nim(), nim("bob")
    message = sync(alice)
    assert decode(message).kind is MessageKind.SYNC
    assert bob.receive(message.data, NOW_MS).outcome is Outcome.SYNC
    assert only(events(bob, SyncReceived)).sender_id == "alice"
    assert (len(alice.log), len(bob.log), len(bob.bloom_filter)) == (0, 0, 0)
    assert decode(send(bob, b"x")).causal_history == ()


def test_nobody_waits_for_a_sync_message_that_it_has_heard_or_sent() -> None:
    alice, bob = nim(), nim("bob")
    message = sync(alice)
    give(bob, message)
    for core in (alice, bob):
        core.receive(forged("m", after=[message.message_id]), NOW_MS)
        assert delivered(core) == [b"content"]


def test_a_sync_message_that_others_wait_for_releases_them() -> None:
    alice = nim()
    assert alice.receive(forged("m", after=["s"]), NOW_MS).outcome is Outcome.PARKED
    assert [e.message_id for e in only(events(alice, MessageMissing)).missing] == ["s"]
    arrival = alice.receive(forged("s", content=None), NOW_MS)
    assert (arrival.outcome, arrival.missing_for_ms) == (Outcome.SYNC, 0)
    assert delivered(alice) == [b"content"]
    assert alice.missing() == []
    assert alice.repair_requests.planned() == {}


def test_a_sync_message_waits_for_what_it_refers_to() -> None:
    # Who refers to it does so to what comes before it, too: nim-sds keeps causal histories short.
    alice = nim()
    alice.receive(forged("m", after=["s"], content=b"last"), NOW_MS)
    assert alice.receive(forged("s", after=["x"], content=None), NOW_MS).outcome is Outcome.SYNC
    assert delivered(alice) == []
    alice.receive(forged("s", after=["x"], content=None), NOW_MS)
    alice.receive(forged("x", content=b"first"), NOW_MS)
    assert delivered(alice) == [b"first", b"last"]
    assert (len(alice.log), len(alice.incoming_buffer.parked)) == (2, 0)


def test_a_sync_message_is_repaired_as_any_message() -> None:
    alice = nim()
    message = sync(alice)
    request = HistoryEntry(message.message_id, None, "alice")
    alice.receive(forged("m", requests=[request]), NOW_MS)
    alice.on_deadline(NOW_MS + MINUTE)
    assert only(events(alice, RepairSent)).message_id == message.message_id
    repaired = only(o for o in taken(alice.outgoing) if o.kind is OutgoingKind.REPAIR)
    assert decode(repaired) == dataclasses.replace(decode(message), bloom_filter=None)


def test_own_sync_messages_of_an_earlier_self_are_taken_too() -> None:
    message = sync(nim())
    again = nim()
    again.receive(forged("m", after=[message.message_id]), NOW_MS)
    assert again.receive(message.data, NOW_MS).outcome is Outcome.SYNC
    assert delivered(again) == [b"content"]
    assert again.receive(message.data, NOW_MS).outcome is Outcome.OWN


def test_a_sync_message_takes_nobodys_id() -> None:
    alice = nim()
    alice.receive(forged("m", content=b"one"), NOW_MS)
    alice.receive(forged("m", content=None), NOW_MS)
    assert [event.content for event in events(alice, MessageReceived)] == [b"one"]
    assert alice.receive(forged("m", content=b"one"), NOW_MS).outcome is Outcome.DUPLICATE


def test_a_sync_message_of_the_specification_is_referred_to_by_nobody() -> None:
    alice = participant()
    alice.receive(forge("s", content=None), NOW_MS)
    assert alice.receive(forge("m", after=["s"]), NOW_MS).outcome is Outcome.PARKED


# -- what nim-sds would take for content is not sent -----------------------------------------------


def quiet_hour(core: SdsProtocol) -> list[Outgoing]:
    """What a participant broadcasts in an hour in which nothing is said."""
    said: list[Outgoing] = []
    while (due_ms := core.agenda.next_ms) is not None and due_ms < NOW_MS + 60 * MINUTE:
        core.on_deadline(due_ms)
        said += taken(core.outgoing)
    return said


def test_a_quiet_participant_of_nim_sends_no_sync_message() -> None:
    core = SdsProtocol("c", "a", now_ms=NOW_MS, random=lambda: 0.5, profile=NIM)
    core.receive(forged("m", after=["gone"], channel="c"), NOW_MS)
    assert core.repair_requests.planned()
    assert quiet_hour(core) == []


def test_a_repair_request_of_nim_rides_on_content() -> None:
    alice = nim(sync_min_interval_ms=0)
    alice.receive(forged("m", after=["gone"]), NOW_MS)
    (due_ms,) = alice.repair_requests.planned().values()
    asking = decode(send(alice, b"by the way", due_ms))
    assert [entry.message_id for entry in asking.repair_request] == ["gone"]


def test_a_group_of_this_library_alone_may_ask_for_sync_messages() -> None:
    alice = nim(sync_min_interval_ms=30_000)
    alice.receive(forged("m", after=["gone"]), NOW_MS)
    kinds = {outgoing.kind for outgoing in quiet_hour(alice)}
    assert kinds == {OutgoingKind.SYNC}


def test_last_words_to_a_quiet_group_of_nim_fail_and_say_why() -> None:
    alice = nim(sync_min_interval_ms=0, max_retry_attempts=2)
    send(alice, b"good night")
    while (due_ms := alice.agenda.next_ms) is not None:
        alice.on_deadline(due_ms)
        for outgoing in taken(alice.outgoing):
            alice.dispatched(outgoing.message_id, due_ms)
    failed = only(events(alice, DeliveryFailed))
    assert "acknowledge with their next message only, so others may have it" in failed.reason


def test_one_listens_to_its_own_dialect_and_to_the_built_in_others() -> None:
    assert set(understood(SPEC)) == set(understood(NIM)) == {SPEC, NIM}
    own, renamed = dataclasses.replace(SPEC, marker=b"ours"), dataclasses.replace(SPEC, name="ours")
    assert understood(own) == (own, NIM)
    assert understood(renamed) == (renamed, SPEC, NIM)
