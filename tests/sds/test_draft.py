"""Own messages until they leave: what is fixed when they are sent, and what is of the moment."""

from __future__ import annotations

from typing import Any

import pytest

from reliable_channel.sds import NIM, SPEC, SdsProtocol, WireProfile
from reliable_channel.sds.draft import Draft
from reliable_channel.sds.errors import ContentTooLong
from reliable_channel.sds.events import Outgoing, OutgoingKind, RepairRequested
from reliable_channel.sds.message import Message
from reliable_channel.sds.references.causal_history import history_entry
from reliable_channel.sds.signing import check_signature

from .test_signing import Seals
from .world import (
    CODEC,
    MINUTE,
    NOW_MS,
    SECOND,
    decode,
    events,
    forge,
    leave,
    only,
    participant,
    taken,
)

LATER_MS = NOW_MS + 10 * MINUTE


def late(name: str = "alice", **changes: Any) -> SdsProtocol:
    return participant(name, assembles_late=True, **changes)


def draft_of(core: SdsProtocol) -> Draft:
    """The draft of the newest message that waits."""
    draft = [outgoing for outgoing in taken(core.outgoing) if outgoing.draft][-1].draft
    assert isinstance(draft, Draft)
    return draft


def left(draft: Draft, now_ms: int = LATER_MS) -> Message:
    data, _ = leave(draft, now_ms)
    return decode(Outgoing(OutgoingKind.CONTENT, "", data))


@pytest.mark.parametrize("profile", [SPEC, NIM], ids=lambda profile: profile.name)
def test_a_message_leaves_with_the_filter_and_the_requests_of_then(profile: WireProfile) -> None:
    alice = late(profile=profile)
    alice.receive(forge("before", profile=profile), NOW_MS)
    message_id = alice.send(b"hello", NOW_MS)
    draft = draft_of(alice)
    lamport = alice.clock.value
    after = forge("after", lamport=lamport + 1_000, after=["before", "missing"], profile=profile)
    alice.receive(after, NOW_MS)
    message = left(draft)
    assert (message.message_id, message.lamport_timestamp) == (message_id, lamport)
    assert list(message.causal_ids) == ["before"]
    assert message.content == b"hello"
    assert [entry.message_id for entry in message.repair_request] == ["missing"]
    assert message.bloom_filter == bytes(alice.bloom_filter)
    asked = only(events(alice, RepairRequested))
    assert (asked.message_ids, asked.carrier_id) == (("missing",), message_id)


def test_it_leaves_once() -> None:
    alice = late()
    alice.send(b"hello", NOW_MS)
    draft = draft_of(alice)
    data, _ = leave(draft, LATER_MS)
    alice.receive(forge("after", after=["missing"]), NOW_MS)
    assert leave(draft, LATER_MS + MINUTE) == (data, False)


def test_before_it_leaves_others_get_what_is_fixed() -> None:
    alice = late()
    message_id = alice.send(b"hello", NOW_MS)
    draft = draft_of(alice)
    alice.abandon(message_id)  # its log still has it, and others may have heard of it
    entry = alice.log.get(message_id)
    assert entry is not None
    asks = forge("asks", sender="bob", requests=[history_entry(entry)], content=None)
    alice.receive(asks, NOW_MS)
    alice.on_deadline(LATER_MS)
    answer = only(o for o in taken(alice.outgoing) if o.kind is OutgoingKind.REPAIR)
    assert answer.data == bytes(draft) and draft.size_bytes == len(answer.data)
    message = decode(answer)
    assert (message.content, message.bloom_filter) == (b"hello", None)


@pytest.mark.parametrize("profile", [SPEC, NIM], ids=lambda profile: profile.name)
@pytest.mark.parametrize("signing", [None, Seals("alice")], ids=["", "signed"])
def test_one_that_is_accepted_is_never_too_long(
    profile: WireProfile, signing: Seals | None
) -> None:
    alice = late(profile=profile, signing=signing, max_message_bytes=10_000)
    with pytest.raises(ContentTooLong, match=r"which leaves (\d+) for content") as caught:
        alice.send(bytes(10_000), NOW_MS)
    most = int(str(caught.value).split("leaves ")[1].split(" ")[0])
    alice.send(bytes(most), NOW_MS)
    draft = draft_of(alice)
    alice.receive(forge("after", after=["missing"], profile=profile), NOW_MS)
    data, _ = leave(draft, LATER_MS)
    message = profile.codec.decode(data)
    assert 9_990 <= len(data) <= 10_000
    assert message.bloom_filter and not message.repair_request
    assert events(alice, RepairRequested) == []
    alice.send(b"short", LATER_MS)
    assert left(draft_of(alice)).repair_request


def test_where_signing_fails_later_what_send_signed_leaves() -> None:
    seals = Seals("alice")
    alice = late(signing=seals)
    alice.send(b"hello", NOW_MS)
    draft = draft_of(alice)
    bare = bytes(draft)
    seals.sign = fails  # type: ignore[method-assign]
    assert leave(draft, LATER_MS) == (bare, False)
    check_signature(Seals("alice"), CODEC.decode(bare), bare)


def fails(data: bytes) -> bytes:
    raise OSError("the key is away")


def test_a_retry_is_the_bytes_that_left() -> None:
    alice = late()
    message_id = alice.send(b"hello", NOW_MS)
    data, _ = leave(draft_of(alice), NOW_MS)
    alice.dispatched(message_id, NOW_MS)
    alice.receive(forge("after"), NOW_MS)
    alice.on_deadline(NOW_MS + 31 * SECOND)
    assert only(o for o in taken(alice.outgoing) if o.kind is OutgoingKind.RETRY).data == data


def test_content_is_encoded_at_once_so_that_send_refuses_what_is_none() -> None:
    alice = late()
    with pytest.raises(TypeError):
        alice.send(bytearray(b"hello"), NOW_MS)  # type: ignore[arg-type]
    assert len(alice.log) == len(alice.outgoing_buffer) == 0


def test_whoever_does_not_assemble_late_gets_the_same_bytes() -> None:
    one, other = late(), participant()
    for core in (one, other):
        core.receive(forge("before", after=["missing"]), NOW_MS)
        core.on_deadline(LATER_MS)
        core.outgoing.clear()
    assert one.send(b"hello", LATER_MS) == other.send(b"hello", LATER_MS)
    ours, theirs = left(draft_of(one)), decode(only(taken(other.outgoing)))
    assert ours.causal_ids == theirs.causal_ids
    assert CODEC.decode(CODEC.encode(theirs)) == theirs
    assert ours.repair_request == theirs.repair_request
    # By itself, a message knows itself when it leaves.
    assert theirs.bloom_filter != ours.bloom_filter == bytes(one.bloom_filter)
    assert bytes(one.bloom_filter) == bytes(other.bloom_filter)
