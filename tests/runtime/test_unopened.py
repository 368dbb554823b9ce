"""A wrong key, or the wrong order of encryption, is visible where it is used."""

from __future__ import annotations

import logging
from typing import Any

import anyio
import pytest

from reliable_channel import ChannelOptions, MessageReceived, ReliableChannel
from reliable_channel.runtime.unopened import WARNED_AT, Unopened
from reliable_channel.transport import MemoryNetwork
from tests.channel.world import listening, make_channel

from .test_stages import toy

pytestmark = pytest.mark.anyio

ORDERS = ("sds-then-encrypt", "encrypt-then-sds")


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if getattr(r, "event", "") == "unopened"]


async def warned(channel: ReliableChannel, text: str) -> str:
    """Wait until a warning says this; a message that does not open is no event."""
    while True:
        for warning in channel.health().warnings:
            if text in warning:
                return warning
        await anyio.sleep(0.01)


def options(order: Any = "profile", **values: Any) -> ChannelOptions:
    return ChannelOptions(encryption_order=order, **values)


@pytest.mark.parametrize("order", ORDERS)
async def test_a_wrong_key_is_a_warning_and_one_line_from_the_third_message_on(
    order: str, caplog: pytest.LogCaptureFixture
) -> None:
    network = MemoryNetwork()
    alice = make_channel(network.transport(), "alice", encryption=toy(1), options=options(order))
    bob = make_channel(network.transport(), "bob", encryption=toy(2), options=options(order))
    async with alice, bob:
        for number in range(1, 6):
            await alice.send(b"hello %d" % number)
            if number >= WARNED_AT:
                await warned(bob, f"do not open with the key of this channel: {number};")
                assert len(lines(caplog)) == 1
        assert "their senders use another key" in lines(caplog)[0]
        assert bob.health().ready
        assert not alice.health().warnings


@pytest.mark.parametrize("order", ORDERS)
async def test_the_other_order_is_recognised_and_named(
    order: str, caplog: pytest.LogCaptureFixture
) -> None:
    network, other = MemoryNetwork(), next(each for each in ORDERS if each != order)
    alice = make_channel(network.transport(), "alice", encryption=toy(1), options=options(other))
    bob = make_channel(network.transport(), "bob", encryption=toy(1), options=options(order))
    async with alice, listening(bob) as told:
        await alice.send(b"hello")
        assert f"give `encryption_order={other!r}`" in await warned(bob, "order of encryption")
        assert not told.of(MessageReceived)


async def test_others_on_a_shared_topic_are_no_wrong_key_where_messages_open(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    network, topic = MemoryNetwork(), "/rooms/1/all/proto"
    made = [
        make_channel(network.transport(), name, encryption=toy(key), content_topic=topic)
        for name, key in (("alice", 1), ("bob", 1), ("eve", 2))
    ]
    alice, bob, eve = made
    async with alice, eve, listening(bob) as told:
        for number in range(4):
            await eve.send(b"%d" % number)
        await warned(bob, "or other channels use")
        await alice.send(b"hello")
        await told.first(MessageReceived)
        assert not bob.health().warnings


@pytest.mark.parametrize("order", ORDERS)
async def test_junk_of_a_stranger_is_no_warning_for_ever(
    order: str, caplog: pytest.LogCaptureFixture
) -> None:
    network = MemoryNetwork()
    made = [
        make_channel(network.transport(), name, encryption=toy(key), options=options(order))
        for name, key in (("alice", 1), ("bob", 1), ("eve", 2))
    ]
    alice, bob, eve = made
    async with alice, eve, listening(bob) as told:
        for turn in range(2):
            for number in range(WARNED_AT):
                await eve.send(b"%d" % number)
            await warned(bob, f"do not open with the key of this channel: {WARNED_AT * (turn + 1)}")
            await alice.send(b"hello")
            await told.until(lambda: told.contents.count(b"hello") > turn)  # noqa: B023
            assert not bob.health().warnings
        assert len([line for line in lines(caplog) if "'bob'" in line]) == 1


async def test_the_third_message_in_a_row_is_a_warning() -> None:
    codec = ChannelOptions().profile.codec
    unopened = Unopened(toy(2), codec, contents_alone=False, is_shared=False)
    payload = await toy(1).encrypt(b"whatever")
    for number in range(1, WARNED_AT + 1):
        assert await unopened.note(b"%d" % number, payload) == (number == WARNED_AT)
        assert (unopened.warning is not None) == (number == WARNED_AT)


async def test_a_message_that_store_gives_again_counts_once() -> None:
    codec = ChannelOptions().profile.codec
    unopened = Unopened(toy(2), codec, contents_alone=False, is_shared=False)
    payload = await toy(1).encrypt(b"whatever")
    for _ in range(WARNED_AT):
        assert not await unopened.note(b"hash", payload)
    assert "this channel: 1;" in str(unopened.found)
    assert unopened.warning is None
