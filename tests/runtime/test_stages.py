"""Encryption, the marker and the rate limit, as a channel applies them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from reliable_channel import ChannelOptions, MessageReceived, MessageSent, SendFailed
from reliable_channel._contracts.encryption import DecryptionFailed, EncryptionPair
from reliable_channel.diagnostics import MessageRejected, RejectionReason
from reliable_channel.errors import EmptyContent, EncryptionFailed
from reliable_channel.events import EphemeralDropped, EphemeralReceived, RateLimitReached
from reliable_channel.options import RateLimitOptions
from reliable_channel.transport import MemoryNetwork
from tests.channel.world import listening, make_channel, now_ns

pytestmark = pytest.mark.anyio

MARKER = b"RELIABLE-CHANNEL-API/1"


def toy(key: int) -> EncryptionPair:
    """A scheme for tests: a key byte in front, and all bytes turned over."""

    async def seal(content: bytes) -> bytes:
        await anyio.lowlevel.checkpoint()
        return bytes([key, *(255 - byte for byte in content)])

    async def open_(payload: bytes) -> bytes:
        await anyio.lowlevel.checkpoint()
        if payload[:1] != bytes([key]):
            raise DecryptionFailed("another key")
        return bytes(255 - byte for byte in payload[1:])

    return EncryptionPair(seal, open_)


async def test_sealed_messages_arrive_and_nothing_goes_out_in_clear() -> None:
    network = MemoryNetwork()
    alice = make_channel(network.transport(), "alice", encryption=toy(1))
    bob = make_channel(network.transport(), "bob", encryption=toy(1))
    async with alice, listening(bob) as told:
        await alice.send(b"a secret")
        received = await told.first(MessageReceived)
        assert received.content == b"a secret"
    assert network.store
    assert not any(b"secret" in stored.payload for stored in network.store.values())


@pytest.mark.parametrize("profile", ["spec", "nim"])
@pytest.mark.parametrize("order", ["profile", "sds-then-encrypt", "encrypt-then-sds"])
async def test_a_profile_seals_whole_messages_unless_it_is_told_otherwise(
    profile: Any, order: Any
) -> None:
    network, options = MemoryNetwork(), ChannelOptions(wire_profile=profile)
    options = replace(options, encryption_order=order)
    alice = make_channel(network.transport(), "alice", encryption=toy(1), options=options)
    bob = make_channel(network.transport(), "bob", encryption=toy(1), options=options)
    async with alice, listening(bob) as told:
        await alice.send(b"a secret")
        assert (await told.first(MessageReceived)).content == b"a secret"
    readable = {b"alice" in stored.payload for stored in network.store.values()}
    assert readable == {order == "encrypt-then-sds"}


async def test_what_is_sealed_with_another_key_is_dropped_silently_and_counted() -> None:
    network = MemoryNetwork()
    alice = make_channel(network.transport(), "alice", encryption=toy(1))
    bob = make_channel(network.transport(), "bob", encryption=toy(1))
    mallory = make_channel(network.transport(), "mallory", encryption=toy(2))
    async with alice, listening(mallory) as sent, listening(bob) as told:
        await mallory.send(b"psst")
        await sent.first(MessageSent)
        await alice.send(b"hello")
        assert (await told.first(MessageReceived)).content == b"hello"
        assert bob.statistics().transport.foreign >= 1
        assert not any(event.wire_name == "message_rejected" for event in told.events)


async def test_a_failing_encryption_sends_nothing() -> None:
    async def broken(content: bytes) -> bytes:
        raise RuntimeError("no key today")

    network = MemoryNetwork()
    channel = make_channel(network.transport(), "alice", encryption=EncryptionPair(broken, broken))
    async with listening(channel) as told:
        request = await channel.send(b"a secret")
        failed = await told.first(SendFailed)
        assert failed.message_id == request.message_id
        assert "no key today" in failed.reason
    assert network.store == {}


async def test_encryption_inside_sds_seals_contents_and_leaves_ids_readable() -> None:
    network, options = MemoryNetwork(), ChannelOptions(encryption_order="encrypt-then-sds")
    alice = make_channel(network.transport(), "alice", encryption=toy(1), options=options)
    bob = make_channel(network.transport(), "bob", encryption=toy(1), options=options)
    async with alice, listening(bob) as told:
        for number in range(20):
            await alice.send(b"secret %d" % number)
        await alice.send_ephemeral(b"secret typing")
        await told.until(lambda: len(told.contents) == 20 and told.of(EphemeralReceived))
        assert told.contents == [b"secret %d" % number for number in range(20)]
        assert told.of(EphemeralReceived)[0].content == b"secret typing"
        assert alice.log_digest() == bob.log_digest()
    stored = [entry.payload for entry in network.store.values()]
    assert not any(b"secret" in payload for payload in stored)
    assert all(b"alice" in payload for payload in stored)


async def test_inside_sds_a_wrong_key_is_told_and_the_channel_goes_on() -> None:
    network, options = MemoryNetwork(), ChannelOptions(encryption_order="encrypt-then-sds")
    alice = make_channel(network.transport(), "alice", encryption=toy(1), options=options)
    bob = make_channel(network.transport(), "bob", encryption=toy(1), options=options)
    mallory = make_channel(network.transport(), "mallory", encryption=toy(2), options=options)
    async with alice, mallory, listening(bob) as told:
        await mallory.send(b"psst")
        rejected = await told.first(MessageRejected)
        assert (rejected.reason, rejected.sender_id) == (
            RejectionReason.UNDECRYPTABLE,
            "mallory",
        )
        await alice.send(b"hello")
        assert (await told.first(MessageReceived)).content == b"hello"


async def test_inside_sds_a_failing_encryption_fails_send_and_logs_nothing() -> None:
    async def broken(content: bytes) -> bytes:
        raise RuntimeError("no key today")

    channel = make_channel(
        MemoryNetwork().transport(),
        "alice",
        encryption=EncryptionPair(broken, broken),
        options=ChannelOptions(encryption_order="encrypt-then-sds"),
    )
    async with channel:
        with pytest.raises(EncryptionFailed, match="no key today"):
            await channel.send(b"a secret")
        with pytest.raises(EmptyContent):
            await channel.send(b"")
        assert channel.log() == []


@pytest.mark.conformance("LD-INGRESS-2")
async def test_a_required_marker_keeps_others_out() -> None:
    network = MemoryNetwork()
    marked = make_channel(network.transport(), "alice", marker=MARKER)
    plain = make_channel(network.transport(), "bob")
    tolerant = make_channel(network.transport(), "carol", marker=MARKER, marker_required=False)
    async with plain, listening(marked) as told, listening(tolerant) as heard:
        await plain.send(b"unmarked")
        await tolerant.send(b"marked")
        assert (await heard.first(MessageReceived)).content == b"unmarked"
        await told.until(lambda: marked.statistics().transport.foreign)
        assert b"unmarked" not in told.contents
    assert MARKER in {stored.meta for stored in network.store.values()}


async def test_a_marker_that_does_not_fit_fails_at_construction() -> None:
    with pytest.raises(ValueError, match="`marker` must be bytes, at most 64"):
        make_channel(MemoryNetwork().transport(), "alice", marker=b"x" * 65)


def limited(messages: int) -> ChannelOptions:
    return ChannelOptions(
        rate_limit=RateLimitOptions(enabled=True, messages_per_epoch=messages, epoch_period_s=600),
        sync_min_interval_ms=0,
    )


@pytest.mark.conformance("LD-RATE-4", "LD-RATE-5")
async def test_messages_beyond_the_budget_wait_in_order(virtual_time: None) -> None:
    network = MemoryNetwork()
    alice = make_channel(network.transport(), "alice", options=limited(3))
    bob = make_channel(network.transport(), "bob", options=ChannelOptions())
    async with listening(alice) as said, listening(bob) as heard:
        for number in range(7):
            await alice.send(b"%d" % number)
        reached = await said.first(RateLimitReached)
        await anyio.wait_all_tasks_blocked()
        assert len(said.of(MessageSent)) == 3
        budget = alice.explain_budget()
        assert (budget.left, budget.spent, budget.waiting) == (0, 3, {"content": 4})
        assert budget.epoch_ends_at_ms == reached.epoch_ends_at_ms
        await heard.until(lambda: b"6" in heard.contents, within_s=3_600)
        assert now_ns() // 1_000_000 >= reached.epoch_ends_at_ms + 600_000
        assert heard.contents == [b"%d" % number for number in range(7)]


async def test_ephemeral_messages_are_dropped_when_the_budget_runs_short() -> None:
    alice = make_channel(MemoryNetwork().transport(), "alice", options=limited(2))
    async with listening(alice) as told:
        await alice.send(b"one")
        await alice.send(b"two")
        await told.first(MessageSent)
        await anyio.wait_all_tasks_blocked()
        message_id = await alice.send_ephemeral(b"typing")
        dropped = await told.first(EphemeralDropped)
        assert dropped == EphemeralDropped(message_id, "rate_limit_reached")


async def test_a_restart_in_the_same_epoch_does_not_overspend(tmp_path: Path) -> None:
    network, file = MemoryNetwork(), tmp_path / "budget.json"
    for expected_left in (2, 1):
        alice = make_channel(
            network.transport(), "alice", options=limited(3), rate_limit={"file": file}
        )
        async with listening(alice) as told:
            await alice.send(b"one")
            await told.first(MessageSent)
            assert alice.explain_budget().left == expected_left


async def test_without_a_rate_limit_there_is_nothing_to_explain() -> None:
    async with make_channel(MemoryNetwork().transport(), "alice") as alice:
        assert not alice.explain_budget().enabled
