"""Signed senders: what is not proven is refused and leaves no trace."""

from collections.abc import Iterable
from dataclasses import replace
from hashlib import sha256
from random import Random
from typing import Any

import pytest

from reliable_channel.sds import NIM, SPEC, Arrival, Message, Outcome, SdsProtocol, WireProfile
from reliable_channel.sds.events import (
    EphemeralReceived,
    MessageAcknowledged,
    MessageRejected,
    Outgoing,
    OutgoingKind,
    RejectionReason,
    RepairSent,
)
from reliable_channel.sds.message import HistoryEntry
from reliable_channel.sds.options import RepairOptions
from reliable_channel.sds.signing import NotProven, signed_part, signed_text, with_signature
from tests import inside

from .world import (
    CHANNEL,
    NOW_MS,
    decode,
    delivered,
    events,
    forge,
    give,
    only,
    options,
    participant,
    send,
    sync,
    taken,
)

PROFILES = [SPEC, NIM]
each_profile = pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.name)


class Seals:
    """A signature that everybody could forge, were they not as honest as tests are: a hash of a
    name and the data."""

    def __init__(self, name: str) -> None:
        self._name = name

    def sign(self, data: bytes) -> bytes:
        return sha256(self._name.encode() + data).digest()

    def verify(self, sender_id: str, data: bytes, signature: bytes) -> None:
        if signature != sha256(sender_id.encode() + data).digest():
            raise NotProven(f"not sealed by {sender_id}")


def signer(
    name: str,
    *,
    key: str | None = None,
    demands: bool = True,
    channel: str = CHANNEL,
    profile: WireProfile = SPEC,
    now_ms: int = NOW_MS,
) -> SdsProtocol:
    """A participant who signs, by default with a key of its own name."""
    return SdsProtocol(
        channel,
        name,
        now_ms=now_ms,
        random=Random(name).random,
        profile=profile,
        options=options(repair=RepairOptions(t_min_ms=10, t_max_ms=20)),
        signing=Seals(key or name),
        require_signatures=demands,
    )


def unsigned(name: str, *, profile: WireProfile = SPEC) -> SdsProtocol:
    return SdsProtocol(
        CHANNEL,
        name,
        now_ms=NOW_MS,
        random=Random(name).random,
        profile=profile,
        options=options(repair=RepairOptions(t_min_ms=10, t_max_ms=20)),
    )


def trace(core: SdsProtocol) -> tuple[object, ...]:
    """All that a message could change, but the count of refusals."""
    statistics = core.statistics()
    return (
        replace(statistics, counters=replace(statistics.counters, rejected=0)),
        core.log.digest(),
        bytes(core.bloom_filter),
        core.agenda.next_ms,
    )


def refused(core: SdsProtocol, data: bytes) -> MessageRejected:
    """Give bytes that must be refused as unproven without a trace; return what is told."""
    before = trace(core)
    arrival = core.receive(data, NOW_MS)
    assert arrival.reason is RejectionReason.UNPROVEN_SENDER
    assert trace(core) == before
    return only(events(core, MessageRejected))


def is_taken(core: SdsProtocol, data: bytes) -> bool:
    return core.receive(data, NOW_MS).outcome is Outcome.DELIVERED


@each_profile
def test_a_signed_message_is_the_unsigned_one_with_a_field_behind_it(profile: WireProfile) -> None:
    ours, plain = signer("alice", profile=profile), unsigned("alice", profile=profile)
    for make in (lambda core: send(core, b"hello"), sync):
        signed, data = make(ours).data, make(plain).data
        assert signed == with_signature(data, Seals("alice").sign(signed_text(data)))
        assert profile.codec.decode(data).signature is None


@each_profile
def test_what_is_proven_is_delivered(profile: WireProfile) -> None:
    alice, bob = signer("alice", profile=profile), signer("bob", profile=profile)
    give(bob, send(alice, b"one"), sync(alice), send(alice, b"two"))
    assert delivered(bob) == [b"one", b"two"]
    give(alice, send(bob, b"three"))
    assert delivered(alice) == [b"three"]


@each_profile
def test_signed_and_unsigned_peers_understand_each_other_where_nobody_demands(
    profile: WireProfile,
) -> None:
    old, new = unsigned("old", profile=profile), signer("new", demands=False, profile=profile)
    give(new, send(old, b"unsigned"))
    give(old, send(new, b"signed"))
    assert delivered(new) + delivered(old) == [b"unsigned", b"signed"]
    assert old.log.digest() == new.log.digest()


def test_who_does_not_demand_does_not_look_at_signatures() -> None:
    forger, victim = signer("alice", key="mallory"), signer("bob", demands=False)
    assert is_taken(victim, send(forger, b"hello").data)


def test_the_unsigned_is_refused_where_it_is_demanded() -> None:
    told = refused(signer("bob"), send(unsigned("alice"), b"hello").data)
    assert (told.sender_id, told.detail) == (
        "alice",
        "the message has no signature, but this channel has `require_signatures`",
    )


@each_profile
def test_a_forged_sender_is_refused(profile: WireProfile) -> None:
    forger, bob = (
        signer("alice", key="mallory", profile=profile),
        signer("bob", profile=profile),
    )
    refused(bob, send(forger, b"I am alice").data)
    refused(bob, sync(forger).data)


def test_a_forged_first_copy_does_not_displace_the_true_message() -> None:
    alice, bob, carol = signer("alice"), signer("bob"), signer("carol")
    true = send(alice, b"pay bob")
    forged = SPEC.codec.encode(replace(decode(true), content=b"pay mallory"))
    refused(bob, forged)
    assert is_taken(bob, true.data)
    give(carol, send(bob, b"thanks"))  # refers to it, so that carol waits for it
    refused(carol, forged)
    assert is_taken(carol, true.data)
    assert delivered(carol) == [b"pay bob", b"thanks"]


TAMPERED: dict[str, Any] = {
    "sender_id": "bob",
    "message_id": "other",
    "lamport_timestamp": NOW_MS + 1_000,
    "causal_history": (),
    "bloom_filter": bytes(8),
    "repair_request": (HistoryEntry("m", None, "alice"),),
    "content": b"other",
}


@each_profile
@pytest.mark.parametrize("field", TAMPERED)
def test_no_field_can_be_changed(field: str, profile: WireProfile) -> None:
    alice, carol = signer("alice", profile=profile), signer("carol", profile=profile)
    send(alice, b"first")
    message = decode(send(alice, b"second"))
    refused(carol, profile.codec.encode(replace(message, **{field: TAMPERED[field]})))
    assert carol.receive(profile.codec.encode(message), NOW_MS).outcome is Outcome.PARKED


def test_no_bit_can_be_flipped() -> None:
    message = Message("alice", "m", CHANNEL, NOW_MS, (), b"bloom", (), b"hello")
    data = SPEC.codec.encode(message)
    data = with_signature(data, Seals("alice").sign(signed_text(data)))
    bob = signer("bob")
    for bit in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        assert bob.receive(bytes(flipped), NOW_MS).outcome is Outcome.REJECTED, f"bit {bit}"
    assert is_taken(bob, data)


@pytest.mark.parametrize(
    "after",
    [
        b"\xa2\x01\x05other",  # content, once more
        b"\x82\x7d\x01x",  # a field that nobody knows
        with_signature(b"", b"another signature"),
    ],
)
def test_nothing_can_be_added_behind_the_signature(after: bytes) -> None:
    refused(signer("bob"), send(signer("alice"), b"hello").data + after)


def test_a_message_for_another_channel_proves_nothing_here() -> None:
    elsewhere = send(signer("alice", channel="elsewhere"), b"yes")
    bob = signer("bob")
    assert bob.receive(elsewhere.data, NOW_MS).reason is RejectionReason.WRONG_CHANNEL
    bob = signer("bob")
    refused(bob, SPEC.codec.encode(replace(decode(elsewhere), channel_id=CHANNEL)))


def test_ephemeral_messages_are_signed() -> None:
    bob = signer("bob")

    def ephemeral(core: SdsProtocol) -> bytes:
        core.send_ephemeral(b"is typing", NOW_MS)
        return only(o for o in taken(core.outgoing) if o.kind is OutgoingKind.EPHEMERAL).data

    refused(bob, ephemeral(signer("alice", key="mallory")))
    refused(bob, ephemeral(unsigned("alice")))
    assert bob.receive(ephemeral(signer("alice")), NOW_MS).outcome is Outcome.EPHEMERAL
    assert only(events(bob, EphemeralReceived)).content == b"is typing"


def test_nobody_acknowledges_in_anothers_name() -> None:
    alice, bob, forger = signer("alice"), signer("bob"), signer("bob", key="mallory")
    sent = send(alice, b"hello")
    give(forger, sent)
    refused(alice, send(forger, b"got it").data)
    assert len(alice.outgoing_buffer) == 1
    give(bob, sent)
    give(alice, send(bob, b"got it"))
    assert [e.acknowledged_by for e in events(alice, MessageAcknowledged)] == ["bob"]


@each_profile
@pytest.mark.parametrize("repairer", [signer, unsigned], ids=["signs", "does not sign"])
def test_a_repaired_message_still_proves_its_sender(repairer: object, profile: WireProfile) -> None:
    alice, carol = signer("alice", profile=profile), signer("carol", profile=profile)
    bob = repairer("bob", profile=profile)  # type: ignore[operator]
    lost, later = send(alice, b"lost"), send(alice, b"later")
    give(bob, lost, later)
    give(carol, later)
    repaired = _repair(carol, bob)
    assert repaired.data == lost.data
    assert delivered_after(carol, [repaired]) == [b"lost", b"later"]


@pytest.mark.parametrize("repairer", [signer, unsigned], ids=["signs", "does not sign"])
def test_a_repaired_sync_of_nim_still_proves_its_sender(repairer: object) -> None:
    """nim-sds refers to sync messages, and they are kept for those who ask."""
    alice, carol = signer("alice", profile=NIM), signer("carol", profile=NIM)
    bob = repairer("bob", profile=NIM)  # type: ignore[operator]
    first, lost = send(alice, b"first"), sync(alice)
    give(bob, first, lost)
    give(carol, first)
    for core in (alice, bob):
        assert inside.state(core).held(lost.message_id) == lost.data
    assert carol.receive(lost.data, NOW_MS).outcome is Outcome.SYNC


def _repair(asker: SdsProtocol, answerer: SdsProtocol) -> Outgoing:
    """Let one ask the other for what it misses, and return the answer."""
    later_ms = NOW_MS + 60_000
    asker.on_deadline(later_ms)
    request = only(o for o in taken(asker.outgoing) if o.kind is OutgoingKind.SYNC)
    answerer.receive(request.data, later_ms)
    answerer.on_deadline(later_ms + 60_000)
    assert events(answerer, RepairSent)
    return next(o for o in taken(answerer.outgoing) if o.kind is OutgoingKind.REPAIR)


def delivered_after(core: SdsProtocol, arrived: Iterable[Outgoing]) -> list[bytes]:
    for outgoing in arrived:
        arrival: Arrival = core.receive(outgoing.data, NOW_MS + 120_000)
        assert arrival.outcome is not Outcome.REJECTED
    return delivered(core)


def test_own_earlier_messages_are_taken_from_store_only_where_they_are_proven() -> None:
    earlier, again = send(signer("alice"), b"earlier"), signer("alice")
    refused(again, send(signer("alice", key="mallory"), b"forged").data)
    assert is_taken(again, earlier.data)


def test_what_the_signer_raises_is_raised_by_send_and_nothing_goes_out() -> None:
    class Broken(Seals):
        def sign(self, data: bytes) -> bytes:
            raise OSError("the token was pulled out")

    core = SdsProtocol(
        CHANNEL,
        "alice",
        now_ms=NOW_MS,
        random=lambda: 0.5,
        signing=Broken("alice"),
    )
    with pytest.raises(OSError, match="pulled out"):
        core.send(b"hello", NOW_MS)
    assert not taken(core.outgoing)
    assert not core.log


class Locked(Seals):
    """A key that cannot be used for a while."""

    is_locked = False

    def sign(self, data: bytes) -> bytes:
        if self.is_locked:
            raise OSError("the key is locked")
        return super().sign(data)


@pytest.mark.parametrize(
    ("profile", "interval_ms", "kind"),
    [(SPEC, 30_000, OutgoingKind.SYNC), (NIM, 0, OutgoingKind.REPAIR)],
    ids=["sync", "repeated"],
)
def test_where_signing_fails_for_a_while_the_next_turn_asks(
    profile: WireProfile, interval_ms: int, kind: OutgoingKind
) -> None:
    seals = Locked("alice")
    alice = participant("alice", profile=profile, signing=seals, sync_min_interval_ms=interval_ms)
    alice.dispatched(alice.send(b"hello", NOW_MS), NOW_MS)
    alice.receive(forge("asks", after=["missing"], profile=profile), NOW_MS)
    alice.outgoing.clear()
    for seals.is_locked in (True, False):
        for _ in range(25):
            alice.on_deadline(alice.agenda.next_ms or 0)
        asking = [decode(each) for each in taken(alice.outgoing) if each.kind is kind]
        assert seals.is_locked == (not asking)
    assert [each.message_id for each in asking[0].repair_request] == ["missing"]


def test_a_signature_is_found_only_at_the_end() -> None:
    data = with_signature(b"message", b"signature")
    assert signed_part(data, b"signature") == b"message"
    assert signed_part(data, b"other") is None
    assert signed_part(data + b"\0", b"signature") is None
    assert signed_part(with_signature(b"", b""), b"") == b""


def test_a_signature_covers_the_root_of_the_log() -> None:
    alice, bob = signer("alice"), signer("bob")
    send(alice, b"1")
    sync(alice)
    later_ms = NOW_MS + 600_000
    said = sync(alice, later_ms)
    message = decode(said)
    assert message.log_root is not None and message.signature is not None
    assert bob.receive(said.data, later_ms).outcome is Outcome.SYNC
    changed = replace(message, log_root=replace(message.log_root, count=7))
    arrival = bob.receive(SPEC.codec.encode(changed), later_ms)
    assert arrival.reason is RejectionReason.UNPROVEN_SENDER
