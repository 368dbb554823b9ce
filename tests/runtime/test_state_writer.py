"""Nothing of a step is let out before it is written."""

from __future__ import annotations

import threading
from pathlib import Path

import anyio
import pytest

from reliable_channel import MessageReceived
from reliable_channel.sds.changes import Changes
from reliable_channel.state import SqliteStateStore
from reliable_channel.transport import MemoryNetwork
from tests.channel.world import listening, make_channel

pytestmark = pytest.mark.anyio


class SlowDisk(SqliteStateStore):
    """A file whose writes wait until they may."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.may_write = threading.Event()
        self.may_write.set()
        self.asked = threading.Event()

    def write(self, changes: Changes) -> None:
        self.asked.set()
        assert self.may_write.wait(20)
        super().write(changes)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"  # virtual time does not wait for threads


async def asked(disk: SlowDisk) -> None:
    """Wait until a write waits."""
    with anyio.fail_after(20):
        await anyio.to_thread.run_sync(disk.asked.wait)
    for _ in range(20):
        await anyio.lowlevel.checkpoint()


async def test_what_is_not_written_is_neither_sent_nor_accepted(tmp_path: Path) -> None:
    network, disk = MemoryNetwork(), SlowDisk(tmp_path / "state.db")
    accepted = anyio.Event()
    async with make_channel(network.transport(), "alice", state=disk) as alice:
        await alice.send(b"first")
        before = len(network.store)
        disk.may_write.clear()
        disk.asked.clear()

        async def send() -> None:
            await alice.send(b"second")
            accepted.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(send)
            await asked(disk)
            assert len(network.store) == before
            assert not accepted.is_set()
            disk.may_write.set()
        assert accepted.is_set()


async def test_what_is_not_written_is_not_told(tmp_path: Path) -> None:
    network, disk = MemoryNetwork(), SlowDisk(tmp_path / "state.db")
    async with (
        make_channel(network.transport(), "bob") as bob,
        listening(make_channel(network.transport(), "alice", state=disk)) as alice,
    ):
        await bob.send(b"first")
        await alice.first(MessageReceived)
        disk.may_write.clear()
        disk.asked.clear()
        await bob.send(b"second")
        await asked(disk)
        assert alice.contents == [b"first"]
        disk.may_write.set()
        await alice.until(lambda: alice.contents == [b"first", b"second"])
