"""Retrieval from Store: by hint, by topic and time, when connecting, after outages, and when
nothing helps."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

import anyio
import pytest

from reliable_channel import ChannelOptions, MessageLost, MessageReceived, MessageSent
from reliable_channel.diagnostics import (
    MessageMissing,
    RepairRequested,
    TransportDegraded,
    TransportRecovered,
)
from reliable_channel.events import AnyEvent
from reliable_channel.options import Limits
from reliable_channel.sds.dialects import SpecCodec
from reliable_channel.sds.message import HistoryEntry, Message
from reliable_channel.transport import (
    Batch,
    Envelope,
    LossyTransport,
    MemoryNetwork,
    Received,
    StoreUnavailable,
    TransportError,
)
from reliable_channel.transport.base import Source
from tests.channel.world import CHANNEL_ID, EPOCH_NS, QUICK, listening, make_channel, now_ns

pytestmark = pytest.mark.anyio

NO_HINT = b"\0" * 32


class Library(LossyTransport):
    """A way into a network that counts queries, can lose Store, and can fail to receive."""

    def __init__(self, network: MemoryNetwork) -> None:
        super().__init__(network.transport(), drop_incoming=0, seed=0)
        self.hashes_asked: list[bytes] = []
        self.times_asked: list[tuple[int, int]] = []
        self.store_away = False
        self.refuses_hashes = False
        self.broken: list[TransportError] = []
        self.gap = ""
        self.between_pages = anyio.Event()
        self.between_pages.set()

    async def receive(self) -> Batch:
        batch = await super().receive()
        if self.broken:
            raise self.broken.pop()
        gap, self.gap = self.gap, ""
        return Batch(batch.messages, gap)

    async def by_hash(self, hashes: Sequence[bytes]) -> list[Received]:
        self.hashes_asked += hashes
        await self._check()
        if self.refuses_hashes:
            raise StoreUnavailable("queries by hash are not supported")
        return await super().by_hash(hashes)

    async def by_time(self, start_ns: int, end_ns: int) -> AsyncGenerator[list[Received], None]:
        self.times_asked.append((start_ns, end_ns))
        await self._check()
        async with aclosing(super().by_time(start_ns, end_ns)) as pages:
            async for page in pages:
                yield page
                await self.between_pages.wait()

    async def _check(self) -> None:
        await anyio.lowlevel.checkpoint()
        if self.store_away:
            raise StoreUnavailable("no store peers")


class Author:
    """Somebody who publishes just what a test wants."""

    def __init__(self, network: MemoryNetwork, sender_id: str = "alice") -> None:
        self._network = network
        self._transport = network.transport()
        self._sender_id = sender_id
        self._lamport = EPOCH_NS // 1_000_000

    def write(self, message_id: str, *history: HistoryEntry) -> Envelope:
        self._lamport += 1
        message = Message(
            self._sender_id, message_id, CHANNEL_ID, self._lamport, history, content=b"content"
        )
        return self._transport.envelope(
            SpecCodec().encode(message), timestamp_ns=now_ns(), ephemeral=False
        )

    def store(self, envelope: Envelope) -> None:
        """Lose a message on its way, and leave it in Store."""
        stamp = envelope.timestamp_ns
        self._network.store[envelope.message_hash] = Received(
            envelope.payload, envelope.message_hash, stamp, Source.STORE
        )

    def publish(self, envelope: Envelope) -> None:
        self._network.broadcast(envelope)


def ids(events: Sequence[AnyEvent]) -> list[str]:
    return [event.message_id for event in events if isinstance(event, MessageReceived)]


def reader(transport: LossyTransport, **values: Any) -> Any:
    given = {"query_on_connect": False, "sync_min_interval_ms": 0, **values}
    return make_channel(transport, "bob", **given)


# -- one missing message ---------------------------------------------------------------------------


@pytest.mark.conformance("JS-MISSING-1")
async def test_a_missing_message_is_fetched_by_its_hint() -> None:
    network = MemoryNetwork()
    alice, library = Author(network), Library(network)
    async with listening(reader(library)) as told:
        lost = alice.write("m1")
        alice.store(lost)
        alice.publish(alice.write("m2", HistoryEntry("m1", lost.message_hash, "alice")))
        await told.until(lambda: len(ids(told.events)) == 2)
        assert ids(told.events) == ["m1", "m2"]
        assert library.hashes_asked == [lost.message_hash]
        assert library.times_asked == []


@pytest.mark.parametrize("hint", [None, b"", b"short", NO_HINT, b"\xff" * 33])
async def test_without_a_good_hint_it_is_fetched_by_topic_and_time(hint: bytes | None) -> None:
    network = MemoryNetwork()
    alice, library = Author(network), Library(network)
    channel = reader(library)
    async with listening(channel) as told:
        alice.store(alice.write("m1"))
        alice.publish(alice.write("m2", HistoryEntry("m1", hint, "alice")))
        await told.until(lambda: len(ids(told.events)) == 2)
        assert ids(told.events) == ["m1", "m2"]
        assert library.hashes_asked == ([hint] if hint == NO_HINT else [])
        assert len(library.times_asked) == 1
        assert channel.statistics().transport.retrieved == 1
        assert told.of(MessageReceived)[0].missing == ()


@pytest.mark.parametrize("strategy", ["both", "store-only", "adaptive", "prompt"])
async def test_from_a_store_that_refuses_queries_by_hash_it_is_fetched_by_topic_and_time(
    virtual_time: None, strategy: str
) -> None:
    network = MemoryNetwork()
    alice, library = Author(network), Library(network)
    library.refuses_hashes = True
    channel = reader(library, retrieval_strategy=strategy, options=ChannelOptions())
    async with listening(channel) as told:
        for number in (1, 3):
            lost = alice.write(f"m{number}")
            alice.store(lost)
            entry = HistoryEntry(f"m{number}", lost.message_hash, "alice")
            alice.publish(alice.write(f"m{number + 1}", entry))
            await told.until(lambda: len(ids(told.events)) == number + 1, within_s=30)  # noqa: B023
        assert ids(told.events) == ["m1", "m2", "m3", "m4"]
        assert not told.of(MessageLost)


async def test_a_chain_of_missing_messages_is_followed() -> None:
    network = MemoryNetwork()
    alice, library = Author(network), Library(network)
    async with listening(reader(library)) as told:
        entry: list[HistoryEntry] = []
        for number in range(10):
            envelope = alice.write(f"m{number}", *entry)
            entry = [HistoryEntry(f"m{number}", envelope.message_hash, "alice")]
            alice.store(envelope)
        alice.publish(alice.write("last", *entry))
        await told.until(lambda: len(ids(told.events)) == 11)
        assert ids(told.events) == [*(f"m{number}" for number in range(10)), "last"]


async def test_a_message_is_given_a_moment_to_arrive_by_itself(virtual_time: None) -> None:
    network = MemoryNetwork()
    alice, library = Author(network), Library(network)
    async with listening(reader(library, options=ChannelOptions(confirm_interval_ms=0))) as told:
        late = alice.write("m1")
        alice.publish(alice.write("m2", HistoryEntry("m1", late.message_hash, "alice")))
        await told.first(MessageMissing)
        await anyio.sleep(0.9)
        alice.publish(late)
        await told.until(lambda: len(ids(told.events)) == 2)
        await anyio.sleep(60)
        assert (library.hashes_asked, library.times_asked) == ([], [])


async def test_it_is_looked_for_at_the_retrieve_frequency_and_further_back_each_time(
    virtual_time: None,
) -> None:
    network = MemoryNetwork()
    alice, library = Author(network), Library(network)
    options = ChannelOptions(
        retrieve_frequency_ms=10_000, retrieval_strategy="store-only", confirm_interval_ms=0
    )
    async with listening(reader(library, options=options)) as told:
        alice.publish(alice.write("m2", HistoryEntry("m1", NO_HINT, "alice")))
        await told.first(MessageMissing)
        began_ns = now_ns()
        await anyio.sleep(105)
        assert len(library.hashes_asked) == 11
        spans_s = [round((began_ns - start) / 1e9) for start, _ in library.times_asked]
        assert spans_s == [90, 630, 3_630, 86_430]


async def test_one_that_was_stored_much_later_is_found(virtual_time: None) -> None:
    """Its sender was cut off and has stamped it anew."""
    network = MemoryNetwork()
    alice, library = Author(network), Library(network)
    options = ChannelOptions(retrieval_strategy="store-only")
    async with listening(reader(library, options=options)) as told:
        alice.publish(alice.write("m2", HistoryEntry("m1", None, "alice")))
        await told.first(MessageMissing)
        await anyio.sleep(120)
        alice.store(alice.write("m1"))
        await told.until(lambda: len(ids(told.events)) == 2, within_s=170)
        assert ids(told.events) == ["m1", "m2"]


async def test_one_from_last_week_is_found(virtual_time: None) -> None:
    network = MemoryNetwork()
    alice, library = Author(network), Library(network)
    alice.store(alice.write("m1"))
    await anyio.sleep(7 * 86_400)
    async with listening(reader(library, options=ChannelOptions())) as told:
        alice.publish(alice.write("m2", HistoryEntry("m1", None, "alice")))
        await told.until(lambda: len(ids(told.events)) == 2, within_s=299)


async def test_one_that_is_nowhere_is_declared_lost_and_its_dependant_delivered(
    virtual_time: None,
) -> None:
    network = MemoryNetwork()
    alice, library = Author(network), Library(network)
    channel = reader(library, options=ChannelOptions())
    async with listening(channel) as told:
        entry = HistoryEntry("m1", NO_HINT, "alice")
        late = alice.write("m1")
        alice.publish(alice.write("m2", entry))
        lost = await told.first(MessageLost, within_s=400)
        assert 300_000 < now_ns() // 1_000_000 - EPOCH_NS // 1_000_000
        assert (lost.message_id, lost.sender_id, lost.retrieval_hint) == ("m1", "alice", NO_HINT)
        (received,) = told.of(MessageReceived)
        assert (received.message_id, received.missing) == ("m2", (entry,))
        alice.publish(late)
        await told.until(lambda: len(ids(told.events)) == 2)
        assert [(e.message_id, e.position) for e in told.of(MessageReceived)] == [
            ("m2", 0), ("m1", 0),
        ]  # fmt: skip
        assert [e.message_id for e in channel.log()] == ["m1", "m2"]


@pytest.mark.parametrize(
    ("strategy", "store", "repair"),
    [
        ("both", True, True),
        ("store-only", True, False),
        ("sds-r-only", False, True),
        ("none", False, False),
    ],
)
async def test_the_strategy_says_who_is_asked(
    virtual_time: None, strategy: str, store: bool, repair: bool
) -> None:
    network = MemoryNetwork()
    alice, library = Author(network), Library(network)
    channel = reader(
        library, options=ChannelOptions(), retrieval_strategy=strategy, query_on_connect=True
    )
    async with listening(channel) as told:
        alice.publish(alice.write("m2", HistoryEntry("m1", NO_HINT, "alice")))
        await told.first(MessageLost, within_s=400)
        assert bool(library.hashes_asked) is bool(library.times_asked) is store
        assert bool(told.of(RepairRequested)) is repair


# -- Store comes and goes --------------------------------------------------------------------------


async def test_store_away_is_told_once_and_made_up_for_when_it_is_back(
    virtual_time: None,
) -> None:
    network = MemoryNetwork()
    alice, library = Author(network), Library(network)
    library.store_away = True
    channel = reader(library, options=ChannelOptions(), query_on_connect=True)
    async with listening(channel) as told:
        lost = alice.write("m1")
        alice.store(lost)
        alice.publish(alice.write("m2", HistoryEntry("m1", lost.message_hash, "alice")))
        await told.first(TransportDegraded)
        await anyio.sleep(60)
        assert channel.statistics().degraded == ("store",)
        assert ids(told.events) == []
        library.store_away = False
        await told.until(lambda: len(ids(told.events)) == 2)
        assert ids(told.events) == ["m1", "m2"]
        recovered = await told.first(TransportRecovered)
        assert told.of(TransportDegraded) == [TransportDegraded("store", "no store peers")]
        assert recovered.component == "store"
        assert 60_000 <= recovered.outage_ms <= 71_000


async def test_an_empty_store_that_is_back_counts_as_recovered(virtual_time: None) -> None:
    library = Library(MemoryNetwork())
    library.store_away = True
    channel = reader(library, query_on_connect=True)
    async with listening(channel) as told:
        await told.first(TransportDegraded)
        library.store_away = False
        await told.first(TransportRecovered)
        assert channel.statistics().degraded == ()


# -- catching up -----------------------------------------------------------------------------------


async def test_on_connecting_what_was_missed_is_fetched() -> None:
    network = MemoryNetwork()
    alice, library = Author(network), Library(network)
    for number in range(250):
        alice.store(alice.write(f"m{number}"))
    channel = reader(library, query_on_connect=True, query_on_connect_window_ms=3_600_000)
    async with listening(channel) as told:
        await told.until(lambda: len(ids(told.events)) == 250)
        ((start_ns, end_ns),) = library.times_asked
        assert start_ns <= now_ns() - 3_600 * 10**9
        assert end_ns >= now_ns()
        assert channel.statistics().transport.retrieved == 250


async def test_the_window_bounds_how_far_back_the_query_goes(virtual_time: None) -> None:
    network = MemoryNetwork()
    alice, library = Author(network), Library(network)
    alice.store(alice.write("long ago"))
    await anyio.sleep(7_200)
    alice.store(alice.write("lately"))
    values = {"query_on_connect": True, "query_on_connect_window_ms": 3_600_000}
    async with listening(reader(library, **values)) as told:
        await told.first(MessageReceived)
        await anyio.sleep(1)
        assert ids(told.events) == ["lately"]


async def test_where_the_query_is_switched_off_nothing_is_asked() -> None:
    network = MemoryNetwork()
    alice, library = Author(network), Library(network)
    alice.store(alice.write("m1"))
    async with listening(reader(library)) as told:
        alice.publish(alice.write("m2"))
        await told.first(MessageReceived)
        assert (ids(told.events), library.times_asked) == (["m2"], [])


@pytest.mark.conformance("JS-CONNECT-1")
async def test_an_outage_is_told_and_made_up_for(virtual_time: None) -> None:
    network = MemoryNetwork()
    alice, library = Author(network), Library(network)
    library.broken = [TransportError("the node answered <html>")] * 3
    channel = reader(library)
    async with listening(channel) as told:
        alice.store(alice.write("swallowed"))
        for number in range(4):
            alice.publish(alice.write(f"m{number}"))
            await anyio.wait_all_tasks_blocked()
            await told.first(TransportDegraded)
            await anyio.sleep(1)
        await told.until(lambda: "swallowed" in ids(told.events))
        assert told.of(TransportDegraded) == [
            TransportDegraded("receive", "the node answered <html>")
        ]
        assert [event.component for event in told.of(TransportRecovered)] == ["receive"]
        assert channel.statistics().transport.outages == 1
        assert sorted(ids(told.events)) == ["m0", "m1", "m2", "m3", "swallowed"]


async def test_a_gap_that_the_transport_reports_is_made_up_for() -> None:
    network = MemoryNetwork()
    alice, library = Author(network), Library(network)
    channel = reader(library)
    async with listening(channel) as told:
        alice.store(alice.write("dropped by the node"))
        library.gap = "the cache held 50 messages"
        alice.publish(alice.write("m1"))
        await told.until(lambda: len(ids(told.events)) == 2)
        assert len(library.times_asked) == 1
        assert channel.statistics().transport.gaps == 1
        assert not told.of(TransportDegraded)


async def test_a_gap_that_is_reported_while_catching_up_is_made_up_for_too() -> None:
    network = MemoryNetwork()
    alice, library = Author(network), Library(network)
    alice.store(alice.write("before"))
    library.between_pages = anyio.Event()
    async with listening(reader(library, query_on_connect=True)) as told:
        await told.first(MessageReceived)
        alice.store(alice.write("meanwhile"))
        library.gap = "the cache held 50 messages"
        alice.publish(alice.write("m1"))
        await told.until(lambda: "m1" in ids(told.events))
        library.between_pages.set()
        await told.until(lambda: "meanwhile" in ids(told.events))
        assert len(library.times_asked) == 2


async def test_a_slow_reader_does_not_slow_catching_up(virtual_time: None) -> None:
    network = MemoryNetwork()
    alice, library = Author(network), Library(network)
    for number in range(1_000):
        alice.store(alice.write(f"m{number}"))
    channel = reader(library, query_on_connect=True, limits=Limits(events=50))
    async with channel, channel.events() as events:
        received = [await anext(events)]
        await anyio.sleep(60)
        assert channel.statistics().sds.log_length == 1_000
        async for event in events:
            received.append(event)
            if len(ids(received)) == 1_000:
                break
    assert sorted(ids(received)) == sorted(f"m{number}" for number in range(1_000))


async def test_closing_in_the_middle_of_catching_up_is_quiet() -> None:
    network = MemoryNetwork()
    alice, library = Author(network), Library(network)
    for number in range(250):
        alice.store(alice.write(f"m{number}"))
    library.between_pages = anyio.Event()
    async with listening(reader(library, query_on_connect=True)) as told:
        await told.first(MessageReceived)


async def test_a_newcomer_reads_what_was_said_before_by_real_channels() -> None:
    network = MemoryNetwork()
    alice = make_channel(network.transport(), "alice", sync_min_interval_ms=0)
    async with listening(alice) as told:
        for number in range(30):
            await alice.send(b"%d" % number)
        await told.until(lambda: len(told.of(MessageSent)) == 30)
    bob = make_channel(network.transport(), "bob", options=QUICK)
    async with listening(bob) as told:
        await told.until(lambda: len(told.of(MessageReceived)) == 30)
        assert told.contents == [b"%d" % number for number in range(30)]
        assert bob.log_digest() == alice.log_digest()
