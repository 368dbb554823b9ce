"""Requests of one and of many segments: what the application hears."""

import hashlib
from dataclasses import replace
from functools import partial
from typing import Any

import anyio
import pytest

from reliable_channel import (
    ChannelOptions,
    MessageAcknowledged,
    MessageReceived,
    MessageSent,
    SendFailed,
)
from reliable_channel.engine import segments
from reliable_channel.errors import ContentTooLong, OutgoingBufferFull
from reliable_channel.events import ReceiveProgress, SendingMessage, SendProgress
from reliable_channel.options import SEGMENT_SIZE_BYTES, Limits
from reliable_channel.sds import NIM
from reliable_channel.segmentation import (
    NIM_SEGMENTATION,
    PayloadReassembled,
    Reassembler,
    ReassemblyLimits,
    Segmenter,
    sniff,
)
from reliable_channel.transport import MemoryNetwork, TransportError

from .world import QUICK, Spy, listening, make_channel, spied

pytestmark = pytest.mark.anyio


QUICK_OF_ONE = replace(QUICK, limits=Limits(outgoing_messages=1))


def segmenting(**values: object) -> ChannelOptions:
    return ChannelOptions(
        segmentation="nim-segmentation",
        sync_min_interval_ms=200,
        retrieve_frequency_ms=200,
        retry_interval_ms=1_000,
        possibly_acknowledged_retry_interval_ms=2_000,
        **values,  # type: ignore[arg-type]
    )


def payload(size: int) -> bytes:
    return hashlib.shake_256(b"payload").digest(size)


async def test_a_short_payload_is_one_segment_and_one_message() -> None:
    network = MemoryNetwork()
    alice = make_channel(network.transport(), "alice", options=segmenting())
    bob = make_channel(network.transport(), "bob", options=segmenting())
    async with listening(alice) as said, listening(bob) as heard:
        request = await alice.send(b"short")
        assert len(request.message_ids) == 1
        received = await heard.first(MessageReceived)
        assert received.content == b"short"
        acknowledged = await said.first(MessageAcknowledged)
        assert acknowledged.message_id == request.message_id
        assert not said.of(SendProgress)
        assert [entry.content for entry in alice.log()] == [b"short"]


@pytest.mark.conformance("LD-SEND-3")
async def test_a_long_payload_over_a_lossy_link_arrives_once_with_progress() -> None:
    network, content = MemoryNetwork(), payload(10_000_000)
    alice = make_channel(network.transport(), "alice", options=segmenting())
    bob = make_channel(network.transport(), "bob", options=segmenting(), drop_incoming=0.3, seed=11)
    async with listening(alice) as said, listening(bob) as heard:
        request = await alice.send(content)
        total = len(request.message_ids)
        assert total == 98
        await heard.until(lambda: heard.contents, within_s=60)
        assert heard.contents == [content]
        progress = [event.chunks for event in heard.of(ReceiveProgress)]
        assert progress == sorted(progress)
        assert progress[-1] >= total - 1
        await said.until(lambda: said.of(MessageAcknowledged), within_s=60)
    assert len(said.of(SendingMessage)) == len(said.of(MessageSent)) == 1
    (sent,) = said.of(MessageSent)
    assert (sent.request_id, sent.message_ids) == (request.request_id, request.message_ids)
    (acknowledged,) = said.of(MessageAcknowledged)
    assert acknowledged.message_id == request.message_id
    states = {
        state: [e.chunks for e in said.of(SendProgress) if e.state == state]
        for state in ("sent", "acknowledged")
    }
    assert states == {"sent": [*range(1, 99)], "acknowledged": [*range(1, 99)]}
    assert alice.log_digest() == bob.log_digest()


@pytest.mark.conformance("LD-SEMANTICS-5")
async def test_two_equal_payloads_arrive_twice() -> None:
    network, content = MemoryNetwork(), payload(300_000)
    alice = make_channel(network.transport(), "alice", options=segmenting())
    bob = make_channel(network.transport(), "bob", options=segmenting())
    async with alice, listening(bob) as heard:
        await alice.send(content)
        await alice.send(content)
        await heard.until(lambda: len(heard.contents) == 2)
        assert heard.contents == [content, content]


async def test_a_payload_beyond_the_limit_fails_at_send() -> None:
    channel = make_channel(
        MemoryNetwork().transport(), "alice", options=segmenting(limits=Limits(payload_bytes=1_000))
    )
    async with channel:
        with pytest.raises(ContentTooLong, match=r"1001 bytes, but limits\.payload_bytes is 1000"):
            await channel.send(payload(1_001))
        await channel.send(payload(1_000))


async def test_a_payload_that_only_half_fits_the_outgoing_buffer_is_refused_whole() -> None:
    channel = make_channel(
        MemoryNetwork().transport(), "alice", options=segmenting(limits=Limits(outgoing_messages=2))
    )
    async with channel:
        with pytest.raises(OutgoingBufferFull, match="4 segments"):
            await channel.send(payload(306_817))
        assert len(channel.log()) == 0


async def test_what_is_cancelled_is_a_request() -> None:
    async with make_channel(MemoryNetwork().transport(), "alice") as alice:
        request = await alice.send(b"hello")
        with pytest.raises(TypeError, match="must be what `send` returned \\(got '"):
            await alice.cancel(request.request_id)  # type: ignore[arg-type]


async def test_a_cancelled_request_is_not_retried_and_makes_room() -> None:
    spy = spied(MemoryNetwork())
    alice = make_channel(spy, "alice", options=QUICK_OF_ONE)
    async with listening(alice) as said:
        request = await alice.send(b"one")
        await said.first(MessageSent)
        with pytest.raises(OutgoingBufferFull):
            await alice.send(b"two")
        assert await alice.cancel(request)
        failed = await said.first(SendFailed)
        assert (failed.request_id, failed.reason) == (
            request.request_id,
            "the application cancelled it",
        )
        assert not await alice.cancel(request)
        await alice.send(b"two")
        await said.until(lambda: len(said.of(MessageSent)) == 2)
        sent = [message.content for message in spy.sent if message.content]
        await anyio.sleep(0.2)  # several retry intervals
        later = [message.content for message in spy.sent if message.content]
        assert set(later[len(sent) :]) == {b"two"}
    assert [entry.content for entry in alice.log()] == [b"one", b"two"]


@pytest.mark.parametrize("is_in_hand", [False, True])
async def test_a_request_that_is_cancelled_while_the_node_is_away_is_never_published(
    is_in_hand: bool,
) -> None:
    class Away(Spy):
        back = anyio.Event()
        tried = anyio.Event()

        async def publish(self, envelope: Any) -> None:
            self.tried.set()
            if is_in_hand and not self.back.is_set():
                await self.back.wait()
                raise TransportError("away")
            if not self.back.is_set():
                raise TransportError("away")
            await super().publish(envelope)

    away = Away(MemoryNetwork().transport())
    alice = make_channel(away, "alice", options=QUICK_OF_ONE)
    async with listening(alice) as said:
        request = await alice.send(b"one")
        await away.tried.wait()
        assert await alice.cancel(request)
        await said.first(SendFailed)
        away.back.set()
        await alice.send(b"two")
        await said.first(MessageSent)
    assert {message.content for message in away.sent if message.content} == {b"two"}


async def test_a_request_that_is_acknowledged_cannot_be_cancelled() -> None:
    network = MemoryNetwork()
    alice, bob = (make_channel(network.transport(), name) for name in ("alice", "bob"))
    async with bob, listening(alice) as said:
        request = await alice.send(b"one")
        await said.first(MessageAcknowledged)
        assert not await alice.cancel(request)
        assert said.of(SendFailed) == []


async def test_a_request_of_which_a_segment_is_refused_fails_once() -> None:
    network = MemoryNetwork()
    spy = spied(network)
    channel = make_channel(spy, "alice", options=segmenting())
    async with listening(channel) as told:
        spy.cut_off = False
        network.away = True
        request = await channel.send(payload(306_817))
        await anyio.wait_all_tasks_blocked()
    failed = told.of(SendFailed)
    assert [event.message_id for event in failed] == [request.message_id]
    assert failed[0].request_id == request.request_id


NIM_OPTIONS = ChannelOptions(wire_profile="nim")


async def nim_contents(payload: bytes, **values: Any) -> list[bytes]:
    """Contents on the wire, in order, of a payload that arrived whole at another participant."""
    network = MemoryNetwork()
    alice = make_channel(network.transport(), "alice", options=NIM_OPTIONS, **values)
    bob = make_channel(network.transport(), "bob", options=NIM_OPTIONS)
    async with alice, listening(bob) as heard:
        await alice.send(payload)
        assert (await heard.first(MessageReceived)).content == payload
    assert {stored.meta for stored in network.store.values()} == {b"RELIABLE-CHANNEL-API/1"}
    return [NIM.codec.decode(each.payload).content or b"" for each in network.store.values()]


async def test_a_payload_of_nim_is_in_a_segment() -> None:
    # logos-delivery discards what is none.
    (content,) = await nim_contents(b"hello")
    assert NIM_SEGMENTATION.decode(content) == sniff(content) is not None


async def test_a_longer_payload_of_nim_goes_in_segments() -> None:
    contents = await nim_contents(payload(SEGMENT_SIZE_BYTES + 1))
    assert len(contents) == 2
    assert all(sniff(content) for content in contents)


async def test_every_payload_of_nim_is_wrapped_where_the_user_asks() -> None:
    (content,) = await nim_contents(b"hello", segmentation="nim-segmentation")
    assert sniff(content) is not None


async def test_a_payload_that_looks_like_a_segment_is_wrapped() -> None:
    # Else its receiver would unwrap it, and hand out something else.
    (inner,) = Segmenter(NIM_SEGMENTATION).split(b"hello")
    (content,) = await nim_contents(inner)
    outer = sniff(content)
    assert outer is not None
    assert outer.payload == inner


async def test_a_peer_of_nim_that_knows_no_segments_is_answered_bare() -> None:
    network = MemoryNetwork()
    ours = make_channel(network.transport(), "ours", options=NIM_OPTIONS)
    theirs = make_channel(network.transport(), "theirs", options=NIM_OPTIONS, segmentation="none")
    largest = payload(SEGMENT_SIZE_BYTES)
    async with listening(ours) as heard, listening(theirs) as told:
        await theirs.send(b"hello")
        await heard.until(lambda: heard.contents == [b"hello"])
        for content in (b"answer", largest):
            await ours.send(content)
        await told.until(lambda: told.contents == [b"answer", largest])
        await theirs.send(b"thanks")
        await heard.until(lambda: heard.contents == [b"hello", b"thanks"])


async def test_a_peer_of_nim_that_discards_what_is_no_segment_reads_all() -> None:
    network = MemoryNetwork()
    ours = make_channel(network.transport(), "ours", options=NIM_OPTIONS)
    theirs = make_channel(network.transport(), "theirs", options=NIM_OPTIONS, segmentation="none")
    segmenter, reassembler = Segmenter(NIM_SEGMENTATION), Reassembler()
    delivered: list[bytes] = []
    read = 0

    def reassembled(contents: list[bytes]) -> list[bytes]:
        nonlocal read
        for content in contents[read:]:
            outcomes = reassembler.receive("ours", content, 0)
            delivered.extend(o.payload for o in outcomes if isinstance(o, PayloadReassembled))
        read = len(contents)
        return delivered

    long = payload(250_000)
    async with listening(ours) as heard, listening(theirs) as told:
        await ours.send(b"first")
        await told.until(lambda: reassembled(told.contents) == [b"first"])
        for segment in segmenter.split(b"answer"):
            await theirs.send(segment)
        await heard.until(lambda: heard.contents == [b"answer"])
        for content in (b"second", long):
            await ours.send(content)
        await told.until(lambda: reassembled(told.contents) == [b"first", b"second", long])


async def test_segments_that_had_to_make_room_are_read_from_the_log_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # All segments of the first payload are acknowledged; what was acknowledged is delivered.
    room = partial(ReassemblyLimits, max_buffered_bytes=1, max_sender_buffered_bytes=1)
    monkeypatch.setattr(segments, "ReassemblyLimits", room)
    network, size = MemoryNetwork(), 30_000
    alice = make_channel(network.transport(), "alice", options=ChannelOptions())
    options = segmenting(segment_size_bytes=1_000, limits=Limits(payload_bytes=size))
    bob = make_channel(network.transport(), "bob", options=options)
    split = Segmenter(NIM_SEGMENTATION, segment_size_bytes=1_000).split
    payloads = [bytes([n]) + payload(size - 1) for n in range(3)]
    *first, last = split(payloads[0])
    async with alice, listening(bob) as heard:
        for each in [*first, *split(payloads[1])[:-1], *split(payloads[2])[:-1]]:
            await alice.send(each)
        await heard.until(lambda: len(bob.log()) == 3 * len(first))
        sets = bob._used().engine.segmentation.reassembler.pending  # type: ignore[attr-defined]  # noqa: SLF001
        assert [None in each.chunks.values() for each in sets] == [True, False, False]
        await alice.send(last)
        assert (await heard.first(MessageReceived)).content == payloads[0]
