"""Tests of the transport interface, for pytest. Derive a class from `TransportSuite` that defines
how a transport is made.

    class TestPigeons(TransportSuite):
        @asynccontextmanager
        async def network(self):
            yield lambda settings: PigeonTransport("pigeon://loft", settings)

AnyIO's plugin for pytest runs the tests on asyncio and trio. The network may lose a few messages,
as UDP does, because the tests publish them again.
"""

import os
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    aclosing,
    asynccontextmanager,
    suppress,
)
from dataclasses import replace
from typing import ClassVar, Final, TypeAlias

import anyio
import pytest

from ..channel import ReliableChannel
from ..events import MessageReceived
from ..sds.options import MAX_MESSAGE_BYTES
from ..transport.base import (
    HASH_BYTES,
    Envelope,
    Received,
    Source,
    StoreUnavailable,
    Transport,
    TransportError,
)
from ..transport.settings import WakuSettings

CONTENT_TOPIC: Final = "/reliable-channel/1/transport-suite/proto"
SETTINGS: Final = WakuSettings(CONTENT_TOPIC)
LONGEST_BYTES: Final = MAX_MESSAGE_BYTES
"""Payload size (bytes) that `max_message_bytes` allows by default."""
PATIENCE_S: Final = float(os.environ.get("RELIABLE_CHANNEL_TEST_PATIENCE_S", 30))
"""Time after which a transport counts as hanging (s). Increase this time on a busy machine."""
AGAIN_S: Final = 2.0
"""Time after which missing messages are published again (s)."""

MakeTransport: TypeAlias = Callable[[WakuSettings], Transport]


class Listener:
    """Participant that records the messages that it receives."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self.received: list[Received] = []

    async def listen(self) -> None:
        """Receive messages of the transport until the task is cancelled."""
        while True:
            self.received += (await self.transport.receive()).messages

    def lacks(self, envelopes: Sequence[Envelope]) -> list[Envelope]:
        """Return the given messages that did not arrive at the listener."""
        here = {message.message_hash for message in self.received}
        return [envelope for envelope in envelopes if envelope.message_hash not in here]


class TransportSuite:
    """Tests of the interface `reliable_channel.transport.Transport`."""

    pytestmark: ClassVar = [pytest.mark.anyio]

    has_store: ClassVar[bool] = True
    """True if the network keeps messages in a Store. If False, the transports must report that
    there is no Store."""

    def network(self) -> AbstractAsyncContextManager[MakeTransport]:
        """Make a network for one test, and yield a function that makes its transports.

        Settings with another content topic must lead to another network.
        """
        raise NotImplementedError(
            "the test suite has no transport; override TransportSuite.network"
        )

    @pytest.fixture(params=["asyncio", "trio"])
    def anyio_backend(self, request: pytest.FixtureRequest) -> str:
        """Return each of the two event loops, on which the tests run in real time."""
        return str(request.param)

    async def test_it_has_what_the_contract_names(self) -> None:
        """Test that a transport has all methods, and reports if there is a Store."""
        async with self.network() as make:
            transport = make(SETTINGS)
            assert isinstance(transport, Transport), f"{transport!r} lacks a method of Transport"
            assert transport.has_store == self.has_store, "`has_store` differs from the suite's"

    async def test_hashes_agree_between_participants(self) -> None:
        """Test that equal messages have equal hashes, and that different messages have different
        hashes."""
        async with self.participants(2) as (alice, bob):
            envelopes = [
                transport.envelope(payload, timestamp_ns=at_ns, ephemeral=False, meta=meta)
                for transport in (alice, bob)
                for payload, at_ns, meta in (
                    (b"one", 1, b""),
                    (b"other", 1, b""),
                    (b"one", 2, b""),
                    (b"one", 1, b"meta"),
                )
            ]
            assert [e.message_hash for e in envelopes[:4]] == [
                e.message_hash for e in envelopes[4:]
            ]
            assert len({e.message_hash for e in envelopes}) == 4, "different messages have one hash"
            assert {len(e.message_hash) for e in envelopes} == {HASH_BYTES}
            assert envelopes[3].payload == b"one"
            assert (envelopes[3].timestamp_ns, envelopes[3].meta) == (1, b"meta")

    async def test_what_is_published_arrives_at_each_other_once(self) -> None:
        """Test that every listener receives a message with its hash, time and meta."""
        async with self.participants(3) as transports, listening(transports[1:]) as listeners:
            envelopes = [
                envelope(transports[0], b"%d " % number * size, meta=b"m" * (number % 65))
                for number, size in enumerate([1, 2, 10, 400, 5_000, 20_000] * 5)
            ]
            again = await published(transports[0], envelopes, listeners)
            for listener in listeners:
                assert_once(listener.received, envelopes, again)
                sources = {message.source for message in listener.received}
                assert sources == {Source.LIVE}, "what `receive` returns needs Source.LIVE"

    async def test_the_longest_message_arrives_and_a_longer_one_is_refused(self) -> None:
        """Test that a message that is too long is refused permanently (`retryable` is False) or
        arrives."""
        async with self.participants(2) as (alice, bob), listening([bob]) as listeners:
            longest = envelope(alice, bytes(LONGEST_BYTES))
            again = await published(alice, [longest], listeners)
            assert_once(listeners[0].received, [longest], again)
            with anyio.fail_after(PATIENCE_S):
                try:
                    await alice.publish(envelope(alice, bytes(5_000_000)))
                except TransportError as error:
                    assert not error.retryable, "a message that is too long must not be retryable"

    async def test_ephemeral_messages_arrive(self) -> None:
        """Test that a sender receives its own ephemeral message, as other participants do."""
        async with self.participants(2) as (alice, bob), listening([bob]) as listeners:
            typing = replace(envelope(alice, b"is typing"), ephemeral=True)
            again = await published(alice, [typing], listeners)
            assert_once(listeners[0].received, [typing], again)

    async def test_topics_are_apart(self) -> None:
        """Test that a message on one content topic does not arrive on another."""
        elsewhere = replace(SETTINGS, content_topic=CONTENT_TOPIC.replace("suite", "elsewhere"))
        async with self.participants(2) as (alice, bob), self.opened(elsewhere) as stranger:
            async with listening([bob, stranger]) as (here, there):
                await published(alice, [envelope(alice, b"hello")], [here])
                strange = envelope(stranger, b"other")
                await published(stranger, [strange], [])
                await anyio.sleep(0.2)
            assert [m.payload for m in here.received] == [b"hello"]
            assert {m.payload for m in there.received} <= {b"other"}

    async def test_all_publish_at_once(self) -> None:
        """Test that several tasks of several participants can send at once."""
        async with self.participants(3) as transports, listening(transports) as listeners:
            sent = {
                index: [envelope(transports[index], b"%d %d" % (index, n)) for n in range(12)]
                for index in range(3)
            }

            again: set[bytes] = set()

            async def publish(index: int, part: int) -> None:
                others = [one for i, one in enumerate(listeners) if i != index]
                again.update(await published(transports[index], sent[index][part::4], others))

            async with anyio.create_task_group() as tasks:
                for index in range(3):
                    for part in range(4):
                        tasks.start_soon(publish, index, part)
            for index, listener in enumerate(listeners):
                others = [e for i, envelopes in sent.items() if i != index for e in envelopes]
                hashes = {e.message_hash for e in others}
                foreign = [m for m in listener.received if m.message_hash in hashes]
                assert_once(foreign, others, again)

    async def test_a_cancelled_receive_may_be_called_again(self) -> None:
        """Test that a late participant receives later messages."""
        async with self.participants(2) as (alice, bob):
            for delay_s in (0, 0.0001, 0.001, 0.01, 0.05):
                with anyio.move_on_after(delay_s):
                    await bob.receive()
            async with listening([bob]) as listeners:
                envelopes = [envelope(alice, b"%d" % number) for number in range(20)]
                again = await published(alice, envelopes, listeners)
            assert_once(listeners[0].received, envelopes, again)

    async def test_a_cancelled_publish_leaves_the_transport_whole(self) -> None:
        """Test that a late participant can send."""
        async with self.participants(2) as (alice, bob), listening([bob]) as listeners:
            for delay_s in (0, 0.0001, 0.001, 0.01):
                with anyio.move_on_after(delay_s):
                    await alice.publish(envelope(alice, bytes(100_000)))
            after = envelope(alice, b"after")
            await published(alice, [after], listeners)
            assert after.message_hash in {m.message_hash for m in listeners[0].received}

    async def test_closing_is_the_end_and_may_be_said_twice(self) -> None:
        """Test that a participant that left receives no messages, while the others continue. If the
        participant then publishes, the call fails or the message is received."""
        async with self.participants(2) as (alice, carol), listening([carol]) as listeners:
            bob = self._make(SETTINGS)
            await bob.open()
            await bob.aclose()
            await bob.aclose()
            await published(alice, [envelope(alice, b"after")], listeners)
            with anyio.move_on_after(0.2), suppress(TransportError):
                messages = (await bob.receive()).messages
                assert not messages, "`receive` returned messages after `aclose`"
            with anyio.fail_after(PATIENCE_S), suppress(TransportError):
                await bob.publish(envelope(bob, b"too late"))

    async def test_closing_before_opening_does_nothing(self) -> None:
        """Test that closing twice works, also after a failed opening."""
        async with self.network() as make:
            with anyio.fail_after(PATIENCE_S):
                await make(SETTINGS).aclose()

    async def test_who_joins_later_hears_what_follows(self) -> None:
        """Test that a participant can leave and return."""
        async with self.participants(1) as (alice,):
            await alice.publish(envelope(alice, b"before"))
            for word in (b"first", b"second"):
                async with self.opened(SETTINGS) as bob, listening([bob]) as listeners:
                    await published(alice, [envelope(alice, word)], listeners)
                    assert word in {m.payload for m in listeners[0].received}

    async def test_the_store_gives_what_was_published_by_hash(self) -> None:
        """Test that a query by hash leaves missing messages out. Without a Store, the call must
        raise an error."""
        async with self.participants(2) as (alice, bob):
            envelopes = [envelope(alice, b"%d" % number, meta=b"m") for number in range(120)]
            for it in envelopes:
                await alice.publish(it)
            wanted = envelopes[::2]
            hashes = [e.message_hash for e in wanted]
            if not self.has_store:
                with pytest.raises(StoreUnavailable):
                    await bob.by_hash(hashes)
                return
            found = await eventually(lambda: bob.by_hash([bytes(HASH_BYTES), *hashes]), 60)
            assert_once(found, wanted)
            sources = {message.source for message in found}
            assert sources == {Source.STORE}, "what `by_hash` returns needs source=Source.STORE"
            assert await bob.by_hash([]) == [], "no hashes must find no messages"

    async def test_the_store_gives_what_was_published_by_time(self) -> None:
        """Test that a query by time returns stored messages in order, and no ephemeral messages."""
        async with self.participants(2) as (alice, bob):
            envelopes = [envelope(alice, b"%d" % number) for number in range(130)]
            for it in envelopes:
                await alice.publish(it)
            await alice.publish(replace(envelopes[0], payload=b"is typing", ephemeral=True))
            first_ns, last_ns = envelopes[2].timestamp_ns, envelopes[127].timestamp_ns

            async def stored() -> list[Received]:
                async with aclosing(bob.by_time(first_ns, last_ns)) as pages:
                    return [message async for page in pages for message in page]

            if not self.has_store:
                with pytest.raises(StoreUnavailable):
                    await stored()
                return
            found = await eventually(stored, 126)
            assert [m.payload for m in found] == [e.payload for e in envelopes[2:128]]

    async def test_two_channels_over_it_end_with_one_log(self) -> None:
        """Test that a channel works over the transport."""
        async with self.network() as make, AsyncExitStack() as stack:
            channels = [
                await stack.enter_async_context(
                    ReliableChannel(
                        channel_id="suite",
                        sender_id=name,
                        content_topic=CONTENT_TOPIC,
                        transport=make(SETTINGS),
                        sync_min_interval_ms=300,
                        retry_interval_ms=500,
                        repair={"t_min_ms": 50, "t_max_ms": 300},
                    )
                )
                for name in ("alice", "bob")
            ]
            for number in range(10):
                for channel in channels:
                    await channel.send(b"%d of %s" % (number, channel.sender_id.encode()))
            with anyio.fail_after(PATIENCE_S):
                for channel in channels:
                    await heard(channel, 10)
            digests = [channel.log_digest() for channel in channels]
            assert digests[0] == digests[1], "two channels over the transport have different logs"

    @asynccontextmanager
    async def participants(self, count: int) -> AsyncIterator[list[Transport]]:
        """Open the given number of transports in one network."""
        async with self.network() as make:
            self._make = make
            async with AsyncExitStack() as stack:
                yield [await stack.enter_async_context(self.opened(SETTINGS)) for _ in range(count)]

    @asynccontextmanager
    async def opened(self, settings: WakuSettings) -> AsyncIterator[Transport]:
        """Add a transport to the network that `participants` opened."""
        transport = self._make(settings)
        await transport.open()
        try:
            yield transport
        finally:
            await transport.aclose()


def envelope(transport: Transport, payload: bytes, *, meta: bytes = b"") -> Envelope:
    """Return an envelope with the current time, which no other envelope has."""
    return transport.envelope(payload, timestamp_ns=_now_ns(), ephemeral=False, meta=meta)


@asynccontextmanager
async def listening(transports: Sequence[Transport]) -> AsyncIterator[list[Listener]]:
    """Let all participants receive messages inside the `async with` block."""
    listeners = [Listener(transport) for transport in transports]
    async with anyio.create_task_group() as tasks:
        for listener in listeners:
            tasks.start_soon(listener.listen)
        yield listeners
        tasks.cancel_scope.cancel()


async def published(
    transport: Transport, envelopes: Sequence[Envelope], listeners: Sequence[Listener]
) -> set[bytes]:
    """Publish messages until all participants have all of them. Return the hashes of the messages
    that were published again."""
    again: set[bytes] = set()
    with anyio.fail_after(PATIENCE_S):
        waiting = list(envelopes)
        while waiting:
            for one in waiting:
                await transport.publish(one)
            ends_s = anyio.current_time() + AGAIN_S
            while waiting and anyio.current_time() < ends_s:
                lacking = [one for listener in listeners for one in listener.lacks(waiting)]
                waiting = [one for one in waiting if one in lacking]
                await anyio.sleep(0.005)
            again |= {one.message_hash for one in waiting}
    return again


async def eventually(look: Callable[[], Awaitable[list[Received]]], count: int) -> list[Received]:
    """Query a Store until it has `count` messages, because storing may take a moment."""
    with anyio.fail_after(PATIENCE_S):
        while True:
            found = await look()
            if len(found) >= count:
                return found
            await anyio.sleep(0.05)


async def heard(channel: ReliableChannel, count: int) -> None:
    """Wait until a channel has delivered `count` messages."""
    async for event in channel.events():
        count -= isinstance(event, MessageReceived)
        if not count:
            return


def assert_once(
    received: Sequence[Received], envelopes: Sequence[Envelope], again: Collection[bytes] = ()
) -> None:
    """Check that each message arrived once, except repeated messages, and that no other message
    arrived."""
    counts = Counter(message.message_hash for message in received)
    assert not [h.hex() for h, n in counts.items() if n > 1 and h not in again], "arrived twice"
    here = {m.message_hash: (m.payload, m.timestamp_ns, m.meta) for m in received}
    assert here == {e.message_hash: (e.payload, e.timestamp_ns, e.meta) for e in envelopes}


def _now_ns() -> int:
    """The time, later at each call."""
    global _last_ns
    _last_ns = max(time.time_ns(), _last_ns + 1)
    return _last_ns


_last_ns = 0
