"""A participant that starts while its node is away waits for it, where that is asked for."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from reliable_channel import ChannelUnavailable, MessageReceived, MessageSent, ReliableChannel
from reliable_channel.diagnostics import NodeHealthChanged, TransportDegraded, TransportRecovered
from reliable_channel.transport import PoolTransport
from tests.channel.world import listening, now_ns

from .nodes import CONTENT_TOPIC, Line, answering, line, over

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("mode")]


def channel(it: Line, sender_id: str, *, wait_for_node: bool = True, **way: Any) -> ReliableChannel:
    return ReliableChannel(
        transport=PoolTransport([over(it, **way)], wait_for_node=wait_for_node),
        channel_id="general",
        sender_id=sender_id,
        content_topic=CONTENT_TOPIC,
        now_ns=now_ns,
        seed=1,
    )


async def test_it_accepts_messages_emits_events_and_starts_when_the_node_does(
    virtual_time: None,
) -> None:
    away = Line()
    async with line() as it, listening(channel(it, "bob")) as bob:
        alice = channel(away, "alice")
        before_s = anyio.current_time()
        async with listening(alice) as told:
            assert anyio.current_time() - before_s < 2
            await alice.send(b"early")
            degraded = await told.first(TransportDegraded)
            assert "nobody listens" in degraded.reason
            changed = await told.first(NodeHealthChanged)
            assert (changed.address, changed.state) == ("http://node", "unsubscribed")
            await anyio.sleep(120)
            assert not told.of(MessageSent)
            away.connect(it.node)
            await told.first(MessageSent, within_s=60)
            assert {"receive", "send"} <= {e.component for e in told.of(TransportDegraded)}
            received = await bob.first(MessageReceived)
            assert received.content == b"early"
            await told.until(
                lambda: (
                    {e.component for e in told.of(TransportDegraded)}
                    == {e.component for e in told.of(TransportRecovered)}
                ),
                within_s=120,
            )


async def test_it_closes_at_once_while_it_waits(virtual_time: None) -> None:
    before_s = anyio.current_time()
    async with channel(Line(), "alice"):
        pass
    assert anyio.current_time() - before_s < 5


async def test_without_it_opening_fails() -> None:
    with pytest.raises(ChannelUnavailable, match="nobody listens"):
        await channel(Line(), "alice", wait_for_node=False).open()


async def test_what_will_never_work_is_not_waited_for() -> None:
    async with line() as it:
        it.disturbance = answering(400, b"invalid content topic format : bad topic", path="/relay")
        with pytest.raises(ChannelUnavailable, match="invalid content topic format"):
            await channel(it, "alice").open()


@pytest.mark.parametrize("mode", [None], indirect=True)
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_the_option_reaches_the_nodes_of_a_channel() -> None:
    alice = ReliableChannel(
        "http://127.0.0.1:9", channel_id="general", sender_id="alice", wait_for_node=True
    )
    async with listening(alice) as told:
        changed = await told.first(NodeHealthChanged, within_s=600)  # a guard against hangs
        assert changed.address == "http://127.0.0.1:9"
