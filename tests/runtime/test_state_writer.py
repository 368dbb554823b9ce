"""Nothing of a step is let out before it is written."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from reliable_channel import ChannelOptions, MessageAcknowledged, MessageReceived
from reliable_channel.engine.outbox import CONCURRENCY
from reliable_channel.runtime import state_writer
from reliable_channel.sds.changes import Changes
from reliable_channel.state import Identity, SqliteStateStore, StateUnavailable
from reliable_channel.transport import Envelope, MemoryNetwork, Transport
from tests.channel.world import Spy, listening, make_channel

pytestmark = pytest.mark.anyio


class SlowDisk(SqliteStateStore):
    """A file whose writes wait until they may."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.may_write = threading.Event()
        self.may_write.set()
        self.asked = threading.Event()

    def is_quick(self, changes: Changes) -> bool:
        return False

    def write(self, changes: Changes) -> None:
        self.asked.set()
        assert self.may_write.wait(20)
        super().write(changes)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"  # virtual time does not wait for threads


async def until(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(20):
        while not condition():  # noqa: ASYNC110
            await anyio.sleep(0.001)


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


class Gate(Spy):
    """A transport that is open when it is told to be."""

    def __init__(self, inner: Transport) -> None:
        super().__init__(inner)
        self.opens = anyio.Event()
        self.came = 0

    async def publish(self, envelope: Envelope) -> None:
        self.came += 1
        await self.opens.wait()
        await super().publish(envelope)


async def test_what_is_not_written_is_not_acknowledged_by_what_leaves(tmp_path: Path) -> None:
    network, disk = MemoryNetwork(), SlowDisk(tmp_path / "state.db")
    gate = Gate(network.transport())
    quiet = ChannelOptions(sync_min_interval_ms=0, possible_acks_threshold=1)
    bob = make_channel(network.transport(), "bob", options=quiet)
    async with (
        listening(bob) as told,
        make_channel(gate, "alice", state=disk, options=quiet) as alice,
    ):
        for number in range(CONCURRENCY + 1):
            await alice.send(b"own %d" % number)
        await until(lambda: gate.came == CONCURRENCY)
        disk.may_write.clear()
        disk.asked.clear()
        await bob.send(b"not written")
        await asked(disk)
        gate.opens.set()
        await until(lambda: len(told.contents) == CONCURRENCY + 1)
        assert not told.of(MessageAcknowledged)
        disk.may_write.set()
        await alice.send(b"it is written")
        await told.first(MessageAcknowledged)


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


class Watched(SqliteStateStore):
    """A file that notes which thread writes to it."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.writers: list[threading.Thread] = []
        self.wrote = threading.Event()
        self.fails = 0

    def write(self, changes: Changes) -> None:
        self.writers.append(threading.current_thread())
        self.wrote.set()
        if self.fails:
            self.fails -= 1
            raise StateUnavailable("the disk is full")
        super().write(changes)


@asynccontextmanager
async def sending(disk: Watched) -> AsyncIterator[Callable[[], Awaitable[set[threading.Thread]]]]:
    """A channel whose tables exist; in the context, call for the threads that write a message."""
    async with make_channel(MemoryNetwork().transport(), "alice", state=disk) as alice:

        async def writers() -> set[threading.Thread]:
            disk.writers.clear()
            await alice.send(b"what is written")
            return set(disk.writers)

        for _ in range(10):
            await writers()
        yield writers


async def test_what_waits_for_nothing_is_written_without_another_thread(tmp_path: Path) -> None:
    async with sending(Watched(tmp_path / "state.db")) as writers:
        assert await writers() == {threading.current_thread()}


async def test_after_a_slow_write_the_next_one_is_in_the_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with sending(Watched(tmp_path / "state.db")) as writers:
        monkeypatch.setattr(state_writer, "SLOW_NS", -1)  # the next one counts as slow
        await writers()
        assert threading.current_thread() not in await writers()
        monkeypatch.setattr(state_writer, "SLOW_NS", 10**18)  # on a busy machine, too
        await writers()
        assert await writers() == {threading.current_thread()}


async def test_after_a_failure_it_is_tried_in_the_thread(tmp_path: Path) -> None:
    disk = Watched(tmp_path / "state.db")
    async with sending(disk) as writers:
        disk.fails = 1
        with pytest.raises(StateUnavailable):
            await writers()
        disk.writers.clear()
        disk.wrote.clear()
        await anyio.to_thread.run_sync(disk.wrote.wait)  # it is tried again by itself
        assert disk.writers[0] is not threading.current_thread()


def test_a_write_that_outlives_its_event_loop_is_written_once(tmp_path: Path) -> None:
    disk = SlowDisk(tmp_path / "state.db")

    async def send() -> None:
        async with make_channel(MemoryNetwork().transport(), "alice", state=disk) as alice:
            disk.may_write.clear()
            disk.asked.clear()
            await alice.send(b"precious")

    async def leave_it_behind() -> None:
        task = asyncio.create_task(send())
        while disk.may_write.is_set() or not disk.asked.is_set():
            await anyio.lowlevel.checkpoint()
        # Then `asyncio.run` cancels the tasks of the channel, without AnyIO.
        asyncio.get_running_loop().call_later(0.1, disk.may_write.set)
        assert not task.done()

    asyncio.run(leave_it_behind())
    again = SqliteStateStore(disk.path)
    saved = again.open(Identity("general", "alice", "spec"))
    assert [entry.content for entry in saved.newest] == [b"precious"]
    again.close()
