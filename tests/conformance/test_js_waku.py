"""Rows of js-waku's suites that no other test shows."""

from typing import Any

import anyio
import pytest

from reliable_channel import (
    ChannelOptions,
    MessageAcknowledged,
    MessageLost,
    MessageReceived,
    MessageSent,
    ReliableChannel,
    SendFailed,
    SyncStatus,
)
from reliable_channel._contracts.encryption import EncryptionPair
from reliable_channel.events import AcknowledgementSource, SendingMessage
from reliable_channel.sds import HistoryEntry, Message
from reliable_channel.sds.clock import LamportClock
from reliable_channel.sds.dialects import SpecCodec
from reliable_channel.transport import MemoryNetwork
from tests.channel.world import listening, make_channel, now_ns, spied
from tests.runtime.test_stages import toy
from tests.runtime.test_store_client import NO_HINT, Author
from tests.sds.world import MINUTE, NOW_MS, events, give, only, send, sync
from tests.sds.world import participant as core

pytestmark = pytest.mark.anyio


# -- sending ---------------------------------------------------------------------------------------


@pytest.mark.conformance("JS-ENC-1")
async def test_with_encryption_all_is_told_as_without() -> None:
    network = MemoryNetwork()
    alice = make_channel(network.transport(), "alice", encryption=toy(1))
    bob = make_channel(network.transport(), "bob", encryption=toy(1), seed=2)
    async with listening(alice) as said, listening(bob) as told:
        request = await alice.send(b"one")
        assert (await said.first(SendingMessage)).request_id == request.request_id
        assert (await said.first(MessageSent)).request_id == request.request_id
        received = await told.first(MessageReceived)
        assert (received.content, received.sender_id) == (b"one", "alice")
        acknowledged = await said.first(MessageAcknowledged)
        assert acknowledged.message_id == request.message_id
        assert acknowledged.acknowledged_by == "bob"
        assert acknowledged.source is AcknowledgementSource.CAUSAL_HISTORY


@pytest.mark.conformance("JS-ENC-1")
async def test_with_encryption_own_messages_acknowledge_nothing(virtual_time: None) -> None:
    alice = make_channel(MemoryNetwork().transport(), "alice", encryption=toy(1))
    async with listening(alice) as said:
        for _ in range(3):
            await alice.send(b"nobody hears this")
        await anyio.sleep(1)
        assert alice.statistics().sds.outgoing == 3
        assert not said.of(MessageAcknowledged)


@pytest.mark.conformance("JS-ENC-1", "JS-RC-3")
async def test_what_cannot_be_encrypted_is_told_with_its_reason() -> None:
    async def no_key(content: bytes) -> bytes:
        raise RuntimeError("no key today")

    network = MemoryNetwork()
    alice = make_channel(network.transport(), "alice", encryption=EncryptionPair(no_key, no_key))
    async with listening(alice) as said:
        request = await alice.send(b"one")
        failed = await said.first(SendFailed)
        assert (failed.message_id, network.store) == (request.message_id, {})
        assert "no key today" in failed.reason


@pytest.mark.conformance("JS-RETRY-1")
async def test_a_message_is_sent_again_until_it_is_acknowledged(virtual_time: None) -> None:
    network = MemoryNetwork()
    spy = spied(network)
    quiet = ChannelOptions(retrieval_strategy="none", sync_min_interval_ms=0)
    alice = make_channel(spy, "alice", options=quiet)
    bob = make_channel(network.transport(), "bob", options=quiet, drop_incoming=0)
    async with listening(alice) as said, listening(bob) as told:
        bob.cut_off(True)
        request = await alice.send(b"hello")
        await anyio.sleep(100)
        assert [message.message_id for message in spy.sent] == [request.message_id] * 4
        bob.cut_off(False)
        await told.first(MessageReceived, within_s=31)
        await bob.send(b"thank you")
        await said.first(MessageAcknowledged)
        await anyio.sleep(600)
        assert len(spy.sent) == 5


@pytest.mark.conformance("JS-ACK-2")
async def test_a_message_to_nobody_is_acknowledged_once_somebody_has_joined(
    virtual_time: None,
) -> None:
    network = MemoryNetwork()
    options = ChannelOptions(retrieval_strategy="none")
    alice = make_channel(network.transport(), "alice", options=options)
    async with listening(alice) as said:
        request = await alice.send(b"is anybody there?")
        await anyio.sleep(45)
        async with make_channel(network.transport(), "bob", options=options, seed=2):
            acknowledged = await said.first(MessageAcknowledged, within_s=120)
            assert acknowledged.message_id == request.message_id


@pytest.mark.conformance("JS-LOST-1")
def test_who_gives_up_a_missing_message_takes_part_again() -> None:
    alice, bob = core("alice"), core("bob")
    send(alice, b"never arrives")
    waits = send(alice, b"refers to it")
    give(bob, waits)
    give(alice, sync(bob))
    later_ms = NOW_MS + 10 * MINUTE
    bob.on_deadline(later_ms)
    assert only(events(bob, MessageLost))
    give(alice, send(bob, b"taking part", later_ms), now_ms=later_ms)
    assert [e.message_id for e in events(alice, MessageAcknowledged)] == [waits.message_id]


@pytest.mark.conformance("SDS-LAMPORT-6")
def test_a_lamport_clock_from_the_far_past_jumps_to_the_present() -> None:
    clock = LamportClock(1)
    assert clock.tick(NOW_MS) == NOW_MS


# -- catching up -----------------------------------------------------------------------------------


@pytest.mark.conformance("JS-QOC-3")
async def test_catching_up_goes_on_past_other_channels() -> None:
    network = MemoryNetwork()
    alice = Author(network)
    alice.store(alice.write("before"))
    other = Message("carol", "other", "another channel", now_ns() // 1_000_000, content=b"x")
    stranger = network.transport()
    alice.store(
        stranger.envelope(SpecCodec().encode(other), timestamp_ns=now_ns(), ephemeral=False)
    )
    alice.store(alice.write("after"))
    async with listening(make_channel(network.transport(), "bob")) as told:
        await told.until(lambda: len(told.contents) == 2)
        assert {e.message_id for e in told.of(MessageReceived)} == {"before", "after"}


# -- sync status -----------------------------------------------------------------------------------


def reader(network: MemoryNetwork, **values: Any) -> ReliableChannel:
    """Somebody who asks nobody and so hears only what is published."""
    given = {"retrieval_strategy": "none", "sync_min_interval_ms": 0, **values}
    return make_channel(network.transport(), "bob", **given)


@pytest.mark.conformance("JS-STATUS-1", "JS-STATUS-4")
async def test_what_is_received_counts_and_the_status_stays_synced() -> None:
    network = MemoryNetwork()
    alice, bob = Author(network), reader(network)
    async with listening(bob) as told:
        assert bob.sync_status == SyncStatus("synced", received=0, missing=0, lost=0)
        for count in range(1, 4):
            alice.publish(alice.write(f"m{count}"))
            await told.until(lambda: len(told.contents) == count)  # noqa: B023
            assert bob.sync_status == SyncStatus("synced", received=count, missing=0, lost=0)


@pytest.mark.conformance("JS-STATUS-3", "JS-STATUS-6", "JS-STATUS-8", "JS-STATUS-9")
async def test_what_is_given_up_and_comes_after_all(virtual_time: None) -> None:
    network = MemoryNetwork()
    alice, bob = Author(network), reader(network)
    async with listening(bob) as told:
        late = alice.write("m1")
        alice.publish(alice.write("m2", HistoryEntry("m1", NO_HINT, "alice")))
        await anyio.sleep(1)
        assert bob.sync_status.state == "syncing"
        await told.first(MessageLost, within_s=90)
        assert bob.sync_status == SyncStatus("synced", received=1, missing=0, lost=1)
        alice.publish(late)
        await told.until(lambda: len(told.contents) == 2)
        assert bob.sync_status == SyncStatus("synced", received=2, missing=0, lost=0)


@pytest.mark.conformance("JS-STATUS-10")
async def test_syncing_until_the_last_missing_message_is_there(virtual_time: None) -> None:
    network = MemoryNetwork()
    alice, bob = Author(network), reader(network)
    async with listening(bob):
        late = [alice.write(f"m{number}") for number in range(3)]
        entries = [HistoryEntry(f"m{number}", NO_HINT, "alice") for number in range(3)]
        alice.publish(alice.write("last", *entries))
        for envelope in late:
            await anyio.sleep(1)
            assert bob.sync_status.state == "syncing"
            alice.publish(envelope)
        await anyio.sleep(1)
        assert bob.sync_status == SyncStatus("synced", received=4, missing=0, lost=0)
