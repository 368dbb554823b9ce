"""Feeds: journals as they grow, and a channel that is joined."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from pytest_reliable_channel.channels import Channels, now_ns
from reliable_channel import ReliableChannel
from reliable_channel.transport import MemoryNetwork
from reliable_channel_watch.feeds import follow, join
from reliable_channel_watch.model import View

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_time: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    return virtual_time


async def test_a_channel_is_seen_while_it_runs(channels: Channels, tmp_path: Path) -> None:
    view = View()
    (alice,) = await channels.open("alice", journal=tmp_path / "alice.jsonl")
    (bob,) = await channels.open("bob")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(follow, view, [tmp_path])
        await alice.send("one")
        await bob.receives("one")
        await channels.sleep(1)
        assert [each.count for each in view.messages.values()] == [0]
        await bob.send("two")
        await alice.receives("two")
        await channels.sleep(1)
        assert len(view.messages) == 2
        assert next(iter(view.messages.values())).count == 1, "bob's message refers to it"
        tasks.cancel_scope.cancel()


async def test_a_channel_that_is_joined_is_seen_through_its_own_journal() -> None:
    network, view = MemoryNetwork(), View()

    def channel(sender_id: str, **options: Any) -> ReliableChannel:
        transport = network.transport()
        return ReliableChannel(
            channel_id="ops", sender_id=sender_id, transport=transport, now_ns=now_ns, **options
        )

    folders: list[Path] = []

    def watcher(folder: Path) -> ReliableChannel:
        folders.append(folder)
        return channel("watcher", journal=folder / "watcher.jsonl")

    async with channel("alice") as alice, anyio.create_task_group() as tasks:
        tasks.start_soon(join, view, watcher)
        await anyio.sleep(1)
        await alice.send(b"hello")
        await anyio.sleep(5)
        assert {lane.name for lane in view.lanes} == {"alice", "watcher"}
        assert [each.count for each in view.messages.values()] == [1]
        tasks.cancel_scope.cancel()
    assert not folders[0].exists()
