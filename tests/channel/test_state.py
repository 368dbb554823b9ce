"""A channel whose state outlives it: what a restart gives back, and what it does not repeat."""

from __future__ import annotations

import sqlite3
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import anyio
import pytest

from reliable_channel import (
    DeliveryFailed,
    MessageAcknowledged,
    MessageReceived,
    MessageSent,
    ReliableChannel,
)
from reliable_channel.diagnostics import MessageMissing
from reliable_channel.errors import OutgoingBufferFull, StateInUse, StateMismatch
from reliable_channel.events import StateDegraded, StateRecovered, StateRolledBack
from reliable_channel.options import Limits
from reliable_channel.sds.changes import Changes
from reliable_channel.sds.dialects import SpecCodec
from reliable_channel.state import (
    MemoryStateStore,
    SqliteStateStore,
    StateCorrupt,
    StateStore,
    StateUnavailable,
    files,
)
from reliable_channel.transport import MemoryNetwork
from tests import inside

from .world import Told, listening, make_channel

E = TypeVar("E")

pytestmark = pytest.mark.anyio


@pytest.fixture
def state(anyio_backend_name: str, tmp_path: Path) -> StateStore:
    """A file where time is real; in memory where it is virtual, which does not wait for threads."""
    if anyio_backend_name == "trio":
        return MemoryStateStore()
    return SqliteStateStore(tmp_path / "state.db")


class World:
    """Alice, whose state is kept, and Bob, who is always there."""

    def __init__(self, state: StateStore) -> None:
        self.network = MemoryNetwork()
        self.state = state

    def alice(self, **values: Any) -> ReliableChannel:
        return make_channel(self.network.transport(), "alice", **{"state": self.state, **values})

    @asynccontextmanager
    async def bob(self) -> AsyncIterator[Told]:
        async with listening(make_channel(self.network.transport(), "bob")) as told:
            yield told


async def take(channel: ReliableChannel, count: int) -> list[MessageReceived]:
    """Read messages, confirm all but the last one, and go."""
    taken: list[MessageReceived] = []
    with anyio.fail_after(20):
        async for event in channel.events():
            if isinstance(event, MessageReceived):
                taken.append(event)
            if len(taken) == count:
                break
    return taken


async def first(channel: ReliableChannel, kind: type[E]) -> E:
    """Read on until an event of a kind, and confirm nothing."""
    with anyio.fail_after(20):
        async for event in channel.events(confirm=False):
            if isinstance(event, kind):
                return event
    raise AssertionError(f"the channel was closed without {kind.__name__}")


@pytest.mark.conformance("LD-PERSISTENCE-1")
async def test_what_was_accepted_goes_out_after_a_restart(state: StateStore) -> None:
    world = World(state)
    channel = world.alice()
    async with channel:
        world.network.away = True
        request = await channel.send(b"while the node is away")
    world.network.away = False
    async with world.bob() as bob, listening(world.alice()) as alice:
        received = await bob.first(MessageReceived)
        assert received.message_id == request.message_id
        acknowledged = await alice.first(MessageAcknowledged)
        assert acknowledged.message_id == request.message_id
        sent = await alice.first(MessageSent)
        assert sent.request_id == request.request_id


async def test_the_log_is_there_again(state: StateStore) -> None:
    world = World(state)
    async with world.bob() as bob:
        async with world.alice() as channel:
            for number in range(5):
                await channel.send(b"%d" % number)
            await bob.until(lambda: len(bob.contents) == 5)
            log, digest = channel.log(), channel.log_digest()
        async with world.alice() as channel:
            assert [entry.row for entry in channel.log()] == [entry.row for entry in log]
            assert channel.log_digest() == digest


async def test_a_confirmed_message_is_not_told_again_and_another_is(state: StateStore) -> None:
    world = World(state)
    async with make_channel(world.network.transport(), "bob") as bob:
        async with world.alice() as channel:
            for number in range(3):
                await bob.send(b"%d" % number)
            await anyio.wait_all_tasks_blocked()  # the third has arrived as well
            taken = await take(channel, 2)
            assert [event.content for event in taken] == [b"0", b"1"]
            assert not any(event.redelivered for event in taken)
        async with world.alice() as channel:
            again = await take(channel, 2)
            assert [(event.content, event.redelivered) for event in again] == [
                (b"1", True),
                (b"2", True),
            ]
            await channel.confirm(again[-1])
            await bob.send(b"3")
            (new,) = await take(channel, 1)
            assert (new.content, new.redelivered) == (b"3", False)


async def test_whoever_confirms_nothing_is_told_everything_again(state: StateStore) -> None:
    world = World(state)
    async with make_channel(world.network.transport(), "bob") as bob:
        async with world.alice() as channel:
            await bob.send(b"once")
            assert not (await first(channel, MessageReceived)).redelivered
        for _ in range(2):
            async with world.alice() as channel:
                event = await first(channel, MessageReceived)
                assert (event.content, event.redelivered) == (b"once", True)
        async with world.alice() as channel:
            await channel.confirm(await first(channel, MessageReceived))
        async with world.alice() as channel:
            await bob.send(b"next")
            event = await first(channel, MessageReceived)
            assert (event.content, event.redelivered) == (b"next", False)


async def test_one_key_is_one_message_across_restarts(state: StateStore) -> None:
    world = World(state)
    async with world.bob() as bob:
        requests = []
        for _ in range(3):
            async with world.alice() as channel:
                requests += [await channel.send(b"pay", idempotency_key="invoice 7")]
                requests += [await channel.send(b"pay", idempotency_key="invoice 7")]
        assert len(set(requests)) == 1
        async with world.alice() as channel:
            await channel.send(b"end", idempotency_key="another")
            await bob.until(lambda: b"end" in bob.contents)
        assert bob.contents == [b"pay", b"end"]


@pytest.mark.parametrize("key", ["", "x" * 1025, "half a pair \ud800", 5, [], b"key"])
async def test_a_key_that_cannot_be_kept_is_refused(key: Any, state: StateStore) -> None:
    """`peer` hands over whatever a line says; found by fuzzing."""
    async with World(state).alice() as alice:
        with pytest.raises(ValueError, match=r"`idempotency_key` must be a text"):
            await alice.send(b"hello", idempotency_key=key)
        await alice.send(b"hello", idempotency_key="key")


async def test_reports_are_told_again_until_they_are_confirmed(state: StateStore) -> None:
    world = World(state)
    async with world.alice(retry_interval_ms=1, max_retry_attempts=0) as channel:
        request = await channel.send(b"to nobody")
        failed = await first(channel, DeliveryFailed)
        assert failed.message_id == request.message_id
    for _ in range(2):
        async with world.alice() as channel:
            assert await first(channel, DeliveryFailed) == failed


async def test_what_was_sent_while_away_is_wanted_by_a_newcomer_who_comes_back(
    state: StateStore,
) -> None:
    world = World(state)
    async with make_channel(world.network.transport(), "bob") as bob:
        await bob.send(b"before")
        await anyio.sleep(0.01)
        async with world.alice(history="none") as channel:
            await anyio.sleep(0.01)
            await bob.send(b"with me")
            assert [event.content for event in await take(channel, 1)] == [b"with me"]
        await bob.send(b"while away")
        async with world.alice(history="none") as channel:
            told = await take(channel, 2)
            assert [event.content for event in told] == [b"with me", b"while away"]
            assert len(channel.log()) == 2


async def test_half_a_long_message_is_finished_after_a_restart(state: StateStore) -> None:
    world = World(state)
    long: dict[str, Any] = {"segmentation": "nim-segmentation", "segment_size_bytes": 1_000}
    payload = bytes(range(256)) * 20
    async with make_channel(world.network.transport(), "bob", **long) as bob:
        alice = world.alice(retrieval_strategy="none", **long)
        async with alice:
            # The first half arrives and the second is lost on the way.
            world.network.leave(inside.given_transport(alice))
            await bob.send(payload)
            await anyio.sleep(0.05)
            stored = sorted(
                world.network.store.values(),
                key=lambda received: SpecCodec().decode(received.payload).lamport_timestamp or 0,
            )
            for received in stored[: len(stored) // 2]:
                inside.given_transport(alice).arrive(received)
            await anyio.sleep(0.05)
            assert 0 < len(alice.log()) < len(stored)
        async with world.alice(**long) as channel:
            (event,) = await take(channel, 1)
            assert event.content == payload


async def test_a_spent_budget_stays_spent(state: StateStore) -> None:
    world = World(state)
    limited: dict[str, Any] = {"rate_limit": {"enabled": True, "messages_per_epoch": 10}}
    async with world.bob() as bob:
        async with world.alice(sync_min_interval_ms=0, **limited) as channel:
            for number in range(4):
                await channel.send(b"%d" % number)
            await bob.until(lambda: len(bob.contents) == 4)
            spent = channel.explain_budget().spent
        async with world.alice(sync_min_interval_ms=0, **limited) as channel:
            assert channel.explain_budget().spent >= spent >= 4


async def test_a_full_outgoing_buffer_is_full_after_a_restart(state: StateStore) -> None:
    world = World(state)
    for number in range(2):
        async with world.alice(limits=Limits(outgoing_messages=2)) as channel:
            await channel.send(b"%d" % number)
    async with world.alice(limits=Limits(outgoing_messages=2)) as channel:
        with pytest.raises(OutgoingBufferFull):
            await channel.send(b"one too many")


async def test_state_of_somebody_else_is_refused(state: StateStore) -> None:
    world = World(state)
    async with world.alice():
        pass
    with pytest.raises(StateMismatch, match="alice"):
        async with make_channel(world.network.transport(), "carol", state=state):
            pass


async def test_a_row_that_a_disk_changed_is_damage(tmp_path: Path) -> None:
    """SQLite cannot notice a number that became another value; found by fuzzing."""
    path = tmp_path / "state.db"
    network = MemoryNetwork()
    async with make_channel(network.transport(), "alice", state=f"sqlite:///{path}") as alice:
        await alice.send(b"hello")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE outgoing_messages SET data = NULL")
    with pytest.raises(StateCorrupt, match="damaged"):
        async with make_channel(network.transport(), "alice", state=f"sqlite:///{path}"):
            pass


async def test_two_channels_cannot_share_a_state(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/state.db"
    network = MemoryNetwork()
    async with make_channel(network.transport(), "alice", state=url):
        with pytest.raises(StateInUse):
            async with make_channel(network.transport(), "alice", state=url):
                pass


@pytest.mark.parametrize("url", ["postgres://somewhere", "sqlite:", ""])
def test_a_state_that_cannot_be_is_named(url: str) -> None:
    with pytest.raises(ValueError, match="`state` must be "):
        make_channel(MemoryNetwork().transport(), "alice", state=url)


class Failing(MemoryStateStore):
    """A disk that is full, or damaged, for as long as one likes."""

    def __init__(self) -> None:
        super().__init__()
        self.error: Exception | None = None

    def write(self, changes: Changes) -> None:
        if self.error is not None:
            raise self.error
        super().write(changes)


async def test_a_full_disk_is_told_and_the_channel_goes_on() -> None:
    world = World(state := Failing())
    channel = world.alice(on_state_failure="accept")
    async with world.bob() as bob, listening(channel) as alice:
        state.error = StateUnavailable("the disk is full")
        await channel.send(b"in memory alone")
        degraded = await alice.first(StateDegraded)
        assert (degraded.reason, degraded.retryable) == ("the disk is full", True)
        assert degraded.at_risk > 0
        await bob.until(lambda: bob.contents == [b"in memory alone"])
        state.error = None
        await channel.send(b"and this")
        await alice.first(StateRecovered)
    async with world.alice() as again:
        assert [entry.content for entry in again.log()] == [b"in memory alone", b"and this"]


async def test_a_damaged_file_is_left_alone() -> None:
    world = World(state := Failing())
    channel = world.alice(on_state_failure="accept")
    async with listening(channel) as alice:
        state.error = StateCorrupt("damaged")
        await channel.send(b"in memory alone")
        degraded = await alice.first(StateDegraded)
        assert not degraded.retryable
        state.error = None
        await channel.send(b"and this")
        assert not alice.of(StateRecovered)
    async with world.alice() as again:
        assert not again.log()


async def test_a_full_disk_refuses_what_is_sent_and_nobody_hears_of_it() -> None:
    world = World(state := Failing())
    channel = world.alice()
    async with world.bob() as bob, listening(channel) as alice:
        await channel.send(b"first")
        state.error = StateUnavailable("the disk is full")
        for _ in range(2):  # the one that finds out, and one that comes later
            with pytest.raises(StateUnavailable, match=r"nothing was sent.*the disk is full"):
                await channel.send(b"refused", idempotency_key="refused")
        await alice.first(StateDegraded)
        assert [entry.content for entry in channel.log()] == [b"first"]
        assert not channel.statistics().waiting_to_be_sent
        state.error = None
        await alice.first(StateRecovered)
        await channel.send(b"refused", idempotency_key="refused")
        await channel.send(b"last")
        await bob.until(lambda: b"last" in bob.contents)
        assert bob.contents == [b"first", b"refused", b"last"]
        assert not bob.of(MessageMissing)
        await alice.until(lambda: len(alice.of(MessageAcknowledged)) == 3)
        digest = channel.log_digest()
    async with world.alice() as again:
        assert again.log_digest() == digest
        assert [entry.content for entry in again.log()] == [b"first", b"refused", b"last"]


async def test_what_waits_behind_a_write_that_fails_is_refused_with_it() -> None:
    """They refer to one another, and so do sync messages that were made meanwhile."""
    world = World(state := Failing())
    channel = world.alice(sync_min_interval_ms=1)
    refused = 0

    async def send(number: int) -> None:
        nonlocal refused
        try:
            await channel.send(b"%d" % number, idempotency_key=f"{number}")
        except StateUnavailable:
            refused += 1

    async with world.bob() as bob, listening(channel) as alice:
        await channel.send(b"first")
        for round_ in range(3):
            state.error = StateUnavailable("the disk is full")
            async with anyio.create_task_group() as tasks:
                for number in range(10):
                    tasks.start_soon(send, 100 * round_ + number)
            state.error = None
            await alice.until(lambda: len(alice.of(StateRecovered)) > round_)  # noqa: B023
        assert refused == 30
        await channel.send(b"last")
        await bob.until(lambda: b"last" in bob.contents)
        assert bob.contents == [b"first", b"last"]
        assert not bob.of(MessageMissing)


async def test_a_damaged_state_refuses_what_is_sent() -> None:
    world = World(state := Failing())
    channel = world.alice()
    async with listening(channel):
        state.error = StateCorrupt("a bit flipped")
        for _ in range(2):
            with pytest.raises(StateCorrupt, match="a bit flipped"):
                await channel.send(b"refused")
            state.error = None
        assert not channel.log()


async def test_a_disk_with_room_again_is_written_at_the_close_at_the_latest() -> None:
    world = World(state := Failing())
    channel = world.alice(on_state_failure="accept")
    async with listening(channel) as alice:
        state.error = StateUnavailable("the disk is full")
        await channel.send(b"in memory alone")
        await alice.first(StateDegraded)
        state.error = None
    async with world.alice() as again:
        assert [entry.content for entry in again.log()] == [b"in memory alone"]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MiB, where this process may make one."""
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", tmp_path], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("needs the right to mount a file system")
    yield tmp_path
    subprocess.run(["umount", "--lazy", tmp_path], check=True)


def fill(ballast: Path) -> None:
    with suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4_096))


async def test_a_file_system_that_is_really_full(anyio_backend_name: str, small_disk: Path) -> None:
    if anyio_backend_name == "trio":
        return  # its time is virtual here, and a disk's is real
    world = World(SqliteStateStore(small_disk / "state.db"))
    ballast, sent = small_disk / "ballast", []
    channel = world.alice()
    async with world.bob() as bob, listening(channel) as alice:
        await channel.send(b"first")
        fill(ballast)
        with pytest.raises(StateUnavailable, match="full"):
            for number in range(1_000):
                content = b"%d " % number + bytes(5_000)
                await channel.send(content)
                sent.append(content)
        ballast.unlink()
        await alice.first(StateRecovered)
        await channel.send(b"last")
        await bob.until(lambda: b"last" in bob.contents)
        assert bob.contents == [b"first", *sent, b"last"]
    async with world.alice() as again:
        assert [entry.content for entry in again.log()] == [b"first", *sent, b"last"]


async def test_a_disk_that_fills_up_within_a_checkpoint_loses_nothing(
    anyio_backend_name: str, small_disk: Path
) -> None:
    if anyio_backend_name == "trio":
        return  # its time is virtual here, and a disk's is real
    store = SqliteStateStore(small_disk / "state.db")
    world, ballast = World(store), small_disk / "ballast"
    async with world.alice() as alice:
        for number in range(6):
            await alice.send(b"%d " % number * 10_000)
        sent = [entry.content for entry in alice.log()]
        fill(ballast)
        with pytest.raises(sqlite3.OperationalError, match="full"):
            inside.connection(store).execute("PRAGMA wal_checkpoint(PASSIVE)")
        assert files.check(store.path) == []
    assert files.check(store.path) == []
    with pytest.raises(StateUnavailable, match="full"):
        await world.alice().open()
    ballast.unlink()
    async with world.alice() as again:
        assert [entry.content for entry in again.log()] == sent


class Disk:
    """An SQLite file, and what can happen to it while it is in use."""

    def __init__(self, directory: Path) -> None:
        self.store = SqliteStateStore(directory / "state.db")

    @property
    def connection(self) -> sqlite3.Connection:
        return inside.connection(self.store)

    @contextmanager
    def full(self) -> Iterator[None]:
        # A quota of SQLite's own: what it says is what it says of a full disk.
        (pages,) = self.connection.execute("PRAGMA page_count").fetchone()
        self.connection.execute(f"PRAGMA max_page_count = {pages}")
        yield
        self.connection.execute("PRAGMA max_page_count = 1000000")

    @contextmanager
    def read_only(self) -> Iterator[None]:
        self.connection.execute("PRAGMA query_only = 1")
        yield
        self.connection.execute("PRAGMA query_only = 0")

    @contextmanager
    def locked(self) -> Iterator[None]:
        self.connection.execute("PRAGMA busy_timeout = 1")
        with closing(sqlite3.connect(self.store.path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            yield
            other.execute("ROLLBACK")


@pytest.mark.parametrize(
    ("fails", "says"), [("full", "full"), ("read_only", "readonly"), ("locked", "locked")]
)
async def test_what_a_real_disk_refuses_is_written_when_it_works_again(
    anyio_backend_name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fails: str,
    says: str,
) -> None:
    if anyio_backend_name == "trio":
        return  # its time is virtual here, and a disk's is real
    # The connection is the writer's; the test changes its settings from another thread.
    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, check_same_thread=False))
    disk = Disk(tmp_path)
    world = World(disk.store)
    channel = world.alice(on_state_failure="accept")
    async with world.bob() as bob, listening(channel) as alice:
        with getattr(disk, fails)():
            await channel.send(b"large enough to need room: " + bytes(20_000))
            degraded = await alice.first(StateDegraded)
            assert says in degraded.reason
            assert degraded.retryable
            await bob.until(lambda: len(bob.contents) == 1)
        await alice.first(StateRecovered)
        log = channel.log()
    async with world.alice() as again:
        assert [entry.row for entry in again.log()] == [entry.row for entry in log]


async def test_an_older_copy_of_the_state_is_told(anyio_backend_name: str, tmp_path: Path) -> None:
    if anyio_backend_name == "trio":
        return  # its time is virtual here, and a disk's is real
    path = tmp_path / "state.db"
    world = World(SqliteStateStore(path))
    async with world.alice() as channel:
        await channel.send(b"first")
    copy = path.read_bytes()
    async with world.alice() as channel:
        await channel.send(b"second", idempotency_key="second")
    path.write_bytes(copy)
    async with listening(world.alice()) as alice:
        told = await alice.first(StateRolledBack)
        assert told.missing_writes
        assert str(path) in told.reason
    async with listening(channel := world.alice()) as alice:
        await channel.send(b"third")
        await alice.first(MessageSent)
        assert not alice.of(StateRolledBack)
