"""The form in which payloads go: in segments, or bare among those who write them so."""

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from reliable_channel import MessageReceived
from reliable_channel.diagnostics import SegmentDiscarded
from reliable_channel.engine import segments
from reliable_channel.engine.segments import BARE
from reliable_channel.events import PayloadDropped, ReceiveProgress
from reliable_channel.options import Limits
from reliable_channel.sds import NIM as NIM_PROFILE
from reliable_channel.sds.dialects import SpecCodec
from reliable_channel.sds.errors import ContentTooLong
from reliable_channel.segmentation import (
    LAYOUTS,
    LIP_243_V01,
    NIM_SEGMENTATION,
    ReassemblyLimits,
    Segment,
    Segmenter,
    SegmentLayout,
    payload_hash,
    recognised,
)
from reliable_channel.state import MemoryStateStore

from .world import Peer

NIM: dict[str, Any] = {"wire_profile": "nim", "segment_size_bytes": 1_000}
LONG = bytes(range(250)) * 10


class Stranger(Peer):
    """A peer that puts contents on the wire as they are, and gets them as they were there."""

    def __init__(self, name: str) -> None:
        super().__init__(name, segmentation="none")

    def says(self, to: Peer, *contents: bytes) -> None:
        for content in contents:
            self.send(content)
        tell(self, to)


def tell(peer: Peer, *others: Peer) -> None:
    """Publish what waits, and give it to others."""
    for sent in peer.publish():
        for other in others:
            other.receive(sent.data)


def written(peer: Peer, payload: bytes) -> list[bytes]:
    """The contents of the messages that a payload becomes."""
    peer.send(payload)
    if peer.disk is not None:
        peer.write()
    return [SpecCodec().decode(sent.data).content or b"" for sent in peer.publish()]


def form(peer: Peer) -> str:
    """How the next short payload goes: bare, or in which layout."""
    (content,) = written(peer, b"short")
    found = recognised(content)
    if found is None:
        assert content == b"short"
        return BARE
    assert found[0].payload == b"short"
    return found[1].name


def only_segment(layout: SegmentLayout, payload: bytes = b"theirs") -> bytes:
    (data,) = Segmenter(layout).split(payload)
    return data


def test_every_payload_is_in_a_segment_until_another_form_is_heard() -> None:
    alice = Peer("alice", **NIM)
    assert form(alice) == NIM_SEGMENTATION.name
    assert len(written(alice, bytes(1_000))) == 2
    Stranger("bob").says(alice, b"bare")
    assert written(alice, bytes(1_000)) == [bytes(1_000)]
    assert form(alice) == BARE
    Stranger("carol").says(alice, only_segment(NIM_SEGMENTATION))
    assert form(alice) == NIM_SEGMENTATION.name
    assert [event.content for event in alice.of(MessageReceived)] == [b"bare", b"theirs"]


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)
def test_the_layout_that_was_heard_is_the_next_one(layout: SegmentLayout) -> None:
    alice = Peer("alice", **NIM)
    Stranger("bob").says(alice, b"bare", only_segment(layout))
    assert form(alice) == layout.name
    found = [recognised(content) for content in written(alice, LONG)]
    assert {each and each[1] for each in found} == {layout}


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)
def test_a_long_payload_arrives_in_every_layout_and_tells_the_layout(layout: SegmentLayout) -> None:
    alice = Peer("alice", **NIM)
    Stranger("bob").says(alice, *Segmenter(layout, segment_size_bytes=1_000).split(LONG))
    assert [event.content for event in alice.of(MessageReceived)] == [LONG]
    assert form(alice) == layout.name


def test_a_long_payload_of_one_who_writes_bare_does_not_end_that() -> None:
    alice, bob = Peer("alice", **NIM), Peer("bob", **NIM)
    for each in (alice, bob):
        Stranger("carol").says(each, b"bare")
    bob.send(LONG)
    tell(bob, alice)
    assert [event.content for event in alice.of(MessageReceived)] == [b"bare", LONG]
    assert form(alice) == BARE


def test_a_bare_payload_that_looks_like_a_segment_is_wrapped_all_the_same() -> None:
    alice = Peer("alice", **NIM)
    Stranger("bob").says(alice, b"bare")
    inner = only_segment(LIP_243_V01)
    (content,) = written(alice, inner)
    outer = recognised(content)
    assert outer is not None
    assert outer[0].payload == inner


def test_segments_that_memory_has_no_room_for_are_read_from_the_log(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    room = partial(ReassemblyLimits, max_buffered_bytes=1, max_sender_buffered_bytes=1)
    monkeypatch.setattr(segments, "ReassemblyLimits", room)
    alice = Peer("alice", limits=Limits(payload_bytes=len(LONG) + 1), **NIM)
    split = Segmenter(LIP_243_V01, segment_size_bytes=1_000).split
    (*early, last), *others = (split(bytes([n]) + LONG) for n in range(3))
    Stranger("bob").says(alice, *early, *others[0][:-1], *others[1][:-1], last)
    assert [event.content for event in alice.of(MessageReceived)] == [b"\0" + LONG]


def test_half_a_payload_is_dropped_with_an_event_in_time() -> None:
    alice = Peer("alice", **NIM)
    first, *_ = Segmenter(LIP_243_V01, segment_size_bytes=1_000).split(LONG)
    Stranger("bob").says(alice, first)
    (progress,) = alice.of(ReceiveProgress)
    assert progress.chunks < progress.total_chunks
    deadline_ms = alice.engine.agenda.next_ms
    assert deadline_ms is not None
    alice.now_ms = deadline_ms
    alice.end(alice.engine.on_deadline(alice.now_ms))
    (dropped,) = alice.of(PayloadDropped)
    assert (dropped.sender_id, dropped.payload_hash) == ("bob", payload_hash(LONG))


def test_a_payload_beyond_the_limit_is_refused() -> None:
    alice = Peer("alice", limits=Limits(payload_bytes=5_000), **NIM)
    assert alice.engine.split(b"") == [b""]  # the core refuses it, with a reason
    with pytest.raises(ContentTooLong, match="payload_bytes is 5000"):
        alice.send(bytes(5_001))


def test_an_entry_of_the_log_shows_the_payload_of_an_only_segment() -> None:
    whole = Peer("alice", **NIM).engine.segmentation.whole
    assert whole(only_segment(LIP_243_V01)) == b"theirs"
    assert whole(b"bare") == b"bare"
    assert Peer("alice", segmentation="none").engine.segmentation.whole(b"bare") == b"bare"


def test_what_is_never_delivered_tells_no_form() -> None:
    alice, mallory = Peer("alice", **NIM), Stranger("mallory")
    mallory.says(
        alice,
        LIP_243_V01.encode(Segment(payload_hash(b"x"), None, 7, 2, 0, False, b"x")),
        LIP_243_V01.encode(Segment(payload_hash(b"x"), None, 0, 1, 0, False, b"another")),
        LIP_243_V01.encode(Segment(payload_hash(b"x"), None, 0, 2, 0, False, b"half")),
        LIP_243_V01.encode(Segment(payload_hash(b"x"), None, 0, 1, 1, True, b"parity")),
    )
    assert alice.of(MessageReceived) == []
    assert len(alice.of(SegmentDiscarded)) == 2
    assert form(alice) == NIM_SEGMENTATION.name


def test_one_that_changes_its_form_all_the_time_costs_no_payload() -> None:
    alice, bob, mallory = Peer("alice", **NIM), Peer("bob", **NIM), Stranger("mallory")
    noise = [b"bare", *map(only_segment, LAYOUTS), b"\x0a\x20", only_segment(LAYOUTS[0])]
    for number, each in enumerate(noise):
        mallory.send(each)
        tell(mallory, alice, bob)
        alice.send(b"%d" % number)
        tell(alice, bob)
    heard = [each.content for each in bob.of(MessageReceived) if each.sender_id == "alice"]
    assert heard == [b"%d" % number for number in range(len(noise))]


@pytest.mark.parametrize("segmentation", [layout.name for layout in LAYOUTS[:2]])
def test_a_layout_that_was_asked_for_stays(segmentation: str) -> None:
    alice = Peer("alice", segmentation=segmentation, segment_size_bytes=1_000)
    Stranger("bob").says(alice, b"bare", *map(only_segment, LAYOUTS))
    assert form(alice) == segmentation


def test_without_segments_payloads_stay_bare() -> None:
    alice = Peer("alice", wire_profile="nim", segmentation="none")
    Stranger("bob").says(alice, only_segment(NIM_SEGMENTATION))
    assert form(alice) == BARE
    assert [e.content for e in alice.of(MessageReceived)] == [only_segment(NIM_SEGMENTATION)]


def test_the_form_outlives_a_restart() -> None:
    disk = MemoryStateStore()
    alice = Peer("alice", disk, **NIM)
    Stranger("bob").says(alice, b"bare")
    alice.write()
    assert alice.engine.confirm(alice.of(MessageReceived)[0])
    alice.write()
    again = Peer("alice", disk, **NIM)
    assert again.of(MessageReceived) == []
    assert form(again) == BARE


def test_what_is_emitted_again_after_a_restart_tells_no_form() -> None:
    disk = MemoryStateStore()
    alice = Peer("alice", disk, **NIM)
    Stranger("bob").says(alice, b"bare")
    Stranger("carol").says(alice, only_segment(LIP_243_V01))
    alice.write()
    assert alice.engine.confirm(alice.of(MessageReceived)[1])
    alice.write()
    again = Peer("alice", disk, **NIM)
    again.write()
    assert [event.content for event in again.of(MessageReceived)] == [b"bare"]
    assert form(again) == LIP_243_V01.name


def test_a_form_that_cannot_be_followed_any_more_is_forgotten() -> None:
    disk = MemoryStateStore()
    alice = Peer("alice", disk, **NIM)
    Stranger("bob").says(alice, b"bare")
    alice.write()
    again = Peer("alice", disk, segmentation=LIP_243_V01.name, segment_size_bytes=1_000)
    assert form(again) == LIP_243_V01.name


def test_a_layout_without_room_for_a_payload_is_not_followed() -> None:
    profile = replace(NIM_PROFILE, segmentation=LIP_243_V01.name)
    alice = Peer(
        "alice", wire_profile=profile, segment_size_bytes=100, limits=Limits(payload_bytes=5_000)
    )
    assert form(alice) == LIP_243_V01.name
    Stranger("bob").says(alice, only_segment(NIM_SEGMENTATION))
    assert form(alice) == LIP_243_V01.name
