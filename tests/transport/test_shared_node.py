"""Channels without a node meet on the one that they share, and are told that nobody else hears."""

from __future__ import annotations

import logging
import threading
from typing import Any

import pytest

from reliable_channel import BlockingReliableChannel, MessageReceived, MessageSent, ReliableChannel
from reliable_channel.transport import WakuSettings
from reliable_channel.transport.shared_node import shared_node
from tests.channel.world import QUICK, listening


def channel(sender_id: str, **values: Any) -> ReliableChannel:
    return ReliableChannel(channel_id="general", sender_id=sender_id, options=QUICK, **values)


@pytest.mark.anyio
async def test_two_channels_of_a_process_meet_and_the_log_warns_for_each(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with channel("alice"), channel("bob"):
        assert [record.levelno for record in caplog.records] == [logging.WARNING] * 2
        assert "no other process reads it; give the address of a node" in caplog.text


@pytest.mark.anyio
async def test_what_one_sends_the_other_receives() -> None:
    alice = channel("alice")
    async with alice, listening(channel("bob")) as told:
        await alice.send(b"hello")
        await told.first(MessageReceived)
        assert told.contents == [b"hello"]


@pytest.mark.anyio
async def test_the_node_ends_with_its_last_channel() -> None:
    settings = WakuSettings("/a/1/b/proto")
    async with shared_node(settings) as first:
        async with shared_node(settings) as second:
            assert second is first
        async with shared_node(settings) as third:
            assert third is first
    async with shared_node(settings) as fourth:
        assert fourth is not first


@pytest.mark.anyio
async def test_another_cluster_is_another_node() -> None:
    alice = channel("alice", cluster_id=2)
    async with listening(alice) as told, listening(channel("bob")) as bob:
        await alice.send(b"hello")
        await told.first(MessageSent)
        assert bob.contents == []


def test_channels_without_async_meet_too() -> None:
    with (
        BlockingReliableChannel(channel_id="general", sender_id="alice", options=QUICK) as alice,
        BlockingReliableChannel(channel_id="general", sender_id="bob", options=QUICK) as bob,
    ):
        alice.send(b"hello")
        received = next(e for e in bob.events() if isinstance(e, MessageReceived))
        assert received.content == b"hello"
    assert not [thread for thread in threading.enumerate() if "portal" in thread.name.lower()]
