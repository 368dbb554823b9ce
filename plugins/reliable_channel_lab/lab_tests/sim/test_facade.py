"""The channel that applications hold, over embedded nodes in the process, in virtual time.

The clock of trio jumps to the next thing that is due, so that hours of a channel's life take
seconds: its timers, its tasks, its node's REST API and its state file are the real ones.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Final

import anyio
import pytest
import trio
from trio.testing import MockClock

from reliable_channel import MessageReceived, ReliableChannel
from reliable_channel.state import SqliteStateStore
from reliable_channel.transport import WakuTransport
from reliable_channel.transport.settings import WakuSettings
from tests.transport.nodes import CONTENT_TOPIC, Line
from waku.node import EmbeddedNode, NodeOptions

EPOCH_NS: Final = 1_700_000_000_000_000_000
HOUR_S: Final = 3_600
SELDOM: Final = WakuSettings(CONTENT_TOPIC, poll_min_interval_ms=5_000, poll_max_interval_ms=60_000)


def in_virtual_time(live: Callable[[Path], Awaitable[None]], path: Path) -> None:
    """Run on trio itself: pytest's way to it takes a thread for each turn of the loop."""
    trio.run(live, path, clock=MockClock(autojump_threshold=0))


class SqliteAtOnce(SqliteStateStore):
    """Writes in the event loop's own thread: virtual time does not wait for another one."""

    blocking = False


class Clock:
    """Wall-clock time that follows the event loop's, and can be set."""

    def __init__(self) -> None:
        self.set_by_s = 0

    def __call__(self) -> int:
        return EPOCH_NS + int((anyio.current_time() + self.set_by_s) * 1_000_000_000)


class Member:
    """A participant with its line to a node, and the events that it had."""

    def __init__(self, name: str, node: EmbeddedNode, state: Path) -> None:
        self.name = name
        self.line = Line()
        self.line.connect(node)
        self.clock = Clock()
        self.told: list[MessageReceived] = []
        self._node = node
        self._state = state / f"{name}.db"
        self._sessions = 0

    def away(self) -> None:
        self.line.connect(None)

    def back(self) -> None:
        self.line.connect(self._node)

    @asynccontextmanager
    async def session(self) -> AsyncIterator[ReliableChannel]:
        """The life of one process, which goes on where the last one ended."""
        self._sessions += 1
        channel = ReliableChannel(
            transport=WakuTransport("http://node", SELDOM, app=self.line),
            channel_id="general",
            sender_id=self.name,
            state=SqliteAtOnce(self._state),
            seed=self._sessions,
            now_ns=self.clock,
        )
        async with anyio.create_task_group() as tasks, channel:
            tasks.start_soon(self._listen, channel)
            yield channel
            await channel.aclose()

    async def _listen(self, channel: ReliableChannel) -> None:
        async for event in channel.events():
            if isinstance(event, MessageReceived):
                self.told.append(event)


async def until(holds: Callable[[], bool], *, within_s: float) -> None:
    with anyio.fail_after(within_s):
        while not holds():  # noqa: ASYNC110 - nothing tells that a log has changed
            await anyio.sleep(5)


@pytest.mark.long
def test_six_hours_with_outages_and_restarts(tmp_path: Path) -> None:
    in_virtual_time(six_hours, tmp_path)


async def six_hours(tmp_path: Path) -> None:
    random = Random(1)
    async with EmbeddedNode(NodeOptions(now_ns=Clock())) as node:
        alice, bob, carol = (Member(name, node, tmp_path) for name in ("alice", "bob", "carol"))
        sent = {"alice": 0, "bob": 0, "carol": 0}

        async def talk(channel: ReliableChannel, *, for_s: float) -> None:
            with anyio.move_on_after(for_s):
                while True:
                    await anyio.sleep(random.uniform(30, 600))
                    name = channel.sender_id
                    sent[name] += 1
                    await channel.send(f"{name} {sent[name]}".encode())

        async with alice.session() as first, bob.session() as second:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(lambda: talk(first, for_s=6 * HOUR_S))
                tasks.start_soon(lambda: talk(second, for_s=6 * HOUR_S))
                for _ in range(5):
                    async with carol.session() as third:
                        carol.away()
                        await talk(third, for_s=0.1 * HOUR_S)
                        carol.back()
                        await talk(third, for_s=0.9 * HOUR_S)
                    await anyio.sleep(0.2 * HOUR_S)
            async with carol.session() as third:
                channels = (first, second, third)
                await until(
                    lambda: (
                        len({channel.log_digest() for channel in channels}) == 1
                        and len(list(third.log())) == sum(sent.values())
                    ),
                    within_s=HOUR_S,
                )
    assert anyio.current_time() > 6 * HOUR_S
    assert all(count > 10 for count in sent.values())
    for member in (alice, bob, carol):
        contents = [event.content for event in member.told]
        assert len(contents) == len(set(contents)) == sum(sent.values()) - sent[member.name]


def test_a_clock_set_back_by_hours_delays_nothing(tmp_path: Path) -> None:
    in_virtual_time(set_back, tmp_path)


async def set_back(tmp_path: Path) -> None:
    async with EmbeddedNode(NodeOptions(now_ns=Clock())) as node:
        alice, bob = (Member(name, node, tmp_path) for name in ("alice", "bob"))
        async with alice.session() as first, bob.session():
            await anyio.sleep(10)
            bob.away()
            await first.send(b"while nobody hears")
            await anyio.sleep(10)
            alice.clock.set_by_s = -3 * HOUR_S
            bob.back()
            await until(lambda: not first.statistics().sds.outgoing, within_s=300)
            assert [event.content for event in bob.told] == [b"while nobody hears"]
