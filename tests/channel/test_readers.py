"""A reader must never stop a channel: one that sleeps, one that left, and one that is too slow."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from reliable_channel import (
    ChannelOptions,
    DeliveryFailed,
    LogEntry,
    MessageAcknowledged,
    MessageReceived,
    ReliableChannel,
)
from reliable_channel.diagnostics import ReaderFellBehind
from reliable_channel.engine.pending_events import PENDING_EVENTS
from reliable_channel.events import AnyEvent, EventsMissed
from reliable_channel.state import Identity, MemoryStateStore, StateStore
from reliable_channel.transport import MemoryNetwork

from .world import Told, listening, make_channel

pytestmark = pytest.mark.anyio

MESSAGES = 50
ALL = [b"%d" % number for number in range(MESSAGES)]
LIMIT: dict[str, Any] = {"limits": {"events": 10}}


async def send_all(channel: ReliableChannel) -> None:
    for content in ALL:
        await channel.send(content)


def contents(events: list[AnyEvent]) -> list[bytes]:
    return [event.content for event in events if isinstance(event, MessageReceived)]


async def read(events: AsyncIterator[AnyEvent], count: int) -> list[AnyEvent]:
    """Read on until so many messages came."""
    read: list[AnyEvent] = []
    while len(contents(read)) < count:
        read.append(await anext(events))
    return read


@asynccontextmanager
async def alice_and_bob() -> AsyncIterator[tuple[ReliableChannel, ReliableChannel, Told]]:
    """Alice, who has a small buffer, and Bob, with what he is told."""
    network, options = MemoryNetwork(), ChannelOptions()
    bob = make_channel(network.transport(), "bob", options=options, retry_interval_ms=3_000)
    async with make_channel(network.transport(), "alice", options=options, **LIMIT) as alice:
        async with listening(bob) as told:
            yield alice, bob, told


async def all_is_well(alice: ReliableChannel, bob: ReliableChannel, to_bob: Told) -> None:
    """Bob sends all, and everybody but a slow reader goes on as if it were not there."""
    await send_all(bob)
    await to_bob.until(lambda: len(to_bob.of(MessageAcknowledged)) == MESSAGES, within_s=600)
    assert [entry.content for entry in alice.log()] == ALL
    assert to_bob.of(DeliveryFailed) == []
    assert alice.log_digest() == bob.log_digest()


async def test_a_sleeping_reader_stops_nobody_and_gets_everything_later(
    virtual_time: None, caplog: pytest.LogCaptureFixture
) -> None:
    slept: list[AnyEvent] = []
    quick: list[AnyEvent] = []

    async def sleep_over_it() -> None:
        async for event in alice.events(confirm=False):
            slept.append(event)
            if len(slept) == 3:
                await anyio.sleep(1_000)

    async def read_quickly() -> None:
        async for event in alice.events(confirm=False):
            quick.append(event)  # noqa: PERF401 - each is there at once

    async with alice_and_bob() as (alice, bob, to_bob), anyio.create_task_group() as tasks:
        tasks.start_soon(sleep_over_it)
        tasks.start_soon(read_quickly)
        await anyio.wait_all_tasks_blocked()
        await all_is_well(alice, bob, to_bob)
        assert contents(quick) == ALL
        assert len(slept) == 3
        (behind,) = [event for event in quick if isinstance(event, ReaderFellBehind)]
        assert (behind.readers, behind.unread) == (1, 11)
        assert alice.statistics().events_unread > MESSAGES - 10
        await anyio.sleep(1_000)
        assert contents(slept) == ALL
        missed = [event for event in slept if isinstance(event, EventsMissed)]
        assert [event.messages for event in missed] in ([], [0])
        assert alice.statistics().events_unread == 0
        tasks.cancel_scope.cancel()
    (record,) = [record for record in caplog.records if record.name == "reliable_channel"]
    assert record.levelno == logging.WARNING
    assert "'general', participant 'alice': 1 reader(s) of events() fell behind" in record.message


async def test_a_reader_that_left_its_loop_and_is_kept_stops_nobody(virtual_time: None) -> None:
    async with alice_and_bob() as (alice, bob, to_bob):
        left = alice.events()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(bob.send, b"first")
            async for _ in left:
                break
        await send_all(bob)
        await to_bob.until(
            lambda: len(to_bob.of(MessageAcknowledged)) == MESSAGES + 1, within_s=600
        )
        assert len(alice.log()) == MESSAGES + 1
        with anyio.fail_after(1):
            assert contents(await read(alice.events(), MESSAGES)) == ALL
            assert contents(await read(left, MESSAGES)) == ALL


async def test_nobody_who_reads_stops_nobody_and_misses_no_message(virtual_time: None) -> None:
    async with alice_and_bob() as (alice, bob, to_bob):
        await all_is_well(alice, bob, to_bob)
        async with alice.events() as events:
            with anyio.fail_after(1):
                assert contents(await read(events, MESSAGES)) == ALL


@pytest.mark.parametrize("read_before", [0, 1, 20, 49])
async def test_a_slow_reader_with_state_loses_and_doubles_nothing_across_restarts(
    read_before: int, virtual_time: None
) -> None:
    """It confirms as it reads on, deep in the backlog; the rest comes again after a restart."""
    network, state = MemoryNetwork(), MemoryStateStore()
    handled: list[bytes] = []
    again: list[MessageReceived] = []
    async with make_channel(network.transport(), "bob") as bob:
        async with make_channel(network.transport(), "alice", state=state, **LIMIT) as alice:
            slow = alice.events()
            await send_all(bob)
            await anyio.sleep(2)
            if read_before:
                handled += contents(await read(slow, read_before))
                await anext(slow)  # confirms the last one
        async with make_channel(network.transport(), "alice", state=state, **LIMIT) as alice:
            await bob.send(b"new")
            await anyio.sleep(2)
            events = await read(alice.events(), MESSAGES - read_before + 1)
            again += [event for event in events if isinstance(event, MessageReceived)]
    assert handled + contents(list(again)) == [*ALL, b"new"]
    assert [event.redelivered for event in again] == [True] * (len(again) - 1) + [False]


async def test_what_nobody_confirmed_does_not_keep_a_channel_from_listening(
    virtual_time: None,
) -> None:
    """After a restart more is owed than fits the buffer, and nobody reads."""
    network, state = MemoryNetwork(), MemoryStateStore()
    async with make_channel(network.transport(), "bob") as bob:
        async with make_channel(network.transport(), "alice", state=state, **LIMIT):
            await send_all(bob)
            await anyio.sleep(2)
        async with make_channel(network.transport(), "alice", state=state, **LIMIT) as alice:
            await bob.send(b"new")
            await anyio.sleep(2)
            assert len(alice.log()) == MESSAGES + 1


def unconfirmed_rows(state: StateStore) -> int:
    saved = state.open(Identity("general", "alice", "spec"))
    return len(saved.tables.get(PENDING_EVENTS.name, ()))


async def test_what_is_unconfirmed_is_bounded_where_nobody_ever_reads(
    virtual_time: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("reliable_channel.engine.pending_events.PENDING_EVENTS_LIMIT", 20)
    network, state = MemoryNetwork(), MemoryStateStore()
    async with make_channel(network.transport(), "bob") as bob:
        async with make_channel(network.transport(), "alice", state=state):
            await send_all(bob)
            await anyio.sleep(2)
        assert 0 < unconfirmed_rows(state) <= 20
        async with make_channel(network.transport(), "alice", state=state) as alice:
            await anyio.sleep(1)
            kept = contents(await read(alice.events(), 10))
            assert kept[0] in ALL[-20:]
            assert kept == ALL[ALL.index(kept[0]) :][:10]
            assert len(alice.log()) == MESSAGES
    assert "were never confirmed" in caplog.text


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_reader_goes_on_from_a_file_also_after_the_channel_was_closed(
    tmp_path: Path,
) -> None:
    network = MemoryNetwork()
    state = f"sqlite:///{tmp_path}/alice.db"
    async with make_channel(network.transport(), "bob") as bob:
        async with make_channel(network.transport(), "alice", state=state, **LIMIT) as alice:
            events = alice.events(confirm=False)
            await send_all(bob)
            await read(alice.events(confirm=False), MESSAGES)
        assert contents([event async for event in events]) == ALL


# -- the log and what comes after it ---------------------------------------------------------------


async def followed(channel: ReliableChannel, total: int, **arguments: Any) -> list[bytes]:
    """The contents of a snapshot and of what comes after it, until there are so many."""
    async with channel.follow(**arguments) as follower:
        seen = [entry.content for entry in follower.snapshot]
        with anyio.fail_after(600):
            while len(seen) < total:
                event = await anext(follower)
                if isinstance(event, MessageReceived):
                    seen.append(event.content)
    return seen


@pytest.mark.parametrize("with_state", [False, True])
async def test_a_follower_sees_every_message_once(with_state: bool, virtual_time: None) -> None:
    network = MemoryNetwork()
    state: dict[str, Any] = {"state": MemoryStateStore()} if with_state else {}
    seen: dict[int, list[bytes]] = {}

    async def follow_from(number: int, alice: ReliableChannel) -> None:
        seen[number] = await followed(alice, MESSAGES)

    async with make_channel(network.transport(), "bob") as bob:
        async with make_channel(network.transport(), "alice", **LIMIT, **state) as alice:
            async with anyio.create_task_group() as tasks:
                for number, content in enumerate(ALL):
                    await bob.send(content)
                    tasks.start_soon(follow_from, number, alice)
                    if number % 3 == 0:
                        await anyio.lowlevel.checkpoint()
    assert all(contents == ALL for contents in seen.values())
    assert len(seen) == MESSAGES


async def test_a_follower_does_not_repeat_what_is_redelivered(virtual_time: None) -> None:
    network, state = MemoryNetwork(), MemoryStateStore()
    async with make_channel(network.transport(), "bob") as bob:
        async with make_channel(network.transport(), "alice", state=state):
            await send_all(bob)
            await anyio.sleep(2)
        async with make_channel(network.transport(), "alice", state=state) as alice:
            await bob.send(b"new")
            assert await followed(alice, MESSAGES + 1) == [*ALL, b"new"]
            redelivered = await read(alice.events(), MESSAGES)
            assert contents(redelivered) == ALL


async def test_a_follower_takes_the_newest_entries_alone(virtual_time: None) -> None:
    async with alice_and_bob() as (alice, bob, to_bob):
        await all_is_well(alice, bob, to_bob)
        async with alice.follow(last=3) as follower:
            assert [entry.content for entry in follower.snapshot] == ALL[-3:]
            await bob.send(b"new")
            (event,) = [
                event for event in await read(follower, 1) if isinstance(event, MessageReceived)
            ]
            assert event.content == b"new"
        assert [event async for event in follower] == []


@pytest.mark.parametrize("with_state", [False, True])
async def test_a_follower_of_own_messages_sees_all_that_its_application_sends(
    with_state: bool, virtual_time: None
) -> None:
    network = MemoryNetwork()
    state: dict[str, Any] = {"state": MemoryStateStore()} if with_state else {}
    seen: dict[int, list[bytes]] = {}

    async def follow_from(number: int, alice: ReliableChannel) -> None:
        seen[number] = await followed(alice, MESSAGES, own=True)

    async with make_channel(network.transport(), "alice", **state) as alice:
        async with anyio.create_task_group() as tasks:
            for number, content in enumerate(ALL):
                tasks.start_soon(alice.send, content)
                tasks.start_soon(follow_from, number, alice)
                if number % 3 == 0:
                    await anyio.lowlevel.checkpoint()
        in_order = [entry.content for entry in alice.log()]
    assert all(contents == in_order for contents in seen.values())
    assert (len(seen), sorted(in_order)) == (MESSAGES, sorted(ALL))


async def test_an_own_message_is_followed_by_its_answer(virtual_time: None) -> None:
    async with alice_and_bob() as (alice, bob, to_bob), alice.follow(own=True) as follower:
        question = await alice.send(b"question")
        await to_bob.until(lambda: len(to_bob.of(MessageReceived)) == 1, within_s=600)
        await bob.send(b"answer")
        own, answer = [e for e in await read(follower, 2) if isinstance(e, MessageReceived)]
    assert (own.message_id, own.sender_id, own.content) == (
        question.message_id,
        "alice",
        b"question",
    )
    assert (own.position, answer.position) == (0, 1)
    assert (answer.sender_id, answer.content) == ("bob", b"answer")


async def test_own_payloads_that_are_equal_are_put_together_apart(virtual_time: None) -> None:
    """The snapshot begins within the first one: the second needs none of its segments."""
    segmented: dict[str, Any] = {"segmentation": "nim-segmentation", "segment_size_bytes": 1_000}
    async with make_channel(MemoryNetwork().transport(), "alice", **segmented) as alice:
        await alice.send(b"x" * 3_000)
        async with alice.follow(last=2, own=True) as follower:
            assert follower.snapshot == []
            await alice.send(b"x" * 3_000)
            assert contents(await read(follower, 1)) == [b"x" * 3_000]


class Reversed:
    async def encrypt(self, payload: bytes) -> bytes:
        return payload[::-1]

    async def decrypt(self, payload: bytes) -> bytes:
        return payload[::-1]


@pytest.mark.parametrize("order", ["sds-then-encrypt", "encrypt-then-sds"])
async def test_a_follower_has_long_and_sealed_payloads_whole(
    order: str, virtual_time: None
) -> None:
    network = MemoryNetwork()
    long: dict[str, Any] = {
        "segmentation": "nim-segmentation",
        "segment_size_bytes": 1_000,
        "encryption": Reversed(),
        "encryption_order": order,
    }
    payloads = [bytes([number]) * 5_000 for number in range(10)]
    seen: dict[int, list[bytes]] = {}
    seen_by_bob: list[bytes] = []

    async def follow_from(number: int, channel: ReliableChannel) -> None:
        seen[number] = await followed(channel, len(payloads))

    async def follow_own(channel: ReliableChannel) -> None:
        seen_by_bob.extend(await followed(channel, len(payloads), own=True))

    async with make_channel(network.transport(), "bob", **long) as bob:
        async with make_channel(network.transport(), "alice", **LIMIT, **long) as alice:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(follow_own, bob)
                for number, payload in enumerate(payloads):
                    await bob.send(payload)
                    tasks.start_soon(follow_from, number, alice)
            async with bob.follow() as follower:
                own: list[LogEntry] = list(follower.snapshot)
            slow = await read(alice.events(), len(payloads))
    assert list(seen.values()) == [payloads] * len(payloads)
    assert seen_by_bob == payloads
    assert [entry.content for entry in own] == payloads
    assert contents(slow) == payloads
