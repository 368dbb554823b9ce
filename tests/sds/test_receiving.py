"""What a received message changes beside the log, and what `receive` answers."""

from dataclasses import replace

import pytest

from reliable_channel.sds import CoreLimits, HistoryEntry, Outcome, RepairOptions, SdsProtocol
from reliable_channel.sds.events import (
    MessageForged,
    MessageLost,
    MessageReceived,
    MessageRejected,
    RejectionReason,
    SyncReceived,
)
from reliable_channel.sds.ids import PROOF_AGE_MS, reliable_channel_id

from .world import (
    CODEC,
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

QUIET_MS = NOW_MS + 60 * SECOND
SOON_MS = 2 * SECOND


def tuned() -> SdsProtocol:
    """A participant that tunes itself, has messages `m0` to `m4`, and has not heard any for a
    minute."""
    bob = participant("bob", self_tuning=True)
    for n in range(5):
        after = [f"m{n - 1}"] if n else []
        bob.receive(forge(f"m{n}", sender="alice", lamport=NOW_MS + n, after=after), NOW_MS)
    while (due_ms := bob.agenda.next_ms) is not None and due_ms <= QUIET_MS:
        bob.on_deadline(due_ms)
        bob.outgoing.clear()
    return bob


def says_next(bob: SdsProtocol) -> tuple[int, list[str]]:
    """When a participant says the next sync message, and what that refers to."""
    while (due_ms := bob.agenda.next_ms) is not None:
        bob.on_deadline(due_ms)
        for outgoing in taken(bob.outgoing):
            return due_ms - QUIET_MS, list(decode(outgoing).causal_ids)
    raise AssertionError("nothing is said")


def test_a_sender_that_repeats_itself_late_is_acknowledged_soon() -> None:
    waits_ms, named = says_next(tuned())
    assert waits_ms > SOON_MS and named == ["m3", "m4"]
    bob = tuned()
    again = forge("m0", sender="alice", lamport=NOW_MS)
    assert bob.receive(again, QUIET_MS).outcome is Outcome.DUPLICATE
    waits_ms, named = says_next(bob)
    assert waits_ms <= SOON_MS and named == ["m0", "m3", "m4"]


def test_whom_a_sync_shows_to_lack_the_newest_message_is_told_soon() -> None:
    for after, is_soon in (("m3", True), ("m4", False)):
        bob = tuned()
        bob.receive(forge("s", sender="carol", content=None, after=[after]), QUIET_MS)
        waits_ms, named = says_next(bob)
        assert (waits_ms <= SOON_MS) is is_soon
        assert "m4" in named


def test_a_message_older_than_the_log_is_missing_no_more() -> None:
    """Though nobody waits for it: a sync message referred to it."""
    bob = participant("bob", limits=CoreLimits(log_entries=1))
    for n in range(2):
        bob.receive(forge(f"m{n}", lamport=NOW_MS + n), NOW_MS)
    bob.receive(forge("s", content=None, after=["old"]), NOW_MS)
    bob.events.clear()
    arrival = bob.receive(forge("old", lamport=NOW_MS - 1), NOW_MS)
    assert (arrival.outcome, arrival.reason) == (Outcome.REJECTED, RejectionReason.OLDER_THAN_LOG)
    told = taken(bob.events)
    assert [e.message_id for e in told if isinstance(e, MessageLost)] == ["old"]
    assert [e.message_id for e in told if isinstance(e, MessageRejected)] == ["old"]
    assert bob.missing() == [] and bob.counters.lost == 1


def test_an_unknown_message_older_than_the_log_is_refused_and_not_lost() -> None:
    bob = participant("bob", limits=CoreLimits(log_entries=1))
    for n in range(2):
        bob.receive(forge(f"m{n}", lamport=NOW_MS + n), NOW_MS)
    bob.events.clear()
    bob.receive(forge("old", lamport=NOW_MS - 1), NOW_MS)
    (told,) = taken(bob.events)
    assert isinstance(told, MessageRejected) and "newest 1 messages" in told.detail


def test_an_arrival_says_for_how_long_the_message_was_missing() -> None:
    bob = participant("bob")
    assert bob.receive(forge("m", after=["u"]), NOW_MS).missing_for_ms is None
    assert bob.receive(forge("u"), NOW_MS + SECOND).missing_for_ms == SECOND


def test_a_sync_message_counts_and_is_told() -> None:
    bob = participant("bob")
    assert bob.receive(forge("s", content=None), NOW_MS).outcome is Outcome.SYNC
    assert only(events(bob, SyncReceived)) == SyncReceived("s", "mallory")
    assert bob.counters.syncs_received == 1


def test_own_messages_that_come_back_count_as_echoes() -> None:
    bob = participant("bob")
    sent = send(bob, b"mine")
    assert bob.receive(sent.data, NOW_MS).outcome is Outcome.OWN
    assert (bob.counters.own_echoes, bob.counters.duplicates) == (1, 0)


def test_another_content_under_an_own_id_and_name_is_refused() -> None:
    bob = participant("bob")
    message = replace(decode(send(bob, b"mine")), content=b"not mine")
    assert bob.receive(CODEC.encode(message), NOW_MS).reason is RejectionReason.ID_ALREADY_USED
    assert bob.counters.rejected == 1


# -- forgeries -


def true_message(at_ms: int = NOW_MS) -> tuple[str, bytes, int]:
    """A message of alice's whose id proves content and sender to who knows when it was sent."""
    at_ns = at_ms * 1_000_000 + 7
    message_id = reliable_channel_id("alice", at_ns, b"true")
    return message_id, forge(message_id, sender="alice", content=b"true"), at_ns


@pytest.mark.parametrize("sender", ["mallory", "alice"])
def test_a_forged_message_makes_way_for_the_one_that_its_id_proves(sender: str) -> None:
    bob, (message_id, data, at_ns) = participant("bob"), true_message()
    bob.receive(forge(message_id, sender=sender, content=b"forged"), NOW_MS)
    assert bob.receive(data, NOW_MS).reason is RejectionReason.ID_ALREADY_USED
    assert delivered(bob) == [b"forged"]
    assert bob.receive(data, NOW_MS, sent_at_ns=at_ns).outcome is Outcome.DELIVERED
    told = taken(bob.events)
    assert [e for e in told if isinstance(e, MessageForged)] == [
        MessageForged(message_id, sender, b"forged")
    ]
    assert [e.content for e in told if isinstance(e, MessageReceived)] == [b"true"]
    assert [entry.content for entry in bob.log] == [b"true"]


def test_a_forged_message_that_waits_makes_way_too() -> None:
    bob, (message_id, data, at_ns) = participant("bob"), true_message()
    bob.receive(forge(message_id, after=["never"], content=b"forged"), NOW_MS)
    bob.events.clear()
    assert bob.receive(data, NOW_MS, sent_at_ns=at_ns).outcome is Outcome.DELIVERED
    refused = only(events(bob, MessageRejected))
    assert (refused.reason, refused.sender_id) == (RejectionReason.FORGED_ID, "mallory")
    assert [entry.content for entry in bob.log] == [b"true"]


@pytest.mark.parametrize("off_ms", [PROOF_AGE_MS, PROOF_AGE_MS + 1])
@pytest.mark.parametrize("sign", [1, -1])
def test_an_id_proves_nothing_of_long_ago(off_ms: int, sign: int) -> None:
    bob, (message_id, data, at_ns) = participant("bob"), true_message(NOW_MS + sign * off_ms)
    bob.receive(forge(message_id, content=b"forged"), NOW_MS)
    is_proven = bob.receive(data, NOW_MS, sent_at_ns=at_ns).outcome is Outcome.DELIVERED
    assert is_proven is (off_ms == PROOF_AGE_MS)


# -- what is counted, and what a second copy brings -


def test_a_second_copy_brings_a_hint_and_spares_the_answer() -> None:
    bob = participant("bob")
    for n, hint in enumerate((None, b"hint", None)):
        bob.receive(forge("m", sender="alice"), NOW_MS, retrieval_hint=hint)
        assert bob.counters.duplicates == n
    assert [entry.retrieval_hint for entry in bob.log] == [b"hint"]
    bob.receive(forge("r", requests=[HistoryEntry("m", None, "alice")]), NOW_MS)
    assert bob.repair_responses.planned().keys() == {"m"}
    bob.receive(forge("m", sender="alice"), NOW_MS)
    assert not bob.repair_responses.planned()


def test_ephemeral_messages_and_acknowledgements_count() -> None:
    alice, bob = participant("alice"), participant("bob")
    alice.send_ephemeral(b"gone", NOW_MS)
    give(bob, only(taken(alice.outgoing)))
    give(bob, send(alice, b"kept"))
    give(alice, sync(bob))
    assert bob.counters.ephemeral_received == 1
    assert alice.counters.acknowledged == 1


def test_too_many_references_are_refused_and_an_own_message_is_no_participant() -> None:
    bob = participant("bob", limits=CoreLimits(unknown_references=2, repair_requests=2))
    arrival = bob.receive(forge("m", after=["u", "v", "w"]), NOW_MS)
    assert arrival.reason is RejectionReason.EXCESSIVE_REFERENCES
    asks = [HistoryEntry(i, None, "alice") for i in "uvw"]
    arrival = bob.receive(forge("n", requests=asks), NOW_MS)
    assert arrival.reason is RejectionReason.EXCESSIVE_REFERENCES
    bob.receive(forge("own", sender="bob"), NOW_MS)  # of before bob lost his state
    assert [entry.message_id for entry in bob.log] == ["own"]
    assert bob.statistics().participants == 0


def test_what_waits_for_nothing_that_is_looked_for_is_swept_all_the_same() -> None:
    """A message that waits for one that waits for it."""
    bob = participant("bob", sync_min_interval_ms=0, repair=RepairOptions(enabled=False))
    bob.receive(forge("a", after=["b"], lamport=NOW_MS), NOW_MS)
    bob.receive(forge("b", after=["a"], lamport=NOW_MS + 1), NOW_MS)
    while (due_ms := bob.agenda.next_ms) is not None:
        bob.on_deadline(due_ms)
    assert len(bob.log) == 2
