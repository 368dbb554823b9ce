"""Journals of real channels: what they promise is found kept, whatever befell them."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from reliable_channel import ReliableChannel
from reliable_channel.options import BloomParameters
from reliable_channel_audit.check import check
from reliable_channel_audit.verdict import Verdict
from tests.channel.world import QUICK, MemoryNetwork, Told, listening, make_channel, spied

pytestmark = pytest.mark.anyio
NAMES = ("alice", "bob", "carol")


def judged(tmp_path: Path) -> Verdict:
    return check([tmp_path], settle_ms=0)


class Group:
    """Participants over one network, with a journal each."""

    def __init__(self, directory: Path, stack: AsyncExitStack) -> None:
        self._directory = directory
        self._stack = stack
        self._network = MemoryNetwork()
        self.channels: dict[str, ReliableChannel] = {}
        self.told: dict[str, Told] = {}

    def channel(self, name: str, **arguments: Any) -> ReliableChannel:
        transport = spied(self._network, drop_incoming=0.2, seed=len(self.channels))
        journal = self._directory / f"{name}.jsonl"
        self.channels[name] = make_channel(transport, name, journal=journal, **arguments)
        return self.channels[name]

    async def join(self, name: str, **arguments: Any) -> Told:
        told = await self._stack.enter_async_context(listening(self.channel(name, **arguments)))
        self.told[name] = told
        return told

    async def until_equal(self) -> None:
        while len({channel.log_digest() for channel in self.channels.values()}) > 1:  # noqa: ASYNC110
            await anyio.sleep(0.05)


async def test_a_lossy_group_with_long_messages(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        group = Group(tmp_path, stack)
        for name in NAMES:
            await group.join(name, segmentation="lip-243-v0.1", segment_size_bytes=1_000)
        for number in range(30):
            length = 5_000 if number % 5 == 0 else 20
            await group.channels[NAMES[number % 3]].send(bytes([number]) * length)
            await anyio.sleep(0.01)
        await group.until_equal()
    verdict = judged(tmp_path)
    assert not verdict.findings
    assert not verdict.set_aside
    assert verdict.deliveries == 3 * verdict.messages
    assert verdict.logs == 1


async def test_newcomers_owe_nothing_to_the_past(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        group = Group(tmp_path, stack)
        alice = group.channel("alice")
        await stack.enter_async_context(listening(alice))
        for number in range(10):
            await alice.send(bytes([number]))
        told = await group.join("bob", history="none")
        everything = await group.join("carol")
        await everything.until(lambda: len(everything.contents) == 10)
        await alice.send(b"last")
        await told.until(lambda: b"last" in told.contents)
        await everything.until(lambda: b"last" in everything.contents)
    verdict = judged(tmp_path)
    assert not verdict.findings
    assert verdict.messages == 11


@pytest.mark.parametrize("stateful", [True, False])
async def test_restarts(tmp_path: Path, stateful: bool) -> None:
    state = {"state": f"sqlite:///{tmp_path / 'bob.db'}"} if stateful else {}
    async with AsyncExitStack() as stack:
        group = Group(tmp_path, stack)
        alice = group.channel("alice")
        await stack.enter_async_context(listening(alice))
        for life in range(3):
            async with listening(group.channel("bob", **state)):
                for number in range(5):
                    await alice.send(bytes([life, number]))
                await group.until_equal()
            await anyio.sleep(0.002)  # time is virtual: what comes next is later than this life
    verdict = judged(tmp_path)
    assert not verdict.findings
    assert verdict.lives == (2 if stateful else 4)
    assert verdict.deliveries == 15 + (15 if stateful else 5 + 10 + 15)


async def test_bloom_filters_that_roll_over(tmp_path: Path) -> None:
    """With state, own messages are noted later than what comes in between."""
    options = replace(QUICK, bloom=BloomParameters(capacity=12))
    async with AsyncExitStack() as stack:
        group = Group(tmp_path, stack)
        alice = group.channel("alice", options=options)
        await stack.enter_async_context(listening(alice))
        for life in range(3):
            state = f"sqlite:///{tmp_path / 'bob.db'}"
            async with listening(group.channel("bob", state=state, options=options)):
                for number in range(10):
                    await alice.send(bytes([1, life, number]))
                    await group.channels["bob"].send(bytes([2, life, number]))
                    await anyio.sleep(0.002)  # one filter a (virtual) millisecond is looked at
                await group.until_equal()
    verdict = judged(tmp_path)
    assert not verdict.findings
    assert verdict.messages == 60


async def test_a_process_killed_before_it_wrote_its_journal(tmp_path: Path) -> None:
    """Its state has what its journal has not."""
    state = {"state": f"sqlite:///{tmp_path / 'bob.db'}"}
    async with AsyncExitStack() as stack:
        group = Group(tmp_path, stack)
        alice = group.channel("alice")
        await stack.enter_async_context(listening(alice))
        for life in range(2):
            async with listening(group.channel("bob", **state)):
                for number in range(5):
                    await alice.send(bytes([life, number]))
                await group.until_equal()
            await anyio.sleep(0.002)  # time is virtual: what comes next is later than this life
            if life == 0:
                journal = tmp_path / "bob.jsonl"
                *before, _ = journal.read_text().split('{"event":"message_logged"')
                journal.write_text('{"event":"message_logged"'.join(before))
    verdict = judged(tmp_path)
    assert not verdict.findings
    assert (verdict.messages, verdict.deliveries, verdict.logs) == (10, 20, 1)


async def test_what_somebody_never_got_is_found(tmp_path: Path) -> None:
    """Carol hears nothing at all, and has no Store."""
    async with AsyncExitStack() as stack:
        group = Group(tmp_path, stack)
        told = {name: await group.join(name) for name in ("alice", "bob")}
        transport = spied(MemoryNetwork())
        deaf = make_channel(transport, "carol", journal=tmp_path / "carol.jsonl")
        await stack.enter_async_context(listening(deaf))
        request = await group.channels["alice"].send(b"hello")
        await told["bob"].until(lambda: told["bob"].contents)
    (finding,) = judged(tmp_path).findings
    assert (finding.audit, finding.participant_id) == ("delivery", "carol")
    assert finding.message_id == request.message_id
    assert finding.detail == "never delivered; sent by alice"
