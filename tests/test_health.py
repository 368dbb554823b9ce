"""`channel.health()`: one call that a probe can trust."""

import json
from pathlib import Path
from typing import Any, Final

import anyio
import pytest

from reliable_channel import BlockingReliableChannel, ChannelOptions, MessageSent
from reliable_channel.diagnostics import TransportDegraded, TransportRecovered
from reliable_channel.errors import StateUnavailable
from reliable_channel.events import StateDegraded
from reliable_channel.options import Limits, StateFailure
from reliable_channel.state import MemoryStateStore
from reliable_channel.transport import MemoryNetwork, TransportError
from tests.channel.world import Spy, listening, make_channel, spied

pytestmark = pytest.mark.anyio


MODES: Final[tuple[tuple[StateFailure, bool], ...]] = (("raise", False), ("accept", True))


class Switch(Spy):
    """A network that can go away."""

    away = False

    async def publish(self, envelope: Any) -> None:
        if self.away:
            raise TransportError("the node is away")
        await super().publish(envelope)


async def test_a_channel_is_ready_while_it_can_send_and_only_then() -> None:
    switch = Switch(MemoryNetwork().transport())
    alice = make_channel(switch, "alice", sync_min_interval_ms=0)  # nothing else is to be sent
    assert (alice.health().live, alice.health().ready) == (False, False)
    async with listening(alice) as said:
        assert (alice.health().live, alice.health().ready) == (True, True)
        switch.away = True
        await alice.send(b"one")
        await said.first(TransportDegraded)
        health = alice.health()
        assert (health.live, health.ready) == (True, False)
        assert health.problems == ("send does not work: the node is away",)
        assert (health.unacknowledged, health.waiting_to_be_sent) == (1, 1)
        switch.away = False
        await said.first(TransportRecovered)
        await said.first(MessageSent)
        assert alice.health().ready and alice.health().problems == ()
    assert alice.health().problems == ("the channel is not open",)


async def test_a_full_disk_is_a_problem_of_the_channel_that_refuses_to_send() -> None:
    class Full(MemoryStateStore):
        is_full = False

        def write(self, changes: Any) -> None:
            if self.is_full:
                raise StateUnavailable("disk full")
            super().write(changes)

    for mode, ready in MODES:
        store = Full()
        options = ChannelOptions.of_preset("documented", on_state_failure=mode)
        alice = make_channel(spied(MemoryNetwork()), "alice", state=store, options=options)
        async with listening(alice) as said:
            store.is_full = True
            try:
                await alice.send(b"one")
            except StateUnavailable:
                pass
            await said.first(StateDegraded)
            health = alice.health()
            assert health.ready is ready
            assert "disk full" in " ".join([*health.problems, *health.warnings])
            store.is_full = False


async def test_a_slow_reader_is_a_warning() -> None:
    options = ChannelOptions(limits=Limits(events=10))
    alice = make_channel(spied(MemoryNetwork()), "alice", options=options)
    async with alice:
        reader = alice.events()
        for number in range(30):
            await alice.send(b"%d" % number)
            await anyio.lowlevel.checkpoint()
        health = alice.health()
        assert health.ready
        assert "events behind" in health.warnings[0]
        await reader.aclose()


async def test_health_is_plain_values(tmp_path: Path) -> None:
    async with make_channel(spied(MemoryNetwork()), "alice") as alice:
        assert json.loads(json.dumps(alice.health().as_dict()))["ready"] is True


def test_the_blocking_channel_has_it_too() -> None:
    with BlockingReliableChannel("memory://health", channel_id="c", sender_id="a") as channel:
        assert channel.health().ready
    assert not channel.health().live
