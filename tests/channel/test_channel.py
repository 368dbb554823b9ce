"""The facade: sending, what is told in which order, opening and closing."""

import json
import uuid
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import anyio
import pytest

from reliable_channel import (
    ChannelOptions,
    ChannelUnavailable,
    MessageAcknowledged,
    MessageReceived,
    MessageSent,
    ReliableChannel,
)
from reliable_channel.diagnostics import MessageRejected, RejectionReason
from reliable_channel.errors import (
    ChannelClosed,
    ContentTooLong,
    EmptyContent,
    LeftOutOfOrder,
    OutgoingBufferFull,
)
from reliable_channel.events import EphemeralReceived, SendingMessage
from reliable_channel.options import Limits
from reliable_channel.sds.dialects import SpecCodec
from reliable_channel.sds.message import Message
from reliable_channel.transport import MemoryNetwork, TransportError

from .world import CHANNEL_ID, EPOCH_NS, listening, make_channel, spied

pytestmark = pytest.mark.anyio


def alone(**values: Any) -> ReliableChannel:
    return make_channel(MemoryNetwork().transport(), "alice", **values)


# -- sending ---------------------------------------------------------------------------------------


async def test_an_empty_message_is_refused() -> None:
    async with alone() as channel:
        with pytest.raises(EmptyContent):
            await channel.send(b"")
        with pytest.raises(EmptyContent):
            await channel.send_ephemeral(b"")
        assert channel.log() == []


async def test_a_message_over_the_limit_is_refused_and_told_what_is_left() -> None:
    async with alone(max_message_bytes=1_000) as channel:
        with pytest.raises(ContentTooLong, match=r"which leaves (\d+) for content") as refused:
            await channel.send(b"x" * 1_000)
        most = int(str(refused.value).partition("leaves ")[2].split()[0])
        await channel.send(b"x" * most)
        with pytest.raises(ContentTooLong):
            await channel.send_ephemeral(b"x" * 1_000)
        assert len(channel.log()) == 1


@pytest.mark.parametrize("wrong", [5, "text", None, ["a"]])
async def test_what_is_no_bytes_is_refused(wrong: Any) -> None:
    async with alone() as channel:
        with pytest.raises(TypeError, match=r"^`payload` must be bytes"):
            await channel.send(wrong)
        with pytest.raises(TypeError, match=r"^`payload` must be bytes"):
            await channel.send_ephemeral(wrong)
        assert channel.statistics().sds.counters.sent == 0


async def test_what_can_be_read_as_bytes_is_taken() -> None:
    async with alone() as channel:
        likes: list[Any] = [bytearray(b"one"), memoryview(b"two")]
        for payload in likes:
            await channel.send(payload)
        assert sorted(entry.content for entry in channel.log()) == [b"one", b"two"]


async def test_too_many_unacknowledged_messages_are_refused() -> None:
    async with alone(limits=Limits(outgoing_messages=2)) as channel:
        for _ in range(2):
            await channel.send(b"hello")
        with pytest.raises(OutgoingBufferFull, match="2 own messages"):
            await channel.send(b"hello")
        assert len(channel.log()) == 2


async def test_every_request_has_ids_of_its_own() -> None:
    async with alone() as channel:
        requests = [await channel.send(b"the same") for _ in range(100)]
        assert len({request.request_id for request in requests}) == 100
        assert len({request.message_id for request in requests}) == 100
        assert {uuid.UUID(request.request_id).version for request in requests} == {4}


async def test_a_seed_makes_request_ids_repeatable() -> None:
    ids = []
    for _ in range(2):
        async with alone(seed=7) as channel:
            ids.append((await channel.send(b"hello")).request_id)
    assert ids[0] == ids[1]


async def test_the_journal_has_the_seed_that_was_drawn(tmp_path: Path) -> None:
    channel = alone(journal=tmp_path / "alice.jsonl", seed=None)
    async with channel:
        pass
    (opened, *_) = (tmp_path / "alice.jsonl").read_text().splitlines()
    assert json.loads(opened)["options"]["seed"] == channel.seed
    assert channel.options.seed is None


@pytest.mark.conformance("LD-SEND-1", "LD-SEND-2", "JS-RC-1", "JS-RC-2")
async def test_sending_is_told_before_sent_for_each_request() -> None:
    channel = alone(sync_min_interval_ms=0)
    async with listening(channel) as told:
        requests = [await channel.send(b"%d" % number) for number in range(5)]
        await told.until(lambda: len(told.of(MessageSent)) == 5)
        for request in requests:
            about = [
                (type(event), event.message_id)
                for event in told.events
                if isinstance(event, SendingMessage | MessageSent)
                and event.request_id == request.request_id
            ]
            assert about == [
                (SendingMessage, request.message_id),
                (MessageSent, request.message_id),
            ]


async def test_the_hash_told_is_the_hint_in_the_next_causal_history() -> None:
    network = MemoryNetwork()
    transport = spied(network)
    channel = make_channel(transport, "alice", sync_min_interval_ms=0)
    async with listening(channel) as told:
        first = await channel.send(b"one")
        sent = await told.first(MessageSent)
        await channel.send(b"two")
        await told.until(lambda: len(told.of(MessageSent)) == 2)
        assert [(e.message_id, e.retrieval_hint) for e in transport.sent[1].causal_history] == [
            (first.message_id, sent.message_hash)
        ]
        assert sent.message_hash in network.store


async def test_an_ephemeral_message_is_neither_logged_nor_stored() -> None:
    network = MemoryNetwork()
    alice = make_channel(network.transport(), "alice", sync_min_interval_ms=0)
    bob = make_channel(network.transport(), "bob", sync_min_interval_ms=0)
    async with alice, listening(bob) as told:
        message_id = await alice.send_ephemeral(b"is typing")
        event = await told.first(EphemeralReceived)
        assert event == EphemeralReceived(message_id, "alice", b"is typing")
        assert (alice.log(), bob.log(), network.store) == ([], [], {})


# -- receiving -------------------------------------------------------------------------------------


@pytest.mark.conformance("JS-RC-6", "JS-RC-7", "JS-ACK-1")
async def test_a_message_is_told_once_with_sender_and_position() -> None:
    network = MemoryNetwork()
    alice = make_channel(network.transport(), "alice")
    bob = make_channel(network.transport(), "bob", seed=2)
    async with listening(alice) as alice_told, listening(bob) as bob_told:
        request = await alice.send(b"hello")
        received = await bob_told.first(MessageReceived)
        assert (received.message_id, received.sender_id) == (request.message_id, "alice")
        assert (received.content, received.position, received.missing) == (b"hello", 0, ())
        acknowledged = await alice_told.first(MessageAcknowledged)
        assert acknowledged.message_id == request.message_id
        assert acknowledged.acknowledged_by == "bob"
        assert alice.log_digest() == bob.log_digest()
        assert [entry.sender_id for entry in bob.log()] == ["alice"]
        assert len(bob_told.of(MessageReceived)) == 1
        assert not alice_told.of(MessageReceived)


async def test_a_message_that_is_older_in_order_is_inserted_where_it_belongs() -> None:
    network = MemoryNetwork()
    carol = spied(network)
    bob = make_channel(network.transport(), "bob", sync_min_interval_ms=0)

    def publish(message_id: str, lamport: int) -> None:
        data = SpecCodec().encode(Message("carol", message_id, CHANNEL_ID, lamport, content=b"x"))
        network.broadcast(carol.envelope(data, timestamp_ns=EPOCH_NS, ephemeral=False))

    async with listening(bob) as told:
        lamport = EPOCH_NS // 1_000_000
        publish("later", lamport + 2)
        publish("earlier", lamport + 1)
        publish("last", lamport + 3)
        await told.until(lambda: len(told.of(MessageReceived)) == 3)
        assert [(e.message_id, e.position) for e in told.of(MessageReceived)] == [
            ("later", 0), ("earlier", 0), ("last", 2),
        ]  # fmt: skip
        assert [entry.message_id for entry in bob.log()] == ["earlier", "later", "last"]


@pytest.mark.parametrize(
    ("payload", "reason", "said"),
    [
        (b"", RejectionReason.MALFORMED, ""),
        (b"\xff\xff\xff", RejectionReason.MALFORMED, ""),
        (b"<html>502</html>", RejectionReason.MALFORMED, ""),
        (Message("eve", "m", "other", 1, content=b"x"), RejectionReason.WRONG_CHANNEL, "other"),
        (Message("", "m", CHANNEL_ID, 1, content=b"x"), RejectionReason.MISSING_ID, "sender_id"),
        (Message("eve", "", CHANNEL_ID, 1, content=b"x"), RejectionReason.MISSING_ID, "message_id"),
        (
            Message("eve", "m", CHANNEL_ID, 2**63, content=b"x"),
            RejectionReason.LAMPORT_TOO_FAR_AHEAD,
            str(2**63),
        ),
    ],
)
async def test_what_is_refused_is_told_and_the_channel_goes_on(
    payload: bytes | Message, reason: RejectionReason, said: str
) -> None:
    network = MemoryNetwork()
    transport = network.transport()
    alice = make_channel(network.transport(), "alice")
    bob = make_channel(network.transport(), "bob", seed=2, retrieval_strategy="sds-r-only")
    async with alice, listening(bob) as told:
        data = payload if isinstance(payload, bytes) else SpecCodec().encode(payload)
        network.broadcast(transport.envelope(data, timestamp_ns=EPOCH_NS, ephemeral=True))
        rejected = await told.first(MessageRejected)
        assert rejected.reason is reason
        assert rejected.detail
        assert said in rejected.detail
        await alice.send(b"hello")
        await told.first(MessageReceived)
        assert len(told.of(MessageRejected)) == 1


async def test_a_forged_id_does_not_replace_a_message() -> None:
    network = MemoryNetwork()
    alice = make_channel(network.transport(), "alice")
    bob = make_channel(network.transport(), "bob", seed=2)
    async with alice, listening(bob) as told:
        request = await alice.send(b"hello")
        received = await told.first(MessageReceived)
        forged = Message(
            "eve", request.message_id, CHANNEL_ID, received.lamport_timestamp, content=b"forged"
        )
        network.broadcast(
            network.transport().envelope(
                SpecCodec().encode(forged), timestamp_ns=EPOCH_NS, ephemeral=True
            )
        )
        rejected = await told.first(MessageRejected)
        assert (rejected.reason, rejected.sender_id) == (RejectionReason.ID_ALREADY_USED, "eve")
        assert [entry.content for entry in bob.log()] == [b"hello"]


# -- opening and closing ---------------------------------------------------------------------------


@pytest.mark.conformance("LD-LIFECYCLE-1", "LD-SEMANTICS-6")
async def test_a_channel_that_was_never_opened_says_so() -> None:
    channel = alone()
    for use in (channel.log, channel.log_digest, channel.statistics, channel.events):
        with pytest.raises(ChannelClosed, match="inside `async with`"):
            use()
    with pytest.raises(ChannelClosed):
        await channel.send(b"hello")
    await channel.aclose()


@pytest.mark.conformance("LD-LIFECYCLE-1")
async def test_a_closed_channel_can_be_read_but_not_used() -> None:
    channel = alone(options=ChannelOptions())  # whose first sync message is due in seconds
    async with channel:
        await channel.send(b"hello")
    assert len(channel.log()) == 1
    assert channel.statistics().sds.counters.sent == 1
    with pytest.raises(ChannelClosed, match="'general' is closed"):
        await channel.send(b"hello")
    with pytest.raises(ChannelClosed):
        await channel.send_ephemeral(b"hello")
    assert [type(event) async for event in channel.events()] == [SendingMessage, MessageSent]
    await channel.aclose()


async def test_opening_twice_does_nothing() -> None:
    async with alone() as channel:
        await channel.send(b"hello")
        await channel.open()
        assert len(channel.log()) == 1


async def test_iterations_end_when_the_channel_closes() -> None:
    channel = alone()
    async with anyio.create_task_group() as tasks:

        async def read() -> None:
            async for _ in channel.events():
                pass

        async with channel:
            tasks.start_soon(read)
            tasks.start_soon(read)
            await anyio.wait_all_tasks_blocked()


async def test_a_network_that_is_away_makes_opening_fail_with_its_reason() -> None:
    network = MemoryNetwork()
    network.away = True
    channel = make_channel(network.transport(), "alice")
    with pytest.raises(ChannelUnavailable, match=r"'general' .*: the network is away") as failed:
        await channel.open()
    assert isinstance(failed.value.__cause__, TransportError)
    network.away = False
    async with channel:
        await channel.send(b"hello")


async def test_the_body_s_exception_comes_out_as_it_is() -> None:
    with pytest.raises(KeyError):
        async with alone():
            raise KeyError


async def test_cancelling_the_body_closes_the_channel() -> None:
    channel = alone()
    with anyio.move_on_after(0.01) as scope:
        async with channel:
            await anyio.sleep_forever()
    assert scope.cancelled_caught
    with pytest.raises(ChannelClosed):
        await channel.send(b"hello")


async def test_cut_off_is_for_channels_that_drop() -> None:
    async with alone() as channel:
        with pytest.raises(ValueError, match="drop_incoming"):
            channel.cut_off(True)
        assert channel.dropped_incoming == 0


async def test_cut_off_participants_find_together_again() -> None:
    network = MemoryNetwork()
    alice = make_channel(network.transport(), "alice")
    bob = make_channel(network.transport(), "bob", seed=2, drop_incoming=0)
    async with listening(alice) as alice_told, listening(bob) as bob_told:
        bob.cut_off(True)
        await alice.send(b"from alice")
        await bob.send(b"from bob")
        await alice_told.until(lambda: bob.dropped_incoming)
        assert len(bob.log()) == 1
        bob.cut_off(False)
        await bob_told.first(MessageReceived)
        await alice_told.first(MessageReceived)
        assert alice.log_digest() == bob.log_digest()


# -- tasks and processes ---------------------------------------------------------------------------


async def test_channels_close_in_any_order_in_any_task_and_within_limits() -> None:
    network = MemoryNetwork()
    first, second = (make_channel(network.transport(), name) for name in ("alice", "bob"))
    with anyio.fail_after(60):
        await first.open()
    await second.open()
    await first.aclose()
    await second.send(b"still here")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(second.aclose)
    with anyio.fail_after(60):
        await second.open()
        await second.aclose()


async def test_an_opening_that_is_cancelled_leaves_nothing() -> None:
    network = MemoryNetwork()
    channel = make_channel(network.transport(), "alice")
    with anyio.CancelScope() as scope:
        scope.cancel()
        await channel.open()
    assert scope.cancelled_caught
    assert channel.health().problems == ("the channel is not open",)
    async with channel:
        await channel.send(b"hello")


async def test_an_error_inside_ends_the_channel_and_is_raised_at_its_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def broken() -> None:
        await anyio.lowlevel.checkpoint()
        raise LookupError("a mistake in a transport")

    async def closing() -> None:
        problems.extend(channel.health().problems)

    problems: list[str] = []
    transport = MemoryNetwork().transport()
    transport.receive = broken  # type: ignore[method-assign, assignment]
    transport.aclose = closing  # type: ignore[method-assign]
    channel = make_channel(transport, "alice")
    await channel.open()
    async for _ in channel.events():
        pass
    with pytest.raises(ChannelClosed, match=r"ended with an error: .*LookupError"):
        await channel.send(b"hello")
    assert all("LookupError" in each for each in (*channel.health().problems, *problems))
    assert problems, "it was not asked while it closed"
    assert "'general' ended with an error" in caplog.messages[-1]
    with pytest.raises(ExceptionGroup) as failed:
        await channel.aclose()
    assert failed.group_contains(LookupError, match="a mistake in a transport")
    await channel.aclose()
    with pytest.raises(ExceptionGroup) as failed:
        async with channel:
            await anyio.sleep_forever()
    assert failed.group_contains(LookupError, match="a mistake in a transport")


async def test_a_channel_whose_closing_was_cancelled_opens_again() -> None:
    channel = alone()
    await channel.open()
    with anyio.CancelScope() as scope:
        scope.cancel()
        await channel.aclose()
    await channel.open()
    await channel.send(b"one")
    await channel.aclose()


async def test_a_block_that_is_not_left_last_stays_open() -> None:
    network = MemoryNetwork()
    first, second = (make_channel(network.transport(), name) for name in ("alice", "bob"))
    outer, inner = AsyncExitStack(), AsyncExitStack()
    await outer.enter_async_context(first)
    await inner.enter_async_context(second)
    with pytest.raises(LeftOutOfOrder, match="leave blocks in reverse order, or use open"):
        await first.__aexit__(None, None, None)
    async with anyio.create_task_group() as tasks:

        async def leave() -> None:
            with pytest.raises(LeftOutOfOrder):
                await second.__aexit__(None, None, None)

        tasks.start_soon(leave)
    await first.send(b"still here")
    await second.send(b"I, too")
    await inner.aclose()
    await outer.aclose()
