"""Sync status and its changes; ids are those of js-waku's suite (SyncStatus unit)."""

import anyio
import pytest

from reliable_channel import SyncStatus
from reliable_channel.transport import MemoryNetwork
from tests.channel.world import make_channel

pytestmark = pytest.mark.anyio


@pytest.mark.conformance("JS-STATUS-2", "JS-STATUS-5", "JS-STATUS-7")
async def test_syncing_while_something_is_missing_and_synced_when_it_comes() -> None:
    network = MemoryNetwork()
    alice = make_channel(network.transport(), "alice")
    bob = make_channel(network.transport(), "bob", drop_incoming=0)
    async with alice, bob:
        assert bob.sync_status == SyncStatus("synced", 0, 0, 0)
        bob.cut_off(True)
        await alice.send(b"one")
        await anyio.wait_all_tasks_blocked()
        bob.cut_off(False)
        await alice.send(b"two")
        seen = []
        with anyio.fail_after(10):
            async for status in bob.sync_status_changes():
                seen.append((status.state, status.missing))
                if status.received == 2:
                    break
        assert ("syncing", 2) in seen
        assert seen[-1] == ("synced", 0)


@pytest.mark.conformance("JS-STATUS-11")
async def test_a_batch_is_one_change() -> None:
    network = MemoryNetwork()
    alice = make_channel(network.transport(), "alice")
    bob = make_channel(network.transport(), "bob")
    async with alice, bob:
        seen: list[SyncStatus] = []
        for number in range(100):
            await alice.send(b"%d" % number)
        with anyio.fail_after(10):
            async for status in bob.sync_status_changes():
                seen.append(status)
                if status.received == 100:
                    break
        assert len(seen) < 100


async def test_iterating_ends_with_the_channel() -> None:
    channel = make_channel(MemoryNetwork().transport(), "alice")
    async with channel:
        changes = channel.sync_status_changes()
        assert (await anext(changes)).state == "synced"
    with anyio.fail_after(5):
        assert [status async for status in changes] == []
