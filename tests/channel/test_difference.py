"""A log that differs though nobody is missing anything: told by events and the sync status."""

from dataclasses import replace

import anyio
import trio
from trio.testing import MockClock

from reliable_channel import ChannelOptions
from reliable_channel.diagnostics import LogAgrees, LogDiffers, MessageReconciled
from reliable_channel.events import MessageReceived
from reliable_channel.explanation import Way
from reliable_channel.options import RepairOptions
from reliable_channel.transport import MemoryNetwork

from .world import QUICK, listening, make_channel

HIDING = replace(
    QUICK,
    causal_history_size=1,
    sync_min_interval_ms=30_000,
    max_retry_attempts=0,
    retrieval_strategy="none",
    timeout_for_lost_messages_ms=10_000,
)
"""What is two messages back is referred to no more, and nobody is asked for what is missing."""


def test_both_notice() -> None:
    trio.run(_both_notice, clock=MockClock(autojump_threshold=0))


async def _both_notice() -> None:
    network = MemoryNetwork()
    alice = make_channel(network.transport(), "alice", options=HIDING)
    bob = make_channel(network.transport(), "bob", options=HIDING, drop_incoming=0)
    async with listening(alice) as told_alice, listening(bob) as told_bob:
        bob.cut_off(True)
        for n in range(3):
            await alice.send(b"%d" % n)
            await anyio.sleep(1)
        bob.cut_off(False)
        await alice.send(b"last")
        await anyio.sleep(60)
        assert bob.sync_status.state == "synced"
        assert bob.sync_status.lost == 1
        await anyio.sleep(15 * 60)
        assert (bob.sync_status.state, bob.sync_status.different_from) == ("different", ("alice",))
        assert (alice.sync_status.state, alice.sync_status.different_from) == (
            "different",
            ("bob",),
        )
        (noticed,) = told_bob.of(LogDiffers)
        assert (noticed.sender_id, noticed.count_here, noticed.count_there) == ("alice", 1, 4)
        assert len(told_alice.of(LogDiffers)) == 1
        assert told_alice.of(LogAgrees) == told_bob.of(LogAgrees) == []


FORGETFUL = ChannelOptions.of_preset(
    "auto", retrieval_strategy="sds-r-only", repair=RepairOptions(cache_bytes=2_000), history="all"
)
"""Tunes itself; keeps the bytes of some five messages."""
MESSAGES = 100


def test_what_is_older_than_the_repair_cache_is_repaired_from_the_log() -> None:
    trio.run(_repaired_from_the_log, clock=MockClock(autojump_threshold=0))


async def _repaired_from_the_log() -> None:
    network = MemoryNetwork()
    alice, bob, carol = (
        make_channel(network.transport(), name, options=FORGETFUL, drop_incoming=0)
        for name in ("alice", "bob", "carol")
    )
    async with listening(alice), listening(bob) as told_bob, listening(carol):
        await alice.send(b"first")
        await anyio.sleep(60)
        bob.cut_off(True)
        for n in range(MESSAGES):
            await (alice, carol)[n % 2].send(b"%d" % n)
            await anyio.sleep(2)
        await anyio.sleep(60)
        bob.cut_off(False)
        await anyio.sleep(10 * 60)
        assert {alice.log_digest(), bob.log_digest(), carol.log_digest()} == {alice.log_digest()}
        assert bob.sync_status.state == "synced" and not bob.sync_status.repair_failed
        received = [event.content for event in told_bob.of(MessageReceived)]
        assert received == [b"first", *(b"%d" % n for n in range(MESSAGES))]
        reconciled = told_bob.of(MessageReconciled)
        assert len(reconciled) > MESSAGES // 2
        explained = bob.explain(reconciled[0].message_id)
        assert explained.way is Way.RECONCILIATION
        assert explained.answered_by in ("alice", "carol")
